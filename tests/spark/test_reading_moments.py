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


@pytest.mark.matrix
def test_a_view_of_a_frame_is_read_as_it_is_now(spark: SparkSession, table: tuple[str, str]) -> None:
    path, state = table
    spark.read.format("delta").load(path).createOrReplaceTempView("v")
    spark.read.format("delta").option("versionAsOf", 1).load(path).createOrReplaceTempView("v1")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 7")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (30, 'late30', now(), NULL)")
    both = f"SELECT count(*), (SELECT count(*) FROM delta.`{path}`), (SELECT count(*) FROM v1) FROM v"
    found = [zorder_pipeline.sql(spark, f"{both}{more}", state=state) for more in ("", f" WHERE {LATE}")]
    assert files_of(found[1]) < files_of(spark.sql(f"{both} WHERE {LATE}"))
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (31, 'late31', now(), NULL)")
    assert [one.collect() for one in found] == [[(20, 20, 10)], [(6, 20, 10)]]


@pytest.mark.matrix
def test_a_view_of_another_schema_is_left_to_spark(spark: SparkSession, table: tuple[str, str]) -> None:
    path, state = table
    spark.read.format("delta").load(path).createOrReplaceTempView("v")
    spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS (e INT)")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (30, 'late30', now(), NULL, 1)")
    statement = f"SELECT * FROM v WHERE {LATE}"
    found, plain = zorder_pipeline.sql(spark, statement, state=state), spark.sql(statement)
    assert (rows_of(found), found.schema) == (rows_of(plain), plain.schema)
    assert len(rows_of(found)) == 6


def test_a_query_sees_one_version_of_its_tables(spark: SparkSession, tmp_path: Path) -> None:
    path, state = f"{tmp_path}/t", f"{tmp_path}/s"
    statement = f"SELECT count(*), (SELECT count(*) FROM delta.`{path}`) FROM delta.`{path}` WHERE {LATE}"
    with session_conf(spark, UTC):
        for i, text in enumerate(("late", "x")):
            spark.sql(f"SELECT {i} id, '{text}' c").coalesce(1).write.format("delta").mode("append").save(path)
        gathered(spark, path, state, LATE)
        asked = zorder_pipeline.sql(spark, statement, state=state)
        left_to_delta = zorder_pipeline.sql(spark, f"SELECT count(*) FROM delta.`{path}`", state=state)
        spark.sql(f"INSERT INTO delta.`{path}` VALUES (3, 'late')")
        assert asked.collect() == [(1, 2)]
        assert left_to_delta.collect() == [(2,)]


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


@pytest.mark.matrix
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


PLACES = [
    "SELECT count(*) FROM {t} t JOIN {u} u ON t.id = u.id AND u.id NOT IN (SELECT id FROM {t} WHERE id > 5)",
    "SELECT count(*) FROM {t} t LEFT JOIN {u} u ON t.id = u.id AND u.id IN (SELECT id FROM {t}) WHERE u.id IS NOT NULL",
    "SELECT sum(n) FROM ids, LATERAL (SELECT count(*) n FROM {t} t WHERE t.id = ids.id)",
    "SELECT id FROM ids ORDER BY ids.id > (SELECT count(*) FROM {t}), id DESC",
    "SELECT count(*) FROM ids GROUP BY ids.id > (SELECT count(*) FROM {t}) ORDER BY 1",
    "SELECT max((SELECT max(id) FROM {t} t WHERE t.id >= (SELECT count(*) FROM {t}) - 1)) FROM ids",
    "SELECT DISTINCT count(*) OVER (PARTITION BY id > (SELECT count(*) FROM {t})) n FROM ids ORDER BY n",
    "SELECT count(*) FROM ids WHERE EXISTS (SELECT 1 FROM {t} t JOIN {u} u ON t.id = u.id AND t.id = ids.id)",
]


@pytest.mark.matrix
@pytest.mark.parametrize("place", [*PLACES[:3], *(pytest.param(place, marks=pytest.mark.slow) for place in PLACES[3:])])
def test_every_place_of_a_query_sees_the_same_version(
    spark: SparkSession, table: tuple[str, str], tmp_path: Path, place: str
) -> None:
    path, state = table
    spark.range(20).write.format("delta").save(f"{tmp_path}/u")
    statement = place.format(t=f"delta.`{path}`", u=f"delta.`{tmp_path}/u`")
    found = zorder_pipeline.sql(spark, statement, state=state)
    expected = spark.sql(statement).collect()
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id > 8")
    spark.sql(f"INSERT INTO delta.`{tmp_path}/u` SELECT id FROM range(20)")
    assert found.collect() in (expected, spark.sql(statement).collect())
