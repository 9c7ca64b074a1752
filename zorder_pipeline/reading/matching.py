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
"""Queries counted in one scan: a job for each would take longer."""
INTERVALS = 1_000
"""Of all columns, in the conditions of a scan, unless one of them alone has more: each is compared with every row."""
SMALL = 4_000_000
"""Rows up to which a table is read whole for a batch whatever its queries skip."""
APART = 0.05
"""Share of a larger table's rows that a query reads at most to be counted alone, by its own files: a batch reads all of
them, and fifty conditions at once are slow."""


def matching_rows(
    rows: DataFrame,
    queries: Sequence[Boxes],
    paths: Mapping[str, tuple[str, ...]],
    total: int,
    read: npt.NDArray[np.float64],
    progress: Callable[[str], None] | None = None,
) -> npt.NDArray[np.float64]:
    """Rows that match each query, shape (queries,); equal queries are counted once.

    Args:
        rows: the table.
        paths: path of each column by its schema name.
        total: rows of the table: what a query without a restriction matches.
        read: rows of the files that each query reads, shape (queries,).
    """
    known = dict(zip(queries, read.tolist(), strict=True))
    distinct = [boxes for boxes in known if boxes != ((),)]
    counts: dict[Boxes, float] = {((),): float(total)}
    alone = [boxes for boxes in distinct if total > SMALL and known[boxes] <= APART * total]
    apart = set(alone)
    together = [boxes for boxes in distinct if boxes not in apart]
    batches = [alone[i : i + 1] for i in range(len(alone))]
    batches += _batches(together)
    told = 0
    for batch in batches:
        conditions = [boxes_sql(boxes, dict(paths), never_null=False) for boxes in batch]
        if len(batch) == 1:
            found = (rows.where(conditions[0]).count(),)
        else:
            found = tuple(rows.selectExpr(*(f"count_if({text})" for text in conditions)).collect()[0])
        counts |= {boxes: float(found[i]) for i, boxes in enumerate(batch)}
        done = len(counts) - 1
        if progress and len(distinct) > BATCH and (done >= told + BATCH or done == len(distinct)):
            told = done
            progress(f"counted the matching rows of {done} of {len(distinct)} queries")
    return np.array([counts[boxes] for boxes in queries])


def _batches(queries: Sequence[Boxes]) -> list[list[Boxes]]:
    """Queries that are counted together."""
    found: list[list[Boxes]] = []
    weight = 0
    for boxes in queries:
        more = sum(len(item.intervals) for box in boxes for item in box)
        if not found or len(found[-1]) == BATCH or weight + more > INTERVALS:
            found.append([])
            weight = 0
        found[-1].append(boxes)
        weight += more
    return found
