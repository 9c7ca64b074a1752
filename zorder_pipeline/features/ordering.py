"""How two columns lie to each other: ranks, sorting index, pairs in the same order, contingency (seed 004, 4.2.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from zorder_pipeline.model.kernel import kernel

__all__ = ["Codes", "contingency", "determined", "order_shares", "ordered", "ranks", "sorting_index"]

Codes = npt.NDArray[np.int64]


def ranks(values: npt.NDArray[Any]) -> Codes:
    """Each value's rank among the distinct values, from 0, by the total order (NaN last).

    >>> ranks(np.array(["b", "a", "b"], dtype=object)).tolist()
    [1, 0, 1]
    """
    if values.dtype != object:
        return np.unique(values, return_inverse=True, equal_nan=values.dtype.kind == "f")[1].astype(np.int64).ravel()
    found, distinct = pd.factorize(values)
    place = np.empty(len(distinct), dtype=np.int64)
    place[sorted(range(len(distinct)), key=distinct.__getitem__)] = np.arange(len(distinct))
    return np.asarray(place[found], dtype=np.int64)


@kernel
def _inversions(values: Codes) -> int:
    """Pairs i < j with values[i] > values[j], by merging runs of doubling length."""
    n = len(values)
    source, target = values.copy(), np.empty_like(values)
    count, width = 0, 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(start + width, n), min(start + 2 * width, n)
            left, right = start, middle
            for out in range(start, end):
                if left < middle and (right >= end or source[left] <= source[right]):
                    target[out] = source[left]
                    left += 1
                else:
                    target[out] = source[right]
                    right += 1
                    count += middle - left
        source, target = target, source
        width *= 2
    return count


def _tied(codes: Codes) -> int:
    """Pairs of equal ranks."""
    counts = np.bincount(codes)
    return int((counts * (counts - 1) // 2).sum())


@kernel
def _tied_neighbours(values: Codes) -> int:
    """Pairs of equal values among sorted ones."""
    count = run = 0
    for i in range(1, len(values)):
        run = run + 1 if values[i] == values[i - 1] else 0
        count += run
    return count


def sorting_index(values: npt.NDArray[Any]) -> float:
    """How far an array is in ascending order: the share of its pairs whose later element is larger (seed 004, 4.2.2.1).

    1 is strictly ascending, 0 strictly descending. Equal elements are not larger, so a constant has 0 and a sorted
    boolean at most about 0.5; `order_shares` is the form that edges are drawn by, this one the seed's, for its vectors.
    Fewer than two elements have 1.

    >>> sorting_index(np.array([1, 3, 5, 2, 4]))
    0.7
    """
    n = len(values)
    pairs = n * (n - 1) // 2
    if not pairs:
        return 1.0
    codes = ranks(np.asarray(values))
    return float((pairs - _tied(codes) - int(_inversions(codes))) / pairs)


def order_shares(a: Codes, b: Codes) -> tuple[float, float]:
    """Shares of pairs of rows that two columns order the same way, and opposite ways.

    A pair tied in one column is ordered neither way; a pair tied in both says nothing and is not counted. The measure
    is symmetric: where the seed sorts by each column in turn and keeps edges found in both directions, this one
    number covers both.

    Args:
        a, b: ranks (see `ranks`), of equal length.

    >>> order_shares(np.array([0, 1, 2]), np.array([2, 1, 0]))
    (0.0, 1.0)
    """
    same, opposite, counted = ordered(a, b)
    return (same / counted, opposite / counted) if counted else (0.0, 0.0)


def ordered(a: Codes, b: Codes) -> tuple[int, int, int]:
    """Pairs of rows that two columns order the same way, and opposite ways, and those that are not tied in both.

    >>> ordered(np.array([0, 1, 2]), np.array([0, 0, 1]))
    (2, 0, 3)
    """
    n = len(a)
    pairs = n * (n - 1) // 2
    if not pairs:
        return 0, 0, 0
    size = int(b.max()) + 1
    both = np.sort(a * size + b)
    tied_both = int(_tied_neighbours(both))
    opposite = int(_inversions(both % size))  # sorted by a, then b: pairs tied in a are no inversions
    return pairs - opposite - _tied(a) - _tied(b) + tied_both, opposite, pairs - tied_both


def contingency(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> float:
    """Mean-square contingency of two categorical columns, divided by its largest possible value (0 to 1).

    1 says that a value of the column with more values determines the other's; it says nothing about order, and a key
    column determines every other (seed 004, 4.2.2 and table 4.3). Constants have 0.

    >>> contingency(np.array([1, 2, 3, 4]), np.array([0, 1, 1, 0]))
    1.0
    """
    if not len(a):
        return 0.0
    return determined(ranks(np.asarray(a)), ranks(np.asarray(b)))


def determined(left: Codes, right: Codes) -> float:
    """`contingency` of ranks, of which some may be missing.

    >>> determined(np.array([0, 2, 2]), np.array([5, 1, 1]))
    1.0
    """
    size = int(right.max()) + 1
    marginal_a, marginal_b = np.bincount(left), np.bincount(right)
    fewer = min(np.count_nonzero(marginal_a), np.count_nonzero(marginal_b)) - 1
    if not fewer:
        return 0.0
    both = left * size + right
    if len(marginal_a) * size <= 4 * len(both):
        joint = np.bincount(both)
        cells = np.flatnonzero(joint)
        joint = joint[cells]
    else:
        cells, joint = np.unique(both, return_counts=True)
    # the sum of (nij - ni nj)^2 / (ni nj) over all cells is that of nij^2 / (ni nj) over the occupied ones, minus 1
    square = np.sum(joint.astype(np.float64) ** 2 / (marginal_a[cells // size] * marginal_b[cells % size])) - 1.0
    return float(min(1.0, max(0.0, round(square / fewer, 12))))
