"""Zone maps per key cell, of all rows: what any files made of those cells will have as their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.spark_sql import column_sql
from zorder_pipeline.model.values import canonical_array, readable
from zorder_pipeline.state.session_conf import set_for_a_while

from .key_column import KEY, with_key
from .session_conf import COMPILED
from .snapshot import TableSnapshot

__all__ = ["CellZones", "zones_by_cell"]


@dataclass(frozen=True)
class CellZones:
    """Rows and extremes of n cells, one per partition and key that occurs.

    Attributes:
        partition: number of each cell's partition, from 0, shape (n,).
        keys, rows: key and rows, shape (n,).
        bounds: smallest and largest canonical value by column, and where there are any; shape (n,) each. Partition
            columns are among them, each with its one value.
        nulls: nulls by column, shape (n,).
    """

    partition: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    bounds: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.bool_]]]
    nulls: Mapping[str, npt.NDArray[np.int64]]


def zones_by_cell(
    snapshot: TableSnapshot,
    spec: KeySpec,
    columns: Sequence[str],
    paths: Sequence[str],
    hilbert_table: npt.NDArray[np.int64] | None = None,
) -> CellZones:
    """One scan of the key's columns and ``columns`` in the files ``paths``, aggregated where the rows are.

    Args:
        columns: names as in ``snapshot.schema``; columns without an order have their nulls counted only.
        hilbert_table: see `zorder_pipeline.relayout.key_column.with_key`.
    """
    from pyspark.sql import functions as F

    types = {leaf.column.name: leaf.column.value_type for leaf in snapshot.leaves}
    ordered = [name for name in columns if types[name].orderable and types[name].delta_min_max]
    keyed = with_key(snapshot.read_files(list(paths)), spec, snapshot.paths, hilbert_table)
    groups = [F.expr(column_sql((name,))).alias(f"p{i}") for i, name in enumerate(snapshot.partition_columns)]
    asked = {name: F.expr(column_sql(snapshot.paths[name])) for name in columns}
    found = [F.count(F.lit(1)).alias("rows")]
    found += [F.count(asked[name]).alias(f"valid{i}") for i, name in enumerate(columns)]
    found += [F.min(asked[name]).alias(f"low_{name}") for name in ordered]
    found += [F.max(asked[name]).alias(f"high_{name}") for name in ordered]
    with snapshot.reading(), set_for_a_while(snapshot.spark, COMPILED):
        table = keyed.groupBy(*groups, KEY).agg(*found).toArrow()
    rows = table["rows"].to_numpy().astype(np.int64)
    bounds = {}
    for name in ordered:
        low, valid = canonical_array(readable(table[f"low_{name}"]), types[name])
        bounds[name] = (low, canonical_array(readable(table[f"high_{name}"]), types[name])[0], valid)
    nulls = {name: rows - table[f"valid{i}"].to_numpy().astype(np.int64) for i, name in enumerate(columns)}
    partition = np.zeros(len(rows), dtype=np.int64)
    if groups and len(rows):  # by their codes: Python does not have every day that Spark has
        coded = [table[f"p{i}"].combine_chunks().dictionary_encode().indices for i in range(len(groups))]
        codes = np.array([each.fill_null(-1).to_numpy() for each in coded])
        partition[:] = np.unique(codes, axis=1, return_inverse=True)[1].reshape(-1)
    for i, name in enumerate(leaf.column.name for leaf in snapshot.partition_leaves):
        value, valid = canonical_array(table[f"p{i}"], types[name])
        bounds[name], nulls[name] = (value, value, valid), np.where(valid, 0, rows)
    return CellZones(partition, table[KEY].to_numpy().astype(np.int64), rows, bounds, nulls)
