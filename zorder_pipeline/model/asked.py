"""What was asked in some time: each statement once, its queries, and which of these are independent of each other."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["Asked", "numbered"]

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
        seen: the observation that each query belongs to, by its number, as long as ``queries``: queries of one are not
            independent of each other (`zorder_pipeline.layout.blocks`).
        later: how many queries of a later time each may stand for, as long as ``queries``, 1 on average.
        conditions: different ones among the statements.
    """

    queries: Ints
    statements: Ints
    which: Ints
    seen: Ints
    later: Floats
    conditions: int

    @staticmethod
    def of(
        queries: Ints,
        statement: Ints,
        condition: Ints | None = None,
        seen: Ints | None = None,
        later: Floats | None = None,
    ) -> Asked:
        """Some queries, by the numbers of each query's statement, condition and observation.

        Args:
            queries: indices, ascending; the other arrays are of all queries of the log.
            condition: as ``statement`` without it, and ``seen`` as ``condition``; ``later`` is 1 without it.
        """
        condition = statement if condition is None else condition
        seen = condition if seen is None else seen
        later = np.ones(len(statement)) if later is None else later
        _, first, which = np.unique(statement[queries], return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        _, number = np.unique(seen[queries], return_inverse=True)
        return Asked(
            queries,
            queries[first[order]],
            place[which.ravel()],
            number.ravel(),
            later[queries],
            len(np.unique(condition[queries])),
        )

    @staticmethod
    def alike(statements: Sequence[Hashable], conditions: Sequence[Hashable] | None = None) -> Asked:
        """Queries of which those are one statement, or filter by one condition, that are told by equal things.

        >>> asked = Asked.alike(["a", "b", "a"])
        >>> asked.statements, asked.which, asked.times
        (array([0, 1]), array([0, 1, 0]), array([2., 1.]))
        """
        condition = None if conditions is None else numbered(conditions)
        return Asked.of(np.arange(len(statements)), numbered(statements), condition)

    @staticmethod
    def once(statements: int) -> Asked:
        """So many statements of different conditions, each asked once.

        >>> Asked.once(3).times.tolist()
        [1.0, 1.0, 1.0]
        """
        every = np.arange(statements)
        return Asked.of(every, every)

    @property
    def times(self) -> Floats:
        """How often each statement was asked, shape (statements,)."""
        return self._by(self.which, len(self.statements), np.ones(len(self.queries)))

    @property
    def observations(self) -> int:
        """How many there are."""
        return int(self.seen.max(initial=-1)) + 1

    def each(self, values: Sequence[T]) -> list[T]:
        """What is told of each statement: of its first query, out of what is told of all queries of the log."""
        return [values[i] for i in self.statements]

    def sums(self, values: Floats) -> Floats:
        """What the queries of each statement come to, shape (statements,).

        Args:
            values: of all queries of the log, such as their weights.
        """
        return self._by(self.which, len(self.statements), values[self.queries])

    def observed(self, values: Floats, weights: Floats | None = None) -> Floats:
        """What each observation comes to, shape (observations,).

        Args:
            values: of each statement.
            weights: of its queries; 1 without them.
        """
        each = values[self.which] if weights is None else weights * values[self.which]
        return self._by(self.seen, self.observations, each)

    @staticmethod
    def _by(number: Ints, count: int, values: Floats) -> Floats:
        return np.bincount(number, weights=values, minlength=count).astype(np.float64)


def numbered(things: Sequence[Hashable]) -> Ints:
    """The number of each by when it first came, the same for equal ones, shape (things,).

    >>> numbered(["b", "a", "b"])
    array([0, 1, 0])
    """
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(one, len(numbers)) for one in things], dtype=np.int64)
