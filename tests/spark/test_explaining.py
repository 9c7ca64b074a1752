"""What is told of a statement is what `zorder_pipeline.sql` makes of it: the files that it really reads are counted."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import zorder_pipeline
from tests.spark.gathering import gathered, rows_of
from tests.spark.test_command_line import zorder
from zorder_pipeline.errors import TableError
from zorder_pipeline.java import class_name, items
from zorder_pipeline.pipeline.reading import choosing
from zorder_pipeline.pipeline.reading.reports import RelationReport, StatementReport
from zorder_pipeline.relayout.snapshot import open_table

LATE = "c LIKE '%late%'"


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Planes and flights with statistics, four files of ten rows each; Parquet; two views; an earlier version."""
    folder = tmp_path_factory.mktemp("explaining")
    places = {name: str(folder / name) for name in ("planes", "flights", "parquet", "state", "target")}
    rows = "SELECT id, id % 10 a, CASE WHEN id {late} THEN concat(id, ' late') ELSE 'no' END c FROM range(40)"
    for name, late in (("planes", "BETWEEN 10 AND 29"), ("flights", "> 29")):
        frame = spark.sql(rows.format(late=late)).repartitionByRange(4, "id")
        frame.write.format("delta").save(places[name])
        gathered(spark, places[name], places["state"], LATE)
    spark.sql(f"DELETE FROM delta.`{places['planes']}` WHERE id < 10")  # a file less, and a version more
    spark.range(40).write.parquet(places["parquet"])
    spark.range(0).selectExpr("id", "id a", "'' c").write.format("delta").save(places["target"])
    spark.sql(f"CREATE OR REPLACE TEMP VIEW late_planes AS SELECT * FROM delta.`{places['planes']}` WHERE {LATE}")
    spark.table("late_planes")._jdf.toJSON().createOrReplaceTempView("typed_in_scala")
    yield places
    spark.catalog.dropTempView("late_planes")
    spark.catalog.dropTempView("typed_in_scala")


def _read(found: DataFrame) -> list[tuple[str, int]]:
    """Folder of each scan that a query's plan has, and how many files it reads."""
    plan = found._jdf.queryExecution().optimizedPlan()
    every = [leaf for one in [plan, *items(plan.subqueriesAll())] for leaf in items(one.collectLeaves())]
    indexes = [leaf.relation().location() for leaf in every if class_name(leaf) == "LogicalRelation"]
    roots = [str(index.rootPaths().apply(0).getName()) for index in indexes]
    return sorted((root, len(index.inputFiles())) for root, index in zip(roots, indexes, strict=True))


def _told(report: StatementReport) -> list[tuple[str, int | None]]:
    return sorted((Path(each.table).name, each.files_read) for each in report.relations)


CASES = [  # statement; files of each relation: read, and read by Delta alone
    ("SELECT p.id FROM {planes} p JOIN {flights} f ON p.a = f.a WHERE p.{late} AND f.id > 15", [(2, 3), (3, 3)]),
    ("SELECT p.id FROM {planes} p JOIN {planes} q ON p.id = q.id + 1 WHERE p.{late} AND q.id > 35", [(2, 3), (1, 1)]),
    ("SELECT id FROM late_planes WHERE a < 3", [(2, 3)]),
    ("WITH q AS (SELECT * FROM {flights} WHERE {late}) SELECT count(*) FROM q", [(1, 4)]),
    ("SELECT id FROM {flights} WHERE id IN (SELECT id FROM {planes} WHERE {late}) AND id > 5", [(4, 4), (2, 3)]),
    ("SELECT id, (SELECT max(id) FROM {flights} WHERE {late}) m FROM {planes} WHERE {late}", [(2, 3), (1, 4)]),
    ("SELECT count(*) FROM {planes} VERSION AS OF 0 WHERE {late} OR id = 5", [(3, 4)]),
    ("SELECT f.id FROM {flights} f JOIN parquet.`{parquet}` g ON f.id = g.id WHERE f.{late}", [(1, 4)]),
    pytest.param(
        "SELECT id FROM {planes} WHERE {late} UNION ALL SELECT id FROM {flights} WHERE id = 3",
        [(2, 3), (1, 1)],
        marks=pytest.mark.matrix,
    ),
    pytest.param("FROM {flights} |> WHERE {late} |> SELECT id", [(1, 4)], marks=pytest.mark.matrix),
]


def _statement(tables: dict[str, str], text: str) -> str:
    named = {name: f"delta.`{tables[name]}`" for name in ("planes", "flights", "target")}
    return text.format(**named, parquet=tables["parquet"], late=LATE)


@pytest.mark.parametrize(("text", "files"), CASES)
def test_what_is_told_is_what_sql_reads(
    spark: SparkSession, tables: dict[str, str], text: str, files: Sequence[tuple[int, int]]
) -> None:
    statement = _statement(tables, text)
    report = zorder_pipeline.explain_sql(spark, statement, state=tables["state"])
    found = zorder_pipeline.sql(spark, statement, state=tables["state"])
    assert report.left_to_spark is None
    assert _told(report) == [read for read in _read(found) if read[0] != "parquet"]
    assert [(each.files_read, each.delta_files_read) for each in report.relations] == list(files)
    assert rows_of(found) == rows_of(spark.sql(statement))
    for each in report.relations:
        assert (each.left_to_delta is None) == (each.files_read < each.delta_files_read)  # type: ignore[operator]
        assert sum(item.files for item in each.excluded) == each.files - each.files_read  # type: ignore[operator]
        assert each.rows_read == 10 * each.files_read  # type: ignore[operator]


def test_a_common_table_expression_that_is_read_twice_is_one_relation(
    spark: SparkSession, tables: dict[str, str]
) -> None:
    statement = _statement(tables, "WITH q AS (SELECT *, rank() OVER (ORDER BY c) n FROM {flights} WHERE {late}) ")
    statement += "SELECT a.id FROM q a JOIN q b ON a.id = b.id + 1"
    (told,) = zorder_pipeline.explain_sql(spark, statement, state=tables["state"]).relations
    read = _read(zorder_pipeline.sql(spark, statement, state=tables["state"]))
    assert {files for _, files in read} == {told.files_read}


LEFT = [
    ("SELECT id FROM {planes} WHERE {late} AND rand(3) < 0.5", "Spark calls its result non-deterministic, ", 1),
    ("SELECT id FROM {planes} WHERE c = current_user()", "it asks for the current user, catalog or schema", 1),
    ("SELECT g.id FROM parquet.`{parquet}` g WHERE g.id > 3", "it reads no Delta table", 0),
    ("SELECT TRANSFORM(id) USING 'wc -l' FROM {planes} WHERE {late}", "its result depends on how rows lie in files", 1),
    ("SELECT value FROM typed_in_scala", "its result depends on how rows lie in files (MapPartitions)", 1),
]


@pytest.mark.parametrize(("text", "why", "relations"), LEFT)
def test_why_a_statement_is_left_to_spark(
    spark: SparkSession, tables: dict[str, str], text: str, why: str, relations: int
) -> None:
    statement = _statement(tables, text)
    report = zorder_pipeline.explain_sql(spark, statement, state=tables["state"])
    assert report.left_to_spark is not None
    assert report.left_to_spark.startswith(why)
    assert str(report).startswith(f"left to Spark: {why}")
    assert [(each.files, each.files_read, each.asked, each.excluded) for each in report.relations] == [
        (3, None, None, ())
    ] * relations
    assert {each.left_to_delta for each in report.relations} <= {"the whole statement is left to Spark"}
    plain = spark.sql(statement)
    found = zorder_pipeline.sql(spark, statement, state=tables["state"])
    assert (
        found._jdf.queryExecution()
        .analyzed()
        .canonicalized()
        .equals(plain._jdf.queryExecution().analyzed().canonicalized())
    )


COMMANDS = [
    ("INSERT INTO {target} SELECT id, a, c FROM {planes} WHERE {late}", "it is no query but a command", 20),
    pytest.param(
        "WITH q AS (SELECT 1 x) INSERT INTO {target} SELECT id, a, c FROM {planes}, q WHERE {late}",
        *("it is no query but a command", 20),
        marks=pytest.mark.matrix,
    ),
    ("BEGIN INSERT INTO {target} SELECT id, a, c FROM {planes} WHERE {late}; END", "it is a script", 20),
    (
        "EXECUTE IMMEDIATE 'INSERT INTO {target} SELECT id, a, c FROM {planes} WHERE a = 1'",
        "it is an EXECUTE IMMEDIATE, whose statement is known when it is executed",
        3,
    ),
    pytest.param(
        "MERGE INTO {target} t USING (SELECT * FROM {planes} WHERE {late}) p ON false WHEN NOT MATCHED THEN INSERT *",
        *("it is no query but a command", 20),
        marks=pytest.mark.matrix,
    ),
    ("EXPLAIN SELECT * FROM {planes} WHERE {late}", "it is no query but a command", 0),
]


@pytest.mark.parametrize(("text", "why", "rows"), COMMANDS)
def test_commands_are_executed_once_by_sql_and_never_to_be_explained(
    spark: SparkSession, tables: dict[str, str], text: str, why: str, rows: int
) -> None:
    statement, target = _statement(tables, text), tables["target"]
    before = open_table(spark, target).version
    report = zorder_pipeline.explain_sql(spark, statement, state=tables["state"])
    assert report.relations == ()
    assert str(report.left_to_spark).startswith(why)
    assert open_table(spark, target).version == before
    rows_before = spark.read.format("delta").load(target).count()
    zorder_pipeline.sql(spark, statement, state=tables["state"])
    assert open_table(spark, target).version - before == (1 if rows else 0)
    assert spark.read.format("delta").load(target).count() - rows_before == rows


def test_why_nothing_is_chosen_of_one_relation(
    spark: SparkSession, tables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    statement = (
        "SELECT p.id FROM {planes} p JOIN {flights} f ON p.id = f.id WHERE f.{late} AND p._metadata.file_size > 1"
    )
    report = zorder_pipeline.explain_sql(spark, _statement(tables, statement), state=tables["state"])
    planes, flights = report.relations
    assert (planes.files_read, planes.left_to_delta) == (None, "its query asks for _metadata of its files")
    assert (flights.files_read, flights.left_to_delta) == (1, None)
    assert f"{planes.table} at version 1: 3 files, 30 rows\n  left to Delta: its query asks for" in str(report)
    assert "  3 files excluded by the truth of the predicate c LIKE '%late%'\n  asked: " in str(report)
    only = _statement(tables, "SELECT id FROM {planes} WHERE id > 25")
    (planes,) = zorder_pipeline.explain_sql(spark, only).relations
    assert (planes.files_read, planes.left_to_delta) == (2, choosing.NO_FEWER)
    with monkeypatch.context() as patched:
        patched.setattr(choosing, "reads_otherwise", lambda _: True)
        (planes,) = zorder_pipeline.explain_sql(spark, only).relations
    assert (planes.files_read, planes.left_to_delta) == (None, choosing.UNUSUAL)

    def broken(*_: object, **__: object) -> None:
        raise OverflowError("date value out of range")

    monkeypatch.setattr(choosing, "analysed", broken)
    report = zorder_pipeline.explain_sql(spark, only)
    assert report.left_to_spark == "reading it failed (OverflowError)"
    assert [each.files for each in report.relations] == [3]


def test_a_report_is_frozen_and_has_a_form_in_json(spark: SparkSession, tables: dict[str, str]) -> None:
    statement = _statement(tables, "SELECT id FROM {flights} WHERE {late}")
    report = zorder_pipeline.explain_sql(spark, statement, state=tables["state"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.left_to_spark = "no"  # type: ignore[misc]
    told = json.loads(json.dumps(report.to_json()))
    (relation,) = told["relations"]
    assert relation.keys() == {field.name for field in dataclasses.fields(RelationReport)}
    assert relation["excluded"] == [{"kind": "predicate", "name": LATE, "files": 3}]
    assert (relation["bytes_read"] < relation["bytes"], told["left_to_spark"]) == (True, None)
    with pytest.raises(AnalysisException):
        zorder_pipeline.explain_sql(spark, "SELECT nothing FROM nowhere", state=tables["state"])


def test_a_scan_is_explained_at_its_version(spark: SparkSession, tables: dict[str, str]) -> None:
    path, state = tables["planes"], tables["state"]
    for version, files in ((0, 4), (None, 3)):
        told = zorder_pipeline.explain(spark, path, f"{LATE} OR id = 5", state=state, version=version)
        scanned = zorder_pipeline.scan(spark, path, f"{LATE} OR id = 5", state=state, version=version)
        assert (told.files, told.version) == (files, 1 if version is None else version)
        assert told.files_read == len(scanned.inputFiles()) == files - 1
        assert told.to_json()["excluded"] == [dataclasses.asdict(item) for item in told.excluded]
    for wrong, sentence in ((9, "has no version 9; the newest is 1"), (-1, "give a whole number from 0 on")):
        with pytest.raises(TableError, match=sentence):
            zorder_pipeline.explain(spark, path, "id = 1", version=wrong)


def test_an_explained_scan_tells_the_files_that_the_scan_reads(spark: SparkSession, tables: dict[str, str]) -> None:
    """By another table in a subquery all were told to be read, and few where `_metadata` leaves them to Delta."""
    path, state = tables["planes"], tables["state"]
    both = f"{LATE} AND id IN (SELECT id FROM delta.`{tables['flights']}`)"
    for condition in (both, f"{LATE} AND _metadata.file_size > 0", f"{LATE} AND id >= 0"):
        told = zorder_pipeline.explain(spark, path, condition, state=state)
        scanned = zorder_pipeline.scan(spark, path, condition, state=state)
        files = [name for name in scanned.inputFiles() if "/planes/" in name]
        assert told.table.endswith("planes")
        if told.files_read is None:
            assert "_metadata" in (told.left_to_delta or "")
            assert "left to Delta" in str(told)
        else:
            assert told.files_read == len(files) < told.files
    by_chance = zorder_pipeline.explain(spark, path, "rand() < 2 AND id = 5", state=state)
    assert (by_chance.files_read, by_chance.files) == (None, 3)
    assert by_chance.left_to_delta


def test_the_command_tells_the_same(
    spark: SparkSession,
    tables: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state, planes = ("--state", tables["state"]), ("--table", tables["planes"])
    statement = _statement(tables, "SELECT id FROM {flights} WHERE id IN (SELECT id FROM {planes} WHERE {late})")
    query = tmp_path / "q.sql"
    query.write_text(f"-- what is late\n{statement};\n")
    expected = zorder_pipeline.explain_sql(spark, statement, state=tables["state"])
    for words in (("--sql", statement), ("--file", str(query))):
        code, told, _ = zorder(capsys, monkeypatch, "explain", *words, *state, "--json")
        assert (code, told) == (0, expected.to_json())
    code, told, _ = zorder(capsys, monkeypatch, "explain", *planes, "--where", LATE, "--version", "0", *state, "--json")
    (relation,) = told["relations"]
    assert (code, relation["version"], relation["files_read"], relation["files"]) == (0, 0, 2, 4)
    code, told, _ = zorder(capsys, monkeypatch, "explain", "--sql", f"EXPLAIN {statement}", "--json")
    assert (code, told) == (0, {"relations": [], "left_to_spark": "it is no query but a command"})
    for words, sentence in (
        (("--sql", "SELECT ("), "zorder: Spark does not understand --sql: [PARSE_SYNTAX_ERROR]"),
        (("--sql", "SELECT 1 FROM nowhere"), "is written as delta.`/its/folder`"),
        ((*planes, "--where", "nothing = 1"), "zorder: Spark does not understand --where 'nothing = 1': [UNRESOLVED_C"),
        ((*planes, "--version", "7"), f"zorder: table {tables['planes']} has no version 7; the newest is 1"),
        (("--table", "/no/such/table"), "zorder: /no/such/table is no Delta table"),
    ):
        code, _, told_on_stderr = zorder(capsys, monkeypatch, "explain", *words)
        assert code == 1
        assert sentence in told_on_stderr.strip().splitlines()[-1]
