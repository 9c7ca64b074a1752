"""Scans through statistics of our own: never a row less than a plain read, and fewer files."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from py4j.clientserver import ClientServerConnection
from py4j.protocol import MEMORY_COMMAND_NAME
from pyspark.sql import Column, DataFrame, SparkSession

import zorder_pipeline
from tests.spark.conditions import Conditions
from zorder_pipeline.errors import TableError
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.reading.choosing import with_fewer_files
from zorder_pipeline.pipeline.reading.known_files import known_files
from zorder_pipeline.pipeline.reading.statistics import gather_statistics, statistics_features
from zorder_pipeline.query_log.statements.sql import Unusable, parse_statement
from zorder_pipeline.reading.file_numbers import same_files
from zorder_pipeline.reading.file_stats import FileStats
from zorder_pipeline.relayout.chosen_files import ChosenFiles
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table

COLUMNS = """
    id, CAST(id DIV 400 AS STRING) AS p,
    IF(id % 11 = 0, NULL, CAST(id % 50 AS INT)) AS i,
    CASE WHEN id % 13 = 0 THEN NULL WHEN id % 17 = 0 THEN CAST('NaN' AS DOUBLE) ELSE id / 7 - 60 END AS f,
    IF(id % 19 = 0, NULL, concat('a common beginning longer than thirty-two characters ', id % 90)) AS s,
    CAST(concat(CHAR(65 + CAST(id % 3 AS INT) * 32), id DIV 100) AS STRING) AS u,
    date_add(DATE '2024-01-01', CAST(id DIV 3 AS INT)) AS d,
    TIMESTAMP '2024-01-01 00:00:00' + make_interval(0, 0, 0, 0, CAST(id AS INT), 0, id % 7 / 1000000) AS ts,
    IF(id % 5 = 0, NULL, id < 500) AS b,
    named_struct('x', CAST(id % 20 AS INT), 'y', CAST(id AS DECIMAL(12, 2)) / 4) AS n
"""


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A table with deletion vectors, partitions and mapped names, and a state with statistics of most of its files.

    Files of the last append have no statistics, and some have got a deletion vector since theirs were gathered.
    """
    folder = tmp_path_factory.mktemp("reading")
    path, state = str(folder / "t"), str(folder / "state")
    rows = spark.range(1200).selectExpr(*_split(COLUMNS)).repartitionByRange(12, "id")
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    writer = rows.sortWithinPartitions("id").write.format("delta").partitionBy("p").options(**properties)
    writer.save(path)
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN i TO `odd i`")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 10 = 3 AND id < 400")
    conditions = Conditions(1)
    asked = [conditions.one() for _ in range(150)]
    snapshot = open_table(spark, path)
    features = statistics_features(snapshot, _queries(snapshot, asked))
    assert {feature.kind for feature in features} == {"column", "expression", "predicate"}
    gather_statistics(spark, snapshot, features, state)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 10 = 4 AND id > 800")
    spark.range(1200, 1300).selectExpr(*_split(COLUMNS)).withColumnRenamed("i", "odd i").write.format("delta").mode(
        "append"
    ).save(path)
    return path, state


def _split(columns: str) -> list[str]:
    return [line.strip().rstrip(",") for line in columns.replace("id, CAST", "id,\n CAST").strip().splitlines()]


def _queries(snapshot: TableSnapshot, conditions: Sequence[str]) -> list[LoggedQuery]:
    found = []
    for condition in conditions:
        scans = parse_statement(
            f"SELECT * FROM t WHERE {condition}", aliases={"t": "t"}, schemas={"t": snapshot.schema}
        )
        assert not isinstance(scans, Unusable), condition
        found += [LoggedQuery("t", scan.predicate) for scan in scans]
    return found


def _check(spark: SparkSession, table: tuple[str, str], conditions: Sequence[str]) -> float:
    """No file is left out that holds a row of a condition; returns the share of files that are."""
    path, state = table
    known = known_files(spark, open_table(spark, path), state)
    names = [str(name) for name in known.snapshot.files().path]
    rows = known.snapshot.read()
    origin = rows.metadataColumn("_metadata").getField("file_path").alias("file")
    asked = [f"coalesce({condition}, false) AS c{i}" for i, condition in enumerate(conditions)]
    counted = rows.select(origin, "*").selectExpr("file", *asked).groupBy("file")
    found = counted.agg(*(_any(f"c{i}") for i in range(len(conditions)))).toPandas()
    place = {name: i for i, name in enumerate(names)}
    index = [place[str(name)] for name in same_files(found["file"].tolist(), known.snapshot.location, names)]
    read = 0
    for i, condition in enumerate(conditions):
        (chosen,) = with_fewer_files(rows.where(condition), state).chosen
        mask = np.logical_or.reduce(chosen.delta) if chosen.mask is None else chosen.mask
        needed = np.zeros(len(names), dtype=bool)
        needed[index] = found[f"c{i}"].to_numpy()
        assert not (needed & ~mask).any(), condition
        read += int(mask.sum())
    return 1 - read / (len(names) * len(conditions))


def _any(name: str) -> Column:
    from pyspark.sql import functions as F

    return F.bool_or(name).alias(name)


def test_no_file_with_a_matching_row_is_left_out(spark: SparkSession, table: tuple[str, str]) -> None:
    conditions = Conditions(1)
    asked = [conditions.one() for _ in range(150)]  # what there are statistics of, and ...
    unseen = Conditions(2)
    assert _check(spark, table, [*asked[:60], *(unseen.one() for _ in range(60))]) > 0.15


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 9))
def test_nor_is_it_for_many_more_conditions(spark: SparkSession, table: tuple[str, str], seed: int) -> None:
    source = Conditions(seed)
    _check(spark, table, [source.one() for _ in range(150)])


@pytest.mark.slow
@pytest.mark.parametrize(
    "condition",
    [
        "s LIKE '%characters 7_'",
        "`odd i` % 10 = 3 AND d > DATE '2024-02-01'",
        "u COLLATE UTF8_LCASE = 'A1'",
        "upper(s) LIKE '%BEGINNING%' AND f IS NOT NULL AND isnan(f)",
        "n.x + n.y > 290",
    ],
)
def test_scans_return_what_a_plain_read_returns(spark: SparkSession, table: tuple[str, str], condition: str) -> None:
    path, state = table
    features = statistics_features(open_table(spark, path), _queries(open_table(spark, path), [condition, "id > 1"]))
    gather_statistics(spark, open_table(spark, path), features, state)
    ours = zorder_pipeline.scan(spark, path, condition, state=state)
    plain = spark.read.format("delta").load(path).where(condition)
    assert ours.schema == plain.schema
    assert _rows(ours) == _rows(plain)
    report = zorder_pipeline.explain(spark, path, condition, state=state)
    assert report.files_read + sum(item.files for item in report.excluded) == report.files
    assert str(report).startswith(open_table(spark, path).location)


def _rows(frame: DataFrame) -> list[str]:
    return sorted(map(str, frame.collect()))


STATEMENTS = [
    "SELECT count(*), sum(t.id) FROM {t} t WHERE s LIKE '%characters 8%'",
    "SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.id + 1 WHERE a.s LIKE '%characters 8%' AND b.s LIKE '%s 79'",
    "WITH x AS (SELECT * FROM {t} WHERE s LIKE '%characters 8%') SELECT y.id FROM x y LEFT JOIN {t} ON false",
    "SELECT id FROM {t} WHERE id IN (SELECT id FROM {t} WHERE s LIKE '%characters 8%') ORDER BY id DESC LIMIT 3",
    "SELECT max(d) FROM {t} VERSION AS OF 1 WHERE s LIKE '%characters 8%'",
    "SELECT reading_view.id FROM reading_view WHERE s LIKE '%characters 8%'",
    "SELECT 1 AS one",
]


def test_statements_return_what_spark_returns(spark: SparkSession, table: tuple[str, str]) -> None:
    path, state = table
    snapshot = open_table(spark, path)
    features = statistics_features(snapshot, _queries(snapshot, ["s LIKE '%characters 8%'"]))
    gather_statistics(spark, snapshot, features, state)
    spark.read.format("delta").load(path).where("id < 900").createOrReplaceTempView("reading_view")
    for statement in STATEMENTS:
        text = statement.format(t=f"delta.`{path}`")
        assert _rows(zorder_pipeline.sql(spark, text, state=state)) == _rows(spark.sql(text)), text


def test_a_scan_stays_with_its_version_whatever_others_write(spark: SparkSession, tmp_path: Path) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    rows = spark.range(100).selectExpr("id", "concat('c', id) AS c").repartitionByRange(4, "id")
    rows.write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
    snapshot = open_table(spark, path)
    condition = "c LIKE '%7%' AND c NOT LIKE '%1%'"
    gather_statistics(spark, snapshot, statistics_features(snapshot, _queries(snapshot, [condition])), state)
    before = zorder_pipeline.scan(spark, path, condition, state=state)
    expected = _rows(spark.read.format("delta").load(path).where(condition))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 27")
    spark.sql(f"UPDATE delta.`{path}` SET c = 'x7' WHERE id = 3")
    rows.limit(8).write.format("delta").mode("append").save(path)
    assert _rows(before) == expected
    assert _rows(zorder_pipeline.scan(spark, path, condition, state=state)) == _rows(
        spark.read.format("delta").load(path).where(condition)
    )
    assert _rows(zorder_pipeline.scan(spark, path, condition, state=state, version=0)) == expected


@pytest.mark.slow
def test_statistics_follow_the_files(spark: SparkSession, tmp_path: Path) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    spark.range(100).selectExpr("id", "concat('c', id) AS c").repartition(3).write.format("delta").save(path)
    snapshot = open_table(spark, path)
    features = statistics_features(snapshot, _queries(snapshot, ["c LIKE '%7%'"]))
    first = gather_statistics(spark, snapshot, features, state)
    assert (first.files, first.rows_added) == (3, 3 * len(first.features))
    again = gather_statistics(spark, snapshot, features, state)
    assert (again.files, again.rows_added, again.files_forgotten) == (0, 0, 0)
    spark.range(5).selectExpr("id", "'c7' AS c").coalesce(1).write.format("delta").mode("overwrite").save(path)
    new = gather_statistics(spark, open_table(spark, path), features, state)
    assert (new.files, new.files_forgotten) == (1, 3)
    assert len(FileStats(spark, state).load(snapshot.table_id)) == len(first.features)


@pytest.mark.slow
def test_a_column_that_takes_the_name_of_another_does_not_take_its_statistics(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    rows = spark.range(20).selectExpr("id", "concat('c', id) AS c", "concat('d', id) AS d")
    rows.coalesce(1).write.format("delta").option("delta.columnMapping.mode", "name").save(path)
    snapshot = open_table(spark, path)
    features = statistics_features(snapshot, _queries(snapshot, ["c LIKE '%d1%'", "c = 'd1'"]))
    gather_statistics(spark, snapshot, features, state)
    assert zorder_pipeline.explain(spark, path, "c LIKE '%d1%'", state=state).files_read == 0
    for old, new in (("c", "e"), ("d", "c")):
        spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN {old} TO {new}")
    for condition in ("c LIKE '%d1%'", "c = 'd1'"):
        assert zorder_pipeline.scan(spark, path, condition, state=state).count() > 0
    assert gather_statistics(spark, open_table(spark, path), features, state).files == 1
    assert zorder_pipeline.explain(spark, path, "c LIKE '%c1%'", state=state).files_read == 1
    assert zorder_pipeline.explain(spark, path, "c = 'c1'", state=state).files_read == 0


@pytest.mark.slow
def test_char_columns_are_compared_as_spark_compares_them(spark: SparkSession, tmp_path: Path) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, c CHAR(5), v VARCHAR(5)) USING delta")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 'ab', 'ab'), (2, 'cd', 'cd')")
    snapshot = open_table(spark, path)
    asked = ["c = 'ab'", "v = 'ab'", "c LIKE '%b'", "c LIKE '%b %'"]
    gather_statistics(spark, snapshot, statistics_features(snapshot, _queries(snapshot, asked)), state)
    for condition in (*asked, "c > 'cd'", "c IN ('ab', 'x')", "v = 'ab   '"):
        plain = spark.read.format("delta").load(path).where(condition)
        assert _rows(zorder_pipeline.scan(spark, path, condition, state=state)) == _rows(plain), condition


@pytest.mark.slow
def test_an_expression_counts_only_in_the_kind_of_session_in_which_it_was_evaluated(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    start = "TIMESTAMP '2024-01-01 00:00:00'"
    rows = spark.range(48).selectExpr("id", f"{start} + make_interval(0, 0, 0, 0, CAST(id AS INT)) AS ts")
    rows.repartitionByRange(8, "id").write.format("delta").save(path)
    snapshot = open_table(spark, path)
    asked = ["hour(ts) = 3", "hour(ts) = 4"]
    gather_statistics(spark, snapshot, statistics_features(snapshot, _queries(snapshot, asked)), state)
    assert zorder_pipeline.explain(spark, path, "hour(ts) = 20", state=state).files_read == 2
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        assert zorder_pipeline.explain(spark, path, "hour(ts) = 20", state=state).files_read == 8
        found = zorder_pipeline.scan(spark, path, "hour(ts) = 20", state=state)
        assert _rows(found) == _rows(spark.read.format("delta").load(path).where("hour(ts) = 20"))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_more_files_take_no_more_calls_into_the_jvm(
    spark: SparkSession, table: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = open_table(spark, table[0])
    chosen, paths = ChosenFiles(snapshot), [str(path) for path in snapshot.files().path]
    sent: list[str] = []
    send, here = ClientServerConnection.send_command, threading.get_ident()

    def counted(self: ClientServerConnection, command: str) -> object:
        if threading.get_ident() == here and not command.startswith(MEMORY_COMMAND_NAME):
            sent.append(command)
        return send(self, command)

    def calls(number: int) -> int:
        found = []
        for _ in range(3):  # what earlier tests left is let go of when Python finds the time, in any of these
            sent.clear()
            assert len(chosen.index(paths[:number]).inputFiles()) == number
            found.append(len(sent))
        return min(found)

    chosen.index(paths)
    monkeypatch.setattr(ClientServerConnection, "send_command", counted)
    assert calls(2) == calls(12) < 60


def test_a_missing_table_or_version_is_told_in_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TableError, match="no Delta table"):
        zorder_pipeline.scan(spark, str(tmp_path / "none"), "a = 1")
    spark.range(3).write.format("delta").save(str(tmp_path / "t"))
    with pytest.raises(TableError, match="version 9"):
        zorder_pipeline.scan(spark, str(tmp_path / "t"), "id = 1", version=9)
    for wrong in (-1, "x", 1.5, True):
        with pytest.raises(TableError, match="give a whole number from 0 on"):
            zorder_pipeline.scan(spark, str(tmp_path / "t"), "id = 1", version=wrong)


def test_importing_the_library_loads_neither_spark_nor_dagster() -> None:
    code = "import sys, zorder_pipeline; print([m for m in ('pyspark', 'dagster') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
