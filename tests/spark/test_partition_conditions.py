"""What is told of conditions on partition columns alone, against the files that Delta itself reads."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import zorder_pipeline
from zorder_pipeline import pipeline
from zorder_pipeline.benchmarks.data import session_conf
from zorder_pipeline.java import class_name, items
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline import partition_conditions
from zorder_pipeline.pipeline.learning.analysing import analyse
from zorder_pipeline.pipeline.logs import ingest
from zorder_pipeline.pipeline.partition_conditions import boxes_on, partitions_untold, told_on
from zorder_pipeline.pipeline.reading.statistics import statistics_features
from zorder_pipeline.query_log.statements.sql import Unusable, parse_statement
from zorder_pipeline.reading.gather import evaluable
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table

DAYS = [dt.date(2024, 1, 1) + dt.timedelta(days=9 * i) for i in range(40)]
CONDITIONS = [
    "year(ds) = 2023",
    "month(ds) = 3",
    "month(ds) <> 3",
    "dayofweek(ds) IN (1, 7) AND x = 17",
    "trunc(ds, 'MM') = DATE'2024-03-01'",
    "date_trunc('month', ds) = '2024-03-01'",
    "substr(s, 1, 7) = '2024-03'",
    "CAST(s AS DATE) >= DATE'2024-06-01'",
    "to_date(s) < DATE'2024-03-01' AND n = 1",
    "s LIKE '%-01-%'",
    "NOT s LIKE '2024-0%'",
    "lower(s) = 'backfill'",
    "coalesce(n, 0) = 0",
    "n * 100 + month(ds) >= 103",
    "concat(s, n) = '2024-01-011'",
    "month(ds) = 3 OR month(ds) = 4",
    "month(ds) = 3 OR x = 17",
    "(month(ds) = 3 AND x = 17) OR (month(ds) = 4 AND x = 18)",
    "hour(CAST(ds AS TIMESTAMP)) = 0",
    "s = 20240101",
    "s >= DATE'2024-12-01'",
    "(ds, x) IN ((DATE'2024-01-01', 17), (DATE'2024-01-10', 18))",
]


TOGETHER = "(ds, n) IN ((DATE'2024-01-10', 1), (DATE'2024-01-19', 2))"
"""Delta finds the pairs, we each column's values."""


def read_by_delta(spark: SparkSession, path: str, condition: str) -> int:
    """How many files Delta's own index gives the scan; a plan without a scan reads none."""
    plan = spark.read.format("delta").load(path).where(condition)._jdf.queryExecution().executedPlan()
    scans = [leaf for leaf in items(plan.collectLeaves()) if class_name(leaf) == "FileSourceScanExec"]
    found = [leaf.relation().location().matchingFiles(leaf.partitionFilters(), leaf.dataFilters()) for leaf in scans]
    return sum(int(files.size()) for files in found)


def asked(condition: str, snapshot: TableSnapshot, zone: str = "UTC") -> LoggedQuery:
    found = parse_statement(f"SELECT * FROM t WHERE {condition}", schemas={"t": snapshot.schema}, zone=zone)
    assert not isinstance(found, Unusable), condition
    return LoggedQuery("t", found[0].predicate, zone=zone)


@pytest.fixture(scope="module")
def path(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Days as dates and as texts, of which one is no day and one is null, and a number that is null of some."""
    where = str(tmp_path_factory.mktemp("partitions") / "t")
    rows = [(day, day.isoformat(), i % 3 or None, 16 + i % 3) for i, day in enumerate(DAYS)]
    rows += [(DAYS[0], "backfill", 1, 17), (None, None, None, 17)]
    frame = spark.createDataFrame(rows, "ds date, s string, n int, x int")
    frame.coalesce(1).write.format("delta").partitionBy("ds", "s", "n").save(where)
    return where


def test_what_is_told_is_what_delta_reads(spark: SparkSession, path: str) -> None:
    snapshot = open_table(spark, path)
    queries = [asked(condition, snapshot) for condition in CONDITIONS]
    told = told_on(snapshot, queries)
    zones = snapshot.files().zone_map()
    with session_conf(spark, {"spark.sql.ansi.enabled": "false"}):  # else the text that is no day ends the query
        there = {one: read_by_delta(spark, path, one) for one in CONDITIONS}
    ours = [int(zones.matching(boxes).sum()) for boxes in boxes_on(snapshot, queries, told=told)]
    assert dict(zip(CONDITIONS, ours, strict=True)) == there
    assert len(set(ours)) > 10
    assert partitions_untold(snapshot, queries, told) == []


def test_what_is_not_understood_or_fails_or_is_too_much_is_said(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = open_table(spark, path)
    (said,) = partitions_untold(snapshot, [asked("date_format(ds, 'MMMM') = 'March' AND x = 17", snapshot)], {})
    assert said.startswith("1 query chooses partitions by conditions that are not understood")
    queries = [asked(text, snapshot) for text in ("month(ds) = 3", "day(ds) = 1", "s RLIKE '['", "day(ds) = 1")]
    (said,) = partitions_untold(snapshot, queries, told := told_on(snapshot, queries))
    assert said.startswith("1 query")
    assert [query.condition in told for query in queries] == [True, True, False, True]
    assert told_on(snapshot, [asked("month(ds) = 3", snapshot, "Nowhere/AtAll")]) == {}
    monkeypatch.setattr(partition_conditions, "MOST_CONDITIONS", 1)
    assert list(told_on(snapshot, queries)) == [queries[1].condition]
    monkeypatch.setattr(partition_conditions, "MOST_EVALUATED", 10)
    assert told_on(snapshot, queries) == {}


def test_a_dot_in_a_name_makes_no_struct_of_a_column(spark: SparkSession, tmp_path: Path) -> None:
    """It was taken for a field: partitions were not told, and no statistics kept of what could not be evaluated."""
    where = str(tmp_path / "t")
    asked_by = [(day, f"user {i}") for i, day in enumerate(DAYS)]
    rows = spark.createDataFrame(asked_by, "`load.day` date, `user.name` string")
    rows.coalesce(1).write.format("delta").partitionBy("load.day").save(where)
    snapshot = open_table(spark, where)
    condition = "month(t.`load.day`) = 3 AND upper(`user.name`) IN ('USER 7', 'USER 8')"
    queries = [asked(condition, snapshot)]
    (boxes,) = boxes_on(snapshot, queries)
    there = read_by_delta(spark, where, condition.replace("t.", ""))
    assert int(snapshot.files().zone_map().matching(boxes).sum()) == there == sum(day.month == 3 for day in DAYS)
    features = statistics_features(snapshot, queries)
    assert "UPPER(`user.name`)" in [feature.sql for feature in evaluable(snapshot.read(), features)]


@pytest.mark.matrix
def test_instants_are_asked_in_the_time_zone_of_the_query(spark: SparkSession, tmp_path: Path) -> None:
    where = str(tmp_path / "t")
    rows = spark.range(0, 8, 1, 1).select(
        F.timestamp_seconds(F.lit(1_704_067_200) + F.col("id") * 3600).alias("at"), "id"
    )
    rows.write.format("delta").partitionBy("at").save(where)
    snapshot, zones = open_table(spark, where), open_table(spark, where).files().zone_map()
    hours = [int(zones.matching(*boxes_on(snapshot, [asked("hour(at) < 3", snapshot, zone)])).sum())
             for zone in ("UTC", "Europe/Berlin", "Asia/Tokyo")]  # fmt: skip
    assert hours == [3, 2, 0]


@pytest.mark.matrix
def test_evaluate_and_learning_count_the_partitions_that_queries_read(spark: SparkSession, tmp_path: Path) -> None:
    where, log = str(tmp_path / "days"), tmp_path / "log.jsonl"
    rows = spark.range(0, 2400, 1, 1).select(
        F.expr("date_add(DATE'2024-01-01', int(id % 24) * 15)").alias("ds"),
        F.pmod(F.xxhash64("id"), F.lit(100)).alias("x"),
    )
    rows.write.format("delta").partitionBy("ds").save(where)
    texts = [f"SELECT * FROM days WHERE day(ds) = 1 AND x = {35 + i}" for i in range(30)]
    texts += [f"SELECT * FROM days WHERE date_format(ds, 'MMMM') = 'March' AND x = {35 + i}" for i in range(2)]
    log.write_text("".join(json.dumps({"statement": text}) + "\n" for text in texts))
    snapshot = open_table(spark, where)
    first = float(np.mean([day == "2024-01-01" or day[-2:] == "01" for (day,) in set(snapshot.files().partitions)]))
    found = pipeline.evaluate(spark, where, [str(log)])
    assert found.partitions_unknown == found.to_json()["partitions_unknown"] == 2
    np.testing.assert_allclose(found.rows_per_query / found.rows, [first] * 30 + [1.0] * 2)
    assert found.matched_per_query is not None
    assert (found.matched_per_query <= found.rows_per_query).all()
    names = {where: (snapshot, ("days",))}
    analysis = analyse(spark, snapshot, ingest([str(log)], names), [where])
    np.testing.assert_allclose(snapshot.files().zone_map().shares_read(analysis.boxes), [first] * 30 + [1.0] * 2)
    plan, _ = pipeline.learn_layout_for(analysis, pipeline.LearnSettings(trials=10))
    assert any(note.startswith("2 queries choose partitions by conditions") for note in plan.notes)
    assert plan.promise.before == pytest.approx((30 * first + 2) / 32, abs=0.2)


def test_of_a_list_of_pairs_no_partition_is_left_out(spark: SparkSession, path: str) -> None:
    snapshot = open_table(spark, path)
    (boxes,) = boxes_on(snapshot, [asked(TOGETHER, snapshot)])
    ours = int(snapshot.files().zone_map().matching(boxes).sum())
    assert len(DAYS) > ours >= read_by_delta(spark, path, TOGETHER) == 2


def test_explain_leaves_what_is_true_of_partitions_and_rows_together_to_all_partitions(
    spark: SparkSession, path: str
) -> None:
    condition = "(ds = DATE'2024-01-01' AND x = 17) IS TRUE"
    assert zorder_pipeline.explain(spark, path, condition).delta_files_read >= read_by_delta(spark, path, condition)


@pytest.mark.parametrize("condition", ["month(ds) = 3", "year(ds) = 2024 AND x = 17", "s LIKE '%-01-%' AND x = 17"])
def test_explain_tells_the_partitions_that_delta_reads(spark: SparkSession, path: str, condition: str) -> None:
    there = read_by_delta(spark, path, condition)
    scan = zorder_pipeline.explain(spark, path, condition)
    statement = f"SELECT t.x FROM delta.`{path}` t WHERE {condition}"
    (relation,) = zorder_pipeline.explain_sql(spark, statement).relations
    for told in (scan, relation):
        assert (told.files_read, told.delta_files_read) == (there, there)
        assert sum(each.files for each in told.excluded) == told.files - there
        assert {"partition"} <= {each.kind for each in told.excluded}
