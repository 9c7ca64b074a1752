"""Tables of the state: what a later version wrote, two writers at once, and how little is fetched of them."""

from __future__ import annotations

import json
import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from zorder_pipeline.errors import ZorderError
from zorder_pipeline.java import beside
from zorder_pipeline.model.plan import Plan, Promise
from zorder_pipeline.query_log.intake import log_tables
from zorder_pipeline.query_log.intake import store as stores
from zorder_pipeline.query_log.intake.store import LogStore
from zorder_pipeline.query_log.statements.catalog import Catalog
from zorder_pipeline.state import state_table
from zorder_pipeline.state.ledger import Ledger
from zorder_pipeline.state.memory import Memories
from zorder_pipeline.state.state_table import StateTable

CATALOG = Catalog({"t": "t"}, {})
DONE = ("files_removed", "files_added", "bytes_rewritten", "rows", "seconds")
COLUMNS = ("schema_version INT", "name STRING", "day DATE")


def log(folder: Path, name: str) -> str:
    (folder / name).write_text('{"statement": "SELECT a FROM t WHERE a = 1"}\n')
    return str(folder / name)


@pytest.mark.slow
def test_a_log_that_a_later_version_wrote_is_not_touched(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = str(tmp_path / "state")
    with monkeypatch.context() as later:
        for module in (stores, log_tables):
            later.setattr(module, "SCHEMA_VERSION", 2)
        LogStore(spark, state).ingest(log(tmp_path, "a.jsonl"), CATALOG)
    told = r"was written by a newer version of zorder \(schema 2, this one knows 1\)"
    for use in (lambda: LogStore(spark, state).load(), lambda: LogStore(spark, state).purge(90)):
        with pytest.raises(ZorderError, match=told):
            use()
    with pytest.raises(ZorderError, match="newer version of zorder"):
        LogStore(spark, state).ingest(log(tmp_path, "b.jsonl"), CATALOG)
    assert DeltaTable.forPath(spark, f"{state}/query_log").toDF().count() == 1


@pytest.mark.slow
def test_a_log_from_before_versions_were_noted_is_read_and_added_to(spark: SparkSession, tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    LogStore(spark, state).ingest(log(tmp_path, "a.jsonl"), CATALOG)
    files = spark.read.format("delta").load(f"{state}/log_files").drop("schema_version")
    files.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(f"{state}/log_files")
    assert len(LogStore(spark, state).load().queries) == 1
    LogStore(spark, state).ingest(log(tmp_path, "b.jsonl"), CATALOG)
    assert len(LogStore(spark, state).load().queries) == 2


def at_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, *acts: Any) -> list[BaseException | None]:
    """What becomes of several writers that have all seen that there is no table yet."""
    seen = threading.Barrier(len(acts), timeout=60)
    exists, met = state_table.is_delta_table, threading.local()

    def look(*args: Any) -> bool:
        found = exists(*args)
        if not found and not getattr(met, "once", False):
            met.once = True
            seen.wait()
        return found

    for module in (state_table, log_tables):
        monkeypatch.setattr(module, "is_delta_table", look)
    with ThreadPoolExecutor(len(acts)) as pool:
        return [done.exception() for done in [pool.submit(beside(spark, act)) for act in acts]]


@pytest.mark.slow
def test_two_that_make_a_table_at_once_both_add_their_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def adding(name: str) -> Any:
        table = StateTable(spark, str(tmp_path), "notes", COLUMNS, 1, "day")
        return lambda: table.append([{"schema_version": 1, "name": name, "day": "2026-11-28"}])

    assert at_once(spark, monkeypatch, adding("a"), adding("b")) == [None, None]
    rows = StateTable(spark, str(tmp_path), "notes", COLUMNS, 1, "day").read().collect()
    assert sorted(row["name"] for row in rows) == ["a", "b"]


@pytest.mark.slow
def test_two_first_ingestions_at_once_double_nothing_as_the_later_one_looks_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, place = str(tmp_path / "state"), log(tmp_path, "a.jsonl")
    assert at_once(spark, monkeypatch, *[lambda: LogStore(spark, state).ingest(place, CATALOG)] * 2) == [None, None]
    assert len(LogStore(spark, state).load().queries) == 1


def test_notes_leave_no_transactions_behind(spark: SparkSession, tmp_path: Path) -> None:
    """Each would stay in the table's log for ever, under a name that never comes again."""
    memories = Memories(spark, str(tmp_path))
    for number in range(2):
        memories.note("t", {"night": number})
    assert memories.newest("t") == {"night": 1}
    commits = sorted((tmp_path / "drift" / "_delta_log").glob("*.json"))
    assert len(commits) == 2
    assert not any('"txn"' in commit.read_text() for commit in commits)


def test_notes_that_newer_ones_have_long_replaced_go_a_month_at_once(spark: SparkSession, tmp_path: Path) -> None:
    memories, today = Memories(spark, str(tmp_path)), datetime.now(UTC).date()
    assert memories.forget() == 0

    def note(table: str, *ages: int) -> None:
        for age in ages:
            day = (today - timedelta(days=age)).isoformat()
            row = {"schema_version": 1, "table_id": table, "noted_at": f"{day}T01:00:00Z", "noted_date": day}
            memories.table.append([row | {"memory": json.dumps({"age": age})}])

    def ages() -> set[tuple[str, int]]:
        rows = memories.table.read().collect()
        return {(row["table_id"], json.loads(row["memory"])["age"]) for row in rows}

    note("a", 59, 45, 29, 0)
    note("it's dropped", 400, 90)
    before = ages()
    spark.sql(f"DELETE FROM delta.`{tmp_path}/drift` WHERE memory = '{{\"age\": 400}}'")
    assert memories.forget() == 0, "none that a newer one replaced is two months old"
    assert ages() == before - {("it's dropped", 400)}
    note("a", 61)
    note("it's dropped", 91)
    assert memories.forget() == 4
    assert ages() == {("a", 29), ("a", 0), ("it's dropped", 90)}
    assert memories.newest("it's dropped") == {"age": 90}
    assert memories.forget() == 0


@pytest.mark.matrix
def test_a_table_that_an_older_version_made_append_only_is_changed_all_the_same(
    spark: SparkSession, tmp_path: Path
) -> None:
    memories, day = Memories(spark, str(tmp_path)), (datetime.now(UTC).date() - timedelta(days=99)).isoformat()
    memories.table.append([{"table_id": "t", "noted_at": f"{day}T01:00:00Z", "noted_date": day, "memory": "{}"}])
    memories.note("t", {"night": 2})
    spark.sql(f"ALTER TABLE delta.`{tmp_path}/drift` SET TBLPROPERTIES (delta.appendOnly = true)")
    assert memories.forget() == 1
    assert memories.newest("t") == {"night": 2}


def spoil(folder: Path, day: str, column: str) -> None:
    """Make a column of a day unreadable, and leave the others as they are."""
    (file,) = (path for path in folder.rglob("*.parquet") if f"={day}" in str(path.parent))
    rows = pq.read_table(file, partitioning=None)
    size = os.path.getsize(file)
    broken = pa.array([{"no": 1}] * rows.num_rows)
    pq.write_table(rows.set_column(rows.column_names.index(column), column, broken), file)
    for commit in (folder / "_delta_log").glob("*.json"):
        if file.name in (text := commit.read_text()):
            commit.write_text(text.replace(f'"size":{size}', f'"size":{os.path.getsize(file)}'))
    for checksum in folder.rglob(".*.crc"):
        checksum.unlink()


def test_of_the_newest_note_no_other_day_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """A memory, or a plan, of each night there ever was is gigabytes."""
    memories, ledger = Memories(spark, str(tmp_path)), Ledger(spark, str(tmp_path))
    assert (memories.newest("id"), ledger.latest("id")) == (None, None)
    day, now = "2026-01-01", datetime.now(UTC)
    memories.table.append([{"table_id": "id", "noted_at": f"{day}T01:00:00Z", "noted_date": day, "memory": "{}"}])
    plan, done = Plan("s", "id", "hash", 0, None, "kept", 10), dict.fromkeys(DONE, 1)
    old = datetime(2026, 1, 1, tzinfo=UTC)
    ledger.record(plan, "layout", 4, done, {}, committed=old)
    for folder, column in (("drift", "memory"), ("relayouts", "plan")):
        spoil(tmp_path / folder, day, column)
    memories.note("id", {"night": 2})
    ledger.record(plan, "layout", 5, done, {}, committed=now)
    assert memories.newest("id") == {"night": 2}
    assert memories.newest("other") is None
    assert ledger.latest("id") == ledger.latest("id", "layout") == plan
    with pytest.raises(Exception, match=r"(?i)column|schema|type"):
        memories.table.read().select("memory").collect()  # so it is spoilt


def test_the_ledger_tells_a_plan_s_promise_whatever_else_the_plan_holds(spark: SparkSession, tmp_path: Path) -> None:
    promise = Promise(before=1.0, after=0.25, low=0.3, high=0.2, queries=40, bytes_saved_per_query=7.5)
    plan = Plan("s", "id", "hash", 0, None, "kept", 10, promise, log_watermark=1_705_312_800_000_000)
    plan = replace(plan, predicted={"train": math.nan})
    done = {"files_removed": 1, "files_added": 1, "bytes_rewritten": 10, "rows": 5, "seconds": 1.0}
    ledger = Ledger(spark, str(tmp_path))
    for _ in range(2):  # once more is nothing
        ledger.record(plan, "layout", 1, done, {"cost_core_seconds": math.inf})
    (entry,) = ledger.entries()
    assert (entry.promise_queries, entry.promised_bytes, entry.log_watermark) == (40, 7.5, plan.log_watermark)
    assert entry.gate == {"cost_core_seconds": math.inf}


@pytest.mark.slow
def test_a_table_that_was_put_back_has_each_run_that_made_a_version_in_the_ledger(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Its folder came from a backup, with the same id: the second record was skipped, its plan and promise lost."""
    plan, ledger = Plan("s", "id", "hash", 0, None, "kept", 10), Ledger(spark, str(tmp_path))
    done = {"files_removed": 1, "files_added": 1, "bytes_rewritten": 10, "rows": 5, "seconds": 1.0}
    runs = (None, "zorder layout a 1", "zorder layout a 2")
    for run in (*runs, *runs):
        ledger.record(plan, "a", 4, done | {"run": run}, {})
    assert [entry.run for entry in ledger.entries("id")] == list(runs)
    for number, entry in enumerate(ledger.entries("id"), 1):
        ledger.measured(entry, {"queries": number})
    ledger.ended(ledger.entries("id")[1], 7)
    assert [(one.measured_queries, one.ended_at) for one in ledger.entries("id")] == [(1, None), (2, 7), (3, None)]
