"""Compaction alone: fewer files, the same rows in the same order, and layouts that stay what they are."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from deltalake import write_deltalake
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from tests.spark.gathering import gathered
from tests.spark.test_relayout import content, make, relayout, spec_for, version
from zorder_pipeline import explain, pipeline
from zorder_pipeline.model.candidate import COMPACTION
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.model.workload import QueryLog
from zorder_pipeline.pipeline import LearnSettings, layout_by_hand
from zorder_pipeline.reading.file_stats import FileStats
from zorder_pipeline.relayout.history import undone_by
from zorder_pipeline.relayout.rollback import rollback
from zorder_pipeline.relayout.snapshot import open_table
from zorder_pipeline.report.facts import gather


def compact(spark: SparkSession, path: str, rows: int | None = 1000, **options: object) -> ApplyResult:
    settings = LearnSettings(target_file_rows=rows)
    return pipeline.compact(spark, path, settings=settings, verify="hash", **options)  # type: ignore[arg-type]


def rows_in_order(spark: SparkSession, path: str) -> list[list[Row]]:
    """The rows of each file, in their order."""
    files: dict[str, list[Row]] = {}
    named = spark.read.format("delta").load(path).selectExpr("*", "_metadata.file_name AS file")
    for row in named.withColumn("place", F.monotonically_increasing_id()).orderBy("place").collect():
        files.setdefault(row["file"], []).append(row)
    return list(files.values())


def test_a_report_tells_the_layout_whose_files_were_merged_since(spark: SparkSession, tmp_path: Path) -> None:
    path, state = make(spark, tmp_path / "t", rows=4000), str(tmp_path / "state")
    plan = layout_by_hand(spark, path, {"k": 3}, settings=LearnSettings(target_file_rows=300))
    assert pipeline.apply(spark, path, plan, force=True, state=state).decision == "applied"
    spark.read.format("delta").load(path).limit(60).repartition(6).write.format("delta").mode("append").save(path)
    merging = replace(plan, spec=None, action=COMPACTION)
    assert pipeline.apply(spark, path, merging, force=True, state=state).decision == "applied"
    facts = gather(spark, open_table(spark, path), QueryLog((), 0, 0), ["t"], state, LearnSettings(), lambda _: None)
    assert [bool(entry.layout_id) for entry in facts.entries] == [True, False]
    assert facts.applied is not None
    assert facts.applied.spec == plan.spec
    assert facts.before is not None
    assert facts.before.version == 0


VECTORS = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("properties", "removed", "sizes"),
    [
        # the delete has rewritten a small file, which now is the newest
        ({}, 6, [460, 1000]),
        (VECTORS, 5, [250, 1210]),
    ],
)
def test_small_files_are_laid_end_to_end_and_a_second_run_commits_nothing(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], removed: int, sizes: list[int]
) -> None:
    path = make(spark, tmp_path / "a b+c%41=", rows=3000, files=1, **properties)
    for first in range(0, 1500, 250):
        frame = spark.range(first, first + 250, 1, 1).selectExpr("id", "id AS k", "'new' AS name")
        frame.write.format("delta").mode("append").save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id < 40")
    before, order = content(spark, path), [rows for rows in rows_in_order(spark, path) if rows[0][2] == "new"]
    wanted = compact(spark, path, dry_run=True)
    done = compact(spark, path)
    assert (done.decision, done.files_removed) == ("applied", removed)
    assert (done.files_added, wanted.files_added) == (len(sizes) - (250 in sizes),) * 2
    assert content(spark, path) == before
    new = [rows for rows in rows_in_order(spark, path) if rows[0][2] == "new"]
    assert sorted(map(len, new)) == sizes
    parts = {rows[0][0]: row_ids(rows) for rows in order}
    assert sorted(first for rows in new for first in laid_end_to_end(row_ids(rows), parts)) == sorted(parts)
    assert compact(spark, path).decision == "nothing_to_do"
    row = spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 1").collect()[0]
    assert row["operation"] == "OPTIMIZE"
    assert row["userMetadata"].startswith("zorder compaction ")
    assert rollback(spark, path).restored_version == done.version - 1


def laid_end_to_end(ids: list[int], parts: dict[int, list[int]]) -> list[int]:
    """The first ids of the parts that ``ids`` are made of, each whole and in its order."""
    found = []
    while ids:
        part = parts[ids[0]]
        assert ids[: len(part)] == part
        found.append(ids[0])
        ids = ids[len(part) :]
    return found


def row_ids(rows: list[Row]) -> list[int]:
    return [row[0] for row in rows]


def test_clustered_files_are_merged_with_neighbours_and_stay_clustered(spark: SparkSession, tmp_path: Path) -> None:
    path = make(spark, tmp_path / "t", rows=6000, **{"delta.enableDeletionVectors": "true"})
    spec = spec_for("k", bits=6)
    relayout(spark, path, spec)
    assert compact(spark, path, None).decision == "nothing_to_do"  # at the size that they have
    spark.sql(f"DELETE FROM delta.`{path}` WHERE k BETWEEN 900 AND 1700 AND id % 5 > 0")
    before, files = content(spark, path), open_table(spark, path).files()
    touched = files.deleted > 0
    done = compact(spark, path, None)
    assert (done.decision, done.files_removed) == ("applied", int(touched.sum()))
    assert done.files_added < done.files_removed
    after = open_table(spark, path).files()
    assert content(spark, path) == before
    assert after.deleted.sum() == 0
    assert set(after.layout) == {spec.layout_id}
    assert set(after.generation.tolist()) == {1}
    order = np.argsort(after.key_low)  # ranges of keys still do not overlap, and span what they did
    assert (after.key_low[order][1:] > after.key_high[order][:-1]).all()
    assert (after.key_low.min(), after.key_high.max()) == (files.key_low.min(), files.key_high.max())
    assert not relayout(spark, path, spec).committed
    assert compact(spark, path, None).decision == "nothing_to_do"
    assert undone_by(open_table(spark, path)) is None


@pytest.mark.parametrize("nightly", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_merged_files_keep_the_statistics_of_the_table(spark: SparkSession, tmp_path: Path, nightly: bool) -> None:
    path, state, condition = str(tmp_path / "t"), str(tmp_path / "s"), "name LIKE '%7%' OR k < 0"
    for first in range(0, 600, 100):
        rows = spark.range(first, first + 100, 1, 1).selectExpr("id AS k", "concat('n', id DIV 300) AS name")
        rows.write.format("delta").mode("append").save(path)
    gathered(spark, path, state, condition)
    before = FileStats(spark, state).load(open_table(spark, path).table_id).rows
    if nightly:
        plan = replace(layout_by_hand(spark, path, {"k": 2}), spec=None, action=COMPACTION, target_file_rows=300)
        assert pipeline.apply(spark, path, plan, force=True, state=state).decision == "applied"
    else:
        assert compact(spark, path, 300, state=state).decision == "applied"
    snapshot = open_table(spark, path)
    kept = FileStats(spark, state).load(snapshot.table_id, fresh=True).rows
    assert set(kept["path"].to_pylist()) == {str(name) for name in snapshot.files().path}
    for name in ("feature", "kind", "type", "sql", "columns", "session"):
        assert set(kept[name].to_pylist()) == set(before[name].to_pylist())
    assert explain(spark, path, condition, state=state).files_read == 0
    assert compact(spark, path, 1000, dry_run=True, state=state).files_removed == 2
    session = spark.newSession()  # to which the statistics say nothing
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    compact(session, path, 1000, state=state)
    assert not set(kept["path"].to_pylist()) & set(
        FileStats(spark, state).load(snapshot.table_id, fresh=True).rows["path"].to_pylist()
    )


def test_partitions_foreign_writers_and_where(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "rs")
    for part in range(6):
        rows = spark.range(part * 100, part * 100 + 100).selectExpr("id AS k", "IF(id % 2 = 0, 'ü b/=%+', NULL) AS p")
        write_deltalake(path, rows.toArrow(), partition_by=["p"], mode="append")
    before = content(spark, path)
    assert compact(spark, path, where="p IS NULL").files_removed == 6
    assert len(open_table(spark, path).files()) == 7
    assert compact(spark, path).files_added == 1
    assert len(open_table(spark, path).files()) == 2
    assert content(spark, path) == before
    assert version(spark, path) == 7
