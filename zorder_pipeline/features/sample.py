"""A reproducible sample of one table version, only of the columns asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zorder_pipeline.errors import TableError
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.spark_sql import column_sql
from zorder_pipeline.model.values import canonical_array

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Sample", "SampleColumn", "Snapshot", "take_sample"]

HASH_SPACE = 1 << 31


class Snapshot(Protocol):
    """What sampling needs of a table version."""

    version: int

    @property
    def schema(self) -> TableSchema:
        """Its leaf columns."""

    @property
    def paths(self) -> Mapping[str, tuple[str, ...]]:
        """Path of each column by its name in `schema`."""

    def read(self) -> DataFrame:
        """The rows of exactly this version."""


@dataclass(frozen=True)
class SampleColumn:
    """One column of a sample.

    Attributes:
        values: canonical values, shape (rows,); arbitrary where ``valid`` is False.
        valid: False for nulls, shape (rows,).
    """

    values: npt.NDArray[Any]
    valid: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Sample:
    """Rows of a table, ordered by the file they come from and their place in it.

    Attributes:
        columns: by column name.
        file: which data file each row lies in, int32, shape (rows,); files are numbered by path from 0.
        rows: rows in the sample.
        total_rows: rows of the table.
        seed: what the rows were chosen by.
        version: table version they were read from.
    """

    columns: Mapping[str, SampleColumn] = field(repr=False)
    file: npt.NDArray[np.int32] = field(repr=False)
    rows: int
    total_rows: int
    seed: int = 0
    version: int = 0


def take_sample(
    spark: SparkSession,  # noqa: ARG001 - the snapshot brings its session; part of the call for other sources
    snapshot: Snapshot,
    columns: Sequence[str],
    *,
    rows: int,
    seed: int,
    total_rows: int,
) -> Sample:
    """About ``rows`` rows of a table version, the same ones for the same seed however the cluster reads them.

    A row is taken when the hash of its file's name, its place in the file and the seed is small enough, so no shuffle
    is needed and two samples of different size nest. All files are scanned, but only in these columns.

    Args:
        columns: names as in ``snapshot.schema``; those whose type has no order (maps, arrays) are left out.
        rows: rows wanted; at least ``total_rows`` takes every row.
        total_rows: live rows of the table.

    Raises:
        TableError: the table has no such column.
    """
    from pyspark.sql import functions as F

    known = {column.name: column for column in snapshot.schema.columns}
    if missing := [name for name in columns if name not in known]:
        raise TableError(f"column {missing[0]} cannot be sampled: the table has only {', '.join(known)}")
    columns = [name for name in columns if known[name].value_type.orderable]
    frame = snapshot.read()
    origin = frame.metadataColumn("_metadata")
    path = origin.getField("file_path")
    # Delta shows a row's place in its file only where deletion vectors are possible; elsewhere its place in the scan
    # serves, which is the same as long as the session splits files alike
    place = origin.getField("row_index") if _has_row_index(frame) else F.monotonically_increasing_id()
    if rows < total_rows:
        number = F.pmod(F.xxhash64(origin.getField("file_name"), place, F.lit(seed).cast("bigint")), F.lit(HASH_SPACE))
        frame = frame.where(number < F.lit(int(rows / total_rows * HASH_SPACE)))
    asked = [F.col(column_sql(snapshot.paths[name])).alias(f"c{i}") for i, name in enumerate(columns)]
    table = frame.select(path.alias("path"), place.alias("place"), *asked).toArrow()
    file = _numbered(table["path"])
    order = np.lexsort((table["place"].to_numpy(), file))
    result: dict[str, SampleColumn] = {}
    for i, name in enumerate(columns):
        values, valid = canonical_array(table[f"c{i}"], known[name].value_type)
        result[name] = SampleColumn(values[order], valid[order])
    return Sample(result, file[order], len(order), total_rows, seed, snapshot.version)


def _has_row_index(frame: DataFrame) -> bool:
    from pyspark.sql.types import StructType

    fields = frame.select(frame.metadataColumn("_metadata").alias("m")).schema["m"].dataType
    return isinstance(fields, StructType) and "row_index" in fields.names


def _numbered(paths: pa.ChunkedArray) -> npt.NDArray[np.int32]:
    """Index of each path among the distinct ones in ascending order."""
    coded = paths.combine_chunks().dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    names = np.asarray(coded.dictionary.to_pylist(), dtype=object)
    rank = np.empty(len(names), dtype=np.int32)
    rank[np.argsort(names)] = np.arange(len(names), dtype=np.int32)
    index: npt.NDArray[np.int32] = coded.indices.to_numpy(zero_copy_only=False)
    return rank[index]
