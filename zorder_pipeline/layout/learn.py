"""Learning a layout from a sample and a log: train, choose, promise, each on its own block of queries."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import optuna

from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.bootstrap import resampled_sums
from zorder_pipeline.model.key_spec import MAX_HILBERT_BITS, KeySpec
from zorder_pipeline.model.plan import KEPT
from zorder_pipeline.model.ranges import Boxes
from zorder_pipeline.model.schema import TableSchema

from .baselines import BASELINES, Training, warm_starts
from .blocks import LogBlocks
from .clock import with_clock
from .deepen import deepened
from .draft import AnyDraft, Draft, SampledTable
from .grow import Grower, GrowSettings, uneven
from .promise import whole_table_shares
from .search import MAX_BITS, Found, Progress, SearchSettings, search
from .similar import with_similar
from .skipping import Estimator
from .tree import TreeDraft

__all__ = ["MIN_GAIN", "Learned", "learn_layout", "surely"]

MIN_GAIN = 0.05
"""A layout must read this share less than the present one on the select queries, or the table stays: what a search
finds beyond that from night to night is noise, and not worth a rewrite."""
TREE, UNEVEN = TREES = ("tree", "uneven-tree")
OWN = ("learned", *TREES)
SURE = 0.9
"""Share of bootstrap resamples in which a gain must show."""
SEARCHED_SHARE = 4
"""Baselines that search get a quarter of our trials here: they are a safeguard, and all of them in ``zorder bench``."""
SLOW_ROWS = 400_000
"""Sample rows above which baselines that search for themselves are left out."""


@dataclass(frozen=True)
class Learned:
    """What was learned.

    Attributes:
        spec: the winning key; None when the present layout was not surely beaten on the select queries.
        name: ``learned`` (a bit order), ``tree`` (of cuts), ``uneven-tree`` (whose files differ in size), the
            winning baseline's name, ``stored``, or ``kept``.
        train, select: mean share of rows read under the winner by the queries that were learned and chosen by.
        stored_select: the latter as the table lies now.
        baselines: mean share of the queries chosen by, by baseline, ``stored`` included.
        before, after: share of rows per statement of `LogBlocks.promise`, now and under the winner.
        standing: the same once new files follow the present layout; as ``before`` when nothing is kept.
        unseen: the queries of these statements.
        rows_per_file: sample rows that stood for a file: below 50 the shares are optimistic.
        history: best training cost after each trial.
        study: every trial of the search.
        seconds: time taken.
        left_out: baselines that were not compared with, because they take as long as a search.
        computed: values and validity of those columns of the plan's key that the sample lacks.
    """

    spec: KeySpec | None
    name: str
    train: float
    select: float
    stored_select: float
    baselines: dict[str, float]
    before: npt.NDArray[np.float64]
    after: npt.NDArray[np.float64]
    standing: npt.NDArray[np.float64]
    unseen: Asked
    rows_per_file: float
    history: npt.NDArray[np.float64]
    seconds: float
    study: optuna.Study | None = field(default=None, repr=False, compare=False)
    left_out: tuple[str, ...] = ()
    computed: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def per_query(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """``before`` and ``after`` of each query, repeats and all, shape (queries,) each."""
        return self.before[self.unseen.which], self.after[self.unseen.which]


def learn_layout(
    table: SampledTable,
    columns: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]],
    schema: TableSchema,
    queries: Sequence[Boxes],
    weights: npt.NDArray[np.float64],
    blocks: LogBlocks,
    settings: SearchSettings,
    warm: Sequence[Draft] = (),
    progress: Progress | None = None,
    kept: npt.NDArray[np.int32] | None = None,
    searching: bool = True,
    lies: npt.NDArray[np.float64] | None = None,
    stands_for: float = math.inf,
) -> Learned:
    """Search on the training block, choose on the select block, promise on the third.

    Where no blocks are apart (too few distinct queries) everything is learned and reported on all queries, and the
    promise arrays are empty: nothing was proved.

    Args:
        table: the sample in fine codes, its features the most useful columns first.
        columns: canonical values and validity of every column that queries filter by.
        queries: boxes per query; ``blocks`` indexes them.
        weights: weight per query, positive.
        warm: layouts to start from besides the baselines, such as last night's.
        kept: file of each sampled row once the table's new files follow its present layout. Another layout must beat
            that, not the table as it lies.
        searching: False only tells what the table's present order reads, and keeps it.
        lies: share of the rows that each query reads of the table as it lies, shape (queries,), where that is known;
            else the sample tells it, as it does of every layout: too little if a present file has few rows in it.
        stands_for: rows of the table that a sampled row stands for.
    """
    started = time.monotonic()

    def left() -> float | None:
        """What is left of the time budget, in seconds."""
        return None if settings.seconds is None else max(0.0, settings.seconds - (time.monotonic() - started))

    def part(asked: Asked) -> _Part:
        boxes = asked.each(queries)
        return _Part(boxes, Estimator.build(columns, schema, boxes, table.rows), asked.sums(weights), asked)

    train, select = part(blocks.train), part(blocks.select)
    stored = table.rows_read(None, select.estimator) if lies is None else lies[blocks.select.statements]
    stays = (kept, int(kept.max()) + 1) if kept is not None else table.blocks(None)
    standing = stored if kept is None else select.estimator.rows_read(*stays) / max(1, table.rows)
    shares: dict[str, npt.NDArray[np.float64]] = {}
    found: Found | None = None
    drafts: dict[str, AnyDraft] = {}
    growers: dict[str, Grower] = {}
    left_out: list[str] = []
    if searching and table.encodings and table.files > 1:
        found = search(table, train.estimator, train.weights, [*warm, *warm_starts(table)], settings, progress)
        drafts["learned"] = found.draft
        growers = _growers(table, train)
        drafts |= {kind: grower.tree() for kind, grower in growers.items()}
        less = replace(settings, trials=max(1, settings.trials // SEARCHED_SHARE))
        training = Training(table, train.estimator, train.boxes, train.weights, less)
        for baseline in BASELINES:
            if baseline.searched and (table.rows > SLOW_ROWS or settings.seconds is not None):
                left_out.append(baseline.name)
            elif (draft := baseline.make(training)) is not None:
                shares[baseline.name] = table.rows_read(draft, select.estimator)
                drafts[baseline.name] = _applicable(draft)
    per_query = {name: table.rows_read(draft, select.estimator) for name, draft in drafts.items()}
    name = _choose(per_query, standing * (1 - MIN_GAIN), weights, select, np.random.default_rng(settings.seed))
    winner = drafts.get(name)
    if winner is None and kept is not None:
        name = KEPT
    spec: KeySpec | None = None
    if winner is not None:
        # the choice is made: what the select block knows may now refine it
        known, grower = part(blocks.known) if blocks.apart else train, growers.get(name)
        if blocks.apart and (seconds := left()) != 0:
            more = _growers(table, known).get(name) if grower is not None else None
            again = _refined(winner, table, known, more, replace(settings, seconds=seconds))
            if _mean(table, again, select) <= _average(per_query[name], select.weights):
                winner, grower = again, more
        winner, spare = deepened(winner, table, known.estimator, known.weights, grower)
        plain = replace(table.spec(winner), spare=spare)
        spec = with_clock(plain, winner, table, columns, schema, known.boxes, known.weights)
    nothing = np.zeros(0)
    before = still = after = nothing
    unseen = blocks.promise
    if blocks.apart:
        on_promise = part(unseen).estimator
        before = (
            whole_table_shares(on_promise, *table.blocks(None), stands_for) if lies is None else lies[unseen.statements]
        )
        still = before if kept is None else whole_table_shares(on_promise, *stays, stands_for)
        after = still if winner is None else whole_table_shares(on_promise, *table.blocks(winner), stands_for)
    return Learned(
        spec=spec,
        name=name,
        train=_mean(table, winner, train),
        select=_average(per_query.get(name, standing), select.weights),
        stored_select=_average(stored, select.weights),
        baselines={key: _average(read, select.weights) for key, read in {"stored": stored, **shares}.items()},
        before=before,
        after=after,
        standing=still,
        unseen=unseen,
        rows_per_file=table.rows_per_file,
        history=found.history if found else nothing,
        seconds=time.monotonic() - started,
        study=found.study if found else None,
        left_out=tuple(left_out),
    )


@dataclass(frozen=True, eq=False)
class _Part:
    """The statements of a block: their boxes, what tells how they skip, their weights, and their queries."""

    boxes: Sequence[Boxes]
    estimator: Estimator
    weights: npt.NDArray[np.float64]
    asked: Asked


def _growers(table: SampledTable, known: _Part) -> dict[str, Grower]:
    """What grows our trees from some statements, by their names."""
    similar, shares = with_similar(known.estimator, known.weights, known.asked.times)
    settings = {TREE: GrowSettings(), UNEVEN: uneven(known.boxes, table.encodings)}
    return {name: Grower(table, similar, shares, how) for name, how in settings.items()}


def _refined(
    winner: AnyDraft, table: SampledTable, known: _Part, grower: Grower | None, settings: SearchSettings
) -> AnyDraft:
    """The winning kind of layout, learned again from all queries that do not promise; a baseline's tree stays.

    Args:
        grower: of the winner, if it is a tree of ours.
    """
    if isinstance(winner, TreeDraft):
        return winner if grower is None else grower.tree()
    if winner.curve == "hilbert" or len(winner.order) > MAX_BITS:
        return winner
    budget = replace(settings, trials=max(1, settings.trials // 2), storage=None)
    return search(table, known.estimator, known.weights, [winner], budget).draft


def _choose(
    per_query: dict[str, npt.NDArray[np.float64]],
    bar: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
    select: _Part,
    rng: np.random.Generator,
) -> str:
    """The best one of `OWN` on the select block, unless a baseline is surely better, or none is.

    The searched layouts already include the baselines on the training block, so a baseline that looks better here by
    the luck of a few queries is no reason to drop them; and the table stays as it is unless the winner surely reads
    less than ``bar``.

    Args:
        weights: of all queries of the log.
    """

    def gain(now: npt.NDArray[np.float64], then: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """What each observation gains."""
        return select.asked.observed(now - then, weights[select.asked.queries])

    own = [name for name in per_query if name in OWN]
    if not own or not len(select.weights):
        return "stored"
    name = min(own, key=lambda name: float(select.weights @ per_query[name]))
    best = min(per_query, key=lambda name: float(select.weights @ per_query[name]))
    # the best of many is often so by luck: the more there are, the surer it must be (Bonferroni)
    if best not in own and surely(gain(per_query[name], per_query[best]), rng, len(per_query) - len(own)):
        name = best
    return name if surely(gain(bar, per_query[name]), rng) else "stored"


def surely(gain: npt.NDArray[np.float64], rng: np.random.Generator, among: int = 1) -> bool:
    """Whether the mean gain is positive in nearly all bootstrap resamples of what each observation gains."""
    resampled = resampled_sums(gain[None], rng)[0]
    return float(np.mean(resampled <= 0)) <= (1 - SURE) / among


def _applicable(draft: AnyDraft) -> AnyDraft:
    """The baseline with files that end at cells, its Hilbert curve as fine as a table of cells allows."""
    if isinstance(draft, TreeDraft):
        return replace(draft, leaves_are_files=False)
    if draft.curve == "hilbert":
        dimensions = len(set(draft.order))
        return Draft(draft.order[: MAX_HILBERT_BITS // dimensions * dimensions], "hilbert")
    return Draft(draft.order[:MAX_BITS])


def _average(shares: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> float:
    return float(np.average(shares, weights=weights)) if len(weights) else 1.0


def _mean(table: SampledTable, draft: AnyDraft | None, part: _Part) -> float:
    return _average(table.rows_read(draft, part.estimator), part.weights)
