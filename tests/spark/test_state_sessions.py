"""The state under settings of the session that writes it: they are for the session's own tables and commits."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrameWriter, SparkSession

from tests.spark.gathering import gathered
from zorder_pipeline import pipeline
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.pipeline.rewriting import calibration
from zorder_pipeline.query_log.intake.store import LogStore
from zorder_pipeline.query_log.statements.catalog import Catalog
from zorder_pipeline.reading.file_stats import FileStats
from zorder_pipeline.relayout.snapshot import open_table
from zorder_pipeline.state.approvals import Approvals
from zorder_pipeline.state.ledger import Ledger
from zorder_pipeline.state.memory import Memories
from zorder_pipeline.state.state_table import StateTable

CATALOG = Catalog({"t": "t"}, {})
DONE = {"files_removed": 1, "files_added": 1, "bytes_rewritten": 10, "rows": 5, "seconds": 1.0}
PLAN = Plan("/t", "id", "hash", 0, None, "kept", 10)
APP, VERSION = (f"spark.databricks.delta.write.{name}" for name in ("txnAppId", "txnVersion"))
ONCE = {APP: "etl", VERSION: "42"}
"""How a job says that what it writes counts once."""
THEIRS = ONCE | {f"{VERSION}.autoReset.enabled": "true"}
"""The same, where Delta forgets the number after a write."""
DEFAULTS = "spark.databricks.delta.properties.defaults."
MOMENT = 1_700_000_000_123_456
"""Microseconds since 1970 UTC."""


def session(spark: SparkSession, conf: Mapping[str, str]) -> SparkSession:
    """One with settings of its own."""
    found = spark.newSession()
    for name, value in conf.items():
        found.conf.set(name, value)
    return found


def ingest(spark: SparkSession, state: str, *asked: str) -> None:
    """Add a log of a query of each user, and of a line of theirs that is none."""
    log = Path(state).parent / f"{'-'.join(asked)}.jsonl"
    texts = [("SELECT a FROM t WHERE a = 1", "query"), ("SELECT FROM WHERE (", "line")]
    lines = [{"user": user, "statement": text} for user in asked for text, _ in texts]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    LogStore(spark, state).ingest(str(log), CATALOG)


def users(spark: SparkSession, state: str) -> set[str | None]:
    return {query.user for query in LogStore(spark, state).load().queries}


@pytest.mark.matrix
def test_writes_of_the_state_are_none_of_the_session_s_own(spark: SparkSession, tmp_path: Path) -> None:
    """Delta took each of them but the first for one that the session had made already."""
    state = str(tmp_path / "state")
    etl = session(spark, ONCE)
    for user in ("ann", "bob"):
        ingest(etl, state, user)
    assert users(etl, state) == {"ann", "bob"}
    assert etl.read.format("delta").load(f"{state}/quarantine").count() == 2
    ledger, memories = Ledger(etl, state), Memories(etl, state)
    ledger.record(PLAN, "layout", 1, DONE, {})
    (entry,) = ledger.entries()
    ledger.measured(entry, {"queries": 3})
    ledger.ended(entry, MOMENT)
    assert [(one.measured_queries, one.ended_at) for one in ledger.entries()] == [(3, MOMENT)]
    for night in (1, 2):
        memories.note("id", {"night": night})
    assert memories.newest("id") == {"night": 2}
    gone = pipeline.purge(etl, state, 90, "bob")
    assert (gone["query_log"], gone["quarantine"]) == (1, 1)
    assert users(etl, state) == {"ann"}
    assert {name: etl.conf.get(name) for name in ONCE} == ONCE
    logs = [text for log in Path(state).glob("*/_delta_log/*.json") for text in log.read_text().splitlines()]
    assert "etl" not in {json.loads(line).get("txn", {}).get("appId") for line in logs}


@pytest.mark.matrix
def test_statistics_and_copies_are_none_either(spark: SparkSession, tmp_path: Path) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    spark.range(40).selectExpr("id", "concat('c', id) c").repartition(2).write.format("delta").save(path)
    etl = session(spark, THEIRS)
    for condition in ("c LIKE '%1%'", "c LIKE '%2%'"):
        gathered(etl, path, state, condition)
    known = FileStats(spark, state).load(open_table(spark, path).table_id, fresh=True)
    assert {name for name in known.rows["feature"].to_pylist() if "%" in name} == {"c LIKE '%1%'", "c LIKE '%2%'"}
    assert FileStats(etl, state).purge() == 4
    assert FileStats(etl, state).load(open_table(spark, path).table_id, fresh=True).rows.num_rows == 0
    calibration._copy(open_table(etl, path), f"{state}/copy", 1e9, lambda _: None)
    assert {name: etl.conf.get(name) for name in THEIRS} == THEIRS


def test_a_session_with_half_of_such_settings_writes_the_state_too(spark: SparkSession, tmp_path: Path) -> None:
    """What is left of them after a write, where Delta forgets the number."""
    etl = session(spark, {APP: "etl"})
    ingest(etl, str(tmp_path / "state"), "ann")
    Memories(etl, str(tmp_path / "state")).note("id", {})
    assert users(etl, str(tmp_path / "state")) == {"ann"}
    assert etl.conf.get(APP) == "etl"


def test_while_a_log_is_written_the_session_s_other_threads_keep_their_settings(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recording writes every few minutes, beside the work of its session."""
    etl, seen = session(spark, THEIRS), list[dict[str, str | None]]()
    save: Callable[..., None] = DataFrameWriter.save

    def spied(*args: Any, **options: Any) -> None:
        seen.append({name: etl.conf.get(name, None) for name in THEIRS})
        save(*args, **options)

    monkeypatch.setattr(DataFrameWriter, "save", spied)
    ingest(etl, str(tmp_path / "state"), "ann")
    assert seen == [THEIRS] * 3


@pytest.mark.matrix
def test_instants_are_those_of_the_world_in_sessions_whose_timestamps_have_no_zone(
    spark: SparkSession, tmp_path: Path
) -> None:
    state, ntz = str(tmp_path), session(spark, {"spark.sql.timestampType": "TIMESTAMP_NTZ"})
    ntz.conf.set("spark.sql.session.timeZone", "America/New_York")
    when = datetime.fromtimestamp(MOMENT / 1e6, UTC)
    Ledger(spark, state).record(PLAN, "layout", 0, DONE, {}, committed=when)  # the other table is made by the other
    ledger, approvals = Ledger(ntz, state), Approvals(ntz, state)
    ledger.record(PLAN, "layout", 1, DONE, {}, committed=when)
    for entry in ledger.entries():
        ledger.ended(entry, MOMENT)
    approvals.ask("t", PLAN, (), 1)
    approvals.settle(approvals.all()[0], "rejected")
    for reader in (spark, ntz):
        found = Ledger(reader, state).entries()
        assert [(one.version, one.committed_at, one.ended_at) for one in found] == [(i, MOMENT, MOMENT) for i in (0, 1)]
        (request,) = Approvals(reader, state).all()
        assert request.status == "rejected"
        assert abs(request.asked_at / 1e6 - datetime.now(UTC).timestamp()) < 600
    for name in ("relayouts", "approvals"):
        kinds = dict(spark.read.format("delta").load(f"{state}/{name}").dtypes)
        assert {kind for kind in kinds.values() if kind.startswith("timestamp")} == {"timestamp"}


def test_a_state_whose_instants_lost_their_zone_gets_it_back(spark: SparkSession, tmp_path: Path) -> None:
    """Such sessions made tables of UTC's clock, without a zone, of which all others read another moment."""
    state, columns = str(tmp_path), ("schema_version INT", "name STRING", "at TIMESTAMP", "day DATE")
    zoned = session(spark, {"spark.sql.session.timeZone": "America/New_York"})
    zoned.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    rows = spark.sql("SELECT 1 AS schema_version, 'a' AS name, TIMESTAMP_NTZ '2026-03-08 02:30:00.123456' AS at")
    rows = rows.selectExpr("*", "DATE '2026-03-08' AS day")
    rows.write.format("delta").partitionBy("day").save(f"{state}/notes")
    table = StateTable(zoned, state, "notes", (*columns, "more INT"), 2, "day")

    def told() -> list[tuple[str, str]]:
        found = table.read().selectExpr("name", "unix_micros(at) AS at").orderBy("name").collect()
        return [(row["name"], datetime.fromtimestamp(row["at"] / 1e6, UTC).isoformat()) for row in found]

    first, second = ("a", "2026-03-08T02:30:00.123456+00:00"), ("b", "2026-03-09T02:30:00+00:00")
    assert told() == [first]
    table.append([{"schema_version": 2, "name": "b", "at": "2026-03-09T02:30:00+00:00", "day": "2026-03-09"}])
    assert told() == [first, second]
    table.update({"name": "a"}, {"at": datetime(2026, 3, 10, tzinfo=UTC)})
    assert told() == [("a", "2026-03-10T00:00:00+00:00"), second]
    assert spark.sql(f"DESCRIBE DETAIL delta.`{table.path}`").collect()[0]["partitionColumns"] == ["day"]


@pytest.mark.matrix
def test_a_state_is_made_as_it_has_to_be_whatever_new_tables_are_by_default(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    spark.range(40).selectExpr("id", "concat('c', id) c").repartition(2).write.format("delta").save(path)
    bad = {"appendOnly": "true", "enableDeletionVectors": "true", "enableChangeDataFeed": "true"}
    bad |= {"columnMapping.mode": "name", "checkpointPolicy": "v2", "feature.vacuumProtocolCheck": "supported"}
    bad |= {"dataSkippingStatsColumns": "id"}
    defaults = {f"{DEFAULTS}{name}": value for name, value in bad.items()}
    defaults |= {f"{DEFAULTS}logRetentionDuration": "interval 3 days"}
    audited = session(spark, defaults)
    ingest(audited, state, "ann", "bob")
    gathered(audited, path, state, "c LIKE '%1%'")
    memories, ledger = Memories(audited, state), Ledger(audited, state)
    for day in ("2020-01-01", "2026-01-01"):
        memories.table.append([{"table_id": "id", "noted_date": day, "memory": "{}"}])
    assert memories.forget() == 1
    ledger.record(PLAN, "layout", 1, DONE, {})
    ledger.ended(ledger.entries()[0], MOMENT)
    assert ledger.entries()[0].ended_at == MOMENT
    for place in Path(state).glob("*/_delta_log"):
        found = spark.sql(f"DESCRIBE DETAIL delta.`{place.parent}`").collect()[0]
        assert [name for name, value in bad.items() if found["properties"].get(f"delta.{name}") == value] == []
        assert found["properties"]["delta.logRetentionDuration"] == "interval 3 days"
        assert (found["minReaderVersion"], found["minWriterVersion"]) == (1, 2)
    assert pipeline.purge(audited, state, 90, "bob")["file_stats"] == 2
    for name in ("query_log", "quarantine"):
        files = spark.read.format("delta").load(f"{state}/{name}").inputFiles()  # all that VACUUM leaves
        assert {row["user"] for row in spark.read.parquet(*files).collect()} == {"ann"}
    calibration._copy(open_table(audited, path), f"{state}/copy", 1e9, lambda _: None)
    audited.sql(f"DELETE FROM delta.`{state}/copy`")
    assert {name: audited.conf.get(name) for name in defaults} == defaults
