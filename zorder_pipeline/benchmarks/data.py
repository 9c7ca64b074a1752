"""TPC-H data from the real generator, and Delta tables out of Parquet files or Arrow tables in a given number of files.

``tpchgen-cli`` is a Rust port of TPC-H's ``dbgen``: its data depend on the scale factor only, so there is no seed.
Rows come in the order of ``l_orderkey``, as orders arrive; dates and part keys are spread over every file. That order
is kept: it is the "as stored" layout of every comparison.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from zorder_pipeline.errors import TableError, ZorderError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from zorder_pipeline.model.plan import Plan
    from zorder_pipeline.pipeline import LearnSettings

__all__ = ["copy_table", "delta_table", "denormalised_lineitem", "file_count", "lineitem_table", "live_bytes"]
__all__ += [
    "learn_and_apply",
    "make_folder",
    "orders_lineitem",
    "plan_for",
    "session_conf",
    "started",
    "store_parquet",
    "write_lineitem",
    "write_tpch",
]


def make_folder(folder: Path, option: str) -> None:
    """A folder for what is made or measured, before hours are spent on it.

    Args:
        option: of the command that names it.

    Raises:
        ZorderError: nothing can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ZorderError(f"{option}: the folder {folder} cannot be written: {why}; choose another place") from error


def write_tpch(folder: str | Path, scale: float, table: str, parts: int = 1) -> list[Path]:
    """Write one TPC-H table as Parquet, in generation order.

    Args:
        folder: where the files go, as ``<folder>/<table>/<table>.<part>.parquet``; files already there are replaced.
        scale: scale factor; 1 is 6 million lineitem rows.
        table: ``lineitem``, ``orders``, ...
        parts: number of files of about equal row count.

    Returns:
        The files, in generation order.

    Raises:
        ZorderError: the generator is missing or fails.
    """
    program = _generator()
    target = Path(folder) / table
    shutil.rmtree(target, ignore_errors=True)
    # fmt: off
    command = [program, "parquet", f"--scale-factor={scale}", f"--tables={table}", f"--parts={parts}",
               f"--output-dir={folder}", "--quiet"]
    # fmt: on
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    files = sorted(target.glob("*.parquet"), key=lambda path: int(path.name.split(".")[1]))
    if done.returncode or not files:
        reason = (done.stderr.strip().splitlines() or ["it wrote no file"])[0]
        raise ZorderError(f"tpchgen-cli could not write {table} at scale {scale}: {reason}")
    return files


def write_lineitem(folder: str | Path, scale: float, parts: int = 1) -> list[Path]:
    """`write_tpch` for lineitem: 16 columns, decimals as DECIMAL(15,2), dates as DATE."""
    return write_tpch(folder, scale, "lineitem", parts)


def orders_lineitem(folder: str | Path, scale: float) -> Path:
    """Orders joined with their line items, denormalised: 24 columns in the order of order keys, as one Parquet file."""
    what = "o.*, l.* EXCLUDE (l_orderkey) FROM lineitem l JOIN orders o ON l_orderkey = o_orderkey"
    return _joined(Path(folder), scale, ("lineitem", "orders"), what, "orders_lineitem")


def denormalised_lineitem(folder: str | Path, scale: float) -> Path:
    """Line items with what TPC-H's queries ask of their order, customer, supplier and part: 28 columns, else as
    `orders_lineitem`; nations and regions of customer and supplier by their names."""
    what = (
        "l.* EXCLUDE (l_comment), o_custkey, o_orderdate, o_orderpriority, o_shippriority, c_mktsegment, "
        "cn.n_name AS c_nation, cr.r_name AS c_region, sn.n_name AS s_nation, sr.r_name AS s_region, "
        "p_brand, p_type, p_size, p_container FROM lineitem l JOIN orders ON l_orderkey = o_orderkey "
        "JOIN customer ON o_custkey = c_custkey JOIN supplier ON l_suppkey = s_suppkey "
        "JOIN part ON l_partkey = p_partkey JOIN nation cn ON c_nationkey = cn.n_nationkey "
        "JOIN region cr ON cn.n_regionkey = cr.r_regionkey "
        "JOIN nation sn ON s_nationkey = sn.n_nationkey JOIN region sr ON sn.n_regionkey = sr.r_regionkey"
    )
    tables = ("lineitem", "orders", "customer", "supplier", "part", "nation", "region")
    return _joined(Path(folder), scale, tables, what, "denormalised_lineitem")


def _joined(root: Path, scale: float, tables: Sequence[str], what: str, name: str) -> Path:
    """TPC-H tables joined into one Parquet file, in the order of line items."""
    import duckdb

    target = root / f"{name}.parquet"
    with duckdb.connect() as db:
        for table in tables:
            db.read_parquet(str(write_tpch(root, scale, table)[0])).create_view(table)
        db.sql(f"SELECT {what} ORDER BY l_orderkey, l_linenumber").write_parquet(str(target))
    return target


def lineitem_table(spark: SparkSession, path: str | Path, scale: float, files: int) -> None:
    """A Delta table of TPC-H lineitem as it would have arrived: ``files`` files in the order of the generator."""
    with tempfile.TemporaryDirectory(prefix="tpch-") as folder:
        write_lineitem(folder, scale, files)
        store_parquet(spark, Path(folder) / "lineitem", path)


def delta_table(spark: SparkSession, path: str | Path, rows: pa.Table, files: int) -> None:
    """A Delta table of an Arrow table's rows in their order, cut into ``files`` files of equal row count."""
    with tempfile.TemporaryDirectory(prefix="rows-") as folder:
        for part in range(files):
            start, stop = rows.num_rows * part // files, rows.num_rows * (part + 1) // files
            pq.write_table(rows.slice(start, stop - start), Path(folder) / f"part.{part:05d}.parquet")
        store_parquet(spark, folder, path)


def store_parquet(spark: SparkSession, folder: str | Path, path: str | Path) -> None:
    """A new Delta table at ``path`` (an existing one is deleted) with one file per Parquet file of ``folder``."""
    sizes = [file.stat().st_size for file in Path(folder).glob("*.parquet")]
    with session_conf(spark, _one_partition_per_file(max(sizes))):
        _write(spark.read.parquet(str(folder)), path)


def copy_table(spark: SparkSession, source: str | Path, dest: str | Path) -> None:
    """A copy of the live rows of ``source`` at ``dest`` (replaced when there), without a shuffle.

    Each file becomes one file with its rows in the same order, so zone maps stay as they are.

    Raises:
        TableError: ``source`` is no Delta table.
    """
    with session_conf(spark, _one_partition_per_file(live_bytes(source))):
        _write(spark.read.format("delta").load(str(source)), dest)


def plan_for(spark: SparkSession, plan: Plan, path: Path) -> Plan:
    """The plan as if it had been learned on another copy of the table."""
    from zorder_pipeline.relayout.snapshot import open_table

    snapshot = open_table(spark, str(path))
    return replace(plan, table=snapshot.location, table_id=snapshot.table_id)


def learn_and_apply(spark: SparkSession, path: Path, log: str, settings: LearnSettings) -> dict[str, float]:
    """Ours: learn a layout from a log that calls the table by its folder, and apply it; returns seconds by step."""
    from zorder_pipeline import pipeline

    start = started()
    plan = pipeline.learn(spark, str(path), [log], aliases=[path.name], settings=settings)
    learned = time.perf_counter()
    pipeline.apply(spark, str(path), plan, force=True)
    return {"rewrite": time.perf_counter() - learned, "learn": learned - start}


def started() -> float:
    """The clock, once the disk has all that was written before: its writing would else slow what is timed from here."""
    os.sync()
    return time.perf_counter()


def file_count(path: str | Path) -> int:
    """Live files of a Delta table."""
    return len(_live(path).column("path"))


def live_bytes(path: str | Path) -> int:
    """Bytes of the live files of a Delta table."""
    return sum(_live(path).column("size_bytes").to_pylist())


@contextlib.contextmanager
def session_conf(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Session settings that hold inside the block only."""
    before = {key: spark.conf.get(key, None) for key in conf}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def _live(path: str | Path) -> pa.Table:
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        return pa.table(DeltaTable(str(path)).get_add_actions())
    except TableNotFoundError as error:
        raise TableError(f"{path} is no Delta table; give the folder that holds _delta_log") from error


def _one_partition_per_file(largest: int) -> dict[str, str]:
    # Spark fills a read task up to min(maxPartitionBytes, openCostInBytes) and charges openCostInBytes for each file:
    # when both equal the largest file, no second one fits and none is split.
    size = str(max(largest, 1) + 1)
    return {"spark.sql.files.maxPartitionBytes": size, "spark.sql.files.openCostInBytes": size}


def _write(rows: DataFrame, path: str | Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    rows.write.format("delta").save(str(path))


def _generator() -> str:
    beside = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    found = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if found is None:
        raise ZorderError("tpchgen-cli is not installed; run make setup, or pip install tpchgen-cli")
    return found
