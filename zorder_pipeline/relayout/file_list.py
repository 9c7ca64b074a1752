"""The live files of a version: sizes, rows, tags, partitions and zone maps, fetched as Arrow batches."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zorder_pipeline.model.places import ROOT, real_path
from zorder_pipeline.model.spark_sql import cast_name, column_sql
from zorder_pipeline.model.values import canonical_array
from zorder_pipeline.model.zone_map import ColumnZones, ZoneMap
from zorder_pipeline.state.session_conf import alone

from .leaves import Leaf, physical_of, stats_paths
from .session_conf import ALL_ROWS

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

    from .snapshot import TableSnapshot

__all__ = ["GENERATION_TAG", "KEY_HIGH_TAG", "KEY_LOW_TAG", "LAYOUT_TAG", "ZONED", "FileList", "decoded"]
__all__ += ["fetch_files", "zones_of_batch"]

LAYOUT_TAG, GENERATION_TAG = "zorder.layout", "zorder.generation"
KEY_LOW_TAG, KEY_HIGH_TAG = "zorder.keyLow", "zorder.keyHigh"
SIZE_TAG = "zorder.size"
FOREIGN = 1 << 62
"""What is taken from the generations of another table, which counts its own versions: they are older than all here."""
MILLISECOND, LAST_MOMENT = 1000, np.iinfo(np.int64).max
ZONED = re.compile(r"(Z|[+-]\d\d:?\d\d)$")
"""How the text of an instant ends that all readers read alike."""
VECTOR_ID = "concat_ws('@', deletionVector.storageType, deletionVector.pathOrInlineDv, deletionVector.`offset`)"
"""Tells a file's deletion vectors apart; the empty string without one."""

RECORDS = """coalesce(
    try_cast(regexp_extract(stats, '^[{]"numRecords":([0-9]+)[,}]', 1) AS BIGINT),
    from_json(stats, 'numRecords BIGINT').numRecords
)"""
"""Rows of a file; Delta tells them first, and a million statistics need not be parsed for them."""


@dataclass(frozen=True)
class FileList:
    """The live files of a snapshot, one array entry per file.

    Attributes:
        path: as in the AddFile action.
        bytes: size.
        rows: live rows (rows hidden by a deletion vector do not count).
        deleted: rows hidden by a deletion vector.
        layout: id of the layout the file lies by, "" when it is none of ours.
        generation: version that the relayout which wrote the file aimed for, -1 when it is none of ours: files of one
            generation do not overlap in the layout's key, those of different ones do. Of files that a clone has of
            another table it is that less `FOREIGN`.
        key_low, key_high: inclusive range of the file's keys in its layout, -1 when it is not known. Beyond the range
            that a layout was learned from keys are comparable within a generation only.
        modified: when the file was written, milliseconds since 1970.
        partitions: partition values as strings, a tuple per file in the order of the partition columns, None for null.
        load_zones: fetches `zones`, of some columns or of all.
        vector: id of the deletion vector, "" where the file has none.
        size: rows that a file's layout meant it to have, in units of its files' average; 0 where that is not told, as
            of files that are meant to be of equal size. None tells it of no file.
        uncounted: which files' statistics do not tell their rows, which were counted then; None where all do.
    """

    path: npt.NDArray[Any]
    bytes: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    deleted: npt.NDArray[np.int64]
    layout: tuple[str, ...]
    generation: npt.NDArray[np.int64]
    key_low: npt.NDArray[np.int64]
    key_high: npt.NDArray[np.int64]
    modified: npt.NDArray[np.int64]
    partitions: tuple[tuple[str | None, ...], ...]
    load_zones: Callable[[Collection[str] | None], dict[str, ColumnZones]] = field(repr=False)
    vector: tuple[str, ...] = field(default=(), repr=False)
    size: npt.NDArray[np.float64] | None = field(default=None, repr=False)
    uncounted: npt.NDArray[np.bool_] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.path)

    @cached_property
    def zones(self) -> dict[str, ColumnZones]:
        """Zones by column name, from the files' statistics; fetched when first asked for."""
        return self.load_zones(None)

    def zones_of(self, columns: Collection[str]) -> Mapping[str, ColumnZones]:
        """The zones of some columns alone, which is quicker for the first time."""
        return self.zones if "zones" in self.__dict__ else self.load_zones(columns)

    @cached_property
    def partition_codes(self) -> npt.NDArray[np.int64]:
        """Number of each file's partition, in the order in which they first appear, shape (files,)."""
        codes: dict[tuple[str | None, ...], int] = {}
        return np.fromiter((codes.setdefault(p, len(codes)) for p in self.partitions), np.int64, len(self))

    def even_rows(self, untold: float = 1.0) -> npt.NDArray[np.float64]:
        """Rows of each file as if all were meant to be of equal size: a full one has as many as any other.

        Args:
            untold: size to take where it is not told.
        """
        if self.size is None:
            return self.rows / untold
        return np.asarray(self.rows / np.where(self.size > 0, self.size, untold))

    def replaced_by(self, later: FileList) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Which of these files a later version has no more, and which of its files are none of these."""
        here, there = set(self.path.tolist()), set(later.path.tolist())
        gone = np.array([path not in there for path in self.path.tolist()], dtype=np.bool_)
        return gone, np.array([path not in here for path in later.path.tolist()], dtype=np.bool_)

    def lies_by(self, layout_id: str) -> npt.NDArray[np.bool_]:
        """Which files lie by a layout, shape (files,)."""
        return np.fromiter((layout == layout_id for layout in self.layout), np.bool_, len(self))

    def generations(self, layout_id: str, among: npt.NDArray[np.int64] | None = None) -> dict[int, int]:
        """Rows that lie by a layout, by the generation of their files.

        Args:
            among: indices of the files that count; all without it.
        """
        mine = self.lies_by(layout_id) & (self.generation >= 0)
        chosen = np.flatnonzero(mine) if among is None else among[mine[among]]
        numbers, which = np.unique(self.generation[chosen], return_inverse=True)
        rows = np.bincount(which, weights=self.rows[chosen], minlength=len(numbers))
        return {number: int(count) for number, count in zip(numbers.tolist(), rows.tolist(), strict=True)}

    @property
    def ours(self) -> npt.NDArray[np.bool_]:
        """Which files lie by a layout of ours, whichever, shape (files,)."""
        return np.array([bool(layout) for layout in self.layout], dtype=np.bool_)

    def zone_map(self) -> ZoneMap:
        """Zone maps of the files with Delta's skipping semantics."""
        every = self.rows + self.deleted
        return ZoneMap(self.rows, self.bytes, self.zones, every, all_or_none=True, uncounted=self.uncounted)


def fetch_files(snapshot: TableSnapshot) -> FileList:
    """All live files of a version."""
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F

    actions = snapshot.add_files
    frame = actions.frame() if actions.few else DataFrame(snapshot.jsnapshot.allFiles().toDF(), snapshot.spark)
    vector = F.coalesce(F.col("deletionVector.cardinality"), F.lit(0).cast("bigint"))
    physical = [physical_of(snapshot.struct, name) for name in snapshot.partition_columns]
    numbers = (("generation", GENERATION_TAG), ("key_low", KEY_LOW_TAG), ("key_high", KEY_HIGH_TAG))
    tag = F.col("tags")
    batch = frame.select(
        "path",
        "size",
        vector.alias("deleted"),
        F.expr(VECTOR_ID).alias("vector"),
        F.expr(RECORDS).alias("records"),
        F.element_at(tag, LAYOUT_TAG).alias("layout"),
        *(F.coalesce(F.element_at(tag, of).try_cast("bigint"), F.lit(-1)).alias(name) for name, of in numbers),
        F.coalesce(F.element_at(tag, SIZE_TAG).try_cast("double"), F.lit(0.0)).alias("meant"),
        F.col("modificationTime").alias("modified"),
        *(F.col("partitionValues").getItem(name).alias(f"p{i}") for i, name in enumerate(physical)),
    ).toArrow()
    path = np.asarray(batch["path"].to_pylist(), dtype=object)
    deleted = batch["deleted"].to_numpy().astype(np.int64)
    records = batch["records"].to_numpy().astype(np.float64)
    uncounted = np.isnan(records)
    if uncounted.any():
        records = _counted(snapshot, path, records, deleted)
    in_all = records.astype(np.int64)
    of_tags = {name: batch[name].to_numpy().astype(np.int64) for name, _ in numbers}
    generation = _from_here(of_tags.pop("generation"), batch["path"], snapshot.version)
    partitions = [decoded(batch[f"p{i}"]) for i in range(len(physical))]
    texts = {leaf.path[0] for leaf in snapshot.leaves if leaf.column.value_type.family in ("string", "binary")}
    for i, name in enumerate(snapshot.partition_columns):  # others write null as the empty text
        partitions[i] = partitions[i] if name in texts else [text or None for text in partitions[i]]
    return FileList(
        path=path,
        bytes=batch["size"].to_numpy().astype(np.int64),
        rows=in_all - deleted,
        deleted=deleted,
        layout=tuple(layout or "" for layout in decoded(batch["layout"])),
        generation=generation,
        **of_tags,
        modified=batch["modified"].to_numpy().astype(np.int64),
        partitions=tuple(zip(*partitions, strict=True)) if partitions else ((),) * len(path),
        load_zones=lambda columns: _fetch_zones(snapshot, path, in_all, columns),
        vector=tuple(decoded(batch["vector"])),
        uncounted=uncounted if uncounted.any() else None,
        size=batch["meant"].to_numpy().astype(np.float64),
    )


def _from_here(generation: npt.NDArray[np.int64], path: pa.ChunkedArray, version: int) -> npt.NDArray[np.int64]:
    """Generations of files as `FileList` has them, from their tags, which a clone takes over from another table.

    Args:
        path: as in the AddFile action: a whole one is of a file that another table wrote.
        version: of the table; what is newer was written in another one, too.

    >>> path = pa.chunked_array([["a", "b=1:1/c", "d", "s3a://store/t/e"]])
    >>> _from_here(np.array([-1, 3, 9, 3]), path, version=5) + [0, 0, FOREIGN, FOREIGN]
    array([-1,  3,  9,  3])
    """
    whole = pc.match_substring_regex(path, f"^/|{ROOT}").to_numpy(zero_copy_only=False).astype(np.bool_)
    others = (generation >= 0) & (whole | (generation > version))
    return np.where(others, generation - FOREIGN, generation)


def decoded(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column that has few different ones, each made once."""
    coded = column.combine_chunks().dictionary_encode()
    values = [*coded.dictionary.to_pylist(), None]
    return [values[code] for code in coded.indices.fill_null(len(values) - 1).to_pylist()]


def _fetch_zones(
    snapshot: TableSnapshot, path: npt.NDArray[Any], rows: npt.NDArray[np.int64], columns: Collection[str] | None
) -> dict[str, ColumnZones]:
    """Zones of the files ``path``, which have ``rows`` rows with those that deletion vectors hide."""
    from pyspark.sql import functions as F

    asked = [(i, leaf) for i, leaf in enumerate(snapshot.leaves) if columns is None or leaf.column.name in columns]
    physical = [physical_of(snapshot.struct, name) for name in snapshot.partition_columns]
    values = [F.col("partitionValues").getItem(name).alias(f"p{i}") for i, name in enumerate(physical)]
    wanted = [column.alias(alias) for alias, column in _wanted_stats(snapshot, asked)]
    batch = snapshot.stats_frame.select("path", *values, *wanted).toArrow().combine_chunks()
    place = {name: i for i, name in enumerate(batch["path"].to_pylist())}
    return zones_of_batch(snapshot, batch.take(pa.array([place[name] for name in path], pa.int64())), rows, asked)


def _wanted_stats(snapshot: TableSnapshot, leaves: Sequence[tuple[int, Leaf]]) -> Iterator[tuple[str, SparkColumn]]:
    from pyspark.sql import functions as F

    counted = stats_paths(snapshot.stats_struct, "nullCount")
    for i, leaf in leaves:
        physical = column_sql(leaf.physical)
        if leaf.column.delta_stats and not leaf.column.partition:
            yield f"low{i}", F.col(f"stats.minValues.{physical}")
            yield f"high{i}", F.col(f"stats.maxValues.{physical}")
        if leaf.physical in counted:
            yield f"nulls{i}", F.col(f"stats.nullCount.{physical}")


def _counted(
    snapshot: TableSnapshot,
    path: npt.NDArray[Any],
    records: npt.NDArray[np.float64],
    deleted: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64]:
    """Rows of files whose AddFile does not say how many, counted in these files alone."""
    with alone(snapshot.spark, ALL_ROWS) as spark:
        rows = snapshot.in_session(spark).read_files(path[np.isnan(records)].tolist())
        counts = rows.groupBy(rows.metadataColumn("_metadata").getField("file_path").alias("path")).count().collect()
    live = {real_path(row["path"], ""): row["count"] for row in counts}
    found = np.array([live.get(real_path(item, snapshot.location), 0) for item in path]) + deleted
    return np.where(np.isnan(records), found, records)


def zones_of_batch(
    snapshot: TableSnapshot, batch: pa.Table, rows: npt.NDArray[np.int64], leaves: Sequence[tuple[int, Leaf]]
) -> dict[str, ColumnZones]:
    """Zones of some leaves, each with its place ``i``, from the columns ``low{i}``, ``high{i}`` and ``nulls{i}``.

    Partition columns have their texts in ``p{i}``, by their place among the partition columns.
    """
    result: dict[str, ColumnZones] = {}
    names = set(batch.column_names)
    for i, leaf in leaves:
        value_type = leaf.column.value_type
        nulls = np.full(len(rows), -1, dtype=np.int64)
        if f"nulls{i}" in names:
            counted = batch[f"nulls{i}"].to_numpy(zero_copy_only=False).astype(np.float64)
            nulls = np.where(np.isnan(counted), -1, counted).astype(np.int64)
        if leaf.column.partition:
            result[leaf.column.name] = _partition_zones(snapshot, batch, leaf, rows)
        elif f"low{i}" in names and value_type.orderable:
            low, has_low = canonical_array(batch[f"low{i}"], value_type)
            high, has_high = canonical_array(batch[f"high{i}"], value_type)
            if value_type.family in ("timestamp", "timestamp_ntz"):
                # Delta keeps milliseconds and adds one when it skips
                high = np.minimum(high, LAST_MOMENT - MILLISECOND) + MILLISECOND
            if leaf.from_float:  # the log has a float's shortest text, which as a double is another number
                with np.errstate(over="ignore"):
                    low = np.minimum(low, np.nextafter(low.astype(np.float32), np.float32(-np.inf)))
                    high = np.maximum(high, np.nextafter(high.astype(np.float32), np.float32(np.inf)))
            result[leaf.column.name] = ColumnZones(low, high, has_low & has_high, nulls)
        elif f"nulls{i}" in names and value_type.orderable:
            blank = np.zeros(len(rows), dtype=value_type.numpy_dtype)
            result[leaf.column.name] = ColumnZones(blank, blank, np.zeros(len(rows), dtype=np.bool_), nulls)
    return result


def _partition_zones(snapshot: TableSnapshot, batch: pa.Table, leaf: Leaf, rows: npt.NDArray[np.int64]) -> ColumnZones:
    """Every file has exactly one value of a partition column; of an instant told without a zone it is not known.

    Nor is that of the empty text: the protocol calls it null, and Spark reads it as it stands where the type has it.
    Nor is that of a text that is no value of the type, which readers take for null or refuse.
    """
    from pyspark.sql import functions as F

    texts = batch[f"p{snapshot.partition_columns.index(leaf.path[0])}"]
    distinct = pa.table({"text": texts.combine_chunks().unique().cast(pa.string())})
    cast = F.col("text").try_cast(cast_name(leaf.column.type)).alias("value")
    typed = snapshot.spark.createDataFrame(distinct).select("text", cast).toArrow()
    values, valid = canonical_array(typed["value"], leaf.column.value_type)
    readable = valid.copy()
    if leaf.column.value_type.family == "timestamp":  # every session reads it in its own zone
        valid &= np.array([bool(ZONED.search(text or "")) for text in typed["text"].to_pylist()], dtype=np.bool_)
    place = {text: i for i, text in enumerate(typed["text"].to_pylist())}
    index = np.array([place[text] for text in texts.to_pylist()], dtype=np.int64)
    known = valid[index] if len(index) else np.zeros(0, dtype=np.bool_)
    nulls = np.where([text is None for text in texts.to_pylist()], rows, np.where(readable[index], 0, -1))
    empty = np.array([text == "" for text in texts.to_pylist()], dtype=np.bool_)
    doubtful = leaf.column.value_type.family in ("string", "binary")
    known, nulls = known & ~empty, np.where(empty, -1 if doubtful else rows, nulls)
    return ColumnZones(values[index], values[index], known, nulls.astype(np.int64), exact=True)
