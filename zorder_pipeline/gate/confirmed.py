"""Shares of a saving that may be chosen by: what some queries tell of a part is held against what others say of it.

Which partitions pay for their own rewrite is told by the queries that also promise it. Of a thousand partitions that
are asked for alike, a hundred queries happen to ask for a few twice. Taken as measured, just these would be chosen and
credited with all that the hundred saved in them, which tomorrow's save elsewhere. So a share counts for what shares as
large were confirmed to be: queries are dealt into hands, and each hand says what it saves where the others tell so much
(Good-Turing's idea, with a regression in the place of counts).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["HANDS", "confirmed", "hands_of"]

HANDS = 8

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def hands_of(observations: int) -> Ints:
    """The hand that each observation is dealt into, shape (observations,); of fewer than two all are one.

    >>> np.bincount(hands_of(9)).tolist()
    [2, 1, 1, 1, 1, 1, 1, 1]
    """
    dealt = np.random.default_rng(observations).permutation(observations)
    return np.asarray(dealt % max(1, min(HANDS, observations)), dtype=np.int64)


def confirmed(hands: Floats, sizes: Floats) -> Floats:
    """What each part of a table brings as far as one hand confirms another, shape (parts,).

    In all it is as much as the hands together have. Parts as asked for as each other have as much of it for each byte.

    Args:
        hands: what each hand's queries save in each part, not negative, shape (hands, parts).
        sizes: of the parts, such as their rows, positive.

    >>> confirmed(np.array([[4.0, 0.0, 0.0], [4.0, 0.0, 0.0]]), np.ones(3)).tolist()
    [8.0, 0.0, 0.0]
    >>> confirmed(np.array([[4.0, 0.0, 0.0], [0.0, 4.0, 0.0]]), np.ones(3)).round(2).tolist()
    [2.67, 2.67, 2.67]
    """
    whole: Floats = hands.sum(axis=0)
    count = len(hands)
    if count < 2 or not whole.any():
        return whole
    others = (whole - hands) * (count / (count - 1)) / sizes
    told, said = _rising(others.ravel(), (hands * count / sizes).ravel(), np.tile(sizes, count))
    found = np.interp(whole / sizes, told, said) * sizes
    return np.asarray(found * (whole.sum() / found.sum()) if found.any() else whole)


def _rising(x: Floats, y: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The function that rises with ``x`` and lies nearest to ``y`` (isotonic regression by pooling neighbours).

    Returns:
        Values of ``x``, ascending, and what it has there.
    """
    at, place = np.unique(x, return_inverse=True)
    heavy = np.bincount(place.ravel(), weights)
    means = np.bincount(place.ravel(), weights * y) / heavy
    pools: list[tuple[float, float, int]] = []
    for mean, weight in zip(means.tolist(), heavy.tolist(), strict=True):
        values = 1
        while pools and pools[-1][0] >= mean:
            before, much, many = pools.pop()
            mean = (before * much + mean * weight) / (much + weight)
            weight, values = much + weight, many + values
        pools.append((mean, weight, values))
    return at, np.repeat([pool[0] for pool in pools], [pool[2] for pool in pools])
