"""Scans of tables whose log tells less, or otherwise, than Spark does today: no row of a plain read is lost."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

import zorder_pipeline
from tests.spark.gathering import gathered, read_alike, same_answer
from zorder_pipeline.benchmarks.data import session_conf
from zorder_pipeline.java import java_class
from zorder_pipeline.reading import session
from zorder_pipeline.reading.session import session_of
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table


def _retold(path: str, change: Callable[[str], str]) -> str:
    """A copy of a table whose commits somebody else wrote."""
    copy = Path(shutil.copytree(path, f"{path}_retold"))
    for old in list(copy.glob("_delta_log/*.crc")):
        old.unlink()
    changed = 0
    for commit in copy.glob("_delta_log/*.json"):
        before = commit.read_text()
        commit.write_text(change(before))
        changed += commit.read_text() != before
    assert changed, "nothing is told otherwise"
    return str(copy)


def test_decimals_that_delta_rs_tells_as_doubles(spark: SparkSession, tmp_path: Path) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "none")
    for text in ("1234567890123456.78", "5.00"):
        column = pa.array([Decimal(text)], pa.decimal128(18, 2))
        write_deltalake(path, pa.table({"m": column}), mode="append")
    assert 123456789012345680 in open_table(spark, path).files().zones["m"].low.tolist(), "told as a double"
    assert read_alike(spark, path, state, "m IN (1234567890123456.78, 9999999999999999.99)") == 1
    assert read_alike(spark, path, state, "m IN (5.00, 9999999999999999.99)") == 1
    assert read_alike(spark, path, state, "m = 1234567890123456.78") == 0, "Delta itself leaves it out"


TRUE = ["(f > 5) IS TRUE", "CASE WHEN f > 5 THEN true ELSE false END", "coalesce(f > 5, false)", "(f > 5) IS NOT FALSE"]
TRUE += ["(f > 5) = true", "NOT (NOT (f > 5))", "((f > 5) IS TRUE) OR f < 0", "(f > 5 AND id > 0) IS TRUE"]


@pytest.mark.matrix
@pytest.mark.parametrize("counted", [True, False])
def test_where_delta_reads_no_bounds_without_nan_leave_no_file_out(
    spark: SparkSession, tmp_path: Path, counted: bool
) -> None:
    """It says nothing of a comparison that is compared with true, nor of a file whose rows are not told."""
    path, state = str(tmp_path / "t"), str(tmp_path / "none")
    for values in ([0.5], [0.0, float("nan")]):
        columns = {"id": pa.array([2] * len(values), pa.int64()), "f": pa.array(values, pa.float64())}
        write_deltalake(path, pa.table(columns), mode="append")
    if not counted:
        path = _retold(path, lambda text: re.sub(r'\\"numRecords\\":\d+,', "", text))
    for condition in [*TRUE, "f > 5", "f > 5 AND id > 0"]:
        read_alike(spark, path, state, condition)
    assert read_alike(spark, path, state, "(f > 5) IS TRUE") == 2
    assert read_alike(spark, path, state, "f > 5") == (0 if counted else 2)


def test_only_files_whose_rows_are_not_told_are_counted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the table was, with each new version, and a recording took that for a user's query."""
    path, folder = str(tmp_path / "t"), str(tmp_path / "noted")
    for rows in (3, 5, 7):
        spark.range(rows).selectExpr("id", "'a b' p").coalesce(1).write.partitionBy("p").format("delta").mode(
            "append"
        ).save(path)
    path = _retold(path, lambda text: re.sub(r'\\"numRecords\\":5,', "", text))
    monkeypatch.setattr(TableSnapshot, "read", None)
    with zorder_pipeline.record(spark, state=folder, every=None) as recording:
        files = open_table(spark, path).files()
        assert files.uncounted is not None
        assert sorted(zip(files.rows.tolist(), files.uncounted.tolist(), strict=True)) == [
            (3, False), (5, True), (7, False),
        ]  # fmt: skip
        assert recording.flush() == 0


@pytest.mark.matrix
@pytest.mark.parametrize("zone", ["Asia/Kuala_Lumpur", "Europe/Berlin"])
def test_days_begin_where_spark_has_them_begin(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    """Java knows other times of Kuala Lumpur before 1901 than Python does."""
    path, state = str(tmp_path / "t"), str(tmp_path / "none")
    with session_conf(spark, {"spark.sql.session.timeZone": zone}):
        for day in ("1900-01-01", "1999-05-05", "2020-02-29", "2024-12-31 23:59:59"):
            rows = spark.sql(f"SELECT TIMESTAMP'{day}' ts, TIMESTAMP_NTZ'{day}' n")
            rows.coalesce(1).write.format("delta").mode("append").save(path)
        for year in (1899, 1900, 2020, 2024):
            for condition in (
                f"year(ts) = {year}",
                f"year(ts) > {year}",
                f"trunc(ts, 'YEAR') = DATE'{year}-01-01'",
                f"trunc(ts, 'MM') <= DATE'{year}-01-01'",
                f"date_trunc('YEAR', ts) = '{year}-01-01'",
                f"date_trunc('YEAR', n) = '{year}-01-01'",
                f"year(ts) IN ({year}, 1800)",
            ):
                read_alike(spark, path, state, condition)
        assert read_alike(spark, path, state, "year(ts) = 2024") == 1
        assert read_alike(spark, path, state, "year(n) = 1900") == 1
        assert read_alike(spark, path, state, "trunc(ts, 'YEAR') = DATE'2020-01-01'") == 1
        assert read_alike(spark, path, state, "date_trunc('DAY', ts) = '2020-02-29'") == 1


@pytest.mark.matrix
def test_offsets_that_lost_their_seconds(spark: SparkSession, tmp_path: Path) -> None:
    """Delta 3 wrote so; before there was a standard time offsets had some."""
    path, state = str(tmp_path / "t"), str(tmp_path / "none")
    with session_conf(spark, {"spark.sql.session.timeZone": "Asia/Kolkata"}):
        for moment in ("1850-01-01 00:00:00", "2020-01-01 00:00:00"):
            rows = spark.sql(f"SELECT TIMESTAMP'{moment}' ts")
            rows.coalesce(1).write.format("delta").mode("append").save(path)
        path = _retold(path, lambda text: re.sub(r"([+]05:53):\d\d", r"\1", text))
        listed = "'1850-01-01 00:00:00', '2010-01-01 00:00:00'"
        assert read_alike(spark, path, state, f"ts IN ({listed})") == 1
        assert read_alike(spark, path, state, "ts IN ('2020-01-01 00:01:00', '1840-01-01 00:00:00')") == 0


def test_a_partition_s_value_that_no_cast_can_read_is_null(spark: SparkSession, tmp_path: Path) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "none")
    rows = spark.sql("SELECT id, CAST(id AS INT) p FROM VALUES (1L), (50L), (100L) AS v(id)")
    rows.repartition("p").write.format("delta").partitionBy("p").save(path)
    path = _retold(path, lambda text: text.replace('"partitionValues":{"p":"100"}', '"partitionValues":{"p":"abc"}'))
    with session_conf(spark, {"spark.sql.ansi.enabled": "false"}):  # else Delta refuses to read the table
        assert len(same_answer(spark, f"SELECT * FROM delta.`{path}` WHERE p IS NULL", state)) == 1
        assert read_alike(spark, path, state, "p IS NULL OR id IN (0, 99)") == 1
        assert read_alike(spark, path, state, "p = 1 OR id IN (0, 99)") == 2
        assert read_alike(spark, path, state, "p IS NOT NULL") == 3


def test_statistics_of_another_java_s_time_zones_do_not_count(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    for text in ("late", "early"):
        rows = spark.sql(f"SELECT 1 id, '{text}' c, TIMESTAMP'2024-05-01 {14 if text == 'late' else 20}:00:00' ts")
        rows.coalesce(1).write.format("delta").mode("append").save(path)
    gathered(spark, path, state, "c LIKE '%late%'", "hour(ts) = 14")
    assert re.search(r"zone rules \d{4}[a-z]", session_of(spark))
    asked = ("c LIKE '%late%'", "hour(ts) = 14")
    assert [read_alike(spark, path, state, one) for one in asked] == [1, 1]
    monkeypatch.setattr(session, "zone_rules", lambda _: "1999z")
    assert [read_alike(spark, path, state, one) for one in asked] == [1, 2], "a text has no time zone"


def test_statistics_of_a_java_that_writes_doubles_otherwise_do_not_count(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    for number in ("1e-323D", "2D"):
        spark.sql(f"SELECT {number} f").coalesce(1).write.format("delta").mode("append").save(path)
    monkeypatch.setattr(session, "_java", lambda _: 17)
    gathered(spark, path, state, asked := "CAST(f AS STRING) = '3.0'")
    assert read_alike(spark, path, state, asked) == 0
    monkeypatch.setattr(session, "_java", lambda _: 18)
    assert read_alike(spark, path, state, asked) == 0
    monkeypatch.setattr(session, "_java", lambda _: 21)
    assert read_alike(spark, path, state, asked) == 2
    gathered(spark, path, state, asked)
    assert read_alike(spark, path, state, asked) == 0


def test_statistics_of_a_java_with_other_capitals_do_not_count(spark: SparkSession, tmp_path: Path) -> None:
    """Turkish has a dotted capital i."""
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    for text in ("diyarbakır", "ankara"):
        spark.sql(f"SELECT '{text}' c").coalesce(1).write.format("delta").mode("append").save(path)
    locales = java_class(spark, "java.util.Locale")
    usual, own = session_of(spark), locales.getDefault()
    try:
        locales.setDefault(locales.forLanguageTag("de"))
        assert session_of(spark) == usual
        gathered(spark, path, state, asked := "upper(c) = 'DİYARBAKIR'")
        assert read_alike(spark, path, state, asked) == 0
        locales.setDefault(locales.forLanguageTag("tr-TR"))
        assert read_alike(spark, path, state, asked) == 2
        assert len(same_answer(spark, f"SELECT * FROM delta.`{path}` WHERE {asked}", state)) == 1
    finally:
        locales.setDefault(own)
