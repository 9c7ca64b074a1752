"""Rows lie in the key's order inside of files, also where a task's rows do not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.test_compaction import compact, rows_in_order
from zorder_pipeline import pipeline
from zorder_pipeline.pipeline import LearnSettings, layout_by_hand

SPILLS = "spark.shuffle.spill.numElementsForceSpillThreshold"


@pytest.fixture
def spilling(spark: SparkSession) -> Iterator[SparkSession]:
    """Sorts hold a few hundred rows in memory; tasks of a local session share its settings."""
    conf = spark._jvm.org.apache.spark.SparkEnv.get().conf()  # type: ignore[union-attr]
    conf.set(SPILLS, "300")
    yield spark
    conf.remove(SPILLS)


def table(spark: SparkSession, path: str, files: int) -> str:
    spark.sql(f"CREATE TABLE delta.`{path}` (ds STRING, k INT NOT NULL, s STRING) USING delta PARTITIONED BY (ds)")
    rows = "SELECT CONCAT('d', id % 2) AS ds, CAST(id * 7919 % 4000 AS INT) AS k, CAST(id AS STRING) AS s"
    spark.sql(f"{rows} FROM range(0, 8000, 1, {files})").write.format("delta").mode("append").save(path)
    return path


@pytest.mark.parametrize("committer", ["transaction", pytest.param("public", marks=pytest.mark.matrix)])
def test_a_layout_sorts_within_its_files(spilling: SparkSession, tmp_path: Path, committer: str) -> None:
    """A partition of texts beside NOT NULL: Delta sorted the rows once more, by the partition alone."""
    path = table(spilling, str(tmp_path / "t"), 3)
    plan = layout_by_hand(spilling, path, {"k": 12}, encoding="bits", settings=LearnSettings(target_file_rows=4000))
    assert pipeline.apply(spilling, path, plan, force=True, committer=committer).decision == "applied"
    for rows in rows_in_order(spilling, path):
        keys = [row["k"] for row in rows]
        assert keys == sorted(keys)


def test_a_compaction_keeps_the_order_of_its_files(spilling: SparkSession, tmp_path: Path) -> None:
    path = table(spilling, str(tmp_path / "t"), 8)
    before = [[row["s"] for row in rows] for rows in rows_in_order(spilling, path)]
    assert compact(spilling, path, 4000).decision == "applied"
    after = [row["s"] for rows in rows_in_order(spilling, path) for row in rows]
    assert len(before) == 16
    for rows in before:
        place = after.index(rows[0])
        assert after[place : place + len(rows)] == rows
