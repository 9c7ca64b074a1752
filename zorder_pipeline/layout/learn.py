"""Learning a layout from a sample and a log: train, choose, promise, each on its own block of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import optuna

from zorder_pipeline.model.key_spec import MAX_HILBERT_BITS, KeySpec
from zorder_pipeline.model.ranges import Boxes
from zorder_pipeline.model.schema import TableSchema

from .baselines import BASELINES, warm_starts
from .blocks import LogBlocks
from .draft import Draft, SampledTable
from .search import MAX_BITS, Found, Progress, SearchSettings, search
from .skipping import Estimator

__all__ = ["Learned", "learn_layout"]

MIN_GAIN = 0.05
"""A layout must read this share less than the present one on the select queries, or the table stays: what a search
finds beyond that from night to night is noise, and not worth a rewrite."""


SURE = 0.9


@dataclass(frozen=True)
class Learned:
    """What was learned.

    Attributes:
        spec: the winning key; None when the present layout was not beaten on the select queries.
        name: ``learned``, the winning baseline's name, or ``stored``.
        train, select: mean share of rows read on the training and the select block under the winner.
        stored_select: the same on the select block as the table lies now.
        baselines: mean share on the select block by baseline, ``stored`` included.
        before, after: share of rows per promise query, now and under the winner, shape (promise queries,).
        rows_per_file: sample rows that stood for a file: below 50 the shares are optimistic.
        history: best training cost after each trial.
        study: every trial of the search.
        seconds: time taken by the search.
    """

    spec: KeySpec | None
    name: str
    train: float
    select: float
    stored_select: float
    baselines: dict[str, float]
    before: npt.NDArray[np.float64]
    after: npt.NDArray[np.float64]
    rows_per_file: float
    history: npt.NDArray[np.float64]
    seconds: float
    study: optuna.Study | None = field(default=None, repr=False, compare=False)


def learn_layout(
    table: SampledTable,
    columns: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]],
    schema: TableSchema,
    queries: Sequence[Boxes],
    weights: npt.NDArray[np.float64],
    blocks: LogBlocks | None,
    settings: SearchSettings,
    warm: Sequence[Draft] = (),
    progress: Progress | None = None,
) -> Learned:
    """Search on the training block, choose on the select block, promise on the third.

    Without blocks (too few distinct queries) everything is learned and reported on all queries, and the promise arrays
    are empty: nothing was proved.

    Args:
        table: the sample in fine codes, its features the most useful columns first.
        columns: canonical values and validity of every column that queries filter by.
        queries: boxes per query; ``blocks`` indexes them.
        weights: weight per query, positive.
        warm: layouts to start from besides the baselines, such as last night's.
    """
    everything = np.arange(len(queries))
    train, select = (blocks.train, blocks.select) if blocks else (everything, everything)

    def estimator(index: npt.NDArray[np.int64]) -> Estimator:
        return Estimator.build(columns, schema, [queries[i] for i in index], table.rows)

    on_train, on_select = estimator(train), estimator(select)
    stored = _mean(table, None, on_select, weights[select])
    baselines = {"stored": stored}
    found: Found | None = None
    contenders: dict[str, Draft] = {}
    if table.encodings and table.files > 1:
        found = search(table, on_train, weights[train], [*warm, *warm_starts(table)], settings, progress)
        contenders["learned"] = found.draft
        for name, make in BASELINES:
            if (draft := make(table)) is not None:
                baselines[name] = _mean(table, draft, on_select, weights[select])
                contenders[name] = _applicable(draft)
    per_query = {name: table.rows_read(draft, on_select) for name, draft in contenders.items()}
    name = _choose(per_query, weights[select], np.random.default_rng(settings.seed))
    share = float(np.average(per_query[name], weights=weights[select])) if name in per_query else stored
    winner = contenders.get(name) if share <= stored * (1 - MIN_GAIN) else None
    if winner is None:
        name, share = "stored", stored
    elif blocks and winner.curve == "interleave" and len(winner.order) <= MAX_BITS:
        # the choice is made: what the select block knows may now refine it
        both = np.sort(np.concatenate([train, select]))
        budget = SearchSettings(max(1, settings.trials // 2), settings.seed, settings.seconds)
        winner = search(table, estimator(both), weights[both], [winner], budget).draft
    on_promise = estimator(blocks.promise) if blocks else None
    nothing = np.zeros(0)
    return Learned(
        spec=table.spec(winner) if winner else None,
        name=name,
        train=_mean(table, winner, on_train, weights[train]),
        select=share,
        stored_select=stored,
        baselines=baselines,
        before=table.rows_read(None, on_promise) if on_promise else nothing,
        after=table.rows_read(winner, on_promise) if on_promise else nothing,
        rows_per_file=table.rows_per_file,
        history=found.history if found else nothing,
        seconds=found.seconds if found else 0.0,
        study=found.study if found else None,
    )


def _choose(
    per_query: dict[str, npt.NDArray[np.float64]], weights: npt.NDArray[np.float64], rng: np.random.Generator
) -> str:
    """``learned`` unless a baseline reads less on the select block in nearly all bootstrap resamples of its queries.

    The searched layout already includes the baselines on the training block, so a baseline that looks better here by
    the luck of a few queries is no reason to drop it.
    """
    if "learned" not in per_query:
        return "stored"
    best = min(per_query, key=lambda name: float(weights @ per_query[name]))
    gain = weights * (per_query["learned"] - per_query[best])
    if best == "learned" or not len(gain):
        return "learned"
    resampled = gain[rng.integers(len(gain), size=(1000, len(gain)))].sum(axis=1)
    return best if float(np.mean(resampled > 0)) >= SURE else "learned"


def _applicable(draft: Draft) -> Draft:
    """The baseline with files that end at cells, its Hilbert curve as fine as a table of cells allows."""
    if draft.curve == "hilbert":
        dimensions = len(set(draft.order))
        return Draft(draft.order[: MAX_HILBERT_BITS // dimensions * dimensions], "hilbert")
    return Draft(draft.order[:MAX_BITS])


def _mean(table: SampledTable, draft: Draft | None, estimator: Estimator, weights: npt.NDArray[np.float64]) -> float:
    return float(np.average(table.rows_read(draft, estimator), weights=weights)) if len(weights) else 1.0
