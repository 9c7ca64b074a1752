"""Learning a layout from a sample and a log: train, choose, promise, each on its own block of queries."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import optuna

from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.plan import KEPT
from zorder_pipeline.model.progress import Progress as Say
from zorder_pipeline.model.progress import silent

from .choosing import STORED, choose
from .clock import with_clock
from .deadline import Deadline
from .deepen import deepened
from .draft import AnyDraft, Draft
from .evidence import BlockQueries, KnownTable, WeighedLog
from .grow import Grower
from .options import Options, applicable, baseline_of, growers, learned_options, stopped_early
from .promise import in_proportion, whole_table_shares
from .search import MAX_BITS, Progress, SearchSettings, search
from .tree import TreeDraft

__all__ = ["Learned", "learn_layout"]

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
        stays: both as the table lies, the latter once new files follow the present layout.
        baselines: mean share of the queries chosen by, by baseline, ``stored`` included.
        before, after: share of rows per statement of `LogBlocks.promise`, now and under the winner.
        standing: the same once new files follow the present layout; as ``before`` when nothing is kept.
        unseen: the queries of these statements.
        rows_per_file: sample rows that stood for a file: below 50 the shares are optimistic.
        history: best training cost after each trial.
        study: every trial of the search.
        seconds: time taken.
        left_out: baselines that were not compared with, because they take as long as a search.
        late: those that were not for lack of time.
        shortened: what the time budget cut short besides, each a clause.
        computed: values and validity of those columns of the plan's key that the sample lacks.
    """

    spec: KeySpec | None
    name: str
    train: float
    select: float
    stored_select: float
    stays: tuple[float, float]
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
    late: tuple[str, ...] = ()
    shortened: tuple[str, ...] = ()
    computed: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def compared(self) -> dict[str, float]:
        """Mean share of the queries chosen by of all that was weighed, by name: baselines, ``stored`` and ``name``."""
        return self.baselines | {self.name: self.select}

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
    say: Say = silent,
    searching: bool = True,
    safeguards: bool = True,
) -> Learned:
    """Search on the training block, choose on the select block, promise on the third.

    Where no blocks are apart (too few distinct queries) everything is learned and reported on all queries, and the
    promise arrays are empty: nothing was proved.

    What ``settings.seconds`` ends is in `Learned.late` and `Learned.shortened`. Statements are made ready before, and
    the winner's clock and promise after it, whatever the time; a budget that cuts nothing short changes nothing.

    Args:
        warm: orders of bits to start from besides the baselines, such as last night's.
        say: told what is done beyond the trials of the search.
        safeguards: False leaves out baselines that take as long as a search.
        searching: False only tells what the table's present order reads, and keeps it.
    """
    started = time.monotonic()
    train, select = (log.of(block, table) for block in (log.blocks.train, log.blocks.select))
    deadline = Deadline.after(settings.seconds)
    learning = _Learning(table, log, settings, deadline, train, select, say)

    sample = table.sample
    stored = sample.rows_read(None, select.estimator) if table.lies is None else table.lies[select.asked.statements]
    standing = stored
    if table.kept is not None:
        standing = table.told(select.estimator.rows_read(*table.standing) / max(1, sample.rows), select)
    found = Options()
    if searching and sample.encodings and sample.files > 1:
        found = learned_options(sample, train, settings, warm, deadline, safeguards, progress, say)
    shares = {key: learning.read(draft) for key, draft in found.drafts.items()}
    baselines = {key: learning.read(draft) for key, draft in found.own.items()}
    name = choose(shares, standing, select, np.random.default_rng(settings.seed))
    winner: AnyDraft | None = None
    spec: KeySpec | None = None
    shortened = found.shortened
    if name in found.drafts:
        winner, spec, also = learning.refine(found, name, shares[name])
        shortened += also
    elif table.kept is not None:
        name = KEPT
    promise = learning.promise(winner)

    def of_train(draft: AnyDraft | None) -> float:
        return train.mean(table.told(sample.rows_read(draft, train.estimator), train))

    return Learned(
        spec=spec,
        name=name,
        train=of_train(winner),
        select=select.mean(shares.get(name, standing)),
        stored_select=select.mean(stored),
        stays=(of_train(None), select.mean(standing)),
        baselines={key: select.mean(read) for key, read in {STORED: stored, **baselines}.items()},
        before=promise.before,
        after=promise.after,
        standing=promise.standing,
        unseen=log.blocks.promise,
        rows_per_file=sample.rows_per_file,
        history=found.search.history if found.search else NOTHING,
        seconds=time.monotonic() - started,
        study=found.search.study if found.search else None,
        left_out=found.left_out,
        late=found.late,
        shortened=shortened,
    )


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
        deadline: when the time budget ends.
        train, select: the queries that are learned from and chosen by.
        say: told what is done.
    """

    table: KnownTable
    log: WeighedLog
    settings: SearchSettings
    deadline: Deadline
    train: BlockQueries
    select: BlockQueries
    say: Say

    def read(self, draft: AnyDraft) -> Floats:
        """Share of the rows that each statement of the select block reads under a layout, shape (statements,)."""
        return self.table.told(self.table.sample.rows_read(draft, self.select.estimator), self.select)

    def refine(self, options: Options, name: str, read: Floats) -> tuple[AnyDraft, KeySpec, tuple[str, ...]]:
        """The layout that was chosen, its key, and what time cut short.

        Now that the choice is made, what the select block knows may help: it is learned again from all that does not
        promise. Then it goes on into the files, and gets its clock.

        Args:
            read: what statements of the select block read of it, shape (statements,).
        """
        table, sample, apart = self.table, self.table.sample, self.log.blocks.apart
        winner, grower = options.drafts[name], options.growers.get(name)
        known = self.log.of(self.log.blocks.known, table) if apart else self.train
        shortened: tuple[str, ...] = ()
        if apart and self._has_time(options.took.get(name, 0.0)):
            more = growers(sample, known).get(name) if grower is not None else None
            again, shortened = self._learned_again(winner, known, more, name)
            if self.select.mean(self.read(again)) <= self.select.mean(read):
                winner, grower = again, more
        elif apart:
            shortened = ("the winner was not learned again from the queries that chose it",)
        winner, spare = deepened(winner, sample, known.estimator, known.weights, grower, self.deadline)
        if self.deadline.over:
            shortened += ("further cuts and bits inside files were not all sought",)
        plain = replace(sample.spec(winner), spare=spare)
        key = with_clock(plain, winner, sample, table.columns, table.schema, known.boxes, known.weights)
        return winner, key, shortened

    def _has_time(self, seconds: float) -> bool:
        """Whether there are so many seconds left, and any at all."""
        return self.deadline.left > seconds

    def _learned_again(
        self, winner: AnyDraft, known: BlockQueries, grower: Grower | None, name: str
    ) -> tuple[AnyDraft, tuple[str, ...]]:
        """The winning kind of layout, learned from ``known`` queries, and what time cut short.

        Args:
            grower: of the winner, if it is a tree of ours; a baseline's is made as that baseline is.
        """
        settings, deadline, say = self.settings, self.deadline, self.say
        if isinstance(winner, TreeDraft):
            if grower is None:
                again = baseline_of(name, self.table.sample, known, settings, deadline)
                return (winner if again is None else applicable(again, self.table.sample)), ()
            say(f"growing {name} again")
            tree = grower.tree(deadline=deadline, say=lambda text: say(f"growing {name} again: {text}"))
            return tree, (f"{name} was grown again in part",) if tree.hurried else ()
        if winner.curve == "hilbert" or len(winner.order) > MAX_BITS:
            return winner, ()
        budget = replace(settings, trials=max(1, settings.trials // 2), storage=None, seconds=deadline.seconds)
        found = search(self.table.sample, known.estimator, known.weights, [winner], budget)
        return found.draft, tuple(stopped_early(found, budget, deadline))

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
        if table.kept is not None and table.lies is not None:  # the sample knows too little of both
            standing = np.minimum(1.0, in_proportion(before, shares(*sample.blocks(None)), standing))
        after = standing if winner is None else shares(*sample.blocks(winner))
        return _Promise(before, standing, after)
