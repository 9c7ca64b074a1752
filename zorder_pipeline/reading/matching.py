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
"""Queries counted in one scan of a small table: a job for each would take longer."""
SMALL = 4_000_000
"""Rows of a table up to which it is read whole for a batch; on a larger one each query is counted alone, by what it
does not skip."""


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
        conditions = [boxes_sql(boxes, dict(paths)) for boxes in batch]
        if total <= SMALL:
            found = rows.selectExpr(*(f"count_if({text})" for text in conditions)).collect()[0]
            counts |= {boxes: float(found[i]) for i, boxes in enumerate(batch)}
        else:
            counts |= {boxes: float(rows.where(text).count()) for boxes, text in zip(batch, conditions, strict=True)}
        if progress and len(distinct) > BATCH:
            progress(f"counted the matching rows of {start + len(batch)} of {len(distinct)} queries")
    return np.array([counts[boxes] for boxes in queries])
