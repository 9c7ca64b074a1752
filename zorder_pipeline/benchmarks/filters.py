"""What do Parquet's Bloom filters save, and cost, where queries look up what no order of the rows leads to?

One table of orders is laid out twice from one plan, with filters of its two scattered identifiers and without: look-ups
of orders that there are and of some that there are not, timed in Spark and DuckDB on both.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from .data import copy_table, plan_for, started
from .engines import duckdb_times, measured, spark_times
from .harness import OURS, Options, Outcome, Progress, Workload
from .workloads import write_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["WORKLOAD"]

ROWS, QUICK_ROWS = 10_000_000, 400_000
FILES, QUICK_FILES = 20, 16
TIMED, QUICK_TIMED = 24, 6
ROUNDS, QUICK_ROUNDS = 3, 1
TRAINING = 200
TABLE, WITHOUT = "orders", "no-filters"
ORDERS = """SELECT hash(id, {seed}) * 4294967296 + id AS order_id, sha2(concat('{seed}-', id), 256) AS token,
 date_add(DATE'2020-01-01', CAST(id * 1500 / {rows} AS INT)) AS day, CAST(rand({seed}) * 200000 AS INT) AS customer,
 CAST(rand({seed} + 1) * 100000 AS DECIMAL(10,2)) AS amount, concat('note ', hash(id, 3)) AS note FROM range({rows})"""


def run(options: Options, progress: Progress) -> list[Outcome]:
    """See `Workload`; a seed is a table and a log of its own."""
    from zorder_pipeline.spark import session

    spark = session()
    outcomes: list[Outcome] = []
    for seed in options.seeds:
        outcomes += options.noted(_one_seed(spark, options, seed, progress))
    return outcomes


def _one_seed(spark: SparkSession, options: Options, seed: int, progress: Progress) -> Iterator[Outcome]:
    from zorder_pipeline import pipeline

    rows, files = _size(options)
    size = rows // files
    folder = options.work / "filters" / str(seed)
    shutil.rmtree(folder, ignore_errors=True)
    source = folder / "stored" / TABLE
    progress(f"seed {seed}: writing {rows:,} orders as {files} files")
    orders = spark.sql(ORDERS.format(seed=seed, rows=rows)).repartition(files)
    orders.write.format("delta").save(str(source))
    asked = _statements(spark, source, seed, TRAINING + (QUICK_TIMED if options.quick else TIMED))
    train, unseen = write_logs(_records(asked[:TRAINING]), _records(asked[TRAINING:]), folder)
    settings = pipeline.LearnSettings(trials=60, seed=seed, target_file_rows=size)
    plan = pipeline.learn(spark, str(source), [train], aliases=[TABLE], settings=settings)
    plans = {OURS: plan, WITHOUT: replace(plan, bloom_filters=())}
    tables = {name: folder / name / TABLE for name in plans}
    seconds: dict[str, float] = {}
    for name, path in tables.items():
        progress(f"seed {seed}: {name}, filters of {', '.join(plans[name].bloom_filters) or 'no column'}")
        copy_table(spark, source, path)
        start = started()
        pipeline.apply(spark, str(path), plan_for(spark, plans[name], path), force=True)
        seconds[name] = time.perf_counter() - start
    timed = [statement for statement in asked[TRAINING:] if "day" not in statement]
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    progress(f"seed {seed}: timing {len(timed)} look-ups in Spark and DuckDB")
    in_spark = spark_times(spark, tables, timed, TABLE, rounds, progress)
    in_duckdb = duckdb_times(tables, timed, TABLE, rounds)
    for name, path in tables.items():
        read = pipeline.evaluate(spark, str(path), [unseen], aliases=[TABLE], count_matches=False)
        measures, figures = measured(path, read, in_spark[name], in_duckdb[name])
        label = f"filters of {', '.join(plans[name].bloom_filters) or 'no column'}"
        yield Outcome(name, label, seed, measures, {"rewrite": seconds[name]}, figures)
    shutil.rmtree(folder)


def _size(options: Options) -> tuple[int, int]:
    """Rows of the table, and its files."""
    rows = int(ROWS * options.scale) if options.scale else QUICK_ROWS if options.quick else ROWS
    return rows, QUICK_FILES if options.quick else FILES


def _statements(spark: SparkSession, source: Path, seed: int, count: int) -> list[str]:
    """Look-ups by both identifiers, one in four of what there is not, and ranges of days."""
    rng = random.Random(seed)
    there = spark.read.format("delta").load(str(source)).select("order_id", "token").limit(100_000).collect()
    found = []
    for i in range(count):
        order, token = rng.choice(there)
        if i % 4 == 3:
            order, token = order + 1, token[::-1]
        day = f"date_add(DATE'2020-01-01', {rng.randrange(1490)})"
        condition = (f"order_id = {order}", f"token = '{token}'", f"day BETWEEN {day} AND {day} + 5")[i % 3]
        found.append(f"SELECT * FROM {TABLE} WHERE {condition}")
    return found


def _records(statements: list[str]) -> list[dict[str, object]]:
    return [{"statement": text, "timestamp": 1_700_000_000_000_000 + i * 10**6} for i, text in enumerate(statements)]


WORKLOAD = Workload("filters", "Look-ups that no order of the rows leads to: with Bloom filters and without", run)
