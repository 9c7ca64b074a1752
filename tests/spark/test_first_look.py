"""``zorder triage``: many tables at once, nothing written, the one with most to gain first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from zorder_pipeline import pipeline
from zorder_pipeline.errors import ZorderError
from zorder_pipeline.model.triage import TableTriage
from zorder_pipeline.relayout.snapshot import open_table


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    rows = spark.range(0, 20_000, 1, 1).select(
        F.col("id"),
        F.pmod(F.xxhash64("id"), F.lit(5000)).alias("part"),
        (F.col("id") % 40).cast("string").alias("day"),
    )
    messy = rows.repartitionByRange(16, "id")
    messy.write.format("delta").save(str(folder / "messy"))
    rows.repartitionByRange(16, "part").write.format("delta").save(str(folder / "tidy"))
    rows.repartition(1).write.format("delta").partitionBy("day").save(str(folder / "fine"))
    spark.createDataFrame([], "a int").write.format("delta").save(str(folder / "empty"))
    lines = []
    for i in range(240):
        low, minute = (i * 37) % 4900, 1_760_000_000_000 + i * 60_000
        for table in ("messy", "tidy", "fine"):
            text = f"SELECT id FROM {table} WHERE part BETWEEN {low} AND {low + 20 + i % 7}"
            lines.append(json.dumps({"statement": text, "timestamp": minute}))
    lines.append(json.dumps({"statement": "SELECT * FROM nowhere.to_be_found WHERE x = 1"}))
    (folder / "log.jsonl").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def found(spark: SparkSession, lake: Path) -> dict[str, TableTriage]:
    tables = [str(lake / name) for name in ("tidy", "fine", "messy", "empty")]
    looked = pipeline.triage(spark, [str(lake / "log.jsonl")], [*tables, "nowhere.to_be_found"])
    assert looked[0].table.endswith("messy")
    return {item.table.rsplit("/", 1)[-1]: item for item in looked}


def test_the_messy_table_has_most_to_gain(found: dict[str, TableTriage]) -> None:
    messy, tidy = found["messy"], found["tidy"]
    assert messy.queries == messy.filtered == 240
    assert messy.columns == ("part",)
    assert messy.read_now == pytest.approx(1.0)
    assert messy.bound is not None
    assert messy.learned is not None
    assert 0 < messy.bound <= messy.learned < 0.5
    assert all(
        one.bound <= one.read_now for one in found.values() if one.bound is not None and one.read_now is not None
    )
    assert messy.saved_bytes_per_day > 10 * tidy.saved_bytes_per_day
    assert any("zorder learn" in sentence for sentence in messy.advice)
    assert messy.statements[0].endswith("CLUSTER BY (`part`)")
    assert tidy.read_now is not None
    assert tidy.read_now < 0.5
    assert tidy.statements == ()


def test_partitions_that_are_too_fine_and_never_filtered_are_named(found: dict[str, TableTriage]) -> None:
    advice = " ".join(found["fine"].advice)
    assert "by which no query filters" in advice
    assert "40 partitions by day" in advice
    assert not any("CLUSTER BY" in statement for statement in found["fine"].statements)


def test_partitions_that_are_single_files_may_gain_by_smaller_ones(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def learned() -> float:
        (found,) = pipeline.triage(spark, [str(lake / "log.jsonl")], [str(lake / "fine")])
        assert found.learned is not None
        return found.learned

    assert learned() == pytest.approx(1.0, abs=0.01), "as it is: a file of each partition, by which no query filters"
    monkeypatch.setattr("zorder_pipeline.pipeline.learning.sizes.SMALLER_FILE", 1 << 10)  # as if these files were large
    assert learned() < 0.5


def test_tables_of_which_nothing_can_be_said_say_why(found: dict[str, TableTriage]) -> None:
    assert found["empty"].problem == "the table is empty"
    assert "nowhere" in str(found["nowhere.to_be_found"].problem)
    assert found["nowhere.to_be_found"].queries == 1


def test_nothing_was_written(spark: SparkSession, lake: Path, found: dict[str, TableTriage]) -> None:
    assert found
    for name in ("messy", "tidy", "fine"):
        assert DeltaTable.forPath(spark, str(lake / name)).history().count() == 1


def test_without_a_log_there_is_one_sentence(spark: SparkSession) -> None:
    with pytest.raises(ZorderError, match="--log"):
        pipeline.triage(spark)


@pytest.mark.slow
def test_a_table_is_found_by_its_folder_and_counts_once_by_whatever_name(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "Mixed"
    spark.range(1000).write.format("delta").save(str(folder))
    spark.sql(f"CREATE TABLE called_twice USING delta LOCATION '{folder}'")
    names = (f"delta.`{folder}`", f"delta.`file:{folder}`", "called_twice", "spark_catalog.default.called_twice")
    (tmp_path / "log.sql").write_text(
        ";\n".join(f"SELECT * FROM {name} WHERE id = {i}" for i in range(9) for name in names)
    )
    try:
        (found,) = pipeline.triage(spark, [str(tmp_path / "log.sql")])
    finally:
        spark.sql("DROP TABLE called_twice")
    assert (found.table, found.queries, found.problem) == (str(folder), 36, None)


@pytest.mark.slow
def test_of_a_state_tables_are_found_by_their_place_and_queries_count_once(spark: SparkSession, tmp_path: Path) -> None:
    """Its queries go by the names of the configuration; beside the log that it has read each counted twice."""
    folder, log, state = tmp_path / "moved", tmp_path / "log.jsonl", str(tmp_path / "state")
    spark.range(1000).write.format("delta").save(str(folder))
    asked = [{"statement": f"SELECT * FROM orders WHERE id = {i // 2}", "timestamp": f"2026-01-{1 + i % 9:02d}"}
             for i in range(30)]  # fmt: skip
    log.write_text("".join(json.dumps(line) + "\n" for line in asked))
    tables = {"orders": (open_table(spark, str(folder)), ("orders",))}
    pipeline.ingest_into(spark, state, [str(log)], tables)
    (found,) = pipeline.triage(spark, state=state)
    assert (found.location, found.queries, found.problem) == (f"file:{folder}", 30, None)
    (found,) = pipeline.triage(spark, [str(log)], [str(folder)], state=state)
    assert (found.queries, found.problem) == (30, None)
    again = pipeline.triage(spark, [str(log)], state=state)
    assert sum(one.queries for one in again if one.problem is None) == 30
    more = [{"statement": "SELECT * FROM orders WHERE id = 1", "timestamp": "2026-02-01"}]
    (tmp_path / "more.jsonl").write_text(json.dumps(more[0]) + "\n")
    (found,) = pipeline.triage(spark, [str(tmp_path / "more.jsonl")], [str(folder)], state=state)
    assert found.queries == 31
