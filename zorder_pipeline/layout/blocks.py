"""The three blocks of a log: one to learn from, one to choose by, one to promise by.

A validation set that picks among hundreds of layouts flatters the winner, so the promise comes from queries that chose
nothing. Blocks follow time, as tomorrow's queries come after today's, and a statement repeated word for word stays in
one block, or it would be learned by heart.

But tomorrow's queries repeat, too: a dashboard is asked word for word every hour. New statements alone would choose and
promise as if nobody did, by a factor of four where most queries are dashboards. So with a block's own statements count
the repeats of earlier ones that were asked in its time, as often as they were asked.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

__all__ = ["LogBlocks", "split_log"]

SHARES = (0.5, 0.25, 0.25)
MIN_DISTINCT = 6
"""Fewer distinct queries than this cannot be split: nothing could be proved on unseen ones."""


@dataclass(frozen=True)
class LogBlocks:
    """Indices of the queries in each block, each ascending; a repeated query occurs as often as it was asked.

    Attributes:
        train, select, promise: queries of the statements of each block, which no other block has.
        known_to_select, known_to_promise: queries asked in the time of a block whose statement an earlier one has.
    """

    train: npt.NDArray[np.int64]
    select: npt.NDArray[np.int64]
    promise: npt.NDArray[np.int64]
    known_to_select: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    known_to_promise: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def choosing(self) -> npt.NDArray[np.int64]:
        """The queries that a layout is chosen by: the select block's and what was asked again in its time."""
        return np.sort(np.concatenate([self.select, self.known_to_select]))

    @property
    def promising(self) -> npt.NDArray[np.int64]:
        """The queries that it promises by: all that were asked since the promise block began."""
        return np.sort(np.concatenate([self.promise, self.known_to_promise]))


def split_log(fingerprints: Sequence[str], times: Sequence[int | None]) -> LogBlocks | None:
    """Split a log into blocks of about half, a quarter and a quarter of its queries.

    Args:
        fingerprints: equal for queries asked word for word again.
        times: microseconds, or None; queries without a time keep their place in the log.

    Returns:
        None when there are too few distinct queries to prove anything.

    >>> blocks = split_log(list("abcdeafgha"), [None] * 10)
    >>> blocks.train, blocks.select, blocks.promise
    (array([0, 1, 2, 3, 5, 9]), array([4, 6]), array([7, 8]))
    >>> blocks.choosing, blocks.promising
    (array([4, 5, 6]), array([7, 8, 9]))
    >>> split_log(list("abcdefgh"), [10, 11, 12, 13, 14, 15, None, None]).promise
    array([6, 7])
    """
    first_seen: dict[str, tuple[int, int]] = {}
    moments: list[int] = []
    for i, (name, told) in enumerate(zip(fingerprints, times, strict=True)):
        moments.append((moments or [0])[-1] if told is None else told)  # without one: that of the query before it
        first_seen[name] = min(first_seen.get(name, (1 << 62, i)), (moments[-1], i))
    if len(first_seen) < MIN_DISTINCT:
        return None
    names = sorted(first_seen, key=first_seen.__getitem__)
    position = {name: place for place, name in enumerate(names)}
    place = np.array([position[name] for name in fingerprints])
    ends = np.round(np.cumsum(SHARES) * len(position)).astype(np.int64)[:2]
    block = np.searchsorted(ends, place, side="right")
    begins = [first_seen[names[end]] for end in ends]
    asked_in = np.array([bisect_right(begins, (moment, i)) for i, moment in enumerate(moments)])
    own = (np.flatnonzero(block == number) for number in range(3))
    return LogBlocks(*own, *(np.flatnonzero((asked_in == number) & (block < number)) for number in (1, 2)))
