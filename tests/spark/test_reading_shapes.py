"""Scans of statements whose shape, constants or session mislead a reader of their text: results are a plain read's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import zorder_pipeline
from tests.spark.gathering import asked_of, gathered, read_alike, same_answer
from zorder_pipeline.benchmarks.data import session_conf
from zorder_pipeline.errors import TableError, UnsupportedTableError
from zorder_pipeline.features.sample import take_sample
from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.pipeline import gather_statistics
from zorder_pipeline.reading.session import aggregates_as_usual, unshadowed
from zorder_pipeline.relayout.snapshot import open_table

LATE = "c LIKE '%late%'"
UTC = {"spark.sql.session.timeZone": "UTC"}
NO_ANSI = UTC | {"spark.sql.ansi.enabled": "false"}
NEW_YORK, OFFSET = ({"spark.sql.session.timeZone": zone} for zone in ("America/New_York", "+1:00"))
ROWS = """SELECT CAST(id AS INT) id, CAST(id % 10 AS INT) a, CAST(id AS INT) b, IF(id >= 30, NULL, CAST(id AS INT)) k,
 CASE WHEN id < 10 THEN 'ann' WHEN id < 20 THEN 'bob late' WHEN id < 30 THEN 'cy late' ELSE 'dd' END c,
 IF(id < 10, '{"x":"late","y":"1"}', '{"x":"no","y":"1"}') j, named_struct('c', IF(id < 10, 'late', 'no'), 'f', 1) s,
 CAST((100 + id) / 100 AS DECIMAL(38, 2)) p, CAST(16777200 + id AS FLOAT) f, IF(id < 10, 'yes', 'no') `null`,
 timestamp_seconds(1704067200 + 3600 * id) ts, date_add(DATE'2024-01-01', CAST(id AS INT)) day
 FROM range(40)"""


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Four files of ten rows, two of them late, with statistics of that in four sessions."""
    folder = tmp_path_factory.mktemp("shapes")
    path, state = str(folder / "t"), str(folder / "state")
    spark.sql(ROWS).repartitionByRange(4, "id").sortWithinPartitions("id").write.format("delta").save(path)
    spark.sql(f"CREATE TABLE shapes USING delta LOCATION '{path}'")
    spark.range(40).selectExpr("CAST(id AS INT) k", "CAST(id AS INT) m").createOrReplaceTempView("u")
    spark.sql("SELECT -1 k, -1 m").createOrReplaceTempView("none")
    for conf in (UTC, NO_ANSI, NEW_YORK, OFFSET):
        with session_conf(spark, conf):
            gathered(spark, path, state, LATE, "greatest(b, 5) = 5", "length(c) = 3", "`null` LIKE '%y%'")
    try:
        yield path, state
    finally:
        spark.sql("DROP TABLE shapes")
        for view in ("u", "none"):
            spark.catalog.dropTempView(view)


STATEMENTS = [
    (
        "SELECT q.a, q.b FROM (SELECT a, b, c FROM shapes) q JOIN u ON q.a = u.k JOIN u w ON q.b = w.m "
        f"WHERE q.a = 5 AND q.{LATE}"
    ),
    f"SELECT * FROM (SELECT a, id, c FROM shapes) AS q(id, a, c) WHERE id = 5 AND {LATE}",
    f"SELECT * FROM ((SELECT * FROM shapes ORDER BY id) LIMIT 5) q WHERE {LATE}",
    "SELECT u.k, q.id FROM u LEFT JOIN (SELECT id, b, c FROM shapes) q ON u.k = q.id WHERE greatest(q.b, 5) = 5",
    f"SELECT * FROM (SELECT s.* FROM shapes) WHERE {LATE}",
    f"SELECT * FROM (SELECT * EXCEPT (c), json_tuple(j, 'x', 'y') AS (c, v) FROM shapes) WHERE {LATE}",
    (
        "SELECT * FROM (SELECT 'x late' c, 5 id) u WHERE EXISTS "
        f"(SELECT 1 FROM (SELECT * EXCEPT (c) FROM shapes) q WHERE {LATE} AND q.id = u.id)"
    ),
    f"SELECT shapes.id FROM shapes LEFT JOIN none USING (k) WHERE none.k <=> NULL AND shapes.{LATE}",
    f"SELECT a, count(*) FROM shapes WHERE {LATE} GROUP BY a HAVING a = 5",
    f"WITH q AS (SELECT * FROM shapes WHERE {LATE}) SELECT count(*) FROM q WHERE id > 12",
]


@pytest.mark.slow
def test_bounds_that_delta_s_log_cannot_hold_hide_no_row(spark: SparkSession, tmp_path: Path) -> None:
    """Where Spark's own selection reads a file although its bounds are wrong, ours does."""
    state = str(tmp_path / "state")

    def files(name: str, *rows: str) -> str:
        path = str(tmp_path / name)
        for row in rows:
            written = spark.sql(f"SELECT {row}").coalesce(1).write.format("delta").mode("append")
            written.option("delta.enableTypeWidening", "true").save(path)
        return path

    with session_conf(spark, UTC):
        floats = files("floats", "CAST(0.1 AS FLOAT) x, 1 id", "CAST(7.5 AS FLOAT) x, 2 id")
        spark.sql(f"ALTER TABLE delta.`{floats}` CHANGE COLUMN x TYPE DOUBLE")
        spark.sql(f"INSERT INTO delta.`{floats}` VALUES (1e300, 3), (-1e300, 3), (0.3, 4)")
        assert read_alike(spark, floats, state, "x IN (0.10000000149011612D, 0.05D)") < 3
        moments = files("moments", "timestamp_micros(9223372036854775807) at, 1 id", "TIMESTAMP'2024-01-01' at, 2 id")
        late = "at > TIMESTAMP'2025-01-01'"
        found = zorder_pipeline.scan(spark, moments, late, state=state)
        assert (len(found.inputFiles()), found.select("id").collect()) == (1, [(1,)])
        assert same_answer(spark, f"SELECT id FROM delta.`{moments}` WHERE {late}", state)
        smile = "\U0001f600"
        texts = files("texts", f"explode(array(CAST(X'FFFF' AS STRING), 'a', '{smile}x')) s, 1 id", "'b' s, 2 id")
        assert read_alike(spark, texts, state, f"s IN ('{smile}x', 'Z')") == 1


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_of_every_shape_give_what_spark_gives(
    spark: SparkSession, table: tuple[str, str], statement: str
) -> None:
    with session_conf(spark, UTC):
        same_answer(spark, statement, table[1])


@pytest.mark.matrix
def test_a_table_of_the_same_last_name_is_another(spark: SparkSession, table: tuple[str, str], tmp_path: Path) -> None:
    other = f"parquet.`{tmp_path}/shapes`"
    spark.sql("SELECT CAST(id AS STRING) id, 'late' c FROM range(0, 40)").write.parquet(f"{tmp_path}/shapes")
    asked = f"s.id BETWEEN '1' AND '2' AND s.{LATE} AND t.{LATE}"
    statement = f"SELECT t.id FROM shapes t JOIN {other} s ON t.id = s.id WHERE {asked}"
    with session_conf(spark, UTC):
        assert same_answer(spark, statement, table[1])


CONSTANTS = [
    (UTC, "(p = 1.154 OR id = 5)"),
    (UTC, "length(c) = 3.0000000000000000000000000000001"),
    (UTC, "ts <= '2024-01-01 12:00:00+1:00'"),
    (OFFSET, "ts <= '2024-01-01 12:00:00'"),
    (NEW_YORK, "ts <= TIMESTAMP_NTZ '2024-01-01 06:00:00 UTC'"),
    (NEW_YORK, "ts <= CAST('2024-01-01 06:00:00 UTC' AS TIMESTAMP_NTZ)"),
    (NO_ANSI, "(f = 16777217 OR id = 5)"),
    (NO_ANSI, "f IN (16777217)"),
    (UTC, "day = ('2024-01-15' + INTERVAL 1 DAY) + INTERVAL 12 HOURS"),
    (UTC, "`null` LIKE '%y%'"),
    (NO_ANSI, "true = c LIKE '%late%'"),
]


@pytest.mark.matrix
@pytest.mark.parametrize(("conf", "condition"), CONSTANTS)
@pytest.mark.parametrize("also", [pytest.param("", marks=pytest.mark.slow), f" AND {LATE}"])
def test_constants_are_what_spark_makes_of_them(
    spark: SparkSession, table: tuple[str, str], conf: dict[str, str], condition: str, also: str
) -> None:
    with session_conf(spark, conf):
        read_alike(spark, *table, condition + also, "shapes")


@pytest.mark.matrix
def test_days_that_begin_twice_are_no_ranges_of_instants(spark: SparkSession, tmp_path: Path) -> None:
    with session_conf(spark, {"spark.sql.session.timeZone": "America/St_Johns"}):
        for place, moment, condition in (
            ("a", "2010-11-07 03:00:00Z", "date_trunc('DAY', ts) = '2010-11-06'"),
            ("b", "2009-11-01 03:00:00Z", "date_trunc('MONTH', ts) = '2009-10-01'"),
        ):
            path = f"{tmp_path}/{place}"
            spark.sql(f"SELECT TIMESTAMP '{moment}' AS ts").write.format("delta").save(path)
            assert zorder_pipeline.scan(spark, path, condition).count() == 1


@pytest.mark.matrix
def test_statistics_of_another_kind_of_timestamp_do_not_count(spark: SparkSession, tmp_path: Path) -> None:
    path, state, condition = f"{tmp_path}/t", f"{tmp_path}/s", "CAST(s AS TIMESTAMP) >= '2024-01-01 00:00:00'"
    with session_conf(spark, UTC):
        spark.sql("SELECT '2024-01-01 00:00:00+05:00' AS s").write.format("delta").save(path)
        gathered(spark, path, state, condition)
        assert zorder_pipeline.scan(spark, path, condition, state=state).count() == 0
        with session_conf(spark, {"spark.sql.timestampType": "TIMESTAMP_NTZ"}):
            assert zorder_pipeline.scan(spark, path, condition, state=state).count() == 1


@pytest.mark.matrix
def test_a_state_that_cannot_be_read_leaves_delta_s_own_statistics(
    spark: SparkSession, table: tuple[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, _ = table
    with session_conf(spark, UTC):
        for state in ("nowhere://x/y", "s3a://bucket/x"):
            assert zorder_pipeline.scan(spark, path, LATE, state=state).count() == 20
            assert zorder_pipeline.sql(spark, f"SELECT * FROM shapes WHERE {LATE}", state=state).count() == 20
    assert "cannot be read, so Delta's own statistics have to do" in caplog.text


@pytest.mark.matrix
def test_a_text_that_is_no_utf8_has_no_statistics_and_its_neighbours_do(spark: SparkSession, tmp_path: Path) -> None:
    path, state = f"{tmp_path}/t", f"{tmp_path}/s"
    with session_conf(spark, UTC):
        spark.sql("SELECT CAST(X'FFFE41' AS STRING) s, 'late' c, 1 id").write.format("delta").save(path)
        gathered(spark, path, state, "s = 'x'", LATE, "lower(s) = 'a'")
        assert zorder_pipeline.explain(spark, path, "NOT (c LIKE '%late%')", state=state).files_read == 0
        assert zorder_pipeline.scan(spark, path, LATE, state=state).count() == 1


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["length", "min"])
def test_functions_in_the_place_of_spark_s_own_are_not_taken_for_them(
    spark: SparkSession, table: tuple[str, str], name: str
) -> None:
    path, state = table
    catalog = spark._jsparkSession.sessionState().catalog()
    spark.udf.register(name, lambda text: 99, "int")
    order = {"spark.sql.functionResolution.sessionOrder": "first"} if spark.version >= "4.2" else {}
    try:
        with session_conf(spark, UTC | order):
            with pytest.raises(TableError, match="functions of its own"):
                gathered(spark, path, state, "c LIKE '%ever%'")
            if name == "length":
                expected = spark.read.format("delta").load(path).where("length(c) = 99").count()
                assert zorder_pipeline.scan(spark, path, "length(c) = 99", state=state).count() == expected == 40
    finally:
        catalog.dropTempFunction(name, True)


@pytest.mark.matrix
def test_a_path_that_looks_for_a_session_s_functions_first_is_such_a_session(
    spark: SparkSession, table: tuple[str, str]
) -> None:
    if spark.version < "4.2":
        pytest.skip("SQL paths are new in Spark 4.2")
    path, state = table
    with session_conf(spark, UTC | {"spark.sql.path.enabled": "true"}):
        gathered(spark, path, state, "upper(c) = 'A'")
        spark.sql("SET PATH = system.session, system.builtin")
        try:
            with pytest.raises(TableError, match="functions of its own"):
                gathered(spark, path, state, "c LIKE '%ever%'")
            assert not aggregates_as_usual(spark)
            assert not unshadowed(spark, [Feature("upper(c)", "expression", "string", "upper(c)", ("c",))])
        finally:
            spark.sql("SET PATH = DEFAULT_PATH")


@pytest.mark.matrix
def test_what_fails_on_a_row_is_gathered_once(spark: SparkSession, tmp_path: Path) -> None:
    path, state = f"{tmp_path}/t", f"{tmp_path}/s"
    with session_conf(spark, UTC | {"spark.sql.ansi.enabled": "true"}):
        spark.sql("SELECT 'x7' c, 1 id UNION ALL SELECT '12', 2").coalesce(1).write.format("delta").save(path)
        asked = ("CAST(substring(c, 2) AS INT) = 7", "CAST(c AS INT) = 12", LATE)
        snapshot = open_table(spark, path)
        features = asked_of(snapshot, *asked)
        first = gather_statistics(spark, snapshot, features, state)
        assert first.files == 1
        assert first.rows_added > 1
        assert gather_statistics(spark, snapshot, features, state).files == 0
        for condition in ("id = 2 AND CAST(c AS INT) = 12", "id = 1 AND CAST(substring(c, 2) AS INT) = 7"):
            assert zorder_pipeline.scan(spark, path, condition, state=state).count() == 1


@pytest.mark.matrix
def test_files_that_cannot_be_read_are_an_error_and_not_without_statistics(spark: SparkSession, tmp_path: Path) -> None:
    path, state = f"{tmp_path}/t", f"{tmp_path}/s"
    with session_conf(spark, UTC):
        spark.range(5).selectExpr("id", "'late' c").coalesce(1).write.format("delta").save(path)
        snapshot = open_table(spark, path)
        features = asked_of(snapshot, LATE)
        (file,) = Path(path).glob("*.parquet")
        file.write_bytes(b"no Parquet")
        with pytest.raises((PySparkException, Py4JJavaError)):
            gather_statistics(spark, snapshot, features, state)


@pytest.mark.matrix
def test_a_session_that_tells_char_from_string_is_told_so(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE delta.`{tmp_path}/t` (c CHAR(5), i INT) USING delta")
    spark.sql(f"INSERT INTO delta.`{tmp_path}/t` VALUES ('a', 1)")
    with session_conf(spark, {"spark.sql.preserveCharVarcharTypeInfo": "true"}):
        snapshot = open_table(spark, f"{tmp_path}/t")
        with pytest.raises(UnsupportedTableError, match="preserveCharVarcharTypeInfo to false"):
            take_sample(snapshot, ["c", "i"], rows=10, seed=0, total_rows=1)
