"""What relayouts and scans cost here, before there is any history: timed on a small copy that is deleted again."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from py4j.protocol import Py4JError

from zorder_pipeline.errors import TableError, UnsupportedTableError
from zorder_pipeline.gate.cost import CostModel
from zorder_pipeline.java import java_class
from zorder_pipeline.model.choices import COPY_BYTES
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.model.spark_sql import column_sql
from zorder_pipeline.pipeline.costs import cost_model, relayout_work
from zorder_pipeline.pipeline.learning.by_hand import layout_by_hand
from zorder_pipeline.pipeline.learning.sizes import table_column_bytes, target_rows
from zorder_pipeline.pipeline.records import LearnSettings
from zorder_pipeline.relayout.restoring import restore_sql
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table
from zorder_pipeline.state.delta_tables import sql_name
from zorder_pipeline.state.session_conf import apart
from zorder_pipeline.state.timings import Timing, Timings

from .apply import apply

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["calibrate"]

SIZES = (1.0, 0.4, 0.15)
MOST_FEATURES = 4
KEY_BITS = 10
STALE_SECONDS = 86_400


@dataclass(frozen=True)
class _Run:
    """One timed relayout: of which copy, by how many columns, into how many times the usual number of files, and
    whether only the first column gets statistics."""

    copy: int
    features: int
    split: int = 1
    bare: bool = False


RUNS = (
    *(_Run(0, 1), _Run(1, 4), _Run(2, 2, split=4), _Run(0, 4, bare=True), _Run(2, 1, bare=True), _Run(1, 2)),
    *(_Run(2, 4), _Run(0, 2), _Run(1, 1, split=4), _Run(2, 1), _Run(0, 3, split=2), _Run(1, 3, bare=True)),
)
"""Sizes, features, files and statistics vary independently, and neighbours differ: a busy minute hits them all."""


def calibrate(
    spark: SparkSession,
    table: str,
    state: str,
    *,
    copy_bytes: int = COPY_BYTES,
    assumed: CostModel | None = None,
    progress: Progress | None = None,
) -> tuple[CostModel, list[Timing]]:
    """Time relayouts and scans of copies of some files of the table, and keep the timings in the state.

    The table itself is only read. Copies lie under the state's folder, are deleted afterwards, also on failure, and
    those of a run that was killed are deleted by the next one a day later.

    Args:
        table: path or catalog name.
        state: folder of the state, on any Hadoop filesystem.
        copy_bytes: size of the largest copy; what is far larger than anything timed is told by a straight line.
        assumed: what is believed before; see `cost_model`.

    Returns:
        The model as it stands now, and what was timed.

    Raises:
        TableError: the table is empty, or has no column that could be part of a layout, or all relayouts are stopped.
        UnsupportedTableError: the table has a feature under which it may not be rewritten.
    """
    say = progress or silent
    snapshot = open_table(spark, table)
    if (reason := snapshot.unsupported()) is not None:
        raise UnsupportedTableError(reason)
    if not int(snapshot.files().rows.sum()):
        raise TableError(f"table {snapshot.location} is empty; there is nothing to calibrate on")
    with _scratch(spark, state) as folder:
        copies = [f"{folder}/copy{i}" for i in range(len(SIZES))]
        largest = min(copy_bytes, int(snapshot.files().bytes.sum()))
        for path, share in zip(copies, SIZES, strict=True):
            _copy(snapshot, path, largest * share, say)
        timings = _timings(spark, copies, snapshot, say)
        Timings(spark, state).record(snapshot.location, timings)
    return cost_model(spark, state, assumed), timings


@contextlib.contextmanager
def _scratch(spark: SparkSession, state: str) -> Iterator[str]:
    """A folder under the state that is gone afterwards; left-overs of killed runs are removed, too."""
    path = java_class(spark, "org.apache.hadoop.fs.Path")
    root = path(f"{state.rstrip('/')}/calibration-copies")
    files = root.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    root = files.makeQualified(root)  # a relative folder is no table's name in SQL
    if files.exists(root):
        for found in files.listStatus(root):
            if found.getModificationTime() / 1000 < time.time() - STALE_SECONDS:
                files.delete(found.getPath(), True)
    folder = path(root, uuid.uuid4().hex)
    try:
        yield str(folder.toString())
    finally:
        files.delete(folder, True)
        with contextlib.suppress(Py4JError):  # another run has a folder there, or has removed it
            if files.exists(root) and not files.listStatus(root):
                files.delete(root, False)


def _copy(snapshot: TableSnapshot, path: str, size: float, say: Progress) -> None:
    """Some files' rows as a table of their own, at most ``size`` bytes if more than one file is there."""
    files = snapshot.files()
    order = np.random.default_rng(0).permutation(len(files))
    count = max(1, int(np.searchsorted(np.cumsum(files.bytes[order]), size, "right")))
    chosen = np.sort(order[:count])
    say(f"copying {count} of {len(files)} files, {int(files.bytes[chosen].sum()):,} bytes")
    with apart(snapshot.read_files(files.path[chosen].tolist()), new=True) as rows:
        writer = rows.write.format("delta")
        if snapshot.properties.get("delta.columnMapping.mode", "none") != "none":  # names that Parquet would not take
            writer = writer.option("delta.columnMapping.mode", "name")
        writer.save(path)


def _timings(spark: SparkSession, copies: Sequence[str], source: TableSnapshot, say: Progress) -> list[Timing]:
    """Every run of `RUNS`, and scans of what it made."""
    columns = _columns(open_table(spark, copies[0]))
    if not columns:
        raise TableError(f"no column of {source.location} has an order, so no layout of it can be timed")
    plans = {
        count: layout_by_hand(spark, copies[0], {name: max(1, KEY_BITS // count) for name in columns[:count]})
        for count in sorted({min(run.features, len(columns)) for run in RUNS})
    }
    rows = target_rows(source, LearnSettings())
    say("warming up")
    for plan in (plans[1], plans[max(plans)]):  # code is compiled, files are in the cache
        _relayout(spark, copies[-1], plan, rows, source.table_id)
        _scans(spark, copies[-1], source.table_id)
    timings: list[Timing] = []
    for number, run in enumerate(RUNS, 1):
        path, count = copies[run.copy], min(run.features, len(columns))
        # as it was copied: rows that lie by a layout already are routed and written faster
        spark.sql(restore_sql(path, 0))
        indexed = 1 if run.bare else 32
        spark.sql(f"ALTER TABLE {sql_name(path)} SET TBLPROPERTIES('delta.dataSkippingNumIndexedCols'='{indexed}')")
        timing = _relayout(spark, path, plans[count], max(1, rows // run.split), source.table_id)
        say(f"relayout {number} of {len(RUNS)}: {timing.bytes:,.0f} bytes by {count} columns in {timing.seconds:.1f} s")
        timings += [timing, *_scans(spark, path, source.table_id)]
    return timings


def _columns(snapshot: TableSnapshot) -> list[str]:
    """Columns to make layouts of: those with statistics first, as learned keys have them."""
    usable = [c for c in snapshot.schema.columns if c.value_type.orderable and not c.partition]
    ranked = sorted(usable, key=lambda c: (not c.delta_stats, c.type in ("boolean", "tinyint")))
    return [column.name for column in ranked[:MOST_FEATURES]]


def _relayout(spark: SparkSession, path: str, plan: Plan, rows: int, table_id: str) -> Timing:
    snapshot = open_table(spark, path)
    own = replace(plan, table=snapshot.location, table_id=snapshot.table_id, target_file_rows=rows)
    done = apply(spark, path, own, force=True, full=True)
    if done.decision != "applied":  # copies obey the kill switch, too
        raise TableError(f"no relayout can be timed: {done.reasons[0]}")
    work, cores = relayout_work(snapshot, own, done), spark.sparkContext.defaultParallelism
    return Timing(table_id, "relayout", work.bytes, work.files, done.seconds, cores, work.features, work.additional)


def _scans(spark: SparkSession, path: str, table_id: str) -> list[Timing]:
    """Scans of all, of half, and of one of a table's columns."""
    from pyspark.sql import functions as F

    snapshot = open_table(spark, path)
    sizes, names = table_column_bytes(snapshot), list(snapshot.struct.names)
    timings = []
    for chosen in (names, names[::2], names[:1]):
        rows = snapshot.read().select(*(F.col(column_sql((name,))) for name in chosen))
        started = time.perf_counter()
        rows.write.format("noop").mode("overwrite").save()
        seconds, cores = time.perf_counter() - started, spark.sparkContext.defaultParallelism
        size = sum(sizes.get(name, 0.0) for name in chosen)
        timings.append(Timing(table_id, "scan", size, len(snapshot.files()), seconds, cores))
    return timings
