"""The estimator: how many rows each query reads under a layout, from zone maps built over a sample.

One estimator serves the present layout, every baseline and every candidate, so that their figures compare. Columns are
turned once into positions in a sorted domain of all the bounds Delta could store for them, after which zone maps and
queries are small integers and a layout costs a few milliseconds.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zorder_pipeline.model.kernel import kernel
from zorder_pipeline.model.ranges import Boxes, Interval, columns_asked
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.values import ValueType, sort_unique

from .simple_boxes import Ends, simple_boxes

__all__ = ["UNBOUNDED", "Estimator", "stored_bounds"]

STRING_PREFIX = 32
"""Delta cuts the bounds of strings at so many characters."""
_TIE_BREAKER = "\U0010ffff"
_NOTHING = np.iinfo(np.int32).max
UNBOUNDED = int(_NOTHING) - 1
"""Last position of an interval without an upper end."""


def stored_bounds(values: npt.NDArray[Any], value_type: ValueType) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """What Delta would store as minimum and as maximum of a file that held only this value, for each value.

    Strings are cut at 32 characters, the maximum then followed by a tie-breaker; timestamps at milliseconds, the
    maximum read as one millisecond more.
    """
    if value_type.family == "string":
        low, high = values.copy(), values.copy()
        for i, value in enumerate(values):
            if len(value) > STRING_PREFIX:
                low[i] = value[:STRING_PREFIX]
                high[i] = value[:STRING_PREFIX] + _TIE_BREAKER
        return low, high
    if value_type.family in ("timestamp", "timestamp_ntz"):
        floor = values // 1000 * 1000
        return floor, floor + 1000
    return values, values


@dataclass(frozen=True)
class Estimator:
    """A sample and a set of queries, ready to be laid out in any way.

    Build one with `Estimator.build`.

    Attributes:
        low, high: per restricted column and row the position of the row's stored bounds, int32, shape (rows, columns);
            a null has the empty range.
        owner, column, first, last: the queries' intervals, one row each: index of its box, of its column, and the
            positions a block's maximum must reach and its minimum must not exceed.
        box_query: query of each box.
        queries: number of queries.
    """

    low: npt.NDArray[np.int32]
    high: npt.NDArray[np.int32]
    owner: npt.NDArray[np.int64]
    column: npt.NDArray[np.int64]
    first: npt.NDArray[np.int32]
    last: npt.NDArray[np.int32]
    box_query: npt.NDArray[np.int64]
    queries: int

    @staticmethod
    def build(
        columns: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]],
        schema: TableSchema,
        queries: Sequence[Boxes],
        rows: int,
    ) -> Estimator:
        """Prepare ``queries`` over a sample.

        Args:
            columns: canonical values and validity of the sample's columns, each of shape (rows,). A column that is
                missing here, or for which Delta keeps no statistics, restricts nothing.
            queries: boxes per query, from `zorder_pipeline.model.ranges.to_boxes`.
            rows: rows of the sample.
        """
        used = columns_asked(queries)
        domains: dict[str, _Domain] = {}
        for name in sorted(used):
            known = schema.find(name)
            if known is None or name not in columns or not (known.delta_stats or known.partition):
                continue
            domains[name] = _domain(*columns[name], known.value_type, known.partition)
        lows, highs, places = _positions(domains, queries, rows)
        owner: list[int] = []
        column: list[int] = []
        bounds: list[Ends] = []
        box_query: list[int] = []
        positions = {name: domain.positions for name, domain in domains.items()}
        for number, boxes in enumerate(queries):
            for box in (simple for item in boxes for simple in simple_boxes(item, positions)):
                for name, nulls, ends in box:
                    owner.append(len(box_query))
                    column.append(places[name, nulls])
                    bounds.append(ends)
                box_query.append(number)
        first_last = np.array(bounds, dtype=np.int64).reshape(-1, 2).clip(-1, _NOTHING).astype(np.int32)
        return Estimator(
            low=lows,
            high=highs,
            owner=np.array(owner, dtype=np.int64),
            column=np.array(column, dtype=np.int64),
            first=np.ascontiguousarray(first_last[:, 0]),
            last=np.ascontiguousarray(first_last[:, 1]),
            box_query=np.array(box_query, dtype=np.int64),
            queries=len(queries),
        )

    @property
    def box_starts(self) -> npt.NDArray[np.int64]:
        """Where each box's intervals begin, and where the last one's end, shape (boxes + 1,)."""
        return np.searchsorted(self.owner, np.arange(len(self.box_query) + 1)).astype(np.int64)

    def of_rows(self, rows: npt.NDArray[np.int64]) -> Estimator:
        """The same queries over some rows of the sample."""
        return replace(self, low=self.low[rows], high=self.high[rows])

    def rows_read(self, block: npt.NDArray[np.int32], blocks: int) -> npt.NDArray[np.float64]:
        """Sample rows each query reads when row i lies in block ``block[i]``, shape (queries,)."""
        return np.asarray(
            _rows_read(
                self.low, self.high, block, blocks, self.owner, self.column, self.first, self.last, self.box_query,
                self.queries,
            )
        )  # fmt: skip


@dataclass(frozen=True)
class _Domain:
    """Every bound Delta could store for a column of the sample, sorted, and each row's place in it."""

    bounds: npt.NDArray[Any]
    low: npt.NDArray[np.int32]
    high: npt.NDArray[np.int32]

    @staticmethod
    def build(values: npt.NDArray[Any], valid: npt.NDArray[np.bool_], value_type: ValueType, exact: bool) -> _Domain:
        low, high = (values, values) if exact else stored_bounds(values, value_type)
        bounds = sort_unique(low[valid] if low is high else np.concatenate([low[valid], high[valid]]))
        positions = [np.where(valid, _search(bounds, side, valid), 0).astype(np.int32) for side in (low, high)]
        positions[0][~valid] = _NOTHING
        positions[1][~valid] = -1
        return _Domain(bounds, positions[0], positions[1])

    def positions(self, interval: Interval) -> Ends:
        """A block matches iff its maximum's position >= the first and its minimum's position <= the second."""
        first, last = 0, UNBOUNDED
        if interval.low is not None:
            first = self._place(interval.low, after=interval.low_open)
        if interval.high is not None:
            last = self._place(interval.high, after=not interval.high_open) - 1
        return first, last

    def _place(self, value: Any, after: bool) -> int:
        if self.bounds.dtype == np.int64:  # literals may lie outside 64 bits
            value = min(max(value, -(1 << 63)), (1 << 63) - 1)
        return int(np.searchsorted(self.bounds, value, "right" if after else "left"))


_DOMAINS: dict[tuple[int, int, ValueType, bool], tuple[weakref.ref[Any], weakref.ref[Any], _Domain]] = {}
"""Those of arrays that are still in use: a night asks one sample by a dozen sets of queries."""


def _domain(values: npt.NDArray[Any], valid: npt.NDArray[np.bool_], value_type: ValueType, exact: bool) -> _Domain:
    """The domain of a column, made once for as long as its arrays live; nobody writes into a sample.

    Args:
        exact: whether files are told by the values themselves, as by those of a partition column.
    """
    key = (id(values), id(valid), value_type, exact)
    known = _DOMAINS.get(key)
    if known is not None and known[0]() is values and known[1]() is valid:
        return known[2]

    def forget(_: object) -> None:
        _DOMAINS.pop(key, None)

    domain = _Domain.build(values, valid, value_type, exact)
    _DOMAINS[key] = (weakref.ref(values, forget), weakref.ref(valid, forget), domain)
    return domain


def _search(bounds: npt.NDArray[Any], values: npt.NDArray[Any], valid: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    result = np.zeros(len(values), dtype=np.int64)
    present = values[valid]
    if present.dtype == object and len(present) and isinstance(present[0], str):
        texts = pa.array(present, type=pa.string())
        result[valid] = pc.index_in(texts, value_set=pa.array(bounds, type=pa.string())).to_numpy()
    elif present.dtype == object:
        distinct = {value: place for place, value in enumerate(bounds.tolist())}
        result[valid] = np.fromiter((distinct[value] for value in present.tolist()), dtype=np.int64, count=len(present))
    else:
        result[valid] = np.searchsorted(bounds, present)
    return result


def _positions(
    domains: Mapping[str, _Domain], queries: Sequence[Boxes], rows: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], dict[tuple[str, bool], int]]:
    """The columns side by side; one asked for nulls has a second, 1 where null, so that IS NULL is an interval too."""
    asked = {item.column for boxes in queries for box in boxes for item in box if item.nulls}
    places: dict[tuple[str, bool], int] = {}
    lows: list[npt.NDArray[np.int32]] = []
    highs: list[npt.NDArray[np.int32]] = []
    for name, domain in domains.items():
        places[name, False] = len(lows)
        lows.append(domain.low)
        highs.append(domain.high)
        if name in asked:
            places[name, True] = len(lows)
            is_null = (domain.high < 0).astype(np.int32)
            lows.append(is_null)
            highs.append(is_null)
    if not lows:
        empty = np.zeros((rows, 0), dtype=np.int32)
        return empty, empty, places
    return np.ascontiguousarray(np.stack(lows, axis=1)), np.ascontiguousarray(np.stack(highs, axis=1)), places


@kernel
def _rows_read(
    low: Any, high: Any, block: Any, blocks: int, owner: Any, column: Any, first: Any, last: Any, box_query: Any,
    queries: int,
) -> Any:  # pragma: no cover - compiled  # fmt: skip
    n, columns = low.shape
    rows = np.zeros(blocks, dtype=np.float64)
    lows = np.full((blocks, columns), 2147483647, dtype=np.int32)
    highs = np.full((blocks, columns), -1, dtype=np.int32)
    for i in range(n):
        b = block[i]
        rows[b] += 1.0
        for c in range(columns):
            if low[i, c] < lows[b, c]:
                lows[b, c] = low[i, c]
            if high[i, c] > highs[b, c]:
                highs[b, c] = high[i, c]
    block_lows = np.ascontiguousarray(lows.T)
    block_highs = np.ascontiguousarray(highs.T)
    read = np.zeros(queries, dtype=np.float64)
    hit_query = np.zeros(blocks, dtype=np.bool_)
    hit_box = np.zeros(blocks, dtype=np.bool_)
    interval = 0
    for box in range(len(box_query)):
        query = box_query[box]
        hit_box[:] = True
        while interval < len(owner) and owner[interval] == box:
            c, f, t = column[interval], first[interval], last[interval]
            for b in range(blocks):
                hit_box[b] &= (block_highs[c, b] >= f) & (block_lows[c, b] <= t)
            interval += 1
        for b in range(blocks):
            hit_query[b] |= hit_box[b]
        if box + 1 == len(box_query) or box_query[box + 1] != query:
            total = 0.0
            for b in range(blocks):
                if hit_query[b]:
                    total += rows[b]
            read[query] = total
            hit_query[:] = False
    return read
