"""The three blocks of a log: one to learn from, one to choose by, one to promise by.

A validation set that picks among hundreds of layouts flatters the winner, so the promise comes from queries that chose
nothing. Blocks follow time, as tomorrow's queries come after today's: a layout is learned from what was asked first,
chosen by what was asked then, and promises by what was asked last.

Tomorrow's queries repeat earlier ones word for word, as dashboards do, and so do those of a block. What a block says of
them counts as often as they were asked in its time and no more: not what was asked later, or a layout would be learned
from what it is proved on. To keep each statement in one block alone would not do: blocks would choose and promise as
if nobody repeated anything, which is far from tomorrow where most queries are dashboards.

**What is one observation.** A condition that was not asked before a block, and is then asked a thousand times in an
afternoon, is one thing that was seen, not a thousand: taken for independent, its repeats make any mean look certain.
All its queries in the block are one observation, and so are the tiles of a page that share a condition. What was asked
before is known to come back, as dashboards do: its queries in each of `PARTS` parts of the block's time are one, so
that a gain by few dashboards, which are most of the queries, can be proved.

**What a later time may ask.** Dashboards are born and given up, so of the queries of next month fewer repeat what is
known today than of those of a block that follows it at once. `_later` tells how many, and the lower end of a promise's
interval reckons with that.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.asked import Asked, numbered
from zorder_pipeline.model.values import DAY
from zorder_pipeline.model.workload import LoggedQuery

__all__ = ["LogBlocks", "blocks_of", "split_log"]

SHARES = (0.5, 0.25, 0.25)
MIN_DISTINCT = 6
"""Fewer distinct queries than this cannot be split: nothing could be proved on unseen ones."""
PARTS = 7
"""Of a block's time, each of which shows once more whether what is known comes back; none is shorter than a day."""
UNTIMED = 1_000
"""What a log without times takes for a moment: so much of what a statement that is asked once weighs."""
AHEAD = 4
"""Times the promise block's time that a later time is long: as the whole log is."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LogBlocks:
    """Which statement each query of a log asks, and which block its time is in; arrays of shape (queries,).

    Attributes:
        statement: number of its statement.
        condition: number of its condition: what it filters by.
        block: 0 to learn from, 1 to choose by, 2 to promise by; 0 for all where `apart` is False.
        seen: number of the observation that it belongs to.
        later: how many queries of a later time it may stand for, 1 but in the promise block.
    """

    statement: Ints
    condition: Ints
    block: Ints
    seen: Ints
    later: Floats

    @property
    def apart(self) -> bool:
        """Whether there are blocks: of fewer than `MIN_DISTINCT` conditions nothing could be proved."""
        return bool(self.block.any())

    @property
    def train(self) -> Asked:
        """What a layout is learned from."""
        return self._in(0)

    @property
    def select(self) -> Asked:
        """What it is chosen by: all that there is where nothing is kept apart."""
        return self._in(1) if self.apart else self._in(0)

    @property
    def known(self) -> Asked:
        """What may refine it once it is chosen: all that was asked before the promise block begins."""
        return self._in(0, 1)

    @property
    def promise(self) -> Asked:
        """What it promises by; nothing where nothing is kept apart."""
        return self._in(2)

    def twice(self) -> LogBlocks:
        """The log with each query asked once more, as another statement of the same observation."""
        other = np.concatenate([self.statement, self.statement + self.statement.max(initial=-1) + 1])
        condition, block, seen = (np.tile(each, 2) for each in (self.condition, self.block, self.seen))
        return LogBlocks(other, condition, block, seen, np.tile(self.later, 2))

    def _in(self, *blocks: int) -> Asked:
        some = np.flatnonzero(np.isin(self.block, blocks))
        return Asked.of(some, self.statement, self.condition, self.seen, self.later)


def blocks_of(queries: Sequence[LoggedQuery]) -> LogBlocks:
    """The blocks of a log's queries; those that are alike word for word, and in their time zone, ask one statement."""
    conditions = numbered([query.condition for query in queries]).tolist()
    statements = [(one.table, one.template, one.columns, of) for one, of in zip(queries, conditions, strict=True)]
    return split_log(statements, [query.timestamp for query in queries], conditions)


def split_log(
    statements: Sequence[Hashable], times: Sequence[int | None], conditions: Sequence[Hashable] | None = None
) -> LogBlocks:
    """Split a log into blocks of about half, a quarter and a quarter of what was asked.

    A statement that is asked e times as often weighs 1 more than one that is asked once, or a burst of one would be a
    block of its own.

    Args:
        statements: equal for queries asked word for word again.
        times: microseconds, or None; queries without a time keep their place in the log.
        conditions: equal for queries that filter by the same; as ``statements`` without them.

    >>> blocks = split_log(list("abcdeafgha"), [None] * 10)
    >>> blocks.train.queries, blocks.select.queries, blocks.promise.queries
    (array([0, 1, 2, 3, 4]), array([5, 6]), array([7, 8, 9]))
    >>> blocks.known.statements, blocks.known.times
    (array([0, 1, 2, 3, 4, 6]), array([2., 1., 1., 1., 1., 1.]))
    >>> split_log(list("abcdefgh"), [10, 11, 12, 13, 14, 15, None, None]).promise.queries
    array([6, 7])
    >>> split_log(list("ababab"), [None] * 6).apart
    False
    """
    statement = numbered(statements)
    condition = statement if conditions is None else numbered(conditions)
    block, seen = np.zeros(len(statement), dtype=np.int64), condition
    later = np.ones(len(statement))
    count = np.bincount(condition)
    if len(count) >= MIN_DISTINCT:
        moments: list[int] = []
        for told in times:
            moments.append((moments or [0])[-1] if told is None else told)  # without one: that of the query before it
        moment = np.array(moments, dtype=np.int64)
        order = np.argsort(moment, kind="stable")
        mass = ((1 + np.log(count)) / count)[condition[order]]
        middle = np.cumsum(mass) - mass / 2
        block[order] = np.searchsorted(np.cumsum(SHARES)[:2] * mass.sum(), middle, side="left")
        shortest = DAY
        if moment[order[0]] == moment[order[-1]]:  # no time is known: what was asked takes its place
            moment[order], shortest = middle * UNTIMED, 1
        first = np.full(len(count), len(SHARES))
        np.minimum.at(first, condition, block)
        part = _parts(moment, block, shortest)
        _, seen = np.unique(
            np.stack([condition, block, np.where(first[condition] < block, part, 0)]), axis=1, return_inverse=True
        )
        last = block == 2
        later[last] = _later(first[condition[last]], condition[last], part[last])
    return LogBlocks(statement, condition, block, seen.ravel(), later)


def _parts(moment: Ints, block: Ints, shortest: int) -> Ints:
    """The part of its block's time that each query was asked in, 1 to `PARTS`."""
    part = np.zeros(len(block), dtype=np.int64)
    for some in (block == number for number in range(len(SHARES))):
        if some.any():
            begin, end = int(moment[some].min()), int(moment[some].max())
            part[some] = 1 + np.minimum((moment[some] - begin) // max(shortest, (end - begin) // PARTS + 1), PARTS - 1)
    return part


def _later(first: Ints, condition: Ints, part: Ints) -> Floats:
    """How many queries of a later time each of the promise block's may stand for.

    Of these queries a share k repeats what was asked before the block began, and a smaller one, j, what was asked
    before the select block did, which is a block's time earlier: so much, j / k, of what is known is still asked a
    block's time later, and in the `AHEAD` blocks' time after this one the mean of its powers. What the known lose goes
    to those that are born meanwhile, as many as in this block at most: new conditions that were asked in two parts of
    it. What is asked once stays as it is, and so does everything where nothing is born.

    Args:
        first: the block in which each query's condition was first asked, shape (queries of the promise block,).
        condition, part: numbers of its condition and its part of the block's time.

    >>> first, condition = np.array([0, 0, 1, 1, 2, 2, 2, 2]), np.array([0, 0, 1, 1, 2, 2, 3, 4])
    >>> _later(first, condition, np.array([1, 2, 1, 2, 1, 2, 1, 1])).tolist()
    [0.234375, 0.234375, 0.234375, 0.234375, 2.53125, 2.53125, 1.0, 1.0]
    """
    later = np.ones(len(first))
    pairs = np.unique(np.stack([condition, part]), axis=1)[0]
    twice = np.bincount(pairs, minlength=int(condition.max(initial=0)) + 1) > 1
    known, born = first < 2, (first == 2) & twice[condition]
    if known.any() and born.any():
        kept = float(np.mean((np.sum(first < 1) / known.sum()) ** np.arange(1, AHEAD + 1)))
        given = min((1 - kept) * known.sum(), (AHEAD - 1) * born.sum())
        later[known] -= given / known.sum()
        later[born] += given / born.sum()
    return later
