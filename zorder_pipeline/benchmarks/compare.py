"""Do two tables, or two versions of one, answer every statement alike? The proof that a relayout changed no result."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from zorder_pipeline.errors import VerificationError, ZorderError

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import SparkSession

__all__ = ["duckdb_results", "refuse_other_results", "same_results", "same_rows", "spark_results"]

Rows: TypeAlias = list[tuple[Any, ...]]
FLOAT_TOLERANCE = 1e-9
HARMLESS_FEATURES = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
THREADS = 4


def same_results(
    spark: SparkSession | None,
    statements: Sequence[str],
    path_a: str | Path,
    path_b: str | Path,
    *,
    name: str = "lineitem",
    version_a: int | None = None,
    version_b: int | None = None,
    engine: str = "auto",
) -> list[str]:
    """The statements whose results differ between two tables; empty when all agree.

    Rows are compared as multisets. Values are compared exactly, floats within a relative 1e-9: a float sum depends on
    the order of the rows, which is what a relayout changes.

    Args:
        spark: session for what DuckDB cannot read or run; None when that must not happen.
        statements: SQL that reads a table called ``name``; equal ones are run once.
        path_a, path_b: Delta tables.
        name: the table's name in the statements.
        version_a, version_b: versions to read; the newest when None.
        engine: ``auto`` reads the live Parquet files with DuckDB (5 ms a statement) wherever it can, and goes through
            Delta and Spark (0.6 s) for the rest; ``spark`` goes through Spark always, data skipping included.

    Raises:
        ZorderError: a statement cannot be run, or needs Spark and there is none.
    """
    todo = list(dict.fromkeys(statements))
    sides = ((path_a, version_a), (path_b, version_b))
    different: list[str] = []
    if engine == "auto" and all(starmap(_plain, sides)):
        results = [duckdb_results(todo, path, name, version) for path, version in sides]
        left = [i for i in range(len(todo)) if any(side[i] is None for side in results)]
        different = [
            statement
            for statement, a, b in zip(todo, *results, strict=True)
            if a is not None and b is not None and not same_rows(a, b)
        ]
        todo = [todo[i] for i in left]
    if todo:
        if spark is None:
            raise ZorderError(f"DuckDB cannot run {todo[0]!r} on {path_a}; give a Spark session")
        one, other = (spark_results(spark, todo, path, name, version) for path, version in sides)
        different += [statement for statement, a, b in zip(todo, one, other, strict=True) if not same_rows(a, b)]
    return different


def refuse_other_results(
    spark: SparkSession, statements: Sequence[str], stored: Path, relaid: Path, *, name: str
) -> None:
    """Refuse to go on where a relayout changed a result.

    Raises:
        VerificationError: a statement's result differs, see `same_results`.
    """
    if different := same_results(spark, statements, stored, relaid, name=name):
        raise VerificationError(f"{len(different)} statements answer otherwise after our relayout, e.g. {different[0]}")


def duckdb_results(
    statements: Sequence[str], path: str | Path, name: str = "lineitem", version: int | None = None
) -> list[Rows | None]:
    """Each statement's rows over the live files of a Delta table, None for what DuckDB cannot run.

    The files are loaded once into a scratch database on disk, so memory stays bounded.
    """
    import duckdb

    with tempfile.TemporaryDirectory(prefix="compare-") as folder, duckdb.connect(f"{folder}/db") as db:
        db.execute("SET TimeZone = 'UTC'")
        files = _open(path, version).file_uris()
        quoted = '"' + name.replace('"', '""') + '"'
        db.execute(f"CREATE TABLE {quoted} AS SELECT * FROM read_parquet($files)", {"files": files})
        results: list[Rows | None] = []
        for statement in statements:
            try:
                results.append(db.execute(statement).fetchall())
            except duckdb.Error:
                results.append(None)
        return results


def spark_results(
    spark: SparkSession, statements: Sequence[str], path: str | Path, name: str = "lineitem", version: int | None = None
) -> list[Rows]:
    """Each statement's rows as Spark reads them through Delta, a few statements at a time.

    Raises:
        ZorderError: a statement fails.
    """
    from pyspark.errors import PySparkException

    own = spark.newSession()  # temporary views of its own
    reader = own.read.format("delta")
    rows = (reader if version is None else reader.option("versionAsOf", version)).load(str(path))
    rows.createOrReplaceTempView(name)

    def run(statement: str) -> Rows:
        try:
            return [tuple(row) for row in own.sql(statement).collect()]
        except PySparkException as error:
            reason = str(error).strip().splitlines()[0]
            raise ZorderError(f"Spark cannot run {statement!r} on {path}: {reason}") from error

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, statements))


def same_rows(a: Rows, b: Rows) -> bool:
    """Whether two results hold the same rows, in any order.

    >>> same_rows([(1, 0.1 + 0.2), (2, None)], [(2, None), (1, 0.3)])
    True
    >>> same_rows([(1,), (1,), (2,)], [(1,), (2,), (2,)])
    False
    """
    if len(a) != len(b):
        return False
    pairs = zip(sorted(a, key=_order), sorted(b, key=_order), strict=True)
    return all(len(x) == len(y) and all(map(_same_value, x, y)) for x, y in pairs)


def _same_value(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=FLOAT_TOLERANCE)
    return type(a) is type(b) and bool(a == b)


def _order(row: tuple[Any, ...]) -> tuple[list[str], list[tuple[bool, float]]]:
    floats = [value for value in row if isinstance(value, float)]
    exact = ["float" if isinstance(value, float) else repr(value) for value in row]
    return exact, [(math.isnan(value), 0.0 if math.isnan(value) else value) for value in floats]


def _plain(path: str | Path, version: int | None) -> bool:
    """Whether its live Parquet files hold the table's content: no deletion vectors, partitions or column mapping."""
    table = _open(path, version)
    mapped = table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none"
    features = set(table.protocol().reader_features or ())
    return not (mapped or table.metadata().partition_columns or features - HARMLESS_FEATURES)


def _open(path: str | Path, version: int | None) -> DeltaTable:
    from deltalake import DeltaTable

    return DeltaTable(str(path), version=version)
