"""Of which partitions conditions on partition columns are true, told by Spark on the partitions' values alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zorder_pipeline.java import has_jvm
from zorder_pipeline.model.file_stats import Feature

from .halving import failures, halved
from .session import unshadowed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["partition_truths"]

AT_ONCE = 100
"""Conditions that Spark is asked of at once."""

Mask = npt.NDArray[np.bool_]


def partition_truths(rows: DataFrame, place: str, conditions: Sequence[str]) -> dict[str, Mask]:
    """For which rows each condition is true, shape (rows,); a condition that is null is not.

    Those are left out that Spark cannot evaluate on each row, and those that call a function which the session has put
    in the place of Spark's own.

    Args:
        rows: the partitions, by the values of the partition columns.
        place: the column that numbers them from 0 on.
        conditions: rebuilt from logs (`zorder_pipeline.model.predicate.Opaque`).
    """
    features = [Feature(text, "predicate", "boolean", text, ()) for text in conditions]
    if has_jvm(rows.sparkSession):
        features = unshadowed(rows.sparkSession, features)
    found: dict[str, Mask] = {}
    for begin in range(0, len(features), AT_ONCE):
        some = features[begin : begin + AT_ONCE]
        try:
            tables: list[pa.Table | Feature] = [_told(rows, place, some)]
        except failures():
            tables = list(halved(some, lambda part: _told(rows, place, part)))
        for table in tables:
            if isinstance(table, pa.Table):
                order = np.argsort(table[place].to_numpy())
                texts = [name for name in table.column_names if name != place]
                found |= {text: table[text].to_numpy(zero_copy_only=False)[order].astype(np.bool_) for text in texts}
    return found


def _told(rows: DataFrame, place: str, some: Sequence[Feature]) -> pa.Table:
    from pyspark.sql import functions as F

    true = [F.coalesce(F.expr(each.sql), F.lit(False)) for each in some]
    table = rows.select(place, *(column.alias(f"{place}{i}") for i, column in enumerate(true))).toArrow()
    return table.rename_columns([place, *(each.sql for each in some)])
