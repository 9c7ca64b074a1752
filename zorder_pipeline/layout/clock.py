"""A layout's clock: the column by which rows that come later are kept apart from those that were there.

Tables grow by time. Of a young table all days are asked for alike and time divides nothing; ten times the rows later
its queries want a few days of many. Rows beyond the learned range of the clock are laid out in epochs
(`zorder_pipeline.layout.extend`), each divided as the old rows were: good for who asks for some time, of no use to who
does not, as the other columns then divide no finer than they did. So a layout has a clock only where that is the
smaller part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec, most_bits
from zorder_pipeline.model.ranges import Boxes
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.values import ValueType

from .draft import AnyDraft, SampledTable
from .skipping import Estimator

__all__ = ["TIMES", "with_clock"]

TIMES = ("date", "timestamp", "timestamp_ntz")
GROWTH = 8
"""Times the rows at which a table with a clock is compared with one without."""
TOGETHER = 0.9
"""Rank correlation from which one column serves filters by another."""


def with_clock(
    spec: KeySpec,
    draft: AnyDraft,
    table: SampledTable,
    columns: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]],
    schema: TableSchema,
    queries: Sequence[Boxes],
    weights: npt.NDArray[np.float64],
) -> KeySpec:
    """``spec`` with a clock, where one helps: a time column if it can be, else the column of the key's first bit.

    A time column that the key does not have is added for one bit, which is 0 until the table has grown; to a Hilbert
    curve nothing is added.

    Args:
        spec, draft: the key, and the layout that it is of, over the features of ``table``.
        columns: canonical values and validity of every column that queries filter by.
        queries: boxes per query.
        weights: weight per query, positive.
    """

    def helps(i: int) -> bool:
        """Whether a table that has grown by a feature is read less in epochs of it.

        In epochs who asks for it, or for a column that goes with it, reads of one what the query reads now, who does
        not reads it of all; without them all read of smaller files. What is asked of the feature itself is left aside
        on both sides: a log may ask for days that the young table does not have.
        """
        alike = {
            one.column for one, with_it in zip(table.encodings, correlation[i], strict=True) if with_it >= TOGETHER
        }
        timed = [bool(boxes) and all(any(item.column in alike for item in box) for box in boxes) for boxes in queries]
        others = [
            tuple(tuple(item for item in box if item.column not in alike) for box in boxes) if asks else boxes
            for boxes, asks in zip(queries, timed, strict=True)
        ]
        estimator = Estimator.build(columns, schema, others, table.rows)
        now = weights * table.rows_read(draft, estimator)
        smaller = replace(table, rows_per_file=table.rows_per_file / GROWTH)
        grown = weights * smaller.rows_read(draft, estimator)
        return float((now / np.where(timed, GROWTH, 1)).sum()) < float(grown.sum())

    own = [spec.features[i].column for i in spec.telling]
    if not own:
        return spec  # all rows have one key
    known = {feature.column for feature in spec.features}
    roomy = spec.curve != "hilbert" and spec.bits < most_bits(spec.curve)
    bounded = {column.name for column in schema.columns if column.delta_stats}  # else no file tells that it is later
    correlation = np.abs(np.atleast_2d(np.corrcoef(table.fine)))
    possible: list[tuple[bool, bool, int]] = []
    for i, encoding in enumerate(table.encodings):
        time, first = ValueType.parse(encoding.type).family in TIMES, encoding.column == own[0]
        if encoding.column in bounded and (time or first) and (encoding.column in known or roomy):
            possible.append((not time, encoding.column not in own, i))
    best = next((i for *_, i in sorted(possible) if helps(i)), None)
    if best is None:
        return spec
    encoding = table.encodings[best]
    if encoding.column in known:
        return replace(spec, clock=encoding.column)
    clock = FeatureCodes(encoding.column, encoding.type, (), (0,), 1, high=encoding.high)
    order, spare = (*spec.order, len(spec.features)), spec.spare + (spec.tree is None)
    return replace(spec, features=(*spec.features, clock), order=order, spare=spare, clock=clock.column)
