"""The live files of a version by public API: counted and measured by scans, layouts known from our own commits."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zorder_pipeline.model.spark_sql import column_sql
from zorder_pipeline.model.zone_map import ColumnZones
from zorder_pipeline.state.session_conf import set_for_a_while

from .file_list import (
    GENERATION_TAG,
    KEY_HIGH_TAG,
    KEY_LOW_TAG,
    LAYOUT_TAG,
    SIZE_TAG,
    FileList,
    decoded,
    zones_of_batch,
)
from .history import history_of, is_ours, layout_written
from .session_conf import ANY_AGE

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

    from .public_snapshot import PublicSnapshot

__all__ = ["fetch_files"]

PREFIX = 32
"""Characters of a text that Delta keeps in its statistics."""
LAST = "\U0010ffff"
ENTRY = "add STRUCT<path: STRING, tags: MAP<STRING, STRING>>"
NONE = ("", -1, -1, -1, 0.0)

Place = tuple[str, int, int, int, float]
"""Layout, generation, lowest and highest key, and size of a file."""


def fetch_files(snapshot: PublicSnapshot) -> FileList:
    """All live files of a version that have a live row; rows are counted from their Parquet footers.

    How many rows a deletion vector hides is not known by public API, and given as none.
    """
    with set_for_a_while(snapshot.spark, ANY_AGE):  # Spark Connect asks only when it reads
        return _fetched(snapshot)


def _fetched(snapshot: PublicSnapshot) -> FileList:
    from pyspark.sql import functions as F

    rows = snapshot.read()
    origin = rows.metadataColumn("_metadata")
    columns = snapshot.partition_columns
    instants = {item.name for item in snapshot.struct.fields if item.dataType.simpleString() == "timestamp"}
    plain = [(name in instants, F.col(column_sql((name,)))) for name in columns]
    values = [F.unix_micros(column) if instant else column.cast("string") for instant, column in plain]
    names = [f"p{i}" for i in range(len(values))]
    found = rows.select(
        origin.getField("file_path").alias("path"),
        origin.getField("file_size").alias("size"),
        F.unix_millis(origin.getField("file_modification_time")).alias("modified"),
        *(value.alias(name) for value, name in zip(values, names, strict=True)),
    )
    batch = found.groupBy("path", "size", "modified", *names).count().toArrow().sort_by("path")
    path = np.asarray(batch["path"].to_pylist(), dtype=object)
    places = _places(snapshot)
    known = [places.get(str(item).rsplit("/", 1)[-1], NONE) for item in path]
    live = batch["count"].to_numpy().astype(np.int64)
    partitions = [
        [_instant(value) if column in instants else value for value in decoded(batch[name])]
        for column, name in zip(columns, names, strict=True)
    ]
    values_of = tuple(zip(*partitions, strict=True)) if partitions else ((),) * len(path)
    return FileList(
        path=path,
        bytes=batch["size"].to_numpy().astype(np.int64),
        rows=live,
        deleted=np.zeros(len(path), dtype=np.int64),
        layout=tuple(item[0] for item in known),
        generation=np.array([item[1] for item in known], dtype=np.int64),
        key_low=np.array([item[2] for item in known], dtype=np.int64),
        key_high=np.array([item[3] for item in known], dtype=np.int64),
        modified=batch["modified"].to_numpy().astype(np.int64),
        partitions=values_of,
        load_zones=lambda columns: _zones(snapshot, path, live, values_of, columns),
        vector=("",) * len(path),
        size=np.array([item[4] for item in known], dtype=np.float64),
    )


def _instant(micros: int | None) -> str | None:
    """A timestamp as a text that no session's time zone reads otherwise."""
    return None if micros is None else f"{np.datetime64(micros, 'us')}Z"


def _places(snapshot: PublicSnapshot) -> dict[str, Place]:
    """Which layout a file lies by, by its name: as far as the log still holds the commit that wrote it."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    written = [row for row in history_of(snapshot) if int(row["version"]) <= snapshot.version and is_ours(row)]
    layouts = {f"{int(row['version']):020}.json": layout_written(row) for row in written}
    if not layouts:
        return {}
    folder = re.sub(r"([\[\]{}*?\\])", r"\\\1", snapshot.location)  # where a reader's path would be a pattern
    entries = snapshot.spark.read.schema(ENTRY)
    tags = (LAYOUT_TAG, GENERATION_TAG, KEY_LOW_TAG, KEY_HIGH_TAG, SIZE_TAG)
    try:
        frame = entries.json([f"{folder}/_delta_log/{name}" for name in layouts]).where("add IS NOT NULL")
        batch = frame.select(
            frame.metadataColumn("_metadata").getField("file_name").alias("entry"),
            F.col("add.path").alias("path"),
            *(F.element_at("add.tags", tag).alias(f"t{i}") for i, tag in enumerate(tags)),
        ).toArrow()
    except PySparkException:  # a catalog keeps the entries elsewhere, or they were just cleaned up
        return {}
    result: dict[str, Place] = {}
    for row in batch.to_pylist():
        layout, version = layouts[row["entry"]], int(row["entry"].split(".")[0])
        generation, low, high = (int(row[f"t{i}"] or -1) for i in (1, 2, 3))
        tagged = (row["t0"], generation, low, high, float(row["t4"] or 0))
        place = tagged if row["t0"] else (layout, version, -1, -1, 0.0)
        result[row["path"].rsplit("/", 1)[-1]] = place if place[0] else NONE
    return result


def _zones(
    snapshot: PublicSnapshot,
    path: npt.NDArray[np.object_],
    live: npt.NDArray[np.int64],
    partitions: tuple[tuple[str | None, ...], ...],
    columns: Collection[str] | None,
) -> dict[str, ColumnZones]:
    """Zones by one scan of the asked columns, of those columns that Delta keeps statistics of."""
    from pyspark.sql import functions as F

    asked = [(i, leaf) for i, leaf in enumerate(snapshot.leaves) if columns is None or leaf.column.name in columns]
    wanted: list[SparkColumn] = []
    for i, leaf in asked:
        if leaf.column.partition or not leaf.column.delta_stats:
            continue
        column = F.col(column_sql(leaf.path))
        low, high = F.min(column), F.max(column)
        if leaf.column.value_type.family == "string":
            cut = F.concat(F.substring(high, 1, PREFIX), F.lit(LAST))
            low, high = F.substring(low, 1, PREFIX), F.when(F.length(high) > PREFIX, cut).otherwise(high)
        wanted += [low.alias(f"low{i}"), high.alias(f"high{i}"), F.count_if(column.isNull()).alias(f"nulls{i}")]
    texts = {
        f"p{i}": pa.chunked_array([pa.array([values[i] for values in partitions], pa.string())])
        for i in range(len(snapshot.partition_columns))
    }
    if not wanted:
        return zones_of_batch(snapshot, pa.table({"path": pa.array(path.tolist(), pa.string()), **texts}), live, asked)
    rows = snapshot.read()
    grouped = rows.groupBy(rows.metadataColumn("_metadata").getField("file_path").alias("path"))
    with snapshot.reading():
        batch = grouped.agg(*wanted).toArrow().combine_chunks()
    place = {name: i for i, name in enumerate(batch["path"].to_pylist())}
    batch = batch.take(pa.array([place[name] for name in path], pa.int64()))
    for name, values in texts.items():
        batch = batch.append_column(name, values)
    return zones_of_batch(snapshot, batch, live, asked)
