"""How many rows really match each query's extracted predicate, counted by Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.ranges import Boxes
from zorder_pipeline.model.spark_sql import boxes_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["matching_rows"]

BATCH = 50
"""Queries counted in one scan: more conditions than that outgrow generated code."""


def matching_rows(
    rows: DataFrame,
    queries: Sequence[Boxes],
    paths: Mapping[str, tuple[str, ...]],
    total: int,
    progress: Callable[[str], None] | None = None,
) -> npt.NDArray[np.float64]:
    """Rows that match each query, shape (queries,); equal queries are counted once.

    Args:
        rows: the table.
        paths: path of each column by its schema name.
        total: rows of the table: what a query without a restriction matches.
    """
    distinct = [boxes for boxes in dict.fromkeys(queries) if boxes != ((),)]
    counts: dict[Boxes, float] = {((),): float(total)}
    for start in range(0, len(distinct), BATCH):
        batch = distinct[start : start + BATCH]
        conditions = [f"count_if({boxes_sql(boxes, dict(paths))}) AS q{i}" for i, boxes in enumerate(batch)]
        found = rows.selectExpr(*conditions).collect()[0]
        counts |= {boxes: float(found[i]) for i, boxes in enumerate(batch)}
        if progress and len(distinct) > BATCH:
            progress(f"counted the matching rows of {start + len(batch)} of {len(distinct)} queries")
    return np.array([counts[boxes] for boxes in queries])
