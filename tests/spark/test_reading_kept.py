"""Statistics of files that no longer say what they said: another type, another field, another session or time zone."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

import zorder_pipeline
from tests.spark.gathering import asked_of, gathered, same_answer
from zorder_pipeline import pipeline
from zorder_pipeline.benchmarks.data import session_conf
from zorder_pipeline.pipeline.reading.statistics import gather_statistics
from zorder_pipeline.relayout.snapshot import open_table
from zorder_pipeline.state.session_conf import session_zone, set_for_a_while

pytestmark = pytest.mark.matrix


def _same(spark: SparkSession, path: str, state: str, condition: str) -> int:
    """How many rows a scan gives, which are those of a plain read."""
    plain = spark.read.format("delta").load(path).where(condition)
    rows = sorted(str(row) for row in plain.collect())
    assert sorted(str(row) for row in zorder_pipeline.scan(spark, path, condition, state=state).collect()) == rows
    return len(rows)


@pytest.fixture
def zone(spark: SparkSession) -> Iterator[str]:
    """A session in Berlin."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    yield "Europe/Berlin"
    spark.conf.set("spark.sql.session.timeZone", str(before))


def test_an_expression_means_something_else_once_its_column_has_another_type(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, state, condition = str(tmp_path / "t"), str(tmp_path / "state"), "CAST(x AS STRING) LIKE '%0'"
    writer = spark.createDataFrame([(12,), (13,)], "x INT").coalesce(1).write.format("delta")
    writer.option("delta.enableTypeWidening", "true").save(path)
    gathered(spark, path, state, condition)
    assert zorder_pipeline.explain(spark, path, condition, state=state).files_read == 0
    spark.sql(f"ALTER TABLE delta.`{path}` CHANGE COLUMN x TYPE DOUBLE")
    assert _same(spark, path, state, condition) == 2  # 12.0 and 13.0
    gathered(spark, path, state, condition)
    assert _same(spark, path, state, condition) == 2


def test_files_that_others_append_get_the_statistics_that_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    """Each scan opened them until a relayout took them."""
    path, state, condition = str(tmp_path / "t"), str(tmp_path / "state"), "c LIKE '%late%'"
    assert pipeline.complete_statistics(open_table(spark, path_of(spark, path)), state) is None, "nothing is kept yet"
    gathered(spark, path, state, condition)
    spark.sql("SELECT 'early' AS c").coalesce(1).write.format("delta").mode("append").save(path)
    assert zorder_pipeline.explain(spark, path, condition, state=state).files_read == 1
    told: list[str] = []
    done = pipeline.complete_statistics(open_table(spark, path), state, told.append)
    assert done is not None
    assert (done.files, len(told)) == (1, 1)
    assert zorder_pipeline.explain(spark, path, condition, state=state).files_read == 0
    again = pipeline.complete_statistics(open_table(spark, path), state)
    assert again is not None
    assert (again.files, again.rows_added) == (0, 0)


def path_of(spark: SparkSession, path: str) -> str:
    """A table of one file."""
    spark.sql("SELECT 'soon' AS c").coalesce(1).write.format("delta").save(path)
    return path


@pytest.mark.slow
def test_a_field_within_an_array_may_come_to_mean_another(spark: SparkSession, tmp_path: Path) -> None:
    path, state, condition = str(tmp_path / "t"), str(tmp_path / "state"), "arr[0].a LIKE '%y%'"
    rows = spark.sql("SELECT array(named_struct('a', 'xx', 'b', 'yy')) AS arr")
    rows.coalesce(1).write.format("delta").option("delta.columnMapping.mode", "name").save(path)
    gathered(spark, path, state, condition)
    assert zorder_pipeline.explain(spark, path, condition, state=state).files_read == 0
    for old, new in (("a", "c"), ("b", "a")):
        spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN arr.element.{old} TO {new}")
    assert _same(spark, path, state, condition) == 1


def test_a_predicate_with_a_char_column_skips_no_padded_row(spark: SparkSession, tmp_path: Path) -> None:
    path, state, condition = str(tmp_path / "t"), str(tmp_path / "state"), "c = 'ab' OR x = 99"
    spark.sql(f"CREATE TABLE delta.`{path}` (c CHAR(5), x INT) USING delta")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES ('ab', 1), ('cd', 2)")
    gathered(spark, path, state, condition)
    assert _same(spark, path, state, condition) == 1


def test_a_predicate_is_evaluated_in_the_time_zone_of_the_session(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    condition = "ts >= '2024-01-01 00:00:00' OR x = 99"
    rows = spark.sql("SELECT TIMESTAMP '2023-12-31 23:30:00Z' AS ts, 1 AS x")  # half past midnight in Berlin
    rows.coalesce(1).write.format("delta").save(path)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    snapshot = open_table(spark, path)
    planned = asked_of(snapshot, condition)
    assert {feature.zone for feature in planned if feature.kind == "predicate"} == {"UTC"}
    spark.conf.set("spark.sql.session.timeZone", zone)
    gather_statistics(spark, snapshot, planned, state)  # as a plan of another session is carried out
    assert _same(spark, path, state, condition) == 1
    gathered(spark, path, state, condition)
    assert _same(spark, path, state, condition) == 1


def test_a_session_in_which_binary_values_are_put_together_as_texts_is_another(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, state, condition = str(tmp_path / "t"), str(tmp_path / "state"), "length(concat(b, b)) = 2"
    spark.sql("SELECT CAST('\u00e9' AS BINARY) b").coalesce(1).write.format("delta").save(path)
    gathered(spark, path, state, condition)
    with session_conf(spark, {"spark.sql.function.concatBinaryAsString": "true"}):
        assert _same(spark, path, state, condition) == 1


def test_a_session_that_reads_old_days_otherwise_leaves_out_no_more_than_delta(
    spark: SparkSession, tmp_path: Path
) -> None:
    """In the files of other engines, which have no mark of Spark's, such days are others than their bounds say."""
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    for day in (dt.date(1400, 1, 1), dt.date(1500, 1, 1)):
        write_deltalake(path, pa.table({"d": [day]}), mode="append")
    with session_conf(spark, {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"}):
        listed = "DATE'1499-12-23', DATE'1300-01-01', DATE'1600-01-01'"
        for condition in (f"d IN ({listed})", "year(d) = 1499 AND d > DATE'0001-01-01'"):
            assert len(same_answer(spark, f"SELECT * FROM delta.`{path}` WHERE {condition}", state)) == 1
            told = zorder_pipeline.explain(spark, path, condition, state=state)
            assert (told.files, told.files_read) == (2, None)
            assert (told.left_to_delta or "").startswith("this session reads old days")


def test_a_session_that_names_no_time_zone_has_the_machine_s(spark: SparkSession) -> None:
    zones, name = spark._jvm.java.util.TimeZone, "spark.sql.session.timeZone"  # type: ignore[union-attr]
    own = zones.getDefault()
    with set_for_a_while(spark, {name: None}):
        zones.setDefault(zones.getTimeZone("Asia/Tokyo"))
        try:
            assert session_zone(spark) == "Asia/Tokyo"
        finally:
            zones.setDefault(own)


def test_what_one_session_knows_of_files_is_read_by_no_other(spark: SparkSession, tmp_path: Path) -> None:
    path, condition = str(tmp_path / "t"), "ts >= '2024-01-01 05:00:00' AND c LIKE '%a%'"
    rows = spark.range(24).selectExpr("timestamp_seconds(1704067200 + id * 3600) AS ts", "'a' AS c", "id")
    rows.repartitionByRange(6, "id").write.format("delta").save(path)
    first, second = spark.newSession(), spark.newSession()
    for session in (first, second):
        session.conf.set("spark.sql.session.timeZone", "UTC")
    assert zorder_pipeline.scan(first, path, condition).count() == 19
    first.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    second.udf.register("mine", lambda text: text, "string")
    assert zorder_pipeline.scan(second, path, f"{condition} AND mine(c) = 'a'").count() == 19


@pytest.mark.slow
def test_a_partition_told_without_a_time_zone_is_read(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    path, state, condition = str(tmp_path / "t"), str(tmp_path / "state"), "at < '2024-01-01 01:00:00' OR c LIKE '%x%'"
    rows = spark.sql("SELECT TIMESTAMP '2024-01-01 00:30:00' AS at, 'a' AS c")
    setting = "spark.databricks.delta.write.utcTimestampPartitionValues"
    spark.conf.set(setting, "false")
    try:
        rows.write.format("delta").partitionBy("at").save(path)
    finally:
        spark.conf.unset(setting)
    for other in (zone, "UTC", "Asia/Tokyo", "America/New_York", zone):
        spark.conf.set("spark.sql.session.timeZone", other)
        gathered(spark, path, state, "c LIKE '%x%'")
        assert _same(spark, path, state, condition) == 1


def test_a_partition_by_the_empty_text_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """Which the protocol calls null, and Spark reads as it stands."""
    path, state = tmp_path / "t", str(tmp_path / "state")
    rows = spark.range(20).selectExpr("id", "IF(id < 10, 'a', 'b') AS p", "concat('c', id) AS c")
    rows.repartitionByRange(2, "id").write.format("delta").partitionBy("p").save(str(path))
    actions = map(json.loads, (path / "_delta_log" / f"{0:020}.json").read_text().splitlines())
    add = next(action["add"] for action in actions if "add" in action)
    shutil.copy(path / add["path"], path / "foreign.parquet")
    foreign = {"add": add | {"path": "foreign.parquet", "partitionValues": {"p": ""}}}
    (path / "_delta_log" / f"{1:020}.json").write_text(json.dumps(foreign) + "\n")
    gathered(spark, str(path), state, "c LIKE '%zz%'")
    for condition in ("p = '' OR c LIKE '%zz%'", "p = '' AND NOT c LIKE '%zz%'"):
        assert _same(spark, str(path), state, condition) == 10
    assert _same(spark, str(path), state, "p IS NULL OR c LIKE '%zz%'") == 0
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"statement": "SELECT * FROM t WHERE p = ''"}) + "\n")
    asked = pipeline.evaluate(spark, str(path), [str(log)], aliases=["t"])
    assert asked.matched_per_query is not None
    assert (asked.files_per_query.tolist(), asked.matched_per_query.tolist()) == ([1], [10])
