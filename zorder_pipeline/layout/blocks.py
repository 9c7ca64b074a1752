"""The three blocks of a log: one to learn from, one to choose by, one to promise by.

A validation set that picks among hundreds of layouts flatters the winner, so the promise comes from queries that chose
nothing. Blocks follow time, as tomorrow's queries come after today's, and a statement repeated word for word stays in
one block, or it would be learned by heart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["LogBlocks", "split_log"]

SHARES = (0.5, 0.25, 0.25)
MIN_DISTINCT = 6
"""Fewer distinct queries than this cannot be split: nothing could be proved on unseen ones."""


@dataclass(frozen=True)
class LogBlocks:
    """Indices of the queries in each block, each ascending; a repeated query occurs as often as it was asked."""

    train: npt.NDArray[np.int64]
    select: npt.NDArray[np.int64]
    promise: npt.NDArray[np.int64]


def split_log(fingerprints: Sequence[str], times: Sequence[int | None]) -> LogBlocks | None:
    """Split a log into blocks of about half, a quarter and a quarter of its queries.

    Args:
        fingerprints: equal for queries asked word for word again.
        times: microseconds, or None; queries without a time keep their place in the log.

    Returns:
        None when there are too few distinct queries to prove anything.

    >>> split_log(list("abcdefgh"), [None] * 8)
    LogBlocks(train=array([0, 1, 2, 3]), select=array([4, 5]), promise=array([6, 7]))
    >>> split_log(list("abcdefgh"), [10, 11, 12, 13, 14, 15, None, None]).promise
    array([6, 7])
    """
    first_seen: dict[str, tuple[int, int]] = {}
    moment = 0
    for i, (name, told) in enumerate(zip(fingerprints, times, strict=True)):
        moment = moment if told is None else told  # without one: that of the query before it in the log
        first_seen[name] = min(first_seen.get(name, (1 << 62, i)), (moment, i))
    if len(first_seen) < MIN_DISTINCT:
        return None
    position = {name: place for place, name in enumerate(sorted(first_seen, key=first_seen.__getitem__))}
    place = np.array([position[name] for name in fingerprints])
    ends = np.round(np.cumsum(SHARES) * len(position))
    block = np.searchsorted(ends[:2], place, side="right")
    return LogBlocks(*(np.flatnonzero(block == number) for number in range(3)))
