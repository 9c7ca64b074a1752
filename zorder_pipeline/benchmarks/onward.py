"""Queries that move on to where none of the logged ones asked: how well does a layout learned from the past serve them?

As workload ``layout``, but both logs of a case are put in one order along a column, by where the queries begin on it:
three quarters of them are logged in that order, as dashboards of the newest days are, and those of the last quarter
are unseen that begin beyond all that was logged. Logs by time end like this, and what was chosen by heart fails first.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from zorder_pipeline.errors import ZorderError
from zorder_pipeline.layout.skipping import UNBOUNDED, Estimator

from .cases import CASES, Loaded, cases_named
from .harness import Options, Outcome, Progress, Workload
from .layout import PEERS, simulated

__all__ = ["WORKLOAD", "moving_on"]

LOGGED = 0.75
"""Share of the queries that are logged."""
SECOND = 1_000_000
NOT_ASKED = np.iinfo(np.int64).max


def run(options: Options, progress: Progress) -> list[Outcome]:
    """See `Workload`."""
    return simulated(cases_named(options.tables, CASES), options, progress, order=moving_on)


def moving_on(loaded: Loaded) -> Loaded:
    """The case with its queries along the column on which most of them move on; others are left out.

    Raises:
        ZorderError: on no column does any query begin beyond three quarters of the others.
    """
    queries = [*loaded.train, *loaded.unseen]
    boxes = [*loaded.train_boxes, *loaded.unseen_boxes]
    asked = loaded.estimator(boxes)
    ways = [_along(asked, int(column)) for column in np.unique(asked.column)]
    logged, unseen = max(ways, key=lambda way: len(way[1]))
    if not len(unseen):
        raise ZorderError("workload onward: no query begins beyond three quarters of the others; take a larger --scale")
    moved = [replace(queries[i], timestamp=SECOND * place) for place, i in enumerate([*logged, *unseen])]
    asks = [boxes[i] for i in [*logged, *unseen]]
    split = len(logged)
    return replace(
        loaded,
        train=tuple(moved[:split]),
        unseen=tuple(moved[split:]),
        train_boxes=tuple(asks[:split]),
        unseen_boxes=tuple(asks[split:]),
    )


def _along(asked: Estimator, column: int) -> tuple[list[int], list[int]]:
    """The logged and the unseen queries, each in order, where time goes along one column.

    Only queries all of whose boxes end somewhere on the column count: others ask beyond whatever comes.
    """
    there = (asked.column == column) & (asked.last < UNBOUNDED)
    begins, ends = np.full(len(asked.box_query), NOT_ASKED), np.full(len(asked.box_query), -1)
    np.minimum.at(begins, asked.owner[there], asked.first[there])
    np.maximum.at(ends, asked.owner[there], asked.last[there])
    first, last = np.full(asked.queries, NOT_ASKED), np.full(asked.queries, -1)
    np.minimum.at(first, asked.box_query, begins)
    np.maximum.at(last, asked.box_query, ends)
    everywhere = np.unique(asked.box_query[begins == NOT_ASKED])
    order = np.argsort(first, kind="stable")
    order = order[(first[order] < NOT_ASKED) & ~np.isin(order, everywhere)]
    logged, later = np.split(order, [int(LOGGED * len(order))])
    beyond = later[first[later] > last[logged].max(initial=-1)] if len(logged) else later[:0]
    return logged.tolist(), beyond.tolist()


WORKLOAD = Workload(
    "onward",
    "rows read by queries that move on to where none was logged",
    run,
    peers=PEERS,
    tables=tuple(case.name for case in CASES),
    sized=True,
)
