"""A reproducible sample of one table version, only of the columns asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zorder_pipeline.errors import TableError, UnsupportedTableError
from zorder_pipeline.model.places import real_path
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.spark_sql import column_sql
from zorder_pipeline.model.values import ValueType, canonical_array, readable

from .sampling import Files, chosen_files, row_shares

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    Scan: TypeAlias = tuple[DataFrame, Sequence[Column]]

__all__ = ["Sample", "SampleColumn", "Snapshot", "take_sample"]

KEEPS_CHAR = "spark.sql.preserveCharVarcharTypeInfo"
HASH_SPACE = 1 << 31
NUMBER = "__zorder_number"
"""Column for the hash by which a row is taken."""
STEP, MOST_STEPS = 4.0, 8
"""Files of which shares of their rows are taken that are so many times unlike are scanned apart, in one job."""


class Snapshot(Protocol):
    """What sampling needs of a table version."""

    version: int
    location: str

    @property
    def schema(self) -> TableSchema:
        """Its leaf columns."""

    @property
    def paths(self) -> Mapping[str, tuple[str, ...]]:
        """Path of each column by its name in `schema`."""

    def files(self) -> Files:
        """Its live files."""

    def read(self) -> DataFrame:
        """The rows of exactly this version."""

    def read_files(self, paths: Sequence[str]) -> DataFrame:
        """The live rows of some of its files."""

    def reading(self) -> AbstractContextManager[None]:
        """In the block rows of it have the values that other sessions read."""


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
        files_read: data files that rows were taken from; all of them unless the table is large.
        names: path of each file that ``file`` numbers, as Spark tells it.
    """

    columns: Mapping[str, SampleColumn] = field(repr=False)
    file: npt.NDArray[np.int32] = field(repr=False)
    rows: int
    total_rows: int
    seed: int = 0
    version: int = 0
    files_read: int = 0
    names: tuple[str, ...] = ()

    @property
    def stands_for(self) -> float:
        """Rows of the table that a sampled row stands for; 1 where the sample is all of it."""
        return self.total_rows / max(1, self.rows)

    @property
    def arrays(self) -> dict[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]]:
        """Canonical values and validity by column name, as `zorder_pipeline.layout` takes them."""
        return {name: (column.values, column.valid) for name, column in self.columns.items()}


def take_sample(
    snapshot: Snapshot,
    columns: Sequence[str],
    *,
    rows: int,
    seed: int,
    total_rows: int,
    expressions: Mapping[str, tuple[str, str]] | None = None,
) -> Sample:
    """About ``rows`` rows of a table version, the same ones for the same seed however the cluster reads them.

    A row is taken when the hash of its file's name, its place in the file and the seed is small enough, so no shuffle
    is needed and two samples of different size nest. Only these columns are scanned, and of a large table only some
    files, of which each partition has its share of the rows, see `zorder_pipeline.features.sampling`.

    Args:
        columns: names as in ``snapshot.schema``; those whose type has no order (maps, arrays) are left out.
        rows: rows wanted; at least ``total_rows`` takes every row.
        total_rows: live rows of the table.
        expressions: SQL and Spark type of what is to be sampled besides, by the name that it gets; one that fails on
            some row (a cast under ANSI rules) is left out.

    Raises:
        TableError: the table has no such column.
        UnsupportedTableError: the session tells CHAR from STRING.
    """
    from pyspark.sql import functions as F

    known = {column.name: column for column in snapshot.schema.columns}
    if missing := [name for name in columns if name not in known]:
        raise TableError(f"column {missing[0]} cannot be sampled: the table has only {', '.join(known)}")
    columns = [name for name in columns if known[name].value_type.orderable]
    files = snapshot.files()
    some = chosen_files(files, seed)
    share = row_shares(files, some, rows)
    names = files.path[some.index]
    uneven = len(np.unique(share)) > 1
    asked = [F.col(column_sql(snapshot.paths[name])).alias(f"c{i}") for i, name in enumerate(columns)]
    asked += [F.col(NUMBER)] if uneven else []
    if len(names) == len(files.path):
        scans = [_scan(snapshot.read(), float(share.max(initial=0.0)), seed, asked)]
    else:
        scans = [
            _scan(snapshot.read_files(names[alike].tolist()), float(share[alike].max()), seed, asked)
            for alike in _steps(share)
        ]
    with snapshot.reading():
        more, table = _evaluated(scans, expressions or {})
    if uneven:
        table = _thinned(table, dict(zip(names.tolist(), share.tolist(), strict=True)), snapshot.location)
    file, paths = _numbered(table["path"])
    order = np.lexsort((table["place"].to_numpy(), file))
    result: dict[str, SampleColumn] = {}
    for i, name in enumerate(columns):
        values, valid = canonical_array(readable(table[f"c{i}"]), known[name].value_type)
        result[name] = SampleColumn(values[order], valid[order])
    for i, (name, (_, type_name)) in enumerate(more.items()):
        values, valid = canonical_array(readable(table[f"e{i}"]), ValueType.parse(type_name))
        result[name] = SampleColumn(values[order], valid[order])
    return Sample(result, file[order], len(order), total_rows, seed, snapshot.version, len(names), paths)


def _steps(share: npt.NDArray[np.float64]) -> list[npt.NDArray[np.bool_]]:
    """Files of like shares of their rows: of a file the driver gets as many as of that of its step that gives most."""
    shown = np.maximum(share, np.finfo(float).tiny)
    step = np.minimum(MOST_STEPS, np.log(shown.max() / shown) / np.log(STEP)).astype(int)
    return [step == one for one in np.unique(step)]


def _scan(frame: DataFrame, most: float, seed: int, asked: Sequence[Column]) -> Scan:
    """The rows of some files whose hash is small enough for the largest share, and what is asked of them."""
    from pyspark.sql import functions as F

    if str(frame.sparkSession.conf.get(KEEPS_CHAR, None)).lower() == "true":
        raise UnsupportedTableError(
            f"this session tells CHAR from STRING, which Arrow does not: set {KEEPS_CHAR} to false to sample a table"
        )
    origin = frame.metadataColumn("_metadata")
    path = origin.getField("file_path")
    # Delta shows a row's place in its file only where deletion vectors are possible; elsewhere its place in the scan
    # serves, which is the same as long as the session splits files alike
    place = origin.getField("row_index") if _has_row_index(frame) else F.monotonically_increasing_id()
    number = F.pmod(F.xxhash64(origin.getField("file_name"), place, F.lit(seed).cast("bigint")), F.lit(HASH_SPACE))
    frame = frame.withColumn(NUMBER, number)  # told once: behind a filter a place in the scan is another
    if most < 1:
        frame = frame.where(F.col(NUMBER) < F.lit(int(most * HASH_SPACE)))
    return frame, [path.alias("path"), place.alias("place"), *asked]


def _evaluated(
    scans: Sequence[Scan], more: Mapping[str, tuple[str, str]]
) -> tuple[Mapping[str, tuple[str, str]], pa.Table]:
    """The expressions that fail on no row, and the rows with their values."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F

    def working(some: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
        try:
            for frame, _ in scans:
                frame.agg(*(F.bit_xor(F.xxhash64(F.expr(sql))) for sql, _ in some.values())).collect()
        except (PySparkException, Py4JJavaError):
            items, half = list(some.items()), len(some) // 2
            return working(dict(items[:half])) | working(dict(items[half:])) if half else {}
        return dict(some)

    def rows(some: Mapping[str, tuple[str, str]]) -> pa.Table:
        values = [F.expr(sql).alias(f"e{i}") for i, (sql, _) in enumerate(some.values())]
        return reduce(DataFrame.union, (frame.select(*asked, *values) for frame, asked in scans)).toArrow()

    try:
        return more, rows(more)
    except (PySparkException, Py4JJavaError):
        if not more:
            raise
    more = working(more)
    return more, rows(more)


def _thinned(table: pa.Table, share: Mapping[str, float], location: str) -> pa.Table:
    """The rows whose number is small enough for the share of its rows that their file has."""
    file, paths = _numbered(table["path"])
    most = {real_path(path, location): int(part * HASH_SPACE) for path, part in share.items()}
    limit = np.array([most[real_path(path, "")] for path in paths], dtype=np.int64)
    return table.filter(pa.array(table[NUMBER].to_numpy() < limit[file]))


def _has_row_index(frame: DataFrame) -> bool:
    from pyspark.sql.types import StructType

    fields = frame.select(frame.metadataColumn("_metadata").alias("m")).schema["m"].dataType
    return isinstance(fields, StructType) and "row_index" in fields.names


def _numbered(paths: pa.ChunkedArray) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Index of each path among the distinct ones in ascending order, and those."""
    coded = paths.combine_chunks().dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    names = np.asarray(coded.dictionary.to_pylist(), dtype=object)
    order = np.argsort(names)
    rank = np.empty(len(names), dtype=np.int32)
    rank[order] = np.arange(len(names), dtype=np.int32)
    index: npt.NDArray[np.int32] = coded.indices.to_numpy(zero_copy_only=False)
    return rank[index], tuple(str(name) for name in names[order])
