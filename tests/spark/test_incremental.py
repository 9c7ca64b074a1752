"""Nightly relayouts: only what is new is rewritten, generations stay few, bins are committed one by one."""

import re
from pathlib import Path

import numpy as np
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.spark.test_relayout import content, make, relayout, spec_for, version
from zorder_pipeline import pipeline
from zorder_pipeline.benchmarks.data import session_conf
from zorder_pipeline.errors import LostRaceError, TableError
from zorder_pipeline.layout.encoding import rank_encoding
from zorder_pipeline.layout.extend import extended
from zorder_pipeline.layout.interleave import keys
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.values import ValueType, canonical_array
from zorder_pipeline.relayout import rewrite
from zorder_pipeline.relayout.file_list import FOREIGN
from zorder_pipeline.relayout.history import undone_by
from zorder_pipeline.relayout.key_column import KEY, with_key
from zorder_pipeline.relayout.rollback import rollback
from zorder_pipeline.relayout.select import bins_of
from zorder_pipeline.relayout.snapshot import open_table


def append(spark: SparkSession, path: str, first: int, rows: int) -> None:
    frame = spark.range(first, first + rows).selectExpr("id", "(id * 7919) % 3000 AS k", "concat('row ', id) AS name")
    frame.repartition(2).write.format("delta").mode("append").save(path)


@pytest.mark.slow
def test_only_new_files_are_rewritten_and_generations_merge_like_a_counter(spark: SparkSession, tmp_path: Path) -> None:
    path, spec = make(spark, tmp_path / "t", rows=8000, files=4), spec_for("k", bits=6)
    base = relayout(spark, path, spec)
    assert base.files_added == 16
    generations = []
    for night in range(4):
        append(spark, path, 10_000 + 1000 * night, 1000)
        before = content(spark, path)
        done = relayout(spark, path, spec)
        assert content(spark, path) == before
        assert not relayout(spark, path, spec).committed
        generations.append((done.rows, len(set(open_table(spark, path).files().generation.tolist()))))
    # 1000 new rows alone; then with the run of 1000 before; alone; with the runs of 1000 and 2000
    assert generations == [(1000, 2), (2000, 2), (1000, 3), (4000, 2)]


@pytest.mark.matrix
def test_generations_of_a_clone_merge_although_its_first_files_have_newer_ones(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Those of the table that was cloned, which counts its own versions, were the newest for ever."""
    path, spec = make(spark, tmp_path / "t", rows=4000, files=2), spec_for("k")
    for i in range(3):
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('night' = '{i}')")
    assert relayout(spark, path, spec).version == 4
    clone = str(tmp_path / "clone")
    spark.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{path}`")
    generations = []
    for night in range(3):  # the last one is newer than the clone's first files
        append(spark, clone, 10_000 + 1000 * night, 1000)
        done = relayout(spark, clone, spec)
        files = open_table(spark, clone).files()
        generations.append((done.rows, sorted(set(files.generation.tolist()))))
    first = 4 - FOREIGN
    assert generations == [(1000, [first, 2]), (2000, [first, 4]), (1000, [first, 4, 6])]
    assert pipeline.inspect(spark, clone)["generations"] == 3


@pytest.mark.matrix
@pytest.mark.parametrize("told", [True, False])
def test_days_beyond_the_learned_range_are_divided(spark: SparkSession, tmp_path: Path, told: bool) -> None:
    """Also those of a writer that keeps no statistics."""
    path, values = str(tmp_path / "days"), np.arange(100)
    feature = rank_encoding("day", "bigint", values, np.ones(100, bool)).feature(4)
    spec = KeySpec((feature,), (0,) * 4)
    for first, count in ((0, 4000), (100, 3000)):
        rows = spark.range(count).selectExpr(f"pmod(hash(id), 100) + {first}L AS day", "id")
        with session_conf(spark, {"spark.databricks.delta.stats.collect": str(told).lower()}):
            rows.repartition(3).write.format("delta").mode("append").save(path)
        relayout(spark, path, spec, extend=extended)
    files = open_table(spark, path).files()
    zones = files.zones["day"]
    new = files.generation == files.generation.max()
    assert int(new.sum()) == 6
    assert (zones.high - zones.low)[new].max() < 30  # of the hundred new days; without extension every file has all
    assert set(files.layout) == {spec.layout_id}


@pytest.mark.parametrize("rows", [None, 40])
def test_an_extended_key_is_computed_alike(spark: SparkSession, rows: int | None) -> None:
    frame = spark.range(400).selectExpr("CAST(id AS INT) AS a", "CAST(id * 3 AS INT) AS b")
    old = np.arange(150)
    features = tuple(rank_encoding(name, "int", old, np.ones(150, bool)).feature(3) for name in "ab")
    table = frame.toArrow()
    columns = {name: canonical_array(table[name], ValueType("int")) for name in "ab"}
    for curve in ("interleave", "gray", "hilbert"):
        spec = extended(KeySpec(features, (0, 1) * 3, curve, rows=rows, clock="b"), columns, 400)
        assert [feature.epochs for feature in spec.features] == [1, 9 if rows else 1]
        hilbert = None
        if curve == "hilbert":
            from zorder_pipeline.layout.interleave import hilbert_table

            hilbert = hilbert_table(spec)
        found = with_key(frame, spec, {"a": ("a",), "b": ("b",)}, hilbert).select("a", KEY).toArrow()
        expected = dict(zip(columns["a"][0].tolist(), keys(spec, columns).tolist(), strict=True))
        assert dict(zip(found["a"].to_pylist(), found[KEY].to_pylist(), strict=True)) == expected
        assert max(expected.values()) >= 1 << 6


def partitioned(spark: SparkSession, path: Path) -> str:
    frame = spark.range(3000).selectExpr("id AS k", "IF(id % 5 = 4, NULL, id % 5) AS p")
    frame.repartition(2).write.format("delta").partitionBy("p").save(str(path))
    return str(path)


@pytest.mark.matrix
def test_bins_of_partitions_are_committed_one_by_one_and_a_stopped_run_goes_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, spec = partitioned(spark, tmp_path / "t"), spec_for("k")
    before, said = content(spark, path), []
    attempt, calls = rewrite._attempt, []

    def stopped(*args: object) -> object:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return attempt(*args)

    monkeypatch.setattr(rewrite, "_attempt", stopped)
    with pytest.raises(KeyboardInterrupt):
        relayout(spark, path, spec, bin_bytes=1, progress=said.append)
    assert version(spark, path) == 2
    assert any(re.search(r"bin 2 of 5: [12]\d% of the bytes done, about .* s left", text) for text in said)
    monkeypatch.undo()
    rest = relayout(spark, path, spec, bin_bytes=1)
    assert (rest.rows, rest.version) == (1800, 5)
    assert content(spark, path) == before
    assert not relayout(spark, path, spec).committed
    assert rollback(spark, path).restored_version == 2  # before the second run


def test_bins_hold_whole_partitions_of_about_their_size(spark: SparkSession, tmp_path: Path) -> None:
    files = open_table(spark, partitioned(spark, tmp_path / "t")).files()
    every = np.arange(len(files))
    size = int(files.bytes.sum())
    assert [len(item) for item in bins_of(files, every, size)] == [len(files)]
    bins = bins_of(files, every, size // 2)
    assert sorted(np.concatenate(bins).tolist()) == every.tolist()
    owners = [{files.partitions[i] for i in item} for item in bins]
    assert sum(len(owner) for owner in owners) == len(set(files.partitions)) == 5
    assert len(bins) == 3
    assert bins_of(files, every[:0], 10) == []


@pytest.mark.slow
def test_a_lost_bin_says_what_was_committed_before(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, attempt, calls = partitioned(spark, tmp_path / "t"), rewrite._attempt, []

    def lost(*args: object) -> object:
        calls.append(1)
        if len(calls) > 2:
            raise LostRaceError("another writer")
        return attempt(*args)

    monkeypatch.setattr(rewrite, "_attempt", lost)
    with pytest.raises(LostRaceError, match="2 of 5 bins were committed before, a new run goes on"):
        relayout(spark, path, spec_for("k"), bin_bytes=1)
    assert len(calls) == 2 + rewrite.ATTEMPTS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bins_before", "told"),
    [
        (1, "nothing of this bin was committed; 1 of 5 bins were committed before, a new run goes on with the rest$"),
        (0, "nothing was committed$"),
    ],
)
def test_what_spark_fails_with_between_bins_is_a_sentence(
    spark: SparkSession, tmp_path: Path, bins_before: int, told: str
) -> None:
    path, asked = partitioned(spark, tmp_path / "t"), []

    def hold() -> None:
        asked.append(1)
        if len(asked) > bins_before:
            raise PySparkException("the store of the stop file does not answer")

    with pytest.raises(TableError, match=f"t could not be rewritten: .* does not answer; {told}"):
        relayout(spark, path, spec_for("k"), bin_bytes=1, hold=hold)
    assert version(spark, path) == bins_before


@pytest.mark.slow
@pytest.mark.parametrize("rival", ["OPTIMIZE", "OPTIMIZE ZORDER BY"])
def test_a_job_that_undoes_the_layout_is_named(spark: SparkSession, tmp_path: Path, rival: str) -> None:
    path, spec = make(spark, tmp_path / "t"), spec_for("k")
    command = f"OPTIMIZE delta.`{path}`" + (" ZORDER BY (id)" if "ZORDER" in rival else "")
    for night in range(2):
        relayout(spark, path, spec)
        assert undone_by(open_table(spark, path)) is None
        spark.sql(command)
        found = undone_by(open_table(spark, path))
        assert (found is None) == (night == 0)
    assert "another job keeps undoing the layout: OPTIMIZE" in str(found)


def test_history_shows_whose_commit_it_was_and_rollback_takes_back_only_ours(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, spec = make(spark, tmp_path / "t"), spec_for("k")
    with pytest.raises(TableError, match="has no relayout of ours to take back"):
        rollback(spark, path)
    relayout(spark, path, spec)
    row = spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 1").collect()[0]
    assert row["operation"] == "OPTIMIZE"
    assert row["userMetadata"].startswith(f"zorder layout {spec.layout_id} ")
    assert int(row["operationMetrics"]["numAddedFiles"]) == len(open_table(spark, path).files())
    append(spark, path, 5000, 10)
    with pytest.raises(TableError, match="WRITE at version 2 came after our relayout"):
        rollback(spark, path)
