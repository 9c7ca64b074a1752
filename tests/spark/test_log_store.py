"""The query log in the state: incremental, exactly once, also when it is cut off or run twice at once."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from zorder_pipeline.errors import LostRaceError
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.pipeline import redact_key
from zorder_pipeline.query_log.intake import purging
from zorder_pipeline.query_log.intake import store as stores
from zorder_pipeline.query_log.intake.known import current
from zorder_pipeline.query_log.intake.store import LogStore
from zorder_pipeline.query_log.intake.without_spark import current_runs
from zorder_pipeline.query_log.statements.catalog import Catalog

DAY = 86_400_000_000
START = 1_705_312_800_000_000
CATALOG = Catalog({"t": "t"}, {"t": TableSchema((Column("a", "int"), Column("flag", "boolean", delta_stats=False)))})


def _lines(first: int, count: int, user: str = "ann") -> str:
    records = (
        {"statement": f"SELECT a FROM t WHERE a = {i}", "timestamp": START + i * DAY, "user": user}
        for i in range(first, first + count)
    )
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def store(spark: SparkSession, tmp_path: Path) -> LogStore:
    return LogStore(spark, str(tmp_path / "state"))


def _values(store: LogStore, **options: Any) -> list[str]:
    return [query.predicate.to_sql() for query in store.load(**options).queries]


def test_only_what_is_new_is_added(store: LogStore, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.jsonl").write_text(_lines(0, 3) + '{"statement": "DROP TABLE t"}\n{"bad\n{"statement": "SELECT a FR')
    first = store.ingest(str(folder), CATALOG).to_json()
    assert (first["lines"], first["used"], first["ignored"], first["quarantined"]) == (6, 3, 1, 2)
    again = store.ingest(str(folder), CATALOG).to_json()
    assert (again["lines"], again["files"], again["unchanged_files"]) == (0, 0, 1)
    with (folder / "a.jsonl").open("a") as stream:  # the cut-off line is completed, and another file comes
        stream.write('OM t WHERE a = 77"}\n')
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(_lines(10, 2).encode()))
    added = store.ingest(str(folder), CATALOG).to_json()
    assert (added["lines"], added["used"], added["files"], added["unchanged_files"]) == (3, 3, 2, 0)
    (folder / "c.jsonl").write_text("")
    last = store.ingest(str(folder), CATALOG)
    assert (last.files, last.unchanged) == (1, 2), "what is not new is counted beside what is"
    assert _values(store) == ["a = 77", *(f"a = {i}" for i in (0, 1, 2, 10, 11))]
    assert [query.batch for query in store.load().queries] == [2, 1, 1, 1, 2, 2], "which ingestion brought it"
    assert store.load().quarantined == {"malformed_json": 1, "truncated": 1}
    rows = store.spark.read.format("delta").load(store.path("quarantine")).orderBy("position").collect()
    assert [(row["position"], row["reason"]) for row in rows] == [(5, "malformed_json"), (6, "truncated")]


@pytest.mark.matrix
def test_a_file_that_cannot_be_read_is_named_each_night_until_it_can(store: LogStore, tmp_path: Path) -> None:
    folder, told = tmp_path / "logs", list[str]()
    folder.mkdir()
    (folder / "a.jsonl").write_text(_lines(0, 3))
    (folder / "b.jsonl").symlink_to("/proc/self/mem")  # nobody may read that, who may read all else
    for used, unchanged in ((3, 0), (0, 1)):
        found = store.ingest(str(folder), CATALOG, progress=told.append)
        assert (found.log.used, found.log.quarantined) == (used, {"unreadable_file": 1})
        assert (found.files, found.unchanged) == (bool(used), unchanged)
        sentence = told.pop()
        assert sentence.startswith(f"query log {folder}/b.jsonl cannot be read: [Errno 5]")
        assert sentence.endswith("Input/output error; it is read once it can be")
    (folder / "b.jsonl").unlink()
    (folder / "b.jsonl").write_text(_lines(3, 2))
    assert store.ingest(str(folder), CATALOG).log.used == 2
    assert len(_values(store)) == 5


@pytest.mark.matrix
def test_a_log_that_is_gone_when_it_is_to_be_read_is_named(store: LogStore, tmp_path: Path) -> None:
    """Else a night would know of no statement, and nobody why."""
    log, told = tmp_path / "log.jsonl", list[str]()
    log.write_text(_lines(0, 3))

    def reading(sentence: str) -> None:
        told.append(sentence)
        log.unlink(missing_ok=True)

    found = store.ingest(str(log), CATALOG, progress=reading)
    assert (found.log.lines, found.files, found.log.quarantined) == (0, 0, {})
    assert told[1:] == [f"query log {log} was removed or written anew meanwhile; what is there next time is read then"]
    log.write_text(_lines(0, 3))
    assert store.ingest(str(log), CATALOG).log.used == 3


def _cut_off(store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first ingestion of five lines that ends before it counts."""
    (tmp_path / "log.jsonl").write_text(_lines(0, 5))

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LogStore, "_commit", crash)
        with pytest.raises(KeyboardInterrupt):
            store.ingest(str(tmp_path / "log.jsonl"), CATALOG)


def test_what_a_first_ingestion_that_was_cut_off_has_left_is_purged(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no list of logs then."""
    _cut_off(store, tmp_path, monkeypatch)
    assert store.purge(days=100_000)["query_log"] == 0, "an ingestion may be at work"
    monkeypatch.setattr(purging, "GRACE", "interval 0 seconds")
    assert store.purge(days=100_000)["query_log"] == 5


def test_a_crash_between_two_commits_neither_loses_nor_doubles(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _cut_off(store, tmp_path, monkeypatch)
    assert store.load().queries == ()
    store.ingest(str(tmp_path / "log.jsonl"), CATALOG)
    assert len(_values(store)) == 5
    assert store.purge(days=100_000)["query_log"] == 0, "an ingestion may be at work"
    monkeypatch.setattr(purging, "GRACE", "interval 0 seconds")
    assert store.purge(days=100_000)["query_log"] == 5  # the rows that the crash left
    assert len(_values(store)) == 5


def test_rows_of_a_file_that_failed_are_purged(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were written before it failed, each night, beside those of files that count."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(_lines(0, 3))
    with monkeypatch.context() as patched:
        patched.setattr(stores, "is_moved", lambda shares: shares[0]["source"].endswith("b.jsonl"))
        assert store.ingest(str(tmp_path), CATALOG, without=[store.state]).files == 1
    assert (len(_values(store)), store.purge(days=100_000)["query_log"], len(_values(store))) == (3, 3, 3)
    newest = max(Path(store.path("query_log"), "_delta_log").glob("*.json")).read_text()
    assert '"operation":"MERGE"' in newest
    assert "b.jsonl" not in newest, "logs may be called by persons, and Delta keeps what a DELETE asked for"


def test_of_two_ingestions_of_a_log_at_once_each_line_counts_once(store: LogStore, tmp_path: Path) -> None:
    log, told = tmp_path / "log.jsonl", list[str]()
    log.write_text(_lines(0, 5))
    other = LogStore(store.spark, store.state)

    def reading(sentence: str) -> None:
        told.append(sentence)
        if len(told) == 1:  # the other one begins later and is through earlier
            assert other.ingest(str(log), CATALOG).log.used == 5
            log.write_text(_lines(0, 7))

    found = store.ingest(str(log), CATALOG, progress=reading)
    assert (found.log.used, found.files, len(told)) == (2, 1, 3), "what the other one left"
    assert len(_values(store)) == 7


@pytest.mark.matrix
def test_an_ingestion_of_other_logs_at_once_costs_no_second_reading(store: LogStore, tmp_path: Path) -> None:
    told = list[str]()
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(_lines(0, 5))
    other = LogStore(store.spark, store.state)

    def reading(sentence: str) -> None:
        told.append(sentence)
        other.ingest(str(tmp_path / "b.jsonl"), CATALOG)

    assert store.ingest(str(tmp_path / "a.jsonl"), CATALOG, progress=reading).log.used == 5
    assert (len(told), len(_values(store))) == (1, 10)


@pytest.mark.matrix
def test_who_is_always_too_late_says_so(store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "TRIES", 2)
    log = tmp_path / "log.jsonl"
    log.write_text(_lines(0, 5))
    other = LogStore(store.spark, store.state)

    def reading(sentence: str) -> None:
        if sentence.startswith("reading"):
            other.ingest(str(log), CATALOG)
            with log.open("a") as stream:
                stream.write(_lines(90, 1))

    with pytest.raises(LostRaceError, match="at the same time"):
        store.ingest(str(log), CATALOG, progress=reading)
    assert len(_values(store)) == 6
    store.ingest(str(log), CATALOG)
    assert len(_values(store)) == 7


@pytest.mark.slow
def test_a_quarantine_without_users_gets_them(store: LogStore, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"statement": "SELECT (", "user": "bob"}\n')
    store.ingest(str(tmp_path / "a.jsonl"), CATALOG)
    frame = store.spark.read.format("delta").load(store.path("quarantine")).drop("user")
    frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(store.path("quarantine"))
    assert store.purge(days=90, user="bob")["quarantine"] == 0
    (tmp_path / "b.jsonl").write_text('{"statement": "SELECT (", "user": "bob"}\n')
    store.ingest(str(tmp_path / "b.jsonl"), CATALOG)
    assert store.purge(days=90, user="bob")["quarantine"] == 1


@pytest.mark.slow
def test_a_window_a_table_and_a_user(store: LogStore, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(_lines(0, 5) + _lines(5, 5, user="bob"))
    store.ingest(str(tmp_path / "log.jsonl"), CATALOG)
    assert _values(store, days=2.5) == ["a = 7", "a = 8", "a = 9"]
    assert len(_values(store, days=1e300)) == 10
    assert store.purge(days=10**30)["query_log"] == 0
    assert _values(store, tables=["other"]) == []
    assert store.purge(days=90, user="bob") == {"query_log": 5, "quarantine": 0}
    assert {query.user for query in store.load().queries} == {"ann"}
    assert store.purge(days=90) == {"query_log": 5, "quarantine": 0}


@pytest.mark.slow
def test_a_line_of_the_future_silences_no_other_also_where_a_state_holds_one(store: LogStore, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(
        _lines(0, 5) + json.dumps({"statement": "SELECT a FROM t WHERE a = 99", "timestamp": "9999-12-31T23:59:59Z"})
    )
    store.ingest(str(tmp_path / "log.jsonl"), CATALOG)
    assert _values(store, days=2.5) == ["a = 99", "a = 2", "a = 3", "a = 4"]
    future = (START + 400_000 * DAY, "date'2999-01-01'")
    for table, change in (
        ("log_files", f"watermark = {future[0]}"),
        ("query_log", f"query_timestamp = {future[0]}, query_date = {future[1]} WHERE query_timestamp IS NULL"),
    ):  # as such a line was stored before
        store.spark.sql(f"UPDATE delta.`{store.path(table)}` SET {change}")
    assert _values(store, days=2.5) == ["a = 99", "a = 2", "a = 3", "a = 4"]
    assert store.load().queries[0].timestamp is None
    assert store.purge(days=90)["query_log"] == 5
    store.spark.sql(f"UPDATE delta.`{store.path('log_files')}` SET ingested_at = timestamp'2020-01-01'")
    assert store.purge(days=90)["query_log"] == 1


@pytest.mark.slow
def test_a_log_that_is_renamed_and_begun_anew_counts_once(store: LogStore, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "queries.log"
    log.parent.mkdir()
    log.write_text(_lines(0, 3))
    store.ingest(str(log.parent), CATALOG)
    (log.parent / "queries.log.1").write_text(log.read_text() + _lines(3, 1))
    log.write_text(_lines(4, 2))
    added = store.ingest(str(log.parent), CATALOG)
    assert (added.log.lines, added.log.used, added.files) == (3, 3, 2)
    log.write_text(_lines(5, 4))  # as an export is that holds the last days
    assert store.ingest(str(log.parent), CATALOG).log.lines == 3
    assert _values(store) == [f"a = {i}" for i in range(9)]
    (log.parent / "by_hand.sql").write_text("SELECT a FROM t WHERE a = 70; SELECT a FROM t WHERE a = 71;")
    store.ingest(str(log.parent), CATALOG)
    (log.parent / "by_hand.sql").write_text("SELECT a FROM t WHERE a = 71;")
    store.ingest(str(log.parent), CATALOG)
    assert _values(store) == ["a = 71", *(f"a = {i}" for i in range(9))], "what has no time is not read twice"
    assert store.ingest(str(log.parent), CATALOG).unchanged == 3


@pytest.mark.slow
def test_a_configuration_that_comes_back_brings_its_queries_back(store: LogStore, tmp_path: Path) -> None:
    """A table that was left out for a night, for whatever reason, has lost nothing; nor is anything doubled."""
    log = tmp_path / "log.jsonl"
    log.write_text(_lines(0, 3) + json.dumps({"statement": "SELECT * FROM u WHERE b = 1"}) + "\n")
    wider = Catalog({"t": "t", "u": "u"}, CATALOG.schemas)
    for catalog, count in ((wider, 4), (CATALOG, 3), (wider, 4), (wider, 4)):
        store.ingest(str(log), catalog)
        assert (len(_values(store)), store.load().lines) == (count, 4)
    assert store.purge(days=100_000)["query_log"] == 7, "what was read before counts no more"
    assert len(_values(store)) == 4
    log.unlink()
    (tmp_path / "other.jsonl").write_text(_lines(9, 1))
    store.ingest(str(tmp_path / "other.jsonl"), CATALOG)
    assert len(_values(store)) == 5, "what lies nowhere any more is kept as it was read"


@pytest.mark.slow
def test_under_a_new_configuration_logs_are_read_again_and_count_once(store: LogStore, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(_lines(0, 3) + json.dumps({"statement": "SELECT * FROM u WHERE b = 1"}) + "\n")
    assert store.ingest(str(tmp_path / "log.jsonl"), CATALOG).log.ignored == {"other_table": 1}
    wider = Catalog({"t": "t", "u": "u"}, CATALOG.schemas)
    store.ingest(str(tmp_path / "log.jsonl"), wider)
    assert len(_values(store)) == 4
    assert {query.batch for query in store.load().queries} == {None}, "none of them is new"
    assert store.load().lines == 4


@pytest.mark.slow
def test_a_delta_table_as_a_log(store: LogStore, tmp_path: Path) -> None:
    log = str(tmp_path / "the history")

    def append(first: int) -> None:
        rows = [(f"SELECT a FROM t WHERE a = {i}", "1 May 8%") for i in range(first, first + 3)]
        store.spark.createDataFrame(rows, "statement string, day string").coalesce(1).write.format("delta").partitionBy(
            "day"
        ).mode("append").save(log)

    append(0)
    assert store.ingest(log, CATALOG).log.used == 3
    append(3)
    store.spark.sql(f"OPTIMIZE delta.`{log}`")
    append(6)
    assert store.ingest(log, CATALOG).log.used == 6
    assert store.ingest(log, CATALOG).log.used == 0
    assert sorted(_values(store)) == [f"a = {i}" for i in range(9)]
    for column in ("log", "mark", "since", "replaces"):  # as states were before they had these
        store.spark.sql(f"UPDATE delta.`{store.path('log_files')}` SET {column} = NULL")
    append(9)
    assert store.ingest(log, CATALOG).log.used == 3
    assert store.ingest(log, Catalog({"t": "t", "u": "u"}, CATALOG.schemas)).log.used == 12
    assert sorted(_values(store)) == sorted(f"a = {i}" for i in range(12))


@pytest.mark.slow
@pytest.mark.parametrize(
    "properties", ["'k'='v'", "'delta.enableDeletionVectors'='true', 'delta.columnMapping.mode'='name'"]
)
def test_a_delta_table_as_a_log_that_is_changed(store: LogStore, tmp_path: Path, properties: str) -> None:
    """Rows that are left where others were deleted count once, deleted ones not; columns are those of the table."""
    log = f"delta.`{tmp_path}/the history`"
    kind = "statement string, ts timestamp, user string, params array<struct<name:string, value:string>>"
    store.spark.sql(f"CREATE TABLE {log} ({kind}) USING delta PARTITIONED BY (user) TBLPROPERTIES ({properties})")

    def append(first: int) -> None:
        rows = f"'SELECT a FROM t WHERE a = :n', timestamp_micros({START} + id * {DAY}), array(struct('n', string(id)))"
        rows = f"SELECT {rows} FROM range({first}, {first + 5}, 1, 1)"
        store.spark.sql(f"INSERT INTO {log} (statement, ts, params, user) SELECT *, 'a b%' FROM ({rows})")

    def new() -> int:
        return store.ingest(f"{tmp_path}/the history", CATALOG).log.used

    append(0)
    assert new() == 5
    store.spark.sql(f"DELETE FROM {log} WHERE params[0].value = '2'")
    assert new() == 0
    append(5)
    store.spark.sql(f"DELETE FROM {log} WHERE params[0].value IN ('3', '7')")
    assert new() == 4
    store.spark.sql(f"UPDATE {log} SET statement = concat(statement, ' ') WHERE params[0].value IN ('4', '5')")
    store.spark.sql(f"OPTIMIZE {log}")
    append(10)
    assert new() == 5
    assert new() == 0
    assert {query.user for query in store.load().queries} == {"a b%"}
    assert _values(store) == [f"a = '{i}'" for i in range(15) if i != 7]
    wider = Catalog({"t": "t", "u": "u"}, CATALOG.schemas)
    assert store.ingest(f"{tmp_path}/the history", wider).log.used == 12
    assert store.ingest(f"{tmp_path}/the history", wider).log.used == 0


def test_a_log_that_is_a_delta_table_without_rows_has_no_queries_yet(store: LogStore, tmp_path: Path) -> None:
    log = str(tmp_path / "history")
    rows = pa.table({"statement": pa.array([], pa.string())})
    write_deltalake(log, rows)
    assert store.ingest(log, CATALOG).log.lines == 0
    assert store.ingest(log, CATALOG).log.lines == 0
    assert (store.load().queries, store.load(["t"], 90).until, store.scans()) == ((), None, {})
    since = store.kept_since(90)
    assert since is not None
    assert (store.expire(since, ["t"]), store.purge(90)) == ({}, {})
    write_deltalake(log, pa.table({"statement": ["SELECT a FROM t WHERE a = 1"]}), mode="append")
    assert (store.ingest(log, CATALOG).log.used, _values(store)) == (1, ["a = 1"])


@pytest.mark.slow
def test_a_file_of_a_delta_table_that_cannot_be_read_is_read_once_it_can(store: LogStore, tmp_path: Path) -> None:
    """Nor is what it holds older than what others of the same night had, of which nothing counts until then."""
    log = tmp_path / "history"

    def append(first: int) -> None:
        numbers = range(first, first + 3)
        asked = pa.array([START + i * DAY for i in numbers], pa.timestamp("us", "UTC"))
        rows = {"statement": [f"SELECT a FROM t WHERE a = {i}" for i in numbers], "ts": asked}
        write_deltalake(str(log), pa.table(rows), mode="append")

    def taken() -> Path:
        """The newest file, in whose place nothing can be read."""
        newest = max(log.glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
        file = newest.rename(tmp_path / newest.name)
        newest.mkdir()
        return file

    def given_back(file: Path) -> None:
        (log / file.name).rmdir()
        file.rename(log / file.name)

    def night() -> tuple[int, int]:
        found = store.ingest(str(log), CATALOG).log
        return found.used, found.quarantined.get("unreadable_file", 0)

    append(0)
    assert night() == (3, 0)
    append(3)
    file = taken()
    append(6)
    assert [night(), night()] == [(3, 1), (0, 1)]
    given_back(file)
    assert [night(), night()] == [(3, 0), (0, 0)]
    append(9)
    DeltaTable(str(log)).delete("statement LIKE '%= 9'")
    file = taken()
    append(12)
    assert night() == (0, 1)
    given_back(file)
    assert [night(), night()] == [(5, 0), (0, 0)]
    assert _values(store) == [f"a = {i}" for i in range(15) if i != 9]


def test_each_query_says_at_which_level_it_can_skip(store: LogStore, tmp_path: Path) -> None:
    conditions = ["a = 1", "flag", "a % 2 = 1", "random() > a"]
    lines = (json.dumps({"statement": f"SELECT a FROM t WHERE {text}"}) + "\n" for text in conditions)
    (tmp_path / "log.jsonl").write_text("".join(lines))
    store.ingest(str(tmp_path / "log.jsonl"), CATALOG)
    rows = store.spark.read.format("delta").load(store.path("query_log")).orderBy("position").collect()
    assert [row["level"] for row in rows] == ["delta", "row_group", "enriched", "none"]


def test_which_records_count(spark: SparkSession) -> None:
    """Also of states that are older than the names of logs: there, all of each file's newest configuration count."""
    named = "batch int, generation string, name string, log string, replaces string, delta_version bigint"

    def counting(*rows: tuple[object, ...]) -> list[int]:
        return sorted(row["batch"] for row in current(spark.createDataFrame(list(rows), named)).collect())

    old = [(1, "w", "a"), (2, "c", "a"), (3, "w", "a"), (4, "c", "b"), (5, "w", "c")]
    padded = [(*row, None, None, None) for row in old]
    assert counting(*padded) == [1, 3, 4, 5]
    grown, again = (6, "w", "a", "a", None, None), (7, "w", "b", "b#1", "b", None)
    assert counting(*padded, grown, again) == [1, 3, 5, 6, 7]
    moved = (8, "x", "c.1", "c#1", "c", None)
    assert counting(*padded, grown, again, moved) == [1, 3, 6, 7, 8]
    table = [(1, "w", "t/1", None, None, None), (2, "w", "t/2", None, None, None), (3, "w", "t", None, None, 4)]
    other = (3, "w", "t_2", None, None, None)
    assert counting(*table, other, (4, "x", "t/2", "t#1", "t", None)) == [3, 4]


def test_sensors_count_the_same_runs_without_spark(spark: SparkSession) -> None:
    """A hundred histories of logs at once: old states' rows, and tables and files that replace each other."""
    draw, rows = random.Random(7), []
    for history in range(100):
        names = [f"/{history}/t", f"/{history}/t/a.parquet", f"/{history}/t/b.parquet", f"/{history}/c.sql"]
        for batch in range(draw.randrange(1, 12)):
            name, old = draw.choice(names), batch < 5 and draw.random() < 0.6
            log = None if old else draw.choice([name, f"{name} (2)"])
            replaces = draw.choice([None, None, *names]) if not old else None
            version = 3 if name.endswith("/t") else None
            place = {"run": f"{history}-{batch}", "source": name, "name": name, "generation": draw.choice("gh")}
            rows.append({"batch": batch, **place, "log": log, "replaces": replaces, "delta_version": version})
    schema = "batch BIGINT, run STRING, source STRING, name STRING, generation STRING, log STRING, replaces STRING"
    files = spark.createDataFrame(rows, f"{schema}, delta_version BIGINT")
    counted = {(row["run"], row["source"]) for row in current(files).collect()}
    assert current_runs(pd.DataFrame(rows)) == counted
    assert 100 < len(counted) < len(rows)


@pytest.mark.matrix
def test_names_without_literals_are_made_from_what_only_the_state_knows(store: LogStore, tmp_path: Path) -> None:
    assert redact_key(store.spark, store.state) != redact_key(store.spark, store.state), "no log was stored"
    (tmp_path / "log.jsonl").write_text(_lines(0, 3))
    store.ingest(str(tmp_path / "log.jsonl"), CATALOG)
    key = redact_key(store.spark, store.state)
    (tmp_path / "more.jsonl").write_text(_lines(3, 3))
    store.ingest(str(tmp_path / "more.jsonl"), CATALOG)
    assert key == redact_key(store.spark, store.state), "names are the same in all nights"
    other = LogStore(store.spark, str(tmp_path / "other"))
    other.ingest(str(tmp_path / "log.jsonl"), CATALOG)
    assert key != redact_key(store.spark, other.state)
