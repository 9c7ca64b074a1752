"""How long queries take in real engines: Spark through Delta, and DuckDB on the same files, tables interleaved.

A query runs on every table in turn, in an order drawn anew each time, so that what else the machine does falls on all
of them alike. Beside the tables runs the same query on an empty one: what it costs before a row is read.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zorder_pipeline.java import class_name

from .data import file_count, live_bytes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from zorder_pipeline.model.results import Evaluation

__all__ = ["Times", "duckdb_times", "measured", "parquet_files", "per_query", "rows_scanned", "spark_times"]

Floats: TypeAlias = npt.NDArray[np.float64]
Run: TypeAlias = Callable[[str], object]
"""Runs one statement to its last row."""
EMPTY = "nothing"
UNTIMED = 3
"""Rounds in Spark before those that are timed; from the fourth on a query takes hardly less time."""


@dataclass(frozen=True)
class Times:
    """Wall times of queries on one table.

    Attributes:
        seconds: shape (queries, rounds).
        empty: the same queries on a table without rows, shape (queries, rounds).
        scanned: rows that Spark's reader gave out of the files, after row groups and pages were skipped, shape
            (queries,); None where the engine does not say.
    """

    seconds: Floats
    empty: Floats
    scanned: Floats | None = None

    @property
    def median(self) -> Floats:
        """Median over the rounds, shape (queries,)."""
        return np.asarray(np.median(self.seconds, axis=1))

    @property
    def net(self) -> Floats:
        """The median without that of the query on an empty table, shape (queries,); never below a millisecond."""
        return np.maximum(self.median - np.median(self.empty, axis=1), 1e-3)

    @property
    def spread(self) -> float:
        """Interquartile range over rounds of a query's time, as a share of its median; the median over queries."""
        low, high = np.percentile(self.seconds, [25, 75], axis=1)
        return float(np.median((high - low) / self.median))


def per_query(times: Times, engine: str) -> dict[str, Floats]:
    """The measures of an outcome: ``<engine>_s``, ``<engine>_net_s`` and, where known, ``scanned``."""
    found = {f"{engine}_s": times.median, f"{engine}_net_s": times.net}
    return found if times.scanned is None else found | {"scanned": times.scanned}


def measured(
    path: Path, read: Evaluation, in_spark: Times, in_duckdb: Times
) -> tuple[dict[str, Floats], dict[str, Any]]:
    """The measures and figures of an outcome: what queries read of a Delta table, and how long some of them took."""
    measures = {"files": read.files_per_query, "rows": read.rows_per_query, "bytes": read.bytes_per_query}
    figures = read.to_json() | {
        "files": file_count(path),
        "file_bytes": live_bytes(path),
        "spark_spread": in_spark.spread,
        "duckdb_spread": in_duckdb.spread,
    }
    return measures | per_query(in_spark, "spark") | per_query(in_duckdb, "duckdb"), figures


def spark_times(
    spark: SparkSession,
    tables: Mapping[str, Path],
    statements: Sequence[str],
    name: str,
    rounds: int = 3,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Times]:
    """Times of ``statements``, which read ``name``, in Spark on each table: Delta, or a folder of Parquet files.

    Untimed rounds come first: they fill the page cache, count the rows scanned, and compile the code. Spark makes new
    code for each query, and Java goes on compiling it until it has run some times.
    """
    some = next(iter(tables.values()))
    reader = spark.read.format("delta" if _is_delta(some) else "parquet")
    nothing = some.parent.parent / f"{EMPTY}-{name}"
    shutil.rmtree(nothing, ignore_errors=True)
    rows = reader.load(str(some))
    rows.limit(0).write.format("delta" if _is_delta(some) else "parquet").save(str(nothing))
    views = _views(tables, name)
    for key, path in {**tables, EMPTY: nothing}.items():
        reader.load(str(path)).createOrReplaceTempView(views[key])
    scanned: dict[str, list[float]] = {key: [] for key in views}
    for statement in statements:
        for key, view in views.items():
            done = spark.sql(_reading(statement, name, view))
            done.collect()
            scanned[key].append(rows_scanned(done))

    def run(text: str) -> object:
        return spark.sql(text).collect()

    _interleaved(run, views, statements, name, UNTIMED - 1, None)
    found = _interleaved(run, views, statements, name, rounds, progress)
    for view in views.values():
        spark.catalog.dropTempView(view)
    shutil.rmtree(nothing)
    return {key: Times(found[key], found[EMPTY], np.array(scanned[key])) for key in tables}


def duckdb_times(
    tables: Mapping[str, Path], statements: Sequence[str], name: str, rounds: int = 3, threads: int = 1
) -> dict[str, Times]:
    """Times of ``statements`` in DuckDB on the live Parquet files of each table.

    DuckDB skips row groups by their statistics; it is given all files, whose footers it keeps in memory.
    """
    import duckdb

    with duckdb.connect() as db:
        db.execute(f"SET TimeZone = 'UTC'; SET threads = {threads}; SET parquet_metadata_cache = true")
        views = _views(tables, name)
        for key, path in tables.items():
            listed = ", ".join("'" + file.replace("'", "''") + "'" for file in parquet_files(path))
            db.execute(f"CREATE VIEW {views[key]} AS SELECT * FROM read_parquet([{listed}])")
        db.execute(f"CREATE TABLE {views[EMPTY]} AS SELECT * FROM {views[next(iter(tables))]} LIMIT 0")

        def run(text: str) -> object:
            return db.execute(text).fetchall()

        for statement in statements:
            for view in views.values():
                run(_reading(statement, name, view))
        found = _interleaved(run, views, statements, name, rounds, None)
    return {key: Times(found[key], found[EMPTY]) for key in tables}


def rows_scanned(done: DataFrame) -> float:
    """Rows that the file scans of a query that has run gave out, by Spark's own metrics."""
    return _scanned(done._jdf.queryExecution().executedPlan())


def _scanned(plan: Any) -> float:
    kind = class_name(plan)
    if kind == "AdaptiveSparkPlanExec":
        return _scanned(plan.executedPlan())
    if kind.endswith("QueryStageExec"):
        return _scanned(plan.plan())
    total = 0.0
    if kind == "FileSourceScanExec":
        total += plan.metrics().apply("numOutputRows").value()
    for parts in (plan.children(), plan.subqueries()):
        total += sum(_scanned(parts.apply(i)) for i in range(parts.length()))
    return total


def _interleaved(
    run: Run,
    views: Mapping[str, str],
    statements: Sequence[str],
    name: str,
    rounds: int,
    progress: Callable[[str], None] | None,
) -> dict[str, Floats]:
    rng = np.random.default_rng(0)
    seconds = {key: np.zeros((len(statements), rounds)) for key in views}
    keys = list(views)
    for turn in range(rounds):
        for number, statement in enumerate(statements):
            for place in rng.permutation(len(keys)):
                text = _reading(statement, name, views[keys[place]])
                start = time.perf_counter()
                run(text)
                seconds[keys[place]][number, turn] = time.perf_counter() - start
        if progress:
            progress(f"round {turn + 1} of {rounds}: {len(statements)} queries on {len(keys) - 1} tables")
    return seconds


def _views(tables: Mapping[str, Path], name: str) -> dict[str, str]:
    return {key: f"{name}__{number}" for number, key in enumerate(tables)} | {EMPTY: f"{name}__empty"}


def _is_delta(path: Path) -> bool:
    return (path / "_delta_log").is_dir()


def parquet_files(path: Path) -> list[str]:
    """The live Parquet files of a Delta table, or those of a folder."""
    if not _is_delta(path):
        return sorted(map(str, path.glob("*.parquet")))
    from deltalake import DeltaTable

    return DeltaTable(str(path)).file_uris()


def _reading(statement: str, name: str, view: str) -> str:
    """The statement on another table.

    >>> _reading("SELECT l_tax FROM lineitem", "lineitem", "lineitem__0")
    'SELECT l_tax FROM lineitem__0'
    """
    return re.sub(rf"\b{re.escape(name)}\b", view, statement)
