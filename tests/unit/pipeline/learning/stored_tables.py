"""Parquet files in a folder as a table whose files lie there, without Delta and without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zorder_pipeline.model.ranges import Boxes, Interval, Range
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.zone_map import ColumnZones
from zorder_pipeline.relayout.file_list import FileList

__all__ = ["box", "stored_table"]

TYPES = {pa.int64(): "bigint", pa.timestamp("us", "UTC"): "timestamp"}


def box(column: str, low: int, high: int, kind: str = "bigint") -> Boxes:
    """The query for one range of a column."""
    return ((Range(column, kind, (Interval(low, high),)),),)


def stored_table(folder: Path, tables: Sequence[pa.Table], row_group: int, **options: Any) -> Any:
    """The table, with the statistics that Delta would have of each file.

    Args:
        row_group: rows of a row group.
        options: of pyarrow's writer.
    """
    for i, table in enumerate(tables):
        pq.write_table(table, folder / f"{i}.parquet", row_group_size=row_group, write_page_index=True, **options)
    columns = [Column(name, TYPES[tables[0].schema.field(name).type]) for name in tables[0].column_names]
    rows, nothing = np.array([len(table) for table in tables]), np.zeros(len(tables), dtype=np.int64)

    def zones(name: str) -> ColumnZones:
        ends = [pc.min_max(table[name].cast(pa.int64())).as_py() for table in tables]
        low, high = (np.array([each[end] for each in ends]) for end in ("min", "max"))
        return ColumnZones(low, high, np.ones(len(tables), dtype=bool), nothing)

    files = FileList(
        path=np.array([f"{i}.parquet" for i in range(len(tables))], dtype=object),
        bytes=np.array([(folder / f"{i}.parquet").stat().st_size for i in range(len(tables))]),
        rows=rows, deleted=nothing, layout=("",) * len(tables), generation=nothing - 1, key_low=nothing - 1,
        key_high=nothing - 1, modified=nothing, partitions=((),) * len(tables),
        load_zones=lambda _: {column.name: zones(column.name) for column in columns},
    )  # fmt: skip
    leaves = [SimpleNamespace(path=(c.name,), physical=(c.name,), column=c) for c in columns]
    return SimpleNamespace(
        location=str(folder), files=lambda: files, leaves=leaves, schema=TableSchema(tuple(columns)),
        partition_columns=(), version=7,
    )  # fmt: skip
