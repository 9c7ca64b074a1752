"""How should the files be written? One learned layout of TPC-H lineitem, written in several ways, and queries timed.

Each form differs in one thing from what a relayout writes by itself: the size of files, row groups or pages, the order
inside files, encodings, compression, columns with statistics. A form that is surely faster says a default is wrong.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from zorder_pipeline.errors import ZorderError

from .data import (
    copy_table,
    file_count,
    lineitem_table,
    live_bytes,
    plan_for,
    session_conf,
    started,
    store_parquet,
)
from .engines import duckdb_times, measured, parquet_files, spark_times
from .harness import OURS, Options, Outcome, Progress, Workload
from .peers import frequent_columns
from .selective import SELECTIVE_TEMPLATES
from .workloads import two_logs, write_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.model.plan import Plan
    from zorder_pipeline.pipeline import LearnSettings

__all__ = ["FORMS", "WORKLOAD", "Form"]

SCALE, QUICK_SCALE = 2.0, 0.1
FILE_ROWS, QUICK_FILE_ROWS = 470_000, 60_000
"""Rows of a file: as many as in `seconds` at scale 10, so that files have as many pages."""
QUERIES = 500
TIMED, QUICK_TIMED = 44, 11
ROUNDS, QUICK_ROUNDS = 3, 1
TRIALS, QUICK_TRIALS = 600, 60
TABLE, COLUMNS = "lineitem", 16
PAGE_ROWS = "parquet.page.row.count.limit"


@dataclass(frozen=True)
class Form:
    """A way of writing files.

    Attributes:
        name: of the contender.
        label: what is other than in ours.
        conf: session settings under which the relayout writes.
        files: times as many rows to a file; the layout is learned for that.
        row_groups: row groups of a file; None leaves it to Spark.
        shuffled: whether the rows of each file are put in an order that means nothing.
        asked: whether only the columns that the log asks by have statistics.
    """

    name: str
    label: str
    conf: Mapping[str, str] = field(default_factory=dict)
    files: float = 1.0
    row_groups: int | None = None
    shuffled: bool = False
    asked: bool = False


FORMS: tuple[Form, ...] = (
    Form(OURS, "as ours is written"),
    Form("files-half", "files of half the rows", files=0.5),
    Form("files-double", "files of twice the rows", files=2.0),
    Form("files-x4", "files of four times the rows", files=4.0),
    Form("row-groups-4", "4 row groups a file", row_groups=4),
    Form("row-groups-16", "16 row groups a file", row_groups=16),
    Form("pages-1000", "pages of at most 1,000 rows", {PAGE_ROWS: "1000"}),
    Form("pages-5000", "pages of at most 5,000 rows", {PAGE_ROWS: "5000"}),
    Form("pages-100000", "pages of at most 100,000 rows", {PAGE_ROWS: "100000"}),
    Form("shuffled", "rows shuffled inside files", shuffled=True),
    Form("plain", "no dictionaries", {"parquet.enable.dictionary": "false"}),
    Form("version-2", "Parquet's encodings of version 2", {"parquet.writer.version": "PARQUET_2_0"}),
    Form("zstd", "compressed by zstd", {"spark.sql.parquet.compression.codec": "zstd"}),
    Form("asked", "statistics of asked columns only", asked=True),
)
"""Spark's own defaults are pages of 20,000 rows, row groups of 128 MiB, dictionaries, and snappy."""


def run(options: Options, progress: Progress) -> list[Outcome]:
    """See `Workload`; a seed is a pair of logs, and tables of its own.

    Raises:
        ZorderError: the data are too few for a layout.
    """
    from zorder_pipeline.spark import session

    spark = session()
    scale = options.scale or (QUICK_SCALE if options.quick else SCALE)
    source = options.work / "tuning" / "stored" / TABLE
    size = QUICK_FILE_ROWS if options.quick else FILE_ROWS
    files = max(2, round(scale * 6_000_000 / size))
    progress(f"writing TPC-H lineitem at scale {scale:g} as {files} files")
    lineitem_table(spark, source, scale, files)
    outcomes: list[Outcome] = []
    for seed in options.seeds:
        outcomes += options.noted(_one_seed(spark, options, scale, seed, source, size, progress))
    shutil.rmtree(source.parent.parent)
    return outcomes


def _one_seed(
    spark: SparkSession, options: Options, scale: float, seed: int, source: Path, size: int, progress: Progress
) -> Iterator[Outcome]:
    from zorder_pipeline import pipeline

    folder = source.parent.parent / str(seed)
    records, later = two_logs(QUERIES, QUERIES, seed, SELECTIVE_TEMPLATES, scale=scale)
    train, unseen = write_logs(records, later, folder)
    trials = QUICK_TRIALS if options.quick else TRIALS
    asked = ",".join(frequent_columns([record["statement"] for record in records], COLUMNS))
    plans: dict[float, Plan] = {}
    tables: dict[str, Path] = {}
    seconds: dict[str, float] = {}
    for form in FORMS:
        progress(f"seed {seed}: {form.label}")
        path = tables[form.name] = folder / form.name / TABLE
        copy_table(spark, source, path)
        if form.asked:
            spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = '{asked}')")
        if form.files not in plans:
            settings = pipeline.LearnSettings(trials=trials, seed=seed, target_file_rows=round(size * form.files))
            plans[form.files] = _learned(spark, path, train, settings)
        group = None if form.row_groups is None else live_bytes(source) // file_count(source) // form.row_groups
        with session_conf(spark, form.conf):
            start = started()
            plan = plan_for(spark, plans[form.files], path)
            pipeline.apply(spark, str(path), plan, force=True, row_group_bytes=group)
            seconds[form.name] = time.perf_counter() - start
        if form.shuffled:
            _shuffle(spark, path, folder / "shuffling")
    statements = [record["statement"] for record in later]
    count = QUICK_TIMED if options.quick else TIMED
    timed = statements[:: QUERIES // count][:count]
    progress(f"seed {seed}: timing {count} queries in Spark and DuckDB")
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    in_spark = spark_times(spark, tables, timed, TABLE, rounds, progress)
    in_duckdb = duckdb_times(tables, timed, TABLE, rounds)
    for form in FORMS:
        path = tables[form.name]
        read = pipeline.evaluate(spark, str(path), [unseen], aliases=[TABLE], count_matches=False)
        measures, figures = measured(path, read, in_spark[form.name], in_duckdb[form.name])
        yield Outcome(form.name, form.label, seed, measures, {"rewrite": seconds[form.name]}, figures)
    shutil.rmtree(folder)


def _learned(spark: SparkSession, path: Path, log: str, settings: LearnSettings) -> Plan:
    from zorder_pipeline import pipeline

    plan = pipeline.learn(spark, str(path), [log], aliases=[TABLE], settings=settings)
    if plan.spec is None:
        rows = settings.target_file_rows
        raise ZorderError(f"no layout was found for files of {rows:,} rows, so there is none to write; raise --scale")
    return plan


def _shuffle(spark: SparkSession, path: Path, scratch: Path) -> None:
    """Put the rows of each file in an order that means nothing; each file stays one."""
    from pyspark.sql import functions as F

    for file in parquet_files(path):
        spark.read.parquet(file).orderBy(F.rand(0)).coalesce(1).write.mode("append").parquet(str(scratch))
    store_parquet(spark, scratch, path)
    shutil.rmtree(scratch)


WORKLOAD = Workload("tuning", "TPC-H lineitem by one layout: in what form files are read fastest", run)
