"""What nights use no more is deleted from the state, as ``zorder purge`` deletes it, and nothing else is."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from zorder_pipeline import pipeline
from zorder_pipeline.query_log.intake.store import LogStore
from zorder_pipeline.query_log.spool import RECORDED
from zorder_pipeline.query_log.statements.catalog import Catalog

DAY = 86_400
NOON = (int(time.time()) // DAY - 200) * DAY + DAY // 2
"""Of the day of the first query; the newest of each test is long past, as of a log that pauses."""


def lines(table: str, first: int, last: int, *others: str) -> str:
    """A query of each day, and a line that cannot be used; the others without a time."""
    asked = [{"timestamp": NOON + day * DAY, "user": "ann"} for day in range(first, last)]
    told = [at | {"statement": f"SELECT a FROM {table} WHERE a = {day}"} for day, at in enumerate(asked, first)]
    bad = [at | {"statement": f"SELECT FROM WHERE a = {day}"} for day, at in enumerate(asked, first)]
    untimed = [{"statement": f"SELECT a FROM {table} WHERE a = {value}"} for value in others]
    return "".join(json.dumps(line) + "\n" for line in [*told, *bad, *untimed])


def catalog(*tables: str) -> Catalog:
    """Of a configuration."""
    return Catalog({table.lower(): table for table in tables}, {}, places={table: f"file:/{table}" for table in tables})


def stored(store: LogStore, table: str = "t", days: float | None = None) -> list[str]:
    found = store.load([table], days).queries
    return [query.predicate.to_sql().removeprefix("a = ") for query in found]


def versions(store: LogStore) -> list[int]:
    return [len(list(Path(store.path(name), "_delta_log").glob("*.json"))) for name in ("query_log", "quarantine")]


def test_what_counts_no_more_is_deleted_once_and_does_not_come_back(spark: SparkSession, tmp_path: Path) -> None:
    log, state = tmp_path / "log.jsonl", str(tmp_path / "state")
    store = LogStore(spark, state)
    assert pipeline.expire(spark, state, ["t"], 3) == {}, "no log was read yet"
    log.write_text(lines("t", 0, 10, "77"))
    store.ingest(str(log), catalog("t"))
    before, used = versions(store), stored(store, days=3)
    assert used == ["77", "6", "7", "8", "9"]
    assert pipeline.expire(spark, state, ["t"], 10) == {}
    assert versions(store) == before, "where nothing is old nothing is written"
    assert pipeline.expire(spark, state, ["t"], 3) == {"query_log": 6, "quarantine": 6}
    assert stored(store) == stored(store, days=3) == used, "whatever reads the state by days reads the same"
    after = versions(store)
    with log.open("a") as stream:
        stream.write(json.dumps({"statement": "SELECT a FROM t WHERE a = 10", "timestamp": NOON + 9 * DAY + 3600}))
    assert store.ingest(str(log), catalog("t")).log.used == 1, "nothing of the log is read a second time"
    assert pipeline.expire(spark, state, ["t"], 3) == {}, "by whole days, so once a day at most"
    assert versions(store)[1] == after[1]
    assert stored(store) == [*used, "10"]
    assert store.load().lines == 22, "of what was read it is told on"


@pytest.mark.matrix
def test_what_a_changed_configuration_reads_again_goes_again(spark: SparkSession, tmp_path: Path) -> None:
    log, state = tmp_path / "log.jsonl", str(tmp_path / "state")
    store = LogStore(spark, state)
    log.write_text(lines("t", 0, 10) + lines("u", 0, 10))
    for count, tables in ((12, ("t", "u")), (8 + 6, ("t",)), (0, ("t", "u")), (4 + 20 + 6, ("t",))):
        store.ingest(str(log), catalog(*tables))
        assert len(stored(store)) == 10
        if count:  # what counts no more, as it was read again, is another configuration's no more
            assert pipeline.expire(spark, state, tables, 3)["query_log"] == count
            assert stored(store) == ["6", "7", "8", "9"]


def test_of_a_file_without_times_that_is_written_over_one_night_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    """What it replaced counts no more, and has no time to go by; nor have lines of what is not yet told to count."""
    log, state = tmp_path / "export.sql", str(tmp_path / "state")
    store = LogStore(spark, state)
    for night in range(3):
        log.write_text(f"SELECT a FROM t WHERE a = {night}; SELECT FROM WHERE a = {night} AND (;")
        store.ingest(str(log), catalog("t"))
        assert pipeline.expire(spark, state, ["t"], 3) == ({"query_log": 1, "quarantine": 1} if night else {})
        assert stored(store) == [str(night)]
    for name in ("query_log", "quarantine"):  # an ingestion that is at work
        cut_off = store.read(name).withColumn("run", F.lit("at work"))
        store.append(name, cut_off)
    assert pipeline.expire(spark, state, ["t"], 3) == {}


@pytest.mark.matrix
def test_what_another_configuration_may_use_stays(spark: SparkSession, tmp_path: Path) -> None:
    """It has other tables, and perhaps a longer retention; what sessions asked of any table has no configuration."""
    state = str(tmp_path / "state")
    store = LogStore(spark, state)
    for name, of in (("mine", catalog("T")), ("theirs", catalog("u")), ("recorded", Catalog({}, {}))):
        table = {"mine": "t", "theirs": "u", "recorded": "v"}[name]
        (tmp_path / f"{name}.jsonl").write_text(lines(table, 0, 10))
        store.ingest(str(tmp_path / f"{name}.jsonl"), of)
    assert pipeline.expire(spark, state, ["t"], 3) == {"query_log": 12, "quarantine": 18}
    assert [len(stored(store, table)) for table in ("T", "u", "v")] == [4, 10, 4]


def test_without_any_time_lines_go_by_the_day_on_which_they_were_read(spark: SparkSession, tmp_path: Path) -> None:
    """A plain file of statements: its quarantined lines stayed for good."""
    log, state = tmp_path / "log.sql", str(tmp_path / "state")
    log.write_text("SELECT a FROM t WHERE a = 1; SELECT FROM WHERE a = 2 AND (;")
    store = LogStore(spark, state)
    store.ingest(str(log), catalog("t"))
    assert pipeline.expire(spark, state, ["t"], 3) == {}
    spark.sql(f"UPDATE delta.`{store.path('quarantine')}` SET query_date = date_sub(current_date(), 4)")
    assert pipeline.expire(spark, state, ["t"], 1_000_000) == pipeline.expire(spark, state, ["t"], 4) == {}
    assert pipeline.expire(spark, state, ["t"], 3) == {"quarantine": 1}
    assert stored(store) == ["1"]


@pytest.mark.parametrize("days", [500_000, 740_000, 1_000_000])
def test_who_keeps_all_for_ever_loses_nothing(spark: SparkSession, tmp_path: Path, days: int) -> None:
    log, state = tmp_path / "log.jsonl", str(tmp_path / "state")
    LogStore(spark, state).ingest(str(_written(log)), catalog("t"))
    assert pipeline.expire(spark, state, ["t"], days) == {}


@pytest.mark.matrix
def test_what_was_recorded_goes_by_the_same_day(spark: SparkSession, tmp_path: Path) -> None:
    log, state = tmp_path / "log.jsonl", tmp_path / "state"
    LogStore(spark, str(state)).ingest(str(_written(log)), catalog("t"))
    folder = state / RECORDED / "0123"
    folder.mkdir(parents=True)
    names = {day: f"{NOON + day * DAY}-17-{day:012x}.jsonl" for day in (4, 5, 6, 9)}
    for name in names.values():
        (folder / name).touch()
    assert pipeline.expire(spark, str(state), ["t"], 3) == {"query_log": 6, "quarantine": 6, "recorded": 2}
    assert {file.name for file in folder.iterdir()} == {names[6], names[9]}
    copied = folder / f"_{int(time.time())}-17-0.jsonl"  # by a recording, just now
    copied.touch()
    assert pipeline.expire(spark, str(state), ["t"], 3) == {}
    assert copied.exists()


def _written(log: Path) -> Path:
    log.write_text(lines("t", 0, 10))
    return log


@pytest.mark.matrix
def test_delta_tells_of_nobody_in_what_it_keeps_of_it(spark: SparkSession, tmp_path: Path) -> None:
    log, store = tmp_path / "log.jsonl", LogStore(spark, str(tmp_path / "state"))
    store.ingest(str(_written(log)), catalog("t"))
    spark.sql(f"ALTER TABLE delta.`{store.path('query_log')}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    since = store.kept_since(3)
    assert since is not None
    assert store.expire(since, ["t"]) == {"query_log": 6, "quarantine": 6}
    entries = Path(store.path("query_log"), "_delta_log").glob("*.json")
    assert not [entry for entry in entries if "ann" in entry.read_text()]
    files = store.read("query_log").inputFiles()  # all that VACUUM leaves
    assert spark.read.parquet(*files).count() == 4
