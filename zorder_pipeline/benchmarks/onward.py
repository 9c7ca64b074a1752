"""Queries that move on to where none of the logged ones asked: how well does a layout learned from the past serve them?

As workload ``layout``, but both logs of a case are put in one order along the column that most of the queries restrict:
those that do are logged in that order, as dashboards of the newest days are, and the last quarter is unseen. Logs by
time end like this, and what was chosen by heart fails here first.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

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
    return simulated(cases_named(options.tables), options, progress, order=moving_on)


def moving_on(loaded: Loaded) -> Loaded:
    """The case with its queries by where they begin on the column that most of them restrict; others are left out."""
    queries = [*loaded.train, *loaded.unseen]
    boxes = [*loaded.train_boxes, *loaded.unseen_boxes]
    asked = loaded.estimator(boxes)
    of = asked.box_query[asked.owner]
    pairs = np.unique(np.stack([of, asked.column]), axis=1)
    most = int(np.bincount(pairs[1]).argmax())
    begins = np.full(len(queries), NOT_ASKED)
    there = asked.column == most
    where = np.where(asked.first > 0, asked.first, asked.last).astype(np.int64)  # up to somewhere: by its end
    np.minimum.at(begins, of[there], where[there])
    order = np.argsort(begins, kind="stable")[: int((begins < NOT_ASKED).sum())]
    moved = tuple(replace(queries[i], timestamp=SECOND * place) for place, i in enumerate(order))
    asks = tuple(boxes[i] for i in order)
    split = int(LOGGED * len(order))
    return replace(
        loaded, train=moved[:split], unseen=moved[split:], train_boxes=asks[:split], unseen_boxes=asks[split:]
    )


WORKLOAD = Workload(
    "onward",
    "rows read by queries that move on to where none was logged",
    run,
    peers=PEERS,
    tables=tuple(case.name for case in CASES),
    sized=True,
)
