"""What reading the whole table would cost each logged query: the weights by which layouts are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from zorder_pipeline.features.candidates import query_weights
from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.ranges import Boxes, columns_asked
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.records import LearnSettings
from zorder_pipeline.relayout.snapshot import TableSnapshot

from .sizes import query_bytes

__all__ = ["LEAST_WEIGHT", "OPENING_BYTES", "layout_weights", "scanned_shares"]

OPENING_BYTES = 4 << 20
"""What opening a file costs, as bytes that could be read meanwhile: Spark's ``spark.sql.files.openCostInBytes``."""

LEAST_WEIGHT = 1e-6
"""Of a query, where the mean is 1: too little to count beside others."""


def layout_weights(
    snapshot: TableSnapshot,
    queries: Sequence[LoggedQuery],
    boxes: Sequence[Boxes],
    settings: LearnSettings,
    files: int,
) -> npt.NDArray[np.float64]:
    """Weight of each query in a layout's cost, positive and with mean 1 (but for `LEAST_WEIGHT`), shape (queries,).

    A layout costs the weighted sum of the shares of the table that the queries read, so a query's weight is what
    the whole table would cost it: the same for all (``rows``), in proportion to the columns it filters by
    (``filtered``, the cost of seed 000), or the bytes of the columns it reads and `OPENING_BYTES` per file
    (``bytes``). A query that is asked again counts again; older ones count less where ``half_life_days`` is set. One
    that weighs nothing, as it filters by nothing or is very old, weighs `LEAST_WEIGHT`, as a block of the log may hold
    only such ones.

    Args:
        boxes: the ranges that each query asks for.
        files: number of files that the table is cut into.
    """
    weights = np.asarray(query_weights(queries, settings.half_life_days), dtype=np.float64)
    if settings.cost == "filtered":
        weights *= [len(columns_asked([query])) for query in boxes]
    elif settings.cost == "bytes":
        weights *= query_bytes(snapshot, queries) + OPENING_BYTES * files
    mean = weights.mean() if len(weights) else 0.0
    return np.maximum(weights / mean, LEAST_WEIGHT) if mean > 0 else np.ones(len(queries))


def scanned_shares(snapshot: TableSnapshot, boxes: Sequence[Boxes]) -> list[float]:
    """Share of the rows that each query would scan if only its partitions were pruned.

    What a query weighs must not depend on the present layout, or tonight's layout would decide what tomorrow's is for.
    """
    whole = snapshot.files().zone_map()
    partitions = {name: zones for name, zones in whole.columns.items() if zones.exact}
    if not partitions:
        return [1.0] * len(boxes)
    asked = Asked.alike(boxes)
    return list(map(float, replace(whole, columns=partitions).shares_read(asked.each(boxes))[asked.which]))
