"""A layout's clock: the column by which rows that come later are kept apart from those that were there.

Tables grow by time. Of a young table all days are asked for alike and time divides nothing; ten times the rows later
its queries want a few days of many. Rows beyond the learned range of the clock are laid out in epochs
(`zorder_pipeline.layout.extend`), each divided as the old rows were: good for who asks for some time, of no use to who
does not, as the other columns then divide no finer than they did. So a layout has a clock only where the queries that
filter by it read most.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.key_spec import MAX_KEY_BITS, FeatureCodes, KeySpec
from zorder_pipeline.model.ranges import Boxes
from zorder_pipeline.model.values import ValueType

from .draft import SampledTable

__all__ = ["TIMES", "with_clock"]

TIMES = ("date", "timestamp", "timestamp_ntz")
MOST_READ = 0.5
"""Share of all rows read that queries which filter by the clock must read: what it may save against what it costs."""
TOGETHER = 0.9
"""Rank correlation from which one column serves filters by another."""


def with_clock(
    spec: KeySpec,
    table: SampledTable,
    queries: Sequence[Boxes],
    read: npt.NDArray[np.float64],
    bounded: Collection[str],
) -> KeySpec:
    """``spec`` with a clock, where there is one: a time column if it can be, else the column of the key's first bit.

    A time column that the key does not have is added for one bit, which is 0 until the table has grown; to a Hilbert
    curve nothing is added.

    Args:
        table: the sample that the key was learned from.
        queries: boxes per query.
        read: rows that each one reads under the key, weighed, shape (queries,).
        bounded: columns with statistics in Delta's log: without them no file tells that it is later.
    """
    own = [spec.features[i].column for i in spec.order[: len(spec.order) - spec.spare]]
    found: list[tuple[bool, bool, int]] = []
    for i, encoding in enumerate(table.encodings):
        time, inside = ValueType.parse(encoding.type).family in TIMES, encoding.column in own
        possible = encoding.column in bounded and (time or encoding.column == own[0])
        if possible and _asked(table, i, queries, read) >= MOST_READ:
            found.append((not time, not inside, i))
    for *_, i in sorted(found):
        encoding = table.encodings[i]
        if any(feature.column == encoding.column for feature in spec.features):
            return replace(spec, clock=encoding.column)
        if spec.curve != "hilbert" and spec.bits < MAX_KEY_BITS - 1:
            clock = FeatureCodes(encoding.column, encoding.type, (), (0,), 1, high=encoding.high)
            order, spare = (*spec.order, len(spec.features)), spec.spare + (spec.tree is None)
            return replace(spec, features=(*spec.features, clock), order=order, spare=spare, clock=clock.column)
    return spec


def _asked(table: SampledTable, i: int, queries: Sequence[Boxes], read: npt.NDArray[np.float64]) -> float:
    """Share of all rows read that queries read which filter by a feature, or by one that goes with it."""
    correlation = np.abs(np.atleast_2d(np.corrcoef(table.fine))[i])
    alike = {
        encoding.column for encoding, with_it in zip(table.encodings, correlation, strict=True) if with_it >= TOGETHER
    }
    asks = [bool(boxes) and all(any(item.column in alike for item in box) for box in boxes) for boxes in queries]
    return float(read @ np.array(asks, dtype=np.float64)) / max(float(read.sum()), 1e-12)
