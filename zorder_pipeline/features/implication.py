"""Whether one condition implies another, told by their boxes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

from zorder_pipeline.model.ranges import Box, Boxes, Interval, Range
from zorder_pipeline.model.values import Value

__all__ = ["AskedRange", "implies", "prepared", "sort_key", "stricter"]

_Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class AskedRange:
    """A range, made ready to be held against many others.

    Attributes:
        everything: whether every value and a null match.
        lows: sort keys of the lower bounds of its intervals, ascending; those without a value in them are left out.
        highs: of the upper bounds, each beside its lower one.
        reach: the largest of ``highs`` up to each place.
        points: the values, where all intervals are single ones; else None.
    """

    column: str
    nulls: bool
    everything: bool
    lows: tuple[_Key, ...]
    highs: tuple[_Key, ...]
    reach: tuple[_Key, ...]
    points: frozenset[_Key] | None

    @classmethod
    def of(cls, item: Range) -> AskedRange:
        keyed = [(_low(interval), _high(interval)) for interval in item.intervals]
        kept = sorted((low, high) for low, high in keyed if not _hollow(low, high))
        lows, highs = tuple(low for low, _ in kept), tuple(high for _, high in kept)
        points = frozenset(lows) if all(low[1:2] == high[1:2] != () for low, high in kept) else None
        everything = item.nulls and any(interval.low is None and interval.high is None for interval in item.intervals)
        return cls(item.column, item.nulls, everything, lows, highs, tuple(accumulate(highs, max)), points)


def prepared(boxes: Boxes | None) -> tuple[tuple[AskedRange, ...], ...] | None:
    """Boxes as `stricter` takes them; None for None."""
    return None if boxes is None else tuple(tuple(AskedRange.of(item) for item in box) for box in boxes)


def stricter(a: Sequence[Sequence[AskedRange]] | None, b: Sequence[Sequence[AskedRange]] | None) -> bool:
    """Whether every row that satisfies ``a`` surely satisfies ``b``."""
    if not a or b is None:
        return False
    asked = {item.column for box in b for item in box}
    if not asked.issubset(item.column for box in a for item in box):
        return False
    return all(any(_implies(mine, other) for other in b) for mine in a)


def implies(a: Box, b: Box) -> bool:
    """Whether every row that matches ``a`` surely matches ``b``, as boxes; False where it cannot be told.

    A box may be weaker than the predicate it came from, so for predicates this holds only when ``b`` is exact.

    >>> small, large = (Interval(2, 3),), (Interval(1, None),)
    >>> implies((Range("x", "int", small),), (Range("x", "int", large),))
    True
    """
    return _implies([AskedRange.of(item) for item in a], [AskedRange.of(item) for item in b])


def _implies(a: Sequence[AskedRange], b: Sequence[AskedRange]) -> bool:
    if any(not item.nulls and not item.lows for item in a):
        return True
    return all(item.everything or any(_within(mine, item) for mine in a) for item in b)


def _within(a: AskedRange, b: AskedRange) -> bool:
    """Whether a null matches ``b`` if one matches ``a``, and each interval of ``a`` lies in one of ``b``."""
    if a.column != b.column or (a.nulls and not b.nulls):
        return False
    if not a.lows or not b.lows:
        return not a.lows
    if a.points is not None and b.points is not None:
        return a.points <= b.points
    if len(b.lows) == 1:
        return b.lows[0] <= a.lows[0] and a.reach[-1] <= b.highs[0]
    begun = ((bisect_right(b.lows, low), high) for low, high in zip(a.lows, a.highs, strict=True))
    return all(n and high <= b.reach[n - 1] for n, high in begun)


def _low(interval: Interval) -> _Key:
    """Sort key of a lower bound: none first, and of two with one value the closed one."""
    return (0,) if interval.low is None else (1, sort_key(interval.low), interval.low_open)


def _high(interval: Interval) -> _Key:
    """Sort key of an upper bound: none last, and of two with one value the open one first."""
    return (2,) if interval.high is None else (1, sort_key(interval.high), not interval.high_open)


def _hollow(low: _Key, high: _Key) -> bool:
    """Whether no value lies between two bounds."""
    if len(low) == 1 or len(high) == 1:
        return False
    return bool(low[1] > high[1] or (low[1] == high[1] and (low[2] or not high[2])))


def sort_key(value: Value | None) -> _Key:
    """Sort key of a bound: NaN after every other number."""
    return (1,) if isinstance(value, float) and value != value else (0, value)
