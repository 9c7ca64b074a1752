"""The way of a team without logs: record, then keep statistics, learn and evaluate by what the state holds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import zorder_pipeline
from tests.spark.test_command_line import zorder
from zorder_pipeline import pipeline
from zorder_pipeline.errors import NothingToLearnError, TableError
from zorder_pipeline.model.plan import read_plan
from zorder_pipeline.pipeline import LearnSettings, stored_log
from zorder_pipeline.pipeline.table_log import table_log
from zorder_pipeline.relayout.snapshot import open_table

FEW = LearnSettings(trials=10, confirm=False)
FILES = 8


@pytest.fixture
def run(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A command's exit code, its JSON object and its stderr, with no configuration at hand unless a test names one."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.delenv("ZORDER_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    return lambda *words: zorder(capsys, monkeypatch, *words)


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Rows whose few late ones lie in one file, and whose parts lie in all."""
    path = str(tmp_path_factory.mktemp("lake") / "flights")
    rows = spark.range(8_000).selectExpr("id", "pmod(xxhash64(id), 1000) AS part", "IF(id < 50, 'late', 'x') AS c")
    written = rows.repartitionByRange(FILES, "id").write.format("delta")
    written.option("delta.enableDeletionVectors", "false").save(path)
    return path


def logged(place: Path, count: int, seconds: int = 3_600) -> str:
    """A log of look-ups, one every so many seconds."""
    lines = (
        {"statement": f"SELECT * FROM flights WHERE part = {i} AND wing = 1", "timestamp": 1_767_225_600 + seconds * i}
        for i in range(count)
    )
    place.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(place)


def test_from_a_recording_to_statistics_scans_and_a_plan(
    spark: SparkSession, table: str, tmp_path: Path, run: Any
) -> None:
    state, plan = str(tmp_path / "state"), str(tmp_path / "plan.json")
    with zorder_pipeline.record(spark, state=state, spool=str(tmp_path / "spool"), every=None):
        rows = spark.read.format("delta").load(table)
        for i in range(4):
            rows.where(f"c LIKE '%ate%' AND part >= {i}").collect()
    late = "c LIKE '%ate%'"
    assert len(zorder_pipeline.scan(spark, table, late, state=state).inputFiles()) == FILES
    where = ("--table", table, "--state", state, "--json")
    code, kept, said = run("stats", *where)
    assert (code, kept["files"]) == (0, FILES), said
    assert len(zorder_pipeline.scan(spark, table, late, state=state).inputFiles()) == 1
    assert zorder_pipeline.scan(spark, table, late, state=state).count() == 50
    code, again, _ = run("stats", *where)
    assert (code, again["files"], again["features"]) == (0, 0, kept["features"])

    code, _, said = run("learn", *where, "--trials", "20", "--no-confirm", "--out", plan)
    assert code == 0, said
    assert "read 4 statements, 4 of them scan the table" in said
    assert read_plan(plan).log_watermark == max(query.timestamp or 0 for query in stored_log(spark, state).queries)

    code, read, _ = run("evaluate", *where)
    assert (code, read["queries"], read["promises"]) == (0, 4, [])


def test_what_log_and_state_both_hold_counts_once(
    spark: SparkSession, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the state has read it without the table's columns, of which one is none of its."""
    log, state = logged(tmp_path / "q.jsonl", 12), str(tmp_path / "state")
    pipeline.ingest_into(spark, state, [log])
    logged(tmp_path / "q.jsonl", 15)
    with zorder_pipeline.record(spark, state=state, tables={"mine": table}, spool=str(tmp_path / "s"), every=None):
        spark.read.format("delta").load(table).where("part = 7").collect()
    snapshot, said = open_table(spark, table), list[str]()
    assert len(table_log(spark, table, snapshot, state=state).queries) == 13
    monkeypatch.chdir(tmp_path)
    assert len(table_log(spark, table, snapshot, ["q.jsonl"], state=state).queries) == 16
    pipeline.learn(spark, table, [log], state=state, settings=FEW, progress=said.append)
    assert said[0] == "read 16 statements, 16 of them scan the table"


@pytest.mark.matrix
def test_stored_queries_count_as_far_back_as_nights_of_the_state_take_them(
    spark: SparkSession, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Any
) -> None:
    """And under the name of the configuration, what was asked of another table of the folder's name left out."""
    log, state = logged(tmp_path / "q.jsonl", 20, seconds=86_400), str(tmp_path / "state")
    named = f"{{name: air, location: {table}, aliases: [flights]}}"
    other = tmp_path / "other" / "flights"
    spark.range(3).selectExpr("id AS part").write.format("delta").save(str(other))
    (tmp_path / "tables.yaml").write_text(
        f"state: state\nretention_days: 5\nquery_logs: [{{path: {log}}}]\n"
        f"tables: [{named}, {{name: flights_too, location: {other}}}]\n"
    )
    monkeypatch.setenv("ZORDER_CONFIG", str(tmp_path / "tables.yaml"))
    code, _, said = run("ingest", "--log", log, "--state", state, "--json")
    assert code == 0, said
    code, read, said = run("evaluate", "--table", table, "--state", state, "--json")
    assert (code, read["queries"]) == (0, 6), said
    assert len(table_log(spark, table, open_table(spark, table), state=state).queries) == 20
    code, _, said = run("evaluate", "--table", str(other), "--state", state)
    assert code == 1
    assert re.search(r"state holds 20 queries, of air \(20\); if one of these is it, name it with --alias; ", said)


@pytest.mark.matrix
def test_a_state_that_tells_nothing_of_the_table_says_what_to_do(
    spark: SparkSession, table: str, tmp_path: Path, run: Any
) -> None:
    empty, other = str(tmp_path / "empty"), str(tmp_path / "other state")
    (tmp_path / "empty").mkdir()
    log = tmp_path / "q.jsonl"
    log.write_text(json.dumps({"statement": "SELECT * FROM elsewhere WHERE id > 1", "timestamp": 1_767_225_600}) + "\n")
    pipeline.ingest_into(spark, other, [str(log)])
    ways = "record what is asked with zorder_pipeline.record, add a log with zorder ingest --log … --state {}, or name "
    for state, why in ((empty, "holds no query"), (other, r"holds 1 query, of elsewhere \(1\); if one .* --alias")):
        way = re.escape(ways.format(f"'{state}'" if " " in state else state))
        words = ("evaluate",) if state == other else ("learn", "--out", str(tmp_path / "p.json"))
        code, _, said = run(*words, "--table", table, "--state", state)
        assert code == 1
        wanted = f"zorder: nothing is known of what is asked of file:{table}: {state} {why}; {way}one with --log"
        assert re.fullmatch(wanted, said.strip().splitlines()[-1])
        code, _, said = run("stats", "--table", table, "--state", state)
        assert code == 1
        wanted = f"zorder: there are no statistics of .*: {state} {why}; {way}one with --log, or a plan with --plan"
        assert re.fullmatch(wanted, said.strip().splitlines()[-1])
    assert pipeline.evaluate(spark, table, state=other, aliases=["elsewhere"], count_matches=False).queries == 1
    with pytest.raises(TableError, match="of all that the state's 1 query of it filter by, Delta keeps them"):
        pipeline.update_statistics(spark, table, other, aliases=["elsewhere"])


@pytest.mark.matrix
def test_queries_that_are_older_than_the_retention_are_told(spark: SparkSession, table: str, tmp_path: Path) -> None:
    state, log = str(tmp_path / "state"), tmp_path / "q.jsonl"
    lines = [("flights", 1_767_225_600), ("elsewhere", 1_767_225_600 + 40 * 86_400)]
    asked = [{"statement": f"SELECT * FROM {name} WHERE part = 1", "timestamp": time} for name, time in lines]
    log.write_text("".join(json.dumps(line) + "\n" for line in asked))
    pipeline.ingest_into(spark, state, [str(log)])
    with pytest.raises(NothingToLearnError, match=r"the 1 query of it in .* came more than 30 days \(retention_days\)"):
        pipeline.learn(spark, table, state=state, days=30, settings=FEW)
    assert pipeline.evaluate(spark, table, state=state, days=50, count_matches=False).queries == 1
