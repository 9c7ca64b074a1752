"""The state's statistics: what is held of them in memory, and what others write."""

from __future__ import annotations

import datetime as dt
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from tests.spark.gathering import asked_of, gathered, read_alike
from zorder_pipeline import pipeline
from zorder_pipeline.errors import TableError
from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.pipeline.reading import kept_statistics
from zorder_pipeline.pipeline.reading.kept_statistics import complete_statistics, keep_statistics
from zorder_pipeline.pipeline.reading.statistics import gather_statistics
from zorder_pipeline.reading import file_stats
from zorder_pipeline.reading.file_stats import FileStats
from zorder_pipeline.relayout.snapshot import open_table


def test_what_is_held_of_the_state_is_what_lies_there(spark: SparkSession, tmp_path: Path) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    spark.range(9).selectExpr("id", "concat('c', id) AS c").repartition(2).write.format("delta").save(path)
    gathered(spark, path, state, "c LIKE '%7%'")
    table_id = open_table(spark, path).table_id
    store = FileStats(spark, state)
    first = store.load(table_id)
    assert store.load(table_id, fresh=True) is first, "nobody wrote, so nothing is read again"
    for files, condition in ((2, "c LIKE '%7%'"), (1, "c LIKE '%7%'"), (1, "c LIKE '%8%'")):
        if files == 1:
            spark.range(5).selectExpr("id", "'c7' AS c").coalesce(1).write.format("delta").mode("overwrite").save(path)
        gathered(spark, path, state, condition)
        held = store.load(table_id)
        assert len(set(held.rows["path"].to_pylist())) == files
        file_stats._loaded.clear()
        read = store.load(table_id)
        assert sorted(map(str, held.rows.to_pylist())) == sorted(map(str, read.rows.to_pylist()))


def test_who_gathers_of_an_older_version_forgets_nothing_of_a_later_one(spark: SparkSession, tmp_path: Path) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    spark.sql("SELECT 1 AS id, 'late' AS comment").coalesce(1).write.format("delta").save(path)
    old = open_table(spark, path)
    spark.sql("SELECT 2 AS id, 'soon' AS comment").coalesce(1).write.format("delta").mode("overwrite").save(path)
    gathered(spark, path, state, "comment LIKE '%late%'")
    assert read_alike(spark, path, state, "comment LIKE '%late%'") == 0
    done = gather_statistics(spark, old, asked_of(old, "comment LIKE '%late%'"), state)
    assert done.files_forgotten == 0
    assert read_alike(spark, path, state, "comment LIKE '%late%'") == 0, "of the file that there is, all is still known"
    file_stats._loaded.clear()
    assert len(set(FileStats(spark, state).load(old.table_id).rows["path"].to_pylist())) == 2
    gathered(spark, path, state, "comment LIKE '%soon%'")
    assert len(set(FileStats(spark, state).load(old.table_id).rows["path"].to_pylist())) == 1


@pytest.mark.matrix
def test_a_damaged_folder_of_statistics_is_told_in_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    path, state = str(tmp_path / "t"), tmp_path / "state"
    spark.sql("SELECT 1 AS id, 'c7' AS c").coalesce(1).write.format("delta").save(path)
    gathered(spark, path, str(state), "c LIKE '%7%'")
    for file in (state / "file_stats").rglob("*.parquet"):
        file.unlink()
    file_stats._loaded.clear()  # as in another process
    told = r"file_stats cannot be read: .* delete it, and zorder stats gathers them anew$"
    with pytest.raises(TableError, match=told):
        gathered(spark, path, str(state), "c LIKE '%7%'")
    shutil.rmtree(state / "file_stats")
    gathered(spark, path, str(state), "c LIKE '%7%'")
    assert len(FileStats(spark, str(state)).load(open_table(spark, path).table_id))


@pytest.mark.matrix
def test_what_others_write_to_the_state_is_seen(spark: SparkSession, tmp_path: Path) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    spark.range(9).selectExpr("id", "concat('c', id) AS c").coalesce(1).write.format("delta").save(path)
    table_id = open_table(spark, path).table_id
    store = FileStats(spark, state)
    gathered(spark, path, state, "c LIKE '%7%'")
    store.load(table_id)
    mine = dict(file_stats._loaded)
    gathered(spark, path, state, "c LIKE '%8%'")
    both = len(store.load(table_id))
    file_stats._loaded.clear()
    file_stats._loaded.update(mine)  # as in another process, which has not seen the second
    assert len(store.load(table_id)) < both == len(store.load(table_id, fresh=True))
    file_stats._loaded.update(mine)
    spark.range(2).selectExpr("id", "'c7' AS c").coalesce(1).write.format("delta").mode("append").save(path)
    snapshot = open_table(spark, path)
    gather_statistics(spark, snapshot, asked_of(snapshot, "c LIKE '%9%'"), state)
    file_stats._loaded.clear()
    names = set(store.load(table_id).rows["feature"].to_pylist())
    assert {"c LIKE '%7%'", "c LIKE '%8%'", "c LIKE '%9%'"} <= names


def _with_a_file_gone(spark: SparkSession, folder: Path) -> tuple[str, str]:
    """A table and a state that holds statistics of its four files, of which one was rewritten since."""
    path, state = str(folder / "t"), str(folder / "state")
    spark.range(40).selectExpr("id", "concat('Jane ', id) c").repartition(4).write.format("delta").save(path)
    gathered(spark, path, state, "c LIKE '%Jane%'")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 7")
    return path, state


@pytest.mark.slow
def test_what_is_purged_while_statistics_are_written_does_not_come_back(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, state = _with_a_file_gone(spark, tmp_path)
    write = FileStats._write

    def late(self: FileStats, *args: Any) -> None:
        assert FileStats(spark, state).purge() > 0
        write(self, *args)

    monkeypatch.setattr(FileStats, "_write", late)
    gathered(spark, path, state, "id > 3")
    kinds = {row["kind"] for row in spark.read.format("delta").load(f"{state}/file_stats").collect()}
    assert kinds <= {"column"}


@pytest.mark.slow
def test_what_another_gathers_while_statistics_are_written_stays(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, state = _with_a_file_gone(spark, tmp_path)
    write, others = FileStats._write, list[str]()

    def late(self: FileStats, *args: Any) -> None:
        monkeypatch.setattr(FileStats, "_write", write)
        spark.range(2).selectExpr("id", "'Joe' c").coalesce(1).write.format("delta").mode("append").save(path)
        snapshot = open_table(spark, path)
        others.extend(set(snapshot.files().path.tolist()) - before)
        features = asked_of(snapshot, "c LIKE '%Jane%'")
        gather_statistics(spark, snapshot, features, state, paths=others)
        write(self, *args)

    before = set(open_table(spark, path).files().path.tolist())
    monkeypatch.setattr(FileStats, "_write", late)
    gathered(spark, path, state, "c LIKE '%Jane%'")
    file_stats._loaded.clear()
    held = FileStats(spark, state).load(open_table(spark, path).table_id)
    assert others
    assert set(held.rows["path"].to_pylist()) == before | set(others), "nor does what is gone come back"


@pytest.mark.slow
def test_what_another_wrote_first_is_not_written_twice(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, state = _with_a_file_gone(spark, tmp_path)
    write, tries = FileStats._write, list[int]()

    def crossed(self: FileStats, table_id: str, rows: pa.Table, *others: Any) -> None:
        tries.append(len(rows))
        write(self, table_id, rows, *others)
        file_stats._loaded.clear()
        if len(tries) == 1:  # that was another process, which was faster
            raise type("ConcurrentAppendException", (Exception,), {})

    monkeypatch.setattr(FileStats, "_write", crossed)
    gathered(spark, path, state, "c LIKE '%Jane%'")
    stored = spark.read.format("delta").load(f"{state}/file_stats")
    assert (len(tries), tries[0] > 0) == (1, True)
    assert stored.count() == stored.dropDuplicates(["path", "feature", "kind", "sql", "session"]).count()


def test_values_are_looked_for_once_they_are_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    """Of a column whose bounds alone were known already no values were looked for: those files were never skipped."""
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    rows = spark.range(0, 40_000, 1, 4).selectExpr("concat('v', id % 90) AS few", "concat('v', id) AS many", "id AS k")
    rows.write.format("delta").save(path)
    few, many = (Feature(name, "column", "string", f"`{name}`", (name,)) for name in ("few", "many"))
    bounds = Feature("k + 1", "expression", "bigint", "k + 1", ("k",))
    wanted = [few, many, bounds]
    assert pipeline.update_statistics(spark, path, state, features=wanted).rows_added == 12
    wanted = [replace(few, equality=True), replace(many, equality=True), bounds]
    again = pipeline.update_statistics(spark, path, state, features=wanted)
    assert (again.files, again.rows_added) == (4, 8)
    assert pipeline.update_statistics(spark, path, state, features=wanted).files == 0, "also where they are too many"
    assert pipeline.update_statistics(spark, path, state, features=[few]).files == 0
    table_id = open_table(spark, path).table_id
    held = FileStats(spark, state).load(table_id, fresh=True).rows
    stored = FileStats(spark, state)._read(table_id).rows
    for known in (held, stored):
        told = {name: known.filter(pc.equal(known["feature"], name))["places"] for name in ("few", "many", "k + 1")}
        assert {name: (len(each), each.null_count) for name, each in told.items()} == {
            "few": (4, 0),
            "many": (4, 4),
            "k + 1": (4, 4),
        }


def _dated(monkeypatch: pytest.MonkeyPatch, day: dt.datetime) -> None:
    """Have statistics be gathered on another day."""
    clock = SimpleNamespace(datetime=SimpleNamespace(now=lambda _: day), UTC=dt.UTC)
    monkeypatch.setattr(file_stats, "dt", clock)


def test_what_held_under_a_deletion_vector_of_before_is_forgotten(spark: SparkSession, tmp_path: Path) -> None:
    """Each night's deletes left all rows of the night before, for as long as the file is there."""
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    rows = spark.range(100).selectExpr("id", "concat('c', id) AS c").coalesce(1).write.format("delta")
    rows.option("delta.enableDeletionVectors", "true").save(path)
    counts = []
    for night in range(4):
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = {night}")
        gathered(spark, path, state, "c LIKE '%7%'")
        counts.append(len(FileStats(spark, state).load(open_table(spark, path).table_id)))
        file_stats._loaded.clear()
        assert len(FileStats(spark, state).load(open_table(spark, path).table_id)) == counts[-1], "in memory and there"
    assert len(set(counts)) == 1, counts
    assert read_alike(spark, path, state, "c LIKE '%7%'") == 1
    assert read_alike(spark, path, state, "c LIKE '%x%'") == 1


def test_new_files_get_the_statistics_that_were_gathered_last(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They got all that were ever gathered of a table, whatever queries ask for now."""
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    monkeypatch.setattr(kept_statistics, "MAX_FEATURES", 1)
    for number, condition in enumerate(("c LIKE '%7%'", "c LIKE '%8%'", None)):
        frame = spark.range(9).selectExpr(f"id + {number} AS id", "concat('c', id) AS c").coalesce(1)
        frame.write.format("delta").mode("append").save(path)
        if condition is not None:
            gathered(spark, path, state, condition)
    snapshot = open_table(spark, path)
    done = complete_statistics(snapshot, state)
    assert done is not None
    assert (done.files, [name for name in done.features if "LIKE" in name]) == (1, ["c LIKE '%8%'"])


def test_what_came_while_all_with_statistics_was_rewritten_gets_some(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a relayout that went on past midnight: the rows left were of its own files, and told of the next day."""
    path, state, condition = str(tmp_path / "t"), str(tmp_path / "state"), "c LIKE '%7%'"
    spark.range(90).selectExpr("id", "concat('c', id) AS c").coalesce(1).write.format("delta").save(path)
    _dated(monkeypatch, dt.datetime.now(dt.UTC) - dt.timedelta(days=9))
    gathered(spark, path, state, condition)
    before = open_table(spark, path)
    settings = pipeline.LearnSettings(target_file_rows=50)
    plan = pipeline.layout_by_hand(spark, path, {"id": 2}, settings=settings)
    pipeline.apply(spark, path, plan, state=state, force=True)
    spark.range(9).selectExpr("id", "'late' AS c").coalesce(1).write.format("delta").mode("append").save(path)
    _dated(monkeypatch, dt.datetime.now(dt.UTC) + dt.timedelta(days=1))
    keep_statistics(before, replace(plan, statistics=asked_of(before, condition)), state)
    told = pipeline.explain(spark, path, "c LIKE '%7%' AND id < 5", state=state)
    assert (told.files, told.files_read) == (3, 1), "and not the file that came"


def test_statistics_of_few_tables_are_held(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_stats, "KEPT", 2)
    file_stats._loaded.clear()
    store = FileStats(spark, str(tmp_path / "none"))
    first = store.load("a")
    for table in ("b", "a", "c"):
        store.load(table)
    assert [table for _, table in file_stats._loaded] == ["a", "c"]
    assert store.load("a") is first
