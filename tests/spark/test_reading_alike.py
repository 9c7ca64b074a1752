"""Scans where Spark reads a statement otherwise than the reader of query logs: the result is that of a plain read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import zorder_pipeline
from tests.spark.gathering import gathered, read_alike, same_answer
from zorder_pipeline.benchmarks.data import session_conf

ZONE = "America/New_York"
IN_ZONE = {"spark.sql.session.timeZone": ZONE}
LATE = "c LIKE '%late%'"
ASKED = (LATE, "c LIKE '%it_s%'")
ROWS = """
    id, CAST(id DIV 10 AS INT) AS x, CAST(1500000000 + id AS INT) AS epoch, CAST(id / 10 AS FLOAT) AS f,
    CAST(id / 10 AS DECIMAL(10, 2)) AS p, date_add(DATE '2024-01-01', CAST(id AS INT)) AS day,
    timestamp_seconds(1710046800 + 3600 * id) AS ts,
    concat(CASE WHEN id < 10 THEN 'ann' WHEN id < 20 THEN 'bob late' ELSE 'cy' END, IF(id = 25, ' it''s', '')) AS c
"""


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Four files of ten rows, one of them late, with statistics of that; other tables beside it as views."""
    folder = tmp_path_factory.mktemp("alike")
    path, state = str(folder / "t"), str(folder / "state")
    rows = spark.range(40).selectExpr(*(f"{item}" for item in _items(ROWS)))
    rows.repartitionByRange(4, "id").sortWithinPartitions("id").write.format("delta").save(path)
    with session_conf(spark, IN_ZONE):
        gathered(spark, path, state, *ASKED)
    spark.sql(f"CREATE TABLE flights USING delta LOCATION '{path}'")
    spark.sql("SELECT id, 'x late' AS c, id AS n FROM range(0, 60, 3)").write.parquet(str(folder / "v"))
    spark.read.parquet(str(folder / "v")).createOrReplaceTempView("v")
    try:
        with session_conf(spark, IN_ZONE):
            yield path, state
    finally:
        spark.sql("DROP TABLE flights")
        spark.catalog.dropTempView("v")


def _items(columns: str) -> list[str]:
    found, depth, start = [], 0, 0
    for i, letter in enumerate(columns):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            found.append(columns[start:i])
            start = i + 1
    return [*found, columns[start:]]


def test_the_table_is_one_whose_files_are_left_out(spark: SparkSession, table: tuple[str, str]) -> None:
    assert read_alike(spark, *table, LATE) == 1
    assert read_alike(spark, *table, f"c = 'ann' OR {LATE}") == 2


@pytest.mark.parametrize(("condition", "read"), [("c = '${who}' OR " + LATE, 2), (r"c = '$\{who}' OR " + LATE, 1)])
def test_variables_are_what_spark_makes_of_them(
    spark: SparkSession, table: tuple[str, str], condition: str, read: int
) -> None:
    with session_conf(spark, {"who": "ann"}):
        assert read_alike(spark, *table, condition) == read


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "condition"),
    [
        ("spark.sql.parser.escapedStringLiterals", r"c = 'a\nn' OR " + LATE),
        ("spark.sql.legacy.consecutiveStringLiterals.enabled", "c = 'cy it''s' OR " + LATE),
        ("spark.sql.ansi.doubleQuotedIdentifiers", 'c = "c" OR ' + LATE),
    ],
)
def test_a_session_may_read_sql_in_its_own_way(
    spark: SparkSession, table: tuple[str, str], setting: str, condition: str
) -> None:
    both = {setting: "true", "spark.sql.ansi.enabled": "true"}
    with session_conf(spark, both):
        assert read_alike(spark, *table, condition) <= 4


STATEMENTS = [
    "WITH Flights AS (SELECT * FROM {t} WHERE x = 0) SELECT count(*) FROM flights WHERE {late}",
    "SELECT v.n FROM v LEFT ANTI JOIN flights f ON v.id = f.id WHERE {late}",
    "SELECT v.n FROM v LEFT SEMI JOIN flights f ON v.id = f.id WHERE {late}",
    "SELECT v.n FROM v JOIN (flights f JOIN v w ON f.id = w.id) ON v.id = f.id WHERE f.{late}",
    "SELECT v.n FROM v LEFT JOIN (flights f JOIN v w USING (id)) ON v.n = f.x WHERE ifnull(f.c, 'late') LIKE '%late%'",
    "SELECT * FROM (SELECT id, x, c FROM flights) UNPIVOT (c FOR x IN (c)) WHERE {late}",
    "SELECT * FROM (SELECT x, c FROM flights) PIVOT (count(c) FOR x IN (0 AS c)) WHERE c LIKE '%late%' OR c > 0",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("statement", STATEMENTS)
def test_names_mean_what_they_mean_to_spark(spark: SparkSession, table: tuple[str, str], statement: str) -> None:
    path, state = table
    text = statement.format(t=f"delta.`{path}`", late=LATE)
    assert same_answer(spark, text, state)


CONSTANTS = [
    "f >= 1.9F",
    "f BETWEEN 1.9F AND 1.95F",
    "p >= CAST(1.94 AS DECIMAL(10, 1))",
    "CAST(day AS TIMESTAMP) < '2024-01-11 12:00:00'",
    "day <= to_date('2024-01-02', 'yyyy-dd-MM')",
    "ts <= TIMESTAMP '2024-03-10 00:00:00' + INTERVAL 10 HOURS",
]


@pytest.mark.parametrize("condition", [CONSTANTS[0], *(pytest.param(c, marks=pytest.mark.slow) for c in CONSTANTS[1:])])
def test_constants_have_the_value_that_spark_gives_them(
    spark: SparkSession, table: tuple[str, str], condition: str
) -> None:
    _found(spark, table, f"{condition} AND {LATE}")


def _found(spark: SparkSession, table: tuple[str, str], condition: str) -> None:
    """What a wrong reading would leave without rows."""
    read_alike(spark, *table, condition)
    assert zorder_pipeline.scan(spark, table[0], condition, state=table[1]).count()


def test_without_ansi_mode_numbers_wrap_around(spark: SparkSession, table: tuple[str, str]) -> None:
    with session_conf(spark, {"spark.sql.ansi.enabled": "false"}):
        _found(spark, table, "epoch * 2 < 0")


@pytest.mark.slow
def test_without_ansi_mode_strings_are_cut(spark: SparkSession, table: tuple[str, str]) -> None:
    path, state = table
    with session_conf(spark, {"spark.sql.ansi.enabled": "false"}):
        with session_conf(spark, IN_ZONE):
            gathered(spark, path, state, *ASKED)
        assert zorder_pipeline.explain(spark, path, LATE, state=state).files_read == 1
        for condition in ("x >= '1.5'", "f >= '1.9'"):
            _found(spark, table, f"{condition} AND {LATE}")


def test_what_cannot_be_read_is_left_to_spark(
    spark: SparkSession, table: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_alike(spark, *table, f"date_trunc('DAY', ts) = '9999-12-31' OR {LATE}") == 4

    def broken(*_: object, **__: object) -> None:
        raise OverflowError("date value out of range")

    monkeypatch.setattr("zorder_pipeline.pipeline.reading.choosing.analysed", broken)
    assert read_alike(spark, *table, LATE) == 4
