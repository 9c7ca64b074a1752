"""A query sees one version of each table and one moment: those of the call, whatever happens until it is run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import zorder_pipeline
from tests.spark.gathering import files_of, gathered, rows_of
from zorder_pipeline.benchmarks.data import session_conf

LATE = "c LIKE '%late%'"
UTC = {"spark.sql.session.timeZone": "UTC"}


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Four files of five rows, the first of late ones, with tomorrow's moments; and a view of ids."""
    path, state = f"{tmp_path}/t", f"{tmp_path}/s"
    with session_conf(spark, UTC):
        for i in range(4):
            rows = spark.range(5 * i, 5 * i + 5).selectExpr("id", "IF(id < 5, concat('late', id), 'x') c")
            rows = rows.selectExpr("*", "now() + INTERVAL '1' DAY ts", "localtimestamp() + INTERVAL '1' DAY n")
            rows.coalesce(1).write.format("delta").mode("append").save(path)
        gathered(spark, path, state, LATE)
        spark.range(20).createOrReplaceTempView("ids")
        yield path, state
        spark.catalog.dropTempView("ids")


NOW = ["ts < now()", "n < localtimestamp()", "ts < 'now'", "n < CAST('now' AS TIMESTAMP_NTZ)"]


def test_files_are_chosen_by_the_clock_that_rows_are(spark: SparkSession, table: tuple[str, str]) -> None:
    path, state = table
    asked = [f"{clock} OR (id > 5 AND {LATE})" for clock in NOW]
    asked += [f"ids.id IN (SELECT id FROM delta.`{path}` WHERE {condition})" for condition in asked]
    what = "SELECT count(*), now() >= TIMESTAMP'{}' FROM {} AS ids WHERE "
    zorder_pipeline.sql(spark, f"SELECT * FROM delta.`{path}` WHERE {LATE}", state=state)
    with session_conf(spark, UTC):
        soon = spark.sql("SELECT string(date_trunc('second', now()) + INTERVAL '10' SECOND)").collect()[0][0]
        spark.sql(f"INSERT INTO delta.`{path}` SELECT 1, 'x', TIMESTAMP'{soon}', TIMESTAMP_NTZ'{soon}'")
        tables = [f"delta.`{path}`" if "IN (" not in condition else "ids" for condition in asked]
        filled = [what.format(soon, name) + condition for name, condition in zip(tables, asked, strict=True)]
        found = [zorder_pipeline.sql(spark, statement, state=state) for statement in filled]
        assert spark.sql(f"SELECT now() < TIMESTAMP'{soon}'").collect()[0][0], "this machine is too slow for the test"
        while not spark.sql(f"SELECT now() > TIMESTAMP'{soon}'").collect()[0][0]:
            time.sleep(0.5)
        for statement, one in zip(filled, found, strict=True):
            rows, later = one.collect()[0]
            assert rows == int(later), statement
        assert files_of(zorder_pipeline.sql(spark, filled[0], state=state)) < 5  # still through statistics


def test_what_a_query_asks_of_the_session_is_asked_when_it_runs(spark: SparkSession, table: tuple[str, str]) -> None:
    path, state = table
    condition = f"c = current_schema() OR (id > 5 AND {LATE})"
    found = [
        zorder_pipeline.sql(spark, statement, state=state)
        for statement in (
            f"SELECT * FROM delta.`{path}` WHERE {condition}",
            f"SELECT * FROM ids WHERE id IN (SELECT id FROM delta.`{path}` WHERE {condition})",
        )
    ]
    spark.sql("CREATE SCHEMA late3")
    try:
        spark.sql("USE late3")
        assert [len(one.collect()) for one in found] == [1, 1]
    finally:
        spark.sql("USE default")
        spark.sql("DROP SCHEMA late3")
