"""The three blocks of a log: one to learn from, one to choose by, one to promise by.

A validation set that picks among hundreds of layouts flatters the winner, so the promise comes from queries that chose
nothing. Blocks follow time, as tomorrow's queries come after today's: a layout is learned from what was asked first,
chosen by what was asked then, and promises by what was asked last.

Tomorrow's queries repeat earlier ones word for word, as dashboards do, and so do those of a block. What a block says of
them counts as often as they were asked in its time and no more: not what was asked later, or a layout would be learned
from what it is proved on. New statements alone would not do: they would choose and promise as if nobody repeated
anything, by a factor of four where most queries are dashboards.

Each statement is looked at once, with the number of its queries, so that a log of many repeats costs what its few
statements do, and resamples draw statements, not queries (`zorder_pipeline.model.bootstrap`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.workload import LoggedQuery

__all__ = ["Asked", "LogBlocks", "blocks_of", "split_log"]

SHARES = (0.5, 0.25, 0.25)
MIN_DISTINCT = 6
"""Fewer distinct queries than this cannot be split: nothing could be proved on unseen ones."""

T = TypeVar("T")
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Asked:
    """What was asked in some time: each statement once.

    Attributes:
        queries: indices of the queries, ascending.
        statements: index of the first query of each statement then, ascending.
        which: the place in ``statements`` of each query's, as long as ``queries``.
    """

    queries: Ints
    statements: Ints
    which: Ints

    @staticmethod
    def of(queries: Ints, statement: Ints) -> Asked:
        """Some queries, by the number of each query's statement."""
        _, first, which = np.unique(statement[queries], return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return Asked(queries, queries[first[order]], place[which.ravel()])

    @property
    def times(self) -> Floats:
        """How often each statement was asked, shape (statements,)."""
        return np.bincount(self.which, minlength=len(self.statements)).astype(np.float64)

    def each(self, values: Sequence[T]) -> list[T]:
        """What is told of each statement: of its first query, out of what is told of all queries of the log."""
        return [values[i] for i in self.statements]

    def sums(self, values: Floats) -> Floats:
        """What the queries of each statement come to, shape (statements,).

        Args:
            values: of all queries of the log, such as their weights.
        """
        told = np.bincount(self.which, weights=values[self.queries], minlength=len(self.statements))
        return told.astype(np.float64)


@dataclass(frozen=True, eq=False)
class LogBlocks:
    """Which statement each query of a log asks, and which block its time is in; arrays of shape (queries,).

    Attributes:
        statement: number of its statement.
        block: 0 to learn from, 1 to choose by, 2 to promise by; 0 for all where `apart` is False.
    """

    statement: Ints
    block: Ints

    @property
    def apart(self) -> bool:
        """Whether there are blocks: of fewer than `MIN_DISTINCT` statements nothing could be proved."""
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

    def _in(self, *blocks: int) -> Asked:
        return Asked.of(np.flatnonzero(np.isin(self.block, blocks)), self.statement)


def blocks_of(queries: Sequence[LoggedQuery]) -> LogBlocks:
    """The blocks of a log's queries; those that are alike word for word, and in their time zone, ask one statement."""
    return split_log([(q.fingerprint, q.zone, q.columns) for q in queries], [q.timestamp for q in queries])


def split_log(statements: Sequence[Hashable], times: Sequence[int | None]) -> LogBlocks:
    """Split a log into blocks of about half, a quarter and a quarter of what was asked.

    A statement of n queries weighs as much as the square root of n that are asked once, or a burst of one would be a
    block of its own.

    Args:
        statements: equal for queries asked word for word again.
        times: microseconds, or None; queries without a time keep their place in the log.

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
    numbers: dict[Hashable, int] = {}
    statement = np.array([numbers.setdefault(one, len(numbers)) for one in statements], dtype=np.int64)
    block = np.zeros(len(statement), dtype=np.int64)
    if len(numbers) >= MIN_DISTINCT:
        moments: list[int] = []
        for told in times:
            moments.append((moments or [0])[-1] if told is None else told)  # without one: that of the query before it
        order = np.argsort(np.array(moments, dtype=np.int64), kind="stable")
        mass = 1 / np.sqrt(np.bincount(statement))[statement[order]]
        middle = np.cumsum(mass) - mass / 2
        block[order] = np.searchsorted(np.cumsum(SHARES)[:2] * mass.sum(), middle, side="left")
    return LogBlocks(statement, block)
