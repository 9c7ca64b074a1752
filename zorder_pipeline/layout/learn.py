"""Learning a layout from a sample and a log: train, choose, promise, each on its own block of queries."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import optuna

from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.key_spec import MAX_HILBERT_BITS, KeySpec
from zorder_pipeline.model.plan import KEPT

from .baselines import BASELINES, Training, warm_starts
from .choosing import LEARNED, STORED, TREE, UNEVEN, choose
from .clock import with_clock
from .deepen import deepened
from .draft import AnyDraft, Draft, SampledTable, useful
from .evidence import BlockQueries, KnownTable, WeighedLog
from .grow import Grower, GrowSettings, uneven
from .promise import whole_table_shares
from .search import MAX_BITS, Found, Progress, SearchSettings, search
from .similar import with_similar
from .tree import TreeDraft

__all__ = ["Learned", "learn_layout"]

SEARCHED_SHARE = 4
"""Baselines that search get a quarter of our trials here: they are a safeguard, and all of them in ``zorder bench``."""
SLOW_ROWS = 400_000
"""Sample rows above which baselines that search for themselves are left out."""

Floats = npt.NDArray[np.float64]
NOTHING: Floats = np.zeros(0)


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
    before: Floats
    after: Floats
    standing: Floats
    unseen: Asked
    rows_per_file: float
    history: Floats
    seconds: float
    study: optuna.Study | None = field(default=None, repr=False, compare=False)
    left_out: tuple[str, ...] = ()
    computed: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def per_query(self) -> tuple[Floats, Floats]:
        """``before`` and ``after`` of each query, repeats and all, shape (queries,) each."""
        return self.before[self.unseen.which], self.after[self.unseen.which]


def learn_layout(
    table: KnownTable,
    log: WeighedLog,
    settings: SearchSettings,
    *,
    warm: Sequence[Draft] = (),
    progress: Progress | None = None,
    searching: bool = True,
) -> Learned:
    """Search on the training block, choose on the select block, promise on the third.

    Where no blocks are apart (too few distinct queries) everything is learned and reported on all queries, and the
    promise arrays are empty: nothing was proved.

    Args:
        warm: layouts to start from besides the baselines, such as last night's.
        searching: False only tells what the table's present order reads, and keeps it.
    """
    started = time.monotonic()
    deadline = None if settings.seconds is None else started + settings.seconds
    train, select = (log.of(block, table) for block in (log.blocks.train, log.blocks.select))
    learning = _Learning(table, log, settings, deadline, train, select)

    sample = table.sample
    stored = sample.rows_read(None, select.estimator) if table.lies is None else table.lies[select.asked.statements]
    standing = stored
    if table.kept is not None:
        standing = table.told(select.estimator.rows_read(*table.standing) / max(1, sample.rows), select)
    found = learning.search(warm, progress) if searching and sample.encodings and sample.files > 1 else _Options()
    name = choose(found.shares, standing, select, np.random.default_rng(settings.seed))
    winner: AnyDraft | None = None
    spec: KeySpec | None = None
    if name in found.drafts:
        winner, spec = learning.refine(found, name)
    elif table.kept is not None:
        name = KEPT
    promise = learning.promise(winner)
    return Learned(
        spec=spec,
        name=name,
        train=train.mean(table.told(sample.rows_read(winner, train.estimator), train)),
        select=select.mean(found.shares.get(name, standing)),
        stored_select=select.mean(stored),
        baselines={key: select.mean(read) for key, read in {STORED: stored, **found.baselines}.items()},
        before=promise.before,
        after=promise.after,
        standing=promise.standing,
        unseen=log.blocks.promise,
        rows_per_file=sample.rows_per_file,
        history=found.search.history if found.search else NOTHING,
        seconds=time.monotonic() - started,
        study=found.search.study if found.search else None,
        left_out=found.left_out,
    )


@dataclass(frozen=True, eq=False)
class _Options:
    """The layouts that a search leaves to choose from.

    Attributes:
        drafts: layouts by name: ours, then baselines as they can be laid out.
        shares: of the rows that each statement of the select block reads under each of them, shape (statements,).
        baselines: the same of each baseline as it is by itself.
        growers: what grew our trees, by their names.
        left_out: baselines that were not compared with.
    """

    drafts: Mapping[str, AnyDraft] = field(default_factory=dict)
    shares: Mapping[str, Floats] = field(default_factory=dict)
    baselines: Mapping[str, Floats] = field(default_factory=dict)
    growers: Mapping[str, Grower] = field(default_factory=dict)
    search: Found | None = None
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Promise:
    """``before``, ``standing`` and ``after`` of `Learned`."""

    before: Floats = field(default_factory=lambda: NOTHING)
    standing: Floats = field(default_factory=lambda: NOTHING)
    after: Floats = field(default_factory=lambda: NOTHING)


@dataclass(frozen=True, eq=False)
class _Learning:
    """What the steps of `learn_layout` share.

    Attributes:
        deadline: when the time budget ends, by `time.monotonic`; None without one.
        train, select: the queries that are learned from and chosen by.
    """

    table: KnownTable
    log: WeighedLog
    settings: SearchSettings
    deadline: float | None
    train: BlockQueries
    select: BlockQueries

    def search(self, warm: Sequence[Draft], progress: Progress | None) -> _Options:
        """Ours and the baselines, learned from the training block."""
        sample, settings, train = self.table.sample, self.settings, self.train
        found = search(sample, train.estimator, train.weights, [*warm, *warm_starts(sample)], settings, progress)
        growers = _growers(sample, train)
        drafts: dict[str, AnyDraft] = {LEARNED: found.draft}
        with ThreadPoolExecutor(settings.workers) as pool:
            drafts |= zip(growers, pool.map(Grower.tree, growers.values()), strict=True)
        less = replace(settings, trials=max(1, settings.trials // SEARCHED_SHARE))
        training = Training(sample, train.estimator, train.boxes, train.weights, less)
        baselines: dict[str, Floats] = {}
        left_out: list[str] = []
        for baseline in BASELINES:
            if baseline.searched and (sample.rows > SLOW_ROWS or settings.seconds is not None):
                left_out.append(baseline.name)
            elif (draft := baseline.make(training)) is not None:
                baselines[baseline.name] = self._read(draft)
                drafts[baseline.name] = _applicable(draft, sample)
        shares = {name: self._read(draft) for name, draft in drafts.items()}
        return _Options(drafts, shares, baselines, growers, found, tuple(left_out))

    def _read(self, draft: AnyDraft) -> Floats:
        """Share of the rows that each statement of the select block reads under a layout, shape (statements,)."""
        return self.table.told(self.table.sample.rows_read(draft, self.select.estimator), self.select)

    def refine(self, options: _Options, name: str) -> tuple[AnyDraft, KeySpec]:
        """The layout that was chosen, and its key: now that the choice is made, what the select block knows may help.

        It is learned again from all that does not promise, goes on into the files, and gets its clock.
        """
        table, sample, apart = self.table, self.table.sample, self.log.blocks.apart
        winner, grower = options.drafts[name], options.growers.get(name)
        known = self.log.of(self.log.blocks.known, table) if apart else self.train
        left = None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
        if apart and left != 0:
            more = _growers(sample, known).get(name) if grower is not None else None
            again = _learned_again(winner, sample, known, more, replace(self.settings, seconds=left))
            if self.select.mean(self._read(again)) <= self.select.mean(options.shares[name]):
                winner, grower = again, more
        winner, spare = deepened(winner, sample, known.estimator, known.weights, grower)
        plain = replace(sample.spec(winner), spare=spare)
        return winner, with_clock(plain, winner, sample, table.columns, table.schema, known.boxes, known.weights)

    def promise(self, winner: AnyDraft | None) -> _Promise:
        """What the queries that chose nothing read now, under the present layout, and under the winner, if any."""
        if not self.log.blocks.apart:
            return _Promise()
        table, sample = self.table, self.table.sample
        unseen = self.log.of(self.log.blocks.promise, table)

        def shares(block: npt.NDArray[np.int32], number: int) -> Floats:
            return table.told(whole_table_shares(unseen.estimator, block, number, table.stands_for), unseen)

        before = shares(*sample.blocks(None)) if table.lies is None else table.lies[unseen.asked.statements]
        standing = before if table.kept is None else shares(*table.standing)
        after = standing if winner is None else shares(*sample.blocks(winner))
        return _Promise(before, standing, after)


def _growers(sample: SampledTable, known: BlockQueries) -> dict[str, Grower]:
    """What grows our trees from some statements, by their names."""
    similar, shares = with_similar(known.estimator, known.weights, known.asked.times)
    settings = {TREE: GrowSettings(), UNEVEN: uneven(known.boxes, sample.encodings)}
    return {name: Grower(sample, similar, shares, how) for name, how in settings.items()}


def _learned_again(
    winner: AnyDraft, sample: SampledTable, known: BlockQueries, grower: Grower | None, settings: SearchSettings
) -> AnyDraft:
    """The winning kind of layout, learned from ``known`` queries; a baseline's tree stays.

    Args:
        grower: of the winner, if it is a tree of ours.
    """
    if isinstance(winner, TreeDraft):
        return winner if grower is None else grower.tree()
    if winner.curve == "hilbert" or len(winner.order) > MAX_BITS:
        return winner
    budget = replace(settings, trials=max(1, settings.trials // 2), storage=None)
    return search(sample, known.estimator, known.weights, [winner], budget).draft


def _applicable(draft: AnyDraft, sample: SampledTable) -> AnyDraft:
    """The baseline with files that end at cells, its Hilbert curve as fine as a table of cells allows.

    Of other keys the bits that tell no values apart are left out: else those of the first column would be all.
    """
    if isinstance(draft, TreeDraft):
        return replace(draft, leaves_are_files=False)
    if draft.curve == "hilbert":
        dimensions = len(set(draft.order))
        return Draft(draft.order[: MAX_HILBERT_BITS // dimensions * dimensions], "hilbert")
    return Draft(useful(draft.order, [encoding.useful_bits for encoding in sample.encodings])[:MAX_BITS])
