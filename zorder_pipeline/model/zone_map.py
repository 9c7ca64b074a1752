"""Zone maps: per block (a file, a row group) the smallest and largest value of each column, and what may be skipped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .ranges import Boxes, Interval, Range
from .values import ValueType, comparable

__all__ = ["PAGE_ROWS", "ColumnZones", "ZoneMap"]

MANY = 16
"""Intervals of a column, such as the values of an IN, beyond which single values are looked up together."""
PAGE_ROWS = 20_000
"""Rows of a Parquet page, by the default of Spark's writer (``parquet.page.row.count.limit``)."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ColumnZones:
    """Statistics of one column over n blocks.

    Attributes:
        low: canonical lower bound per block, shape (n,); arbitrary where ``known`` is False.
        high: canonical upper bound per block; may be above the true maximum (Delta cuts strings at 32 characters and
            timestamps at milliseconds).
        known: whether the block has bounds.
        null_count: nulls per block; -1 where unknown.
        exact: a block has one value, known without statistics (a partition column).
    """

    low: npt.NDArray[Any]
    high: npt.NDArray[Any]
    known: Mask
    null_count: npt.NDArray[np.int64]
    exact: bool = False

    def all_null(self, rows: npt.NDArray[np.int64]) -> Mask:
        """Blocks that are known to hold nothing but nulls, given the rows that the statistics were taken over."""
        return (self.null_count >= 0) & (self.null_count >= rows)


@dataclass(frozen=True)
class ZoneMap:
    """Zone maps of n blocks.

    Attributes:
        rows: live rows per block, shape (n,), for figures; with deletion vectors fewer than the bounds cover.
        bytes: size per block in bytes.
        columns: zones by column name; a column without an entry has no statistics anywhere.
        physical_rows: rows the statistics were taken over; None when the same as ``rows``.
        all_or_none: Delta's rule for files: one that lacks a statistic a query asks for is read, whatever its other
            statistics say, and columns whose type has no min/max answer for nulls alone.
        uncounted: blocks whose statistics do not tell their rows, which Delta asks for with any other, shape (n,); None
            without any.
    """

    rows: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.int64]
    columns: Mapping[str, ColumnZones]
    physical_rows: npt.NDArray[np.int64] | None = None
    all_or_none: bool = False
    uncounted: Mask | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def statistics_rows(self) -> npt.NDArray[np.int64]:
        """Rows per block that the statistics were taken over, shape (n,)."""
        return self.rows if self.physical_rows is None else self.physical_rows

    def matching(self, boxes: Boxes) -> Mask:
        """Which blocks a reader with Delta's data skipping would read for a query with these boxes, shape (n,).

        A block without statistics is read; a block whose column is all null matches no interval.
        """
        result = self._any(boxes, exact=False)
        if self.all_or_none:
            result |= self._lacking(boxes)
        return result & self._any(boxes, exact=True)

    def shares_read(self, queries: Sequence[Boxes], total: int | None = None) -> npt.NDArray[np.float64]:
        """Share of the rows that a reader with Delta's data skipping would read for each query, shape (queries,).

        Args:
            total: rows of the table, of which the blocks may be a part; None where they are all of it.
        """
        rows = max(1, int(self.rows.sum()) if total is None else total)
        return np.array([float(self.rows[self.matching(boxes)].sum()) / rows for boxes in queries])

    def _any(self, boxes: Boxes, exact: bool) -> Mask:
        result = np.zeros(len(self), dtype=np.bool_)
        for box in boxes:
            hit = np.ones(len(self), dtype=np.bool_)
            for item in box:
                if (zones := self.columns.get(item.column)) is not None and zones.exact == exact:
                    hit &= self._matching_range(zones, item)
            result |= hit
        return result

    def _matching_range(self, zones: ColumnZones, item: Range) -> Mask:
        result = (zones.null_count != 0) if item.nulls else np.zeros(len(self), dtype=np.bool_)
        intervals: Sequence[Interval] = item.tested
        if self._has_bounds(zones, item) and len(intervals) > MANY:
            points, intervals = _points(intervals, zones.low.dtype)
            holding = _where_known(zones, lambda some: _holding(some, points))
            result |= holding & ~zones.all_null(self.statistics_rows)
        for interval in intervals:
            if _unbounded(interval):
                result |= ~zones.all_null(self.statistics_rows)
            elif self._has_bounds(zones, item):
                overlap = _where_known(zones, partial(_overlap, interval=interval))
                result |= overlap & ~zones.all_null(self.statistics_rows)
            else:
                result |= True
        return result

    def _lacking(self, boxes: Boxes) -> Mask:
        """Blocks without a statistic that the boxes ask for."""
        result = np.zeros(len(self), dtype=np.bool_)
        for item in {item for box in boxes for item in box}:
            zones = self.columns.get(item.column)
            if zones is None or zones.exact:
                continue
            result |= zones.null_count < 0
            if self.uncounted is not None:
                result |= self.uncounted
            if self._has_bounds(zones, item) and not all(_unbounded(interval) for interval in item.tested):
                result |= ~zones.known & ~zones.all_null(self.statistics_rows)
        return result

    def _has_bounds(self, zones: ColumnZones, item: Range) -> bool:
        return zones.exact or not self.all_or_none or ValueType.parse(item.type).delta_min_max


def _points(intervals: Sequence[Interval], dtype: np.dtype[Any]) -> tuple[npt.NDArray[Any], Sequence[Interval]]:
    """The single values among intervals, in ascending order, and the other intervals.

    Args:
        dtype: of the bounds; values that it does not hold exactly stay intervals.
    """
    single = sorted({item.low for item in intervals if item.low is not None and _single(item)})
    if dtype.kind == "O":
        points = np.empty(len(single), dtype=object)
        points[:] = single
    elif dtype == np.int64 and all(isinstance(value, int) for value in single) and _fit(single):
        points = np.array(single, dtype=np.int64)
    elif dtype == np.float64 and all(isinstance(value, float) for value in single):
        points = np.array(single, dtype=np.float64)
    else:
        return np.empty(0, dtype=dtype), intervals
    return points, [item for item in intervals if not _single(item)]


def _single(interval: Interval) -> bool:
    """Whether the interval is one value; never NaN, which is equal to nothing."""
    return interval.low is not None and interval.low == interval.high and not (interval.low_open or interval.high_open)


def _fit(ascending: Sequence[Any]) -> bool:
    return not ascending or (ascending[0] >= -(1 << 63) and ascending[-1] < 1 << 63)


def _where_known(zones: ColumnZones, test: Callable[[ColumnZones], Mask]) -> Mask:
    """Blocks that pass a test of their bounds, or have none; objects in the place of missing bounds may not compare."""
    if zones.low.dtype.kind != "O" or zones.known.all():
        return ~zones.known | test(zones)
    here, result = zones.known, ~zones.known
    result[here] = test(ColumnZones(zones.low[here], zones.high[here], here[here], zones.null_count[here]))
    return result


def _holding(zones: ColumnZones, points: npt.NDArray[Any]) -> Mask:
    """Blocks between whose bounds one of the points lies; NaN is the largest bound."""
    first, beyond = np.searchsorted(points, zones.low, "left"), np.searchsorted(points, zones.high, "right")
    return np.asarray(first < beyond, dtype=np.bool_)


def _unbounded(interval: Interval) -> bool:
    return interval.low is None and interval.high is None


def _overlap(zones: ColumnZones, interval: Interval) -> Mask:
    result = np.ones(len(zones.known), dtype=np.bool_)
    with np.errstate(invalid="ignore"):
        if interval.low is not None:
            result &= _above(zones.high, interval.low, interval.low_open)
        if interval.high is not None:
            result &= _below(zones.low, interval.high, interval.high_open)
    return result


def _above(values: npt.NDArray[Any], bound: Any, is_open: bool) -> Mask:
    """values > bound (or >=), NaN being the largest value."""
    nan = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=np.bool_)
    if isinstance(bound, float) and np.isnan(bound):
        return np.zeros(len(values), dtype=np.bool_) if is_open else nan
    bound = comparable(bound, values.dtype)
    return np.asarray((values > bound) if is_open else (values >= bound), dtype=np.bool_) | nan


def _below(values: npt.NDArray[Any], bound: Any, is_open: bool) -> Mask:
    nan = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=np.bool_)
    if isinstance(bound, float) and np.isnan(bound):
        return ~nan if is_open else np.ones(len(values), dtype=np.bool_)
    bound = comparable(bound, values.dtype)
    return np.asarray((values < bound) if is_open else (values <= bound), dtype=np.bool_) & ~nan
