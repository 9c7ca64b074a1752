"""What a scan asks is read off Spark's own plan: names, constants and settings mean there what they mean to Spark."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import zorder_pipeline
from tests.spark.gathering import files_of, gathered, read_alike, same_answer
from zorder_pipeline.benchmarks.data import session_conf

LATE = "c LIKE '%late%'"
UTC = {"spark.sql.session.timeZone": "UTC"}
NO_ANSI = UTC | {"spark.sql.ansi.enabled": "false"}
ROWS = """SELECT CAST(id AS INT) id, CAST(id % 10 AS INT) a, CAST(16777210 + id AS INT) b,
 CAST(id AS DECIMAL(38, 0)) + 100000000000000000000000000000000000 p, CAST(id % 20 AS INT) `x = 1 OR y`,
 CASE WHEN id < 10 THEN 'ann' WHEN id < 30 THEN concat(id, ' late') ELSE 'dd' END c,
 IF(id < 20, 1, 2) x, IF(id < 20, 2, 3) y, id / 3 r, CAST(id / 7 AS DECIMAL(30, 4)) w, id % 2 = 0 e,
 named_struct('c', IF(id < 10, 'late', 'no'), 'f', CAST(id AS INT)) s, array(1, IF(id % 2 = 0, 2, NULL)) arr,
 timestamp_seconds(1704067200 + 3600 * id) ts, date_add(DATE'2024-01-01', CAST(id AS INT)) day
 FROM range(40)"""
ASKED = (
    LATE,
    "s.c LIKE '%lat%'",
    "x = 1 OR y = 3",
    "date_add(day, 1) = DATE'2024-01-05'",
    "length(c) > 4",
    "w * 2 > 3",
)


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Four files of ten rows, two of them late, with statistics of that in sessions of both kinds."""
    folder = tmp_path_factory.mktemp("plans")
    path, state = str(folder / "t"), str(folder / "state")
    with session_conf(spark, UTC):
        rows = spark.sql(ROWS).repartitionByRange(4, "id").sortWithinPartitions("id")
        rows.write.format("delta").option("delta.columnMapping.mode", "name").save(path)
        spark.sql(f"CREATE TABLE planes USING delta LOCATION '{path}'")
        gathered(spark, path, state, *ASKED)
    with session_conf(spark, NO_ANSI):
        gathered(spark, path, state, LATE, "CAST(b AS FLOAT) = 1", "CAST(b AS FLOAT) = 2")
    spark.sql("SELECT CAST(id AS STRING) id, id n FROM range(40)").createOrReplaceTempView("other_ids")
    spark.sql(f"{ROWS.replace('id < 10', 'id > 90')}").createOrReplaceTempView("other_planes")
    try:
        yield path, state
    finally:
        spark.sql("DROP TABLE planes")
        for view in ("other_ids", "other_planes"):
            spark.catalog.dropTempView(view)


def _read(spark: SparkSession, table: tuple[str, str], condition: str) -> int:
    return read_alike(spark, *table, condition, "planes")


CONDITIONS = [
    (LATE, 2),
    (f"NOT ({LATE})", 2),
    (f"{LATE} OR id = 35", 3),
    (f"({LATE}) IS TRUE AND a < 3", 2),
    ("3 = y OR x = 1", 4),
    ("s.c LIKE '%lat%' AND s.f <= 3", 1),
    ("s.c <=> 'late'", 1),
    ("id IN (3, 4, NULL) OR id <=> 36", 2),
    ("NOT id IN (3, 4)", 4),
    ("w * 2 > 3", 4),
    ("year(day) > 2023 AND year(day) <= 2024 AND year(day) = 2024 AND day < DATE'2024-01-05'", 1),
    ("year(day) < 2024 OR 2025 <= year(day)", 0),
    ("e AND id > 35", 1),
    ("r < 1.5D AND NOT e", 1),
    ("`x = 1 OR y` = 12", 2),
    ("date_add(day, 1) = DATE'02024-01-15'", 4),
    ("(p = 100000000000000000000000000000000015 OR id = 35) AND " + LATE, 1),
    ("(p > 100000000000000000000000000000000018 AND p < 100000000000000000000000000000000021) AND " + LATE, 2),
    ("year/**/(day) = 2024 AND `length`(c) > 4", 2),
]


@pytest.mark.parametrize(("condition", "files"), CONDITIONS)
def test_conditions_say_what_they_say_in_spark_s_plan(
    spark: SparkSession, table: tuple[str, str], condition: str, files: int
) -> None:
    with session_conf(spark, UTC):
        assert _read(spark, table, condition) <= files


@pytest.mark.parametrize("condition", ["CAST(b AS FLOAT) = 16777217", "CAST(b AS FLOAT) IN (16777217, 16777219)"])
def test_constants_are_rounded_as_spark_rounds_them(
    spark: SparkSession, table: tuple[str, str], condition: str
) -> None:
    with session_conf(spark, NO_ANSI):
        _read(spark, table, condition)


STATEMENTS = [
    f"SELECT count(*), max(id) FROM planes WHERE {LATE}",
    "SELECT id FROM (SELECT * FROM (SELECT id, c AS d FROM planes) WHERE d LIKE '%late%') WHERE id > 12",
    f"WITH q AS (SELECT * FROM planes) SELECT id FROM q WHERE {LATE}",
    f"WITH q AS (SELECT * FROM planes WHERE {LATE}) SELECT a.id FROM q a JOIN q b ON a.id = b.id + 1",
    f"SELECT f.id FROM planes f JOIN planes g ON f.id = g.id + 1 WHERE f.{LATE} AND g.id > 15",
    f"SELECT * FROM (other_ids v JOIN planes f USING (id)) WHERE id < '2' AND f.{LATE}",
    "SELECT planes.id FROM planes JOIN other_planes AS s ON planes.id = s.id - 20 WHERE planes.s.c LIKE '%lat%'",
    (
        f"SELECT u.n FROM other_ids u WHERE EXISTS (SELECT 1 FROM planes WHERE planes.id = u.n AND {LATE} "
        "AND _metadata.file_path LIKE '%part%')"
    ),
    f"SELECT u.n FROM other_ids u WHERE u.n NOT IN (SELECT id FROM planes WHERE {LATE})",
    f"SELECT u.n, (SELECT max(c) FROM planes WHERE {LATE}) m FROM other_ids u",
    f"SELECT id FROM planes WHERE {LATE} AND rand(42) < 0.5",
    f"SELECT id, monotonically_increasing_id() FROM planes WHERE {LATE}",
    f"SELECT id FROM planes WHERE {LATE} UNION ALL SELECT n FROM other_ids",
    f"SELECT u.n, f.c FROM other_ids u LEFT JOIN planes f ON u.n = f.id AND f.{LATE}",
    f"SELECT u.n, f.c FROM planes f FULL JOIN other_ids u ON u.n = f.id WHERE f.{LATE} OR u.n = 3",
    "SELECT max(id), (SELECT count(*) FROM planes) FROM planes WHERE s.c LIKE '%lat%'",
    f"SELECT a, count(*) n FROM planes WHERE {LATE} GROUP BY a HAVING a > 5 ORDER BY a",
    f"FROM planes |> WHERE {LATE} |> SELECT id",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_return_what_spark_returns(spark: SparkSession, table: tuple[str, str], statement: str) -> None:
    with session_conf(spark, UTC):
        assert same_answer(spark, statement, table[1])


TWICE = "SELECT a.id FROM q a JOIN q b ON a.id = b.id + 1"
SMALLER = [
    *(STATEMENTS[number] for number in (0, 1, 2, 3, 4)),
    f"SELECT n FROM other_ids u WHERE EXISTS (SELECT 1 FROM planes WHERE planes.id = u.n AND {LATE})",
    f"SELECT n FROM other_ids WHERE n > 2 AND NOT (n < 30 AND n IN (SELECT id FROM planes WHERE {LATE}))",
    f"SELECT n FROM other_ids WHERE n NOT IN (SELECT id FROM planes WHERE {LATE})",
    f"SELECT n, (SELECT max(c) FROM planes WHERE {LATE}) m FROM other_ids",
    f"SELECT n FROM other_ids u WHERE n > (SELECT avg(id) FROM planes WHERE {LATE} AND planes.id >= u.n)",
    f"SELECT n % 2 k, max(n + (SELECT min(id) FROM planes WHERE {LATE})) FROM other_ids GROUP BY k",
    f"SELECT n FROM other_ids GROUP BY n HAVING n = (SELECT max(id) FROM planes WHERE {LATE})",
    f"SELECT n FROM other_ids WHERE n IN (SELECT id FROM planes WHERE {LATE} AND a < (SELECT 5))",
    f"WITH q AS (SELECT * FROM planes WHERE {LATE} OR s.c LIKE '%lat%') {TWICE} WHERE a.{LATE} AND b.{LATE}",
    f"WITH q AS (SELECT *, rank() OVER (ORDER BY c) n FROM planes WHERE {LATE}) {TWICE}",
    f"SELECT (SELECT max(id) FROM planes WHERE {LATE}), (SELECT min(id) FROM planes WHERE {LATE} AND id > 12)",
]


BOUNDS = "a.id > (SELECT min(id) FROM planes) AND b.id < (SELECT max(id) FROM planes)"


@pytest.mark.matrix
def test_a_copied_relation_s_condition_is_none_of_a_merged_subquery(
    spark: SparkSession, table: tuple[str, str]
) -> None:
    with_q = f"WITH q AS (SELECT id FROM planes WHERE {LATE})"
    with session_conf(spark, UTC):
        statement = f"{with_q} SELECT a.id FROM q a JOIN q b ON a.id = b.id WHERE {BOUNDS}"
        assert len(same_answer(spark, statement, table[1])) == 20


@pytest.mark.matrix
@pytest.mark.parametrize("statement", SMALLER)
def test_tables_behind_names_and_in_subqueries_are_read_in_part(
    spark: SparkSession, table: tuple[str, str], statement: str
) -> None:
    with session_conf(spark, UTC):
        same_answer(spark, statement, table[1])
        assert files_of(zorder_pipeline.sql(spark, statement, state=table[1])) < files_of(spark.sql(statement))


def test_one_table_is_read_otherwise_in_each_place(spark: SparkSession, table: tuple[str, str]) -> None:
    statement = f"SELECT count(*) FROM planes WHERE id NOT IN (SELECT id FROM planes WHERE {LATE})"
    with session_conf(spark, UTC):
        assert same_answer(spark, statement, table[1])


SUMS = """SELECT id, IF(id < 10, 0.1D, 9D) x, IF(id < 10, 0.2D, 9D) y, IF(id < 10, 0.3D, 9D) z,
 IF(id < 10, '\U0001f600x', 'abc') t, named_struct('l', IF(id < 10, 'late', 'no'), 'f', CAST(id AS INT), 'n', id) s,
 CAST(id AS INT) a, CAST(40 - id AS INT) b, timestamp_seconds(1704067200 + 3600 * id) ts,
 CAST(id AS TINYINT) t1, CAST(id AS SMALLINT) t2, CAST(id / 10 AS FLOAT) t4, 0D z1, -0D z2,
 CAST(NULL AS INT) z3 FROM range(40)"""
ELEVEN = ", ".join(map(str, range(11)))  # more than Spark keeps as a list
MANY = ", ".join(f"z3 + {i}" for i in range(30))  # more than Spark shows
FOUND = [  # what is kept, a condition of the same meaning, files that it reads
    ("x + y + z = 1", "x + (y + z) = 0.6", 4),
    ("x + y + z = 2", "x + y + z = 18", 0),
    ("x + y + z = 2", "z + y + x < 10", 4),
    (f"coalesce({MANY}, x + y + z) = 0.6", f"coalesce({MANY}, x + (y + z)) = 0.6", 4),
    ("CAST(greatest(z1, z2) AS STRING) LIKE '%-%'", "CAST(greatest(z2, z1) AS STRING) LIKE '%-%'", 4),
    ("CAST(greatest(z1, z2) AS STRING) LIKE '%-%'", "CAST(greatest(z1, z2) AS STRING) LIKE '%-%'", 0),
    ("x + y = 1", "y + x < 10", 1),
    ("x + y = 2", "x + y < 10", 1),
    ("upper(t) = 'x'", "upper(t) < 'ABD'", 3),
    ("upper(t) = 'y'", "upper(t) >= 'B' AND upper(t) < CAST(X'FF' AS STRING)", 1),
    ("a BETWEEN 4 AND 6 OR b BETWEEN 4 AND 6", "b >= 4 AND b <= 6 OR a BETWEEN 4 AND 6", 2),
    ("a > 3 AND a < 7 OR t LIKE '%q%'", "(a > 3 AND a < 7) OR t LIKE '%q%'", 1),
    ("a IN (3, 35) OR b <> 40", "NOT (a IN (3, 35) OR b <> 40)", 1),
    ("s.l LIKE '%at%'", "s.l LIKE '%at%'", 1),
    ("t LIKE 'a%c'", "t LIKE 'a%c'", 3),
    ("hour(ts) BETWEEN 1 AND 3", "t LIKE 'a%c' OR hour(ts) BETWEEN 1 AND 3", 4),
    ("t1 = 1", f"t1 IN ({ELEVEN}) AND id < 10", 1),
    ("t2 = 1", f"t2 IN ({ELEVEN}) OR t2 = 35", 3),
    ("t4 = 1", "t4 IN (0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F, 0.9F, 1.1F, 1.2F)", 2),
    ("id = 1", f"id IN ({ELEVEN}, NULL)", 2),
    ("s.n = 1", f"s.n IN ({ELEVEN}) AND NOT id IN ({ELEVEN})", 2),
]


@pytest.fixture(scope="module")
def sums(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("sums")
    path, state = str(folder / "t"), str(folder / "state")
    with session_conf(spark, UTC):
        rows = spark.sql(SUMS).repartitionByRange(4, "id").sortWithinPartitions("id")
        rows.write.format("delta").save(path)
        gathered(spark, path, state, *dict.fromkeys(kept for kept, _, _ in FOUND))
    return path, state


@pytest.mark.matrix
@pytest.mark.parametrize(("kept", "condition", "files"), FOUND)
def test_expressions_are_found_again_where_they_mean_the_same(
    spark: SparkSession, sums: tuple[str, str], kept: str, condition: str, files: int
) -> None:
    with session_conf(spark, UTC):
        assert read_alike(spark, *sums, condition) == files, kept


@pytest.mark.matrix
def test_fields_are_found_whatever_else_is_read_of_their_struct(spark: SparkSession, sums: tuple[str, str]) -> None:
    path, state = sums
    with session_conf(spark, UTC):
        for what in ("*", "s.n", "a"):
            statement = f"SELECT {what} FROM delta.`{path}` WHERE s.l LIKE '%at%'"
            assert same_answer(spark, statement, state)
            assert files_of(zorder_pipeline.sql(spark, statement, state=state)) == 1


@pytest.mark.matrix
def test_what_is_cached_has_its_meaning_too(spark: SparkSession, sums: tuple[str, str], tmp_path: Path) -> None:
    path, state = f"{tmp_path}/t", f"{tmp_path}/s"
    with session_conf(spark, UTC):
        spark.read.format("delta").load(sums[0]).repartitionByRange(4, "id").write.format("delta").save(path)
        cached = spark.read.format("delta").option("versionAsOf", 0).load(path).cache()
        try:
            gathered(spark, path, state, "s.l LIKE '%at%'")
            assert zorder_pipeline.scan(spark, path, "s.l LIKE '%at%'", state=state).count() == 10
        finally:
            cached.unpersist()
        assert zorder_pipeline.explain(spark, path, "s.l LIKE '%at%'", state=state).files_read == 1


@pytest.mark.matrix
def test_a_folder_that_is_put_back_is_looked_at_anew(spark: SparkSession, tmp_path: Path) -> None:
    path, state = f"{tmp_path}/t", f"{tmp_path}/s"
    spark.range(10).coalesce(1).write.format("delta").save(path)
    shutil.copytree(path, f"{tmp_path}/saved")
    for last in (100, 200):
        spark.range(last, last + 10).coalesce(1).write.format("delta").mode("append").save(path)
        assert zorder_pipeline.scan(spark, path, f"id >= {last}", state=state).count() == 10
        shutil.rmtree(path)
        shutil.copytree(f"{tmp_path}/saved", path)
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
        time.sleep(0.01)


@pytest.mark.matrix
def test_another_meaning_of_casts_has_no_statistics(spark: SparkSession, table: tuple[str, str]) -> None:
    path, state = table
    with session_conf(spark, UTC):
        gathered(spark, path, state, "CAST(arr AS STRING) = '[1,]'")
        with session_conf(spark, {"spark.sql.legacy.castComplexTypesToString.enabled": "true"}):
            assert _read(spark, table, "CAST(arr AS STRING) = '[1,]'") == 4


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("zone", "moment", "condition"),
    [
        ("Europe/Amsterdam", "1929-12-31 23:50:28", "(ts = '1930-01-01 00:10:00' OR id = 9) AND c LIKE '%late%'"),
        pytest.param(
            *("America/Toronto", "1919-03-31 04:45:00", "ts >= DATE '1919-03-31' AND c LIKE '%late%'"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("America/St_Johns", "2010-11-07 03:00:00", "CAST(ts AS DATE) = '2010-11-06' AND c LIKE '%late%'"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_instants_are_java_s(spark: SparkSession, tmp_path: Path, zone: str, moment: str, condition: str) -> None:
    path, state = f"{tmp_path}/t", f"{tmp_path}/state"
    rule = "org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison"
    with session_conf(spark, {"spark.sql.session.timeZone": zone, "spark.sql.optimizer.excludedRules": rule}):
        for i, text in enumerate(("late", "x")):
            row = spark.sql(f"SELECT TIMESTAMP '{moment}Z' ts, '{text}' c, {i} id")
            row.coalesce(1).write.format("delta").mode("append").save(path)
        gathered(spark, path, state, LATE)
        read_alike(spark, path, state, condition)
