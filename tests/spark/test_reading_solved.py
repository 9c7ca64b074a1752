"""Conditions that are solved for their column: what the reader of logs takes for skipped by, scans do skip by."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.gathering import files_of, gathered, read_alike, same_answer
from zorder_pipeline import sql
from zorder_pipeline.benchmarks.data import session_conf
from zorder_pipeline.model.predicate import comparisons
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.query_log.statements.sql import Unusable, parse_statement
from zorder_pipeline.reading.prune import FileTests, without_hulls
from zorder_pipeline.reading.unprepared import SKIPPING
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table

pytestmark = pytest.mark.matrix

ROWS = """SELECT id, date_add(DATE'2018-01-01', CAST(id AS INT)) d, timestamp_seconds(1514764800 + id * 86400) ts,
 TIMESTAMP_NTZ'2018-01-01 00:00:00' + make_dt_interval(CAST(id AS INT)) n, lpad(id, 4, '0') s FROM range(1600)"""
UNITS = {"YEAR": 12, "QUARTER": 3, "MM": 1}
EXAMPLES = ["year(ts) = 2020", "year(d) IN (2019, 2020)", "date_trunc('MONTH', ts) = '2021-03-01'", "left(s, 2) = '07'"]


@pytest.fixture(scope="module")
def days(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of 1,600 days in sixteen files."""
    path = str(tmp_path_factory.mktemp("days") / "t")
    with session_conf(spark, {"spark.sql.session.timeZone": "UTC"}):
        spark.sql(ROWS).repartitionByRange(16, "id").write.format("delta").save(path)
    return path


def _conditions(seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    while True:
        column, op, year = (
            rng.choice(("d", "ts", "n")),
            rng.choice(("=", "<", "<=", ">", ">=")),
            rng.randint(2018, 2022),
        )
        unit = rng.choice(list(UNITS))
        first = dt.date(year, 1 + rng.randrange(12 // UNITS[unit]) * UNITS[unit], 1)
        listed = ", ".join(str(year + more) for more in rng.sample(range(5), 2))
        yield rng.choice(
            (
                f"year({column}) {op} {year}",
                f"year({column}) IN ({listed})",
                f"date_trunc('{unit}', {column}) {op} '{first} 00:00:00'",
                f"trunc({column}, '{unit}') {op} DATE'{first}'",
                f"left(s, {rng.randint(1, 4)}) = '{rng.randrange(16):02}'",
                f"substring(s, 1, 1) IN ('0', '{rng.randrange(3)}')",
            )
        )


def _by_the_log(snapshot: TableSnapshot, condition: str, zone: str) -> int | None:
    """Files that a scan reads as the log's reader has it; None of a condition that it does not solve."""
    schema: TableSchema = snapshot.schema
    statement = f"SELECT * FROM t WHERE {condition}"
    found = parse_statement(statement, aliases={"t": "t"}, schemas={"t": schema}, zone=zone)
    assert not isinstance(found, Unusable), condition
    if not any(leaf.solved for leaf in comparisons(found[0].predicate)):
        return None
    boxes = without_hulls(to_boxes(found[0].predicate, schema, zone, solved=True))
    return int(FileTests(snapshot.files().zone_map(), {}).matching(boxes).sum())


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", *(pytest.param(zone, marks=pytest.mark.slow) for zone in ("UTC", "America/Havana"))]
)
def test_scans_skip_by_what_the_log_s_reader_solves(spark: SparkSession, days: str, tmp_path: Path, zone: str) -> None:
    more = _conditions(len(zone))
    with session_conf(spark, {"spark.sql.session.timeZone": zone}):
        snapshot = open_table(spark, days)
        for condition in [*EXAMPLES, *(next(more) for _ in range(5))]:
            expected = _by_the_log(snapshot, condition, zone)
            read = read_alike(spark, days, str(tmp_path / "none"), condition)
            local = "date_trunc" in condition and ", n)" in condition  # near a change of clocks these stay unsolved
            assert expected is None or read <= expected or local, condition
            assert condition not in EXAMPLES or (expected is not None and read <= 8), condition


def test_delta_s_own_conditions_on_generated_columns_count(spark: SparkSession, tmp_path: Path) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    with session_conf(spark, {"spark.sql.session.timeZone": "UTC"}):
        spark.sql(
            f"CREATE TABLE delta.`{path}` (id BIGINT, c STRING, ts TIMESTAMP, d DATE GENERATED ALWAYS AS (CAST(ts AS"
            " DATE))) USING delta PARTITIONED BY (d) TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '1')"
        )
        rows = spark.range(16).selectExpr("id", "IF(id % 4 < 2, 'late', 'no') c", "timestamp_seconds(id * 43200) ts")
        rows.coalesce(1).write.format("delta").mode("append").save(path)
        gathered(spark, path, state, "c LIKE '%late%'")
        for more, files in (("", 3), (" AND c LIKE '%late%'", 2)):
            condition = f"ts >= '1970-01-03 00:00:00' AND ts < '1970-01-05 00:00:00'{more}"
            statement = f"SELECT * FROM delta.`{path}` WHERE {condition}"
            assert same_answer(spark, statement, state)
            assert files_of(sql(spark, statement, state=state)) == files <= files_of(spark.sql(statement)) == 3
            assert read_alike(spark, path, state, condition) == files


OFF = ("spark.databricks.delta.generatedColumn.partitionFilterOptimization.enabled", SKIPPING)


def test_a_session_that_turned_these_conditions_off_is_asked_none(spark: SparkSession, tmp_path: Path) -> None:
    """The dates are those of the writer's time zone, which is another one."""
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    with session_conf(spark, {"spark.sql.session.timeZone": "America/Los_Angeles"}):
        spark.sql(
            f"CREATE TABLE delta.`{path}` (ts TIMESTAMP, c STRING, d DATE GENERATED ALWAYS AS (CAST(ts AS DATE)))"
            " USING delta PARTITIONED BY (d)"
        )
        rows = spark.sql(
            "SELECT CAST(day AS TIMESTAMP) ts, c FROM VALUES ('2024-01-02T03:00:00Z', 'late'),"
            " ('2024-01-02T23:00:00Z', 'late'), ('2024-01-04T23:00:00Z', 'no') AS v(day, c)"
        )
        rows.write.format("delta").mode("append").save(path)
    with session_conf(spark, {"spark.sql.session.timeZone": "UTC"}):
        gathered(spark, path, state, "c LIKE '%late%'")
        statement = f"SELECT * FROM delta.`{path}` WHERE ts >= '2024-01-02 00:00:00' AND c LIKE '%late%'"
        assert len(same_answer(spark, statement, state)) == 1, "Delta itself leaves the other out"
        for setting in OFF:
            with session_conf(spark, {setting: "false"}):
                assert len(same_answer(spark, statement, state)) == 2, setting
