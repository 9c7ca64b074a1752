"""The state's own tables: their small files are merged, and no row of them changes."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from zorder_pipeline import pipeline
from zorder_pipeline.errors import LostRaceError
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.pipeline.rewriting import tidying
from zorder_pipeline.state.ledger import Ledger

pytestmark = pytest.mark.matrix

DONE = {"files_removed": 3, "files_added": 1, "bytes_rewritten": 10, "rows": 5, "seconds": 2.0}


def relaid(spark: SparkSession, state: str, nights: int, tables: int) -> None:
    """A ledger of so many nights, one file per relayout, as it is written night by night."""
    ledger = Ledger(spark, state)
    ledger.record(Plan("/t0", "t0", "hash", 0, None, "learned", 100), "layout", 0, {**DONE, "run": "first"}, {})
    first = spark.read.format("delta").load(ledger.table.path)
    number = spark.range(1, nights * tables).select(F.col("id").alias("n"))
    rows = first.crossJoin(number).withColumns(
        {
            "table_id": F.concat(F.lit("t"), F.col("n") % tables),
            "version": F.col("n"),
            "run": F.concat(F.lit("run "), F.col("n")),
            "relayout_date": F.expr(f"date_add(date'2026-01-01', cast(n / {tables} AS int))"),
            "committed_at": F.expr(f"timestamp_seconds(1767225600 + 86400 * cast(n / {tables} AS int) + n % {tables})"),
            "seconds": F.col("n").cast("double"),
        }
    )
    rows.drop("n").repartition(2, "relayout_date").write.format("delta").mode("append").option(
        "maxRecordsPerFile", 1
    ).partitionBy("relayout_date").save(ledger.table.path)
    spark.sql(f"DELETE FROM delta.`{ledger.table.path}` WHERE run = 'first'")


def test_small_files_of_days_that_are_over_are_merged(spark: SparkSession, tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    relaid(spark, state, nights=5, tables=16)
    ledger = Ledger(spark, state)
    ledger.record(Plan("/t0", "t0", "hash", 0, None, "learned", 100), "layout", 999, {**DONE, "run": "now"}, {})
    before = ledger.entries()
    assert len(before) == 80
    assert pipeline.tidy_state(spark, state) == {"relayouts": 79}
    assert ledger.entries() == before
    assert len(spark.read.format("delta").load(ledger.table.path).inputFiles()) == 6
    assert pipeline.tidy_state(spark, state) == {}
    assert pipeline.tidy_state(spark, str(tmp_path / "none")) == {}


@pytest.mark.slow
def test_the_newest_relayouts_are_read_from_their_days_alone(spark: SparkSession, tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    relaid(spark, state, nights=6, tables=4)
    ledger = Ledger(spark, state)
    everything = ledger.entries()
    for newest in (1, 3, 4, 5, 9, 23, 100):
        assert ledger.entries(newest=newest) == everything[-newest:]
    mine = [entry for entry in everything if entry.table_id == "t3"]
    assert ledger.entries("t3", newest=2) == mine[-2:]
    for days, count in ((0, 6), (29.5, 6), (31.5, 4), (33.5, 2), (35.5, 1), (99, 1)):  # of a horizon of thirty
        assert ledger.entries("t3", credited=(1767225600 + days * 86400) * 1e6) == mine[-count:]
    assert ledger.entries("none", credited=0) == []


@pytest.mark.slow
def test_a_query_log_is_merged_once_its_parts_have_many_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tidying, "PER_PARTITION", 3)
    state, log = str(tmp_path / "state"), tmp_path / "log.jsonl"
    for night in range(5):
        with log.open("a") as stream:
            stream.write(json.dumps({"statement": f"SELECT * FROM t WHERE a = {night}"}) + "\n")
        pipeline.ingest_into(spark, state, [str(log)])
        merged = pipeline.tidy_state(spark, state)
        assert bool(merged.get("query_log")) is (night == 3)
    assert [query.predicate.to_sql() for query in pipeline.stored_log(spark, state).queries] == [
        f"a = {night}" for night in range(5)
    ]


@pytest.mark.slow
def test_changes_of_rows_in_one_file_wait_for_each_other(spark: SparkSession, tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    relaid(spark, state, nights=5, tables=16)
    pipeline.tidy_state(spark, state)
    failed: list[Exception] = []
    by_version = {entry.version: entry for entry in Ledger(spark, state).entries()}

    def measure(version: int) -> None:
        try:
            Ledger(spark, state).measured(by_version[version], {"queries": version})
        except LostRaceError as error:
            failed.append(error)

    threads = [threading.Thread(target=measure, args=(version,)) for version in (17, 18, 19)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    measured = {entry.version: entry.measured_queries for entry in Ledger(spark, state).entries()}
    assert {version: measured[version] for version in (17, 18, 19)} == {17: 17, 18: 18, 19: 19}
