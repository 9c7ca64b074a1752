"""The three blocks of a log: one to learn from, one to choose by, one to promise by.

A validation set that picks among hundreds of layouts flatters the winner, so the promise comes from queries that chose
nothing. Blocks follow time, as tomorrow's queries come after today's: a layout is learned from what was asked first,
chosen by what was asked then, and promises by what was asked last.

Tomorrow's queries repeat earlier ones word for word, as dashboards do, and so do those of a block. What a block says of
them counts as often as they were asked in its time and no more: not what was asked later, or a layout would be learned
from what it is proved on. New statements alone would not do: they would choose and promise as if nobody repeated
anything, by a factor of four where most queries are dashboards.

**What is one observation.** A condition that was not asked before a block, and is then asked a thousand times in an
afternoon, is one thing that was seen, not a thousand: taken for independent, its repeats make any mean look certain.
All its queries in the block are one observation, and so are the tiles of a page that share a condition. What was asked
before is known to come back, as dashboards do: its queries in each of `PARTS` parts of the block's time are one, so
that a gain by few dashboards, which are most of the queries, can be proved.

**What is to come.** Dashboards are born and given up, so of the queries of next month fewer repeat what is known today
than of those of a block that follows it at once. The promise block's queries weigh by that: see `_repeats`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.asked import Asked, numbered
from zorder_pipeline.model.workload import LoggedQuery

__all__ = ["LogBlocks", "blocks_of", "split_log"]

SHARES = (0.5, 0.25, 0.25)
MIN_DISTINCT = 6
"""Fewer distinct queries than this cannot be split: nothing could be proved on unseen ones."""
PARTS = 7
"""Of the block's time, each of which shows once more whether what is known comes back: days, in a log of four weeks."""
SCALE = 1_000
AHEAD = 4
"""Times the promise block's time that is to come: as long as the whole log."""

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
        weights: what it weighs in a promise.
        repeats: see `Asked`, of the promise block.
    """

    statement: Ints
    condition: Ints
    block: Ints
    seen: Ints
    weights: Floats
    repeats: tuple[float, float] = (0.0, 0.0)

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
        return replace(self._in(2), repeats=self.repeats)

    def twice(self) -> LogBlocks:
        """The log with each query asked once more, as another statement of the same observation."""
        other = np.concatenate([self.statement, self.statement + self.statement.max(initial=-1) + 1])
        condition, block, seen = (np.tile(each, 2) for each in (self.condition, self.block, self.seen))
        return LogBlocks(other, condition, block, seen, np.tile(self.weights, 2), self.repeats)

    def _in(self, *blocks: int) -> Asked:
        some = np.flatnonzero(np.isin(self.block, blocks))
        return Asked.of(some, self.statement, self.condition, self.seen, self.weights)


def blocks_of(queries: Sequence[LoggedQuery]) -> LogBlocks:
    """The blocks of a log's queries; those that are alike word for word, and in their time zone, ask one statement."""
    conditions = numbered([(query.predicate, query.zone) for query in queries]).tolist()
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
    weights, repeats = np.ones(len(statement)), (0.0, 0.0)
    if len(np.unique(condition)) >= MIN_DISTINCT:
        moments: list[int] = []
        for told in times:
            moments.append((moments or [0])[-1] if told is None else told)  # without one: that of the query before it
        moment = np.array(moments, dtype=np.int64)
        order = np.argsort(moment, kind="stable")
        count = np.bincount(condition)
        mass = ((1 + np.log(np.maximum(count, 1))) / np.maximum(count, 1))[condition[order]]
        middle = np.cumsum(mass) - mass / 2
        block[order] = np.searchsorted(np.cumsum(SHARES)[:2] * mass.sum(), middle, side="left")
        if moment[order[0]] == moment[order[-1]]:  # no time is known: what was asked takes its place
            moment[order] = middle * SCALE
        first = np.full(len(count), len(SHARES))
        np.minimum.at(first, condition, block)
        part = np.where(first[condition] < block, _parts(moment, block), 0)
        _, number = np.unique(np.stack([condition, block, part]), axis=1, return_inverse=True)
        seen = number.ravel()
        asked = first[condition][block == 2]
        repeats = _repeats(asked)
        if 0 < repeats[0] < 1:
            again, new = repeats[1] / repeats[0], (1 - repeats[1]) / (1 - repeats[0])
            weights[block == 2] = np.where(asked < 2, again, new)
    return LogBlocks(statement, condition, block, seen, weights, repeats)


def _parts(moment: Ints, block: Ints) -> Ints:
    """The part of its block's time that each query was asked in, 1 to `PARTS`."""
    part = np.zeros(len(block), dtype=np.int64)
    for some in (block == number for number in range(len(SHARES))):
        if some.any():
            begin, end = moment[some].min(), moment[some].max()
            part[some] = 1 + np.minimum((moment[some] - begin) * PARTS // max(1, int(end - begin)), PARTS - 1)
    return part


def _repeats(first: Ints) -> tuple[float, float]:
    """Share of the promise block's queries that repeat what was asked before it, and the share of those to come.

    Of these queries a share k was asked before the block began, and a smaller one, j, before the select block did,
    which is a block's time earlier: so much, j / k, of what is known is still asked a block's time later. In a time of
    `AHEAD` blocks it is the mean of its powers.

    Args:
        first: the block in which each query's condition was first asked, shape (queries of the promise block,).

    >>> _repeats(np.array([0, 1, 2, 2]))
    (0.5, 0.234375)
    """
    known, old = (float(np.mean(first < block)) for block in (2, 1))
    return (known, known * float(np.mean((old / known) ** np.arange(AHEAD)))) if 0 < known < 1 else (known, known)
