"""What many nights of new days do to a layout: appended one by one, relaid incrementally, then read beside others."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .data import file_count, learn_and_apply, plan_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.pipeline import LearnSettings

    from .harness import Progress

__all__ = ["after_appends"]

TOLD = 20
"""Nights between two lines of progress."""


def after_appends(
    spark: SparkSession,
    source: Path,
    folder: Path,
    logs: tuple[str, str],
    settings: LearnSettings,
    nights: int,
    progress: Progress,
    *,
    day: str = "l_shipdate",
    first: int = 20,
) -> dict[str, Any]:
    """How a table reads after ``nights`` appends of a twentieth of its first rows, each of days that came after.

    The layout is learned once, on the first rows; nothing is left to the gate. The table then stands beside a full
    relayout of its own rows by the same layout, and one by a layout that was learned on all of them, lying in no order.

    Args:
        source: a Delta table.
        folder: for what is made on the way; it is emptied.
        logs: a query log to learn from, and an unseen one that is measured.
        day: the column by which rows arrive.
        first: appends' worth of rows that the table begins with.

    Returns:
        Rows read after the appends as a multiple of those after a full relayout, by the same layout and by a new one;
        bytes rewritten per byte of the table; files of the table and of the full relayout.
    """
    from zorder_pipeline import pipeline

    log, unseen = logs
    shutil.rmtree(folder, ignore_errors=True)
    path, arrivals = folder / source.name, folder / "arrivals"
    rows = spark.read.format("delta").load(str(source))
    rows.repartitionByRange(first + nights, day).sortWithinPartitions(day).write.parquet(str(arrivals))
    days = [str(file) for file in sorted(arrivals.glob("*.parquet"))]
    old, new = days[:first], days[first:]
    spark.read.parquet(*old).write.format("delta").save(str(path))
    plan = pipeline.learn(spark, str(path), [log], aliases=[source.name], settings=settings)
    plan = plan_for(spark, plan, path)
    written = pipeline.apply(spark, str(path), plan, force=True).bytes_rewritten
    for night, arrived in enumerate(new, 1):
        spark.read.parquet(arrived).write.format("delta").mode("append").save(str(path))
        written += pipeline.apply(spark, str(path), plan, force=True).bytes_rewritten
        if night % TOLD == 0 or night == len(new):
            progress(f"{night} of {len(new)} nights of new days")

    def read(table: Path) -> float:
        found = pipeline.evaluate(spark, str(table), [unseen], aliases=[source.name], count_matches=False)
        return found.rows_read_fraction

    nightly, table = read(path), pipeline.inspect(spark, str(path))
    other = folder / "again" / source.name  # in no order, as a layout is only learned where it is surely better
    spark.read.format("delta").load(str(path)).repartition(file_count(path)).write.format("delta").save(str(other))
    pipeline.apply(spark, str(path), plan, force=True, full=True)
    full, files_of_full = read(path), file_count(path)
    progress("learning a layout on all of the rows")
    learn_and_apply(spark, other, log, settings)
    learned, lies_by_it = read(other), pipeline.inspect(spark, str(other))["clustered_fraction"]
    shutil.rmtree(folder)
    return {
        "appends": len(new),
        "rows_read_to_full_after_appends": nightly / full,
        "rows_read_to_new_layout_after_appends": nightly / learned if lies_by_it else None,
        "bytes_rewritten_per_byte_after_appends": written / table["bytes"],
        "files_after_appends": table["files"],
        "files_of_full_after_appends": files_of_full,
    }
