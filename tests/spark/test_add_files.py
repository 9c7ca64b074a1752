"""A version's AddFile actions in the JVM's memory: those of a relayout are the ones that Delta's log has."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.test_relayout import make, relayout, spec_for
from zorder_pipeline.relayout import add_files
from zorder_pipeline.relayout.add_files import AddFiles
from zorder_pipeline.relayout.commit import Transaction
from zorder_pipeline.relayout.snapshot import TableSnapshot, forget_snapshots, open_table

pytestmark = [pytest.mark.usefixtures("compiled"), pytest.mark.matrix]

SPEC = spec_for("k")


def told(snapshot: TableSnapshot) -> list[tuple[Any, ...]]:
    """What the list of files says of each file, by path."""
    files = snapshot.files()
    names = [field.name for field in fields(files) if field.name != "load_zones"]
    zones = [
        getattr(zone, name).tolist() for zone in files.zones.values() for name in ("low", "high", "known", "null_count")
    ]
    return sorted(zip(*(list(getattr(files, name)) for name in names), *zones, strict=True))


def looked_up(spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch) -> TableSnapshot:
    """The newest version as Delta's log has it."""
    forget_snapshots()
    monkeypatch.setattr(add_files, "FEW", 0)
    return open_table(spark, path)


@pytest.mark.slow
def test_a_relayout_tells_the_files_of_the_version_it_made(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make(spark, tmp_path / "t")
    relayout(spark, path, SPEC)
    spark.sql(f"INSERT INTO delta.`{path}` SELECT id, id, 'new' FROM range(100, 200)")
    done = relayout(spark, path, SPEC)  # of the new file alone
    assert 0 < done.files_removed < done.skipped_files + done.files_removed
    made = open_table(spark, path)
    assert made.add_files._known is not None
    paths = [str(file) for file in made.files().path]
    rows = sorted(map(str, made.read_files(paths[:3]).collect()))
    files = told(made)
    actions = sorted(made.actions_of(paths).apply(i).json() for i in range(len(paths)))
    plain = looked_up(spark, path, monkeypatch)
    assert not plain.add_files.few
    assert told(plain) == files
    assert sorted(map(str, plain.read_files(paths[:3]).collect())) == rows
    assert sorted(plain.actions_of(paths).apply(i).json() for i in range(len(paths))) == actions
    assert made.version == plain.version == done.version


def test_another_commit_in_between_leaves_the_files_to_delta(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make(spark, tmp_path / "t")
    write = Transaction.write

    def slow(self: Transaction, *args: Any) -> Any:
        spark.sql(f"INSERT INTO delta.`{path}` SELECT id, id, 'new' FROM range(10)")
        return write(self, *args)

    monkeypatch.setattr(Transaction, "write", slow)
    done = relayout(spark, path, SPEC)
    made = open_table(spark, path)
    assert made.version == done.version == 2
    assert made.add_files._known is None
    assert int(made.files().rows.sum()) == 3010


def test_actions_that_get_ids_of_rows_are_left_to_delta(spark: SparkSession, tmp_path: Path) -> None:
    path = make(spark, tmp_path / "t", **{"delta.enableRowTracking": "true"})
    assert relayout(spark, path, SPEC).committed
    assert open_table(spark, path).add_files._known is None


def test_without_a_summary_in_the_log_nobody_says_that_files_are_few(spark: SparkSession, tmp_path: Path) -> None:
    path = make(spark, tmp_path / "t")
    assert open_table(spark, path).add_files.few
    for summary in (tmp_path / "t" / "_delta_log").glob("*.crc"):
        summary.unlink()
    forget_snapshots()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    snapshot = open_table(spark, path)
    assert not snapshot.add_files.few
    assert len(snapshot.files()) == 6
    assert snapshot.read_files([str(snapshot.files().path[0])]).count() == int(snapshot.files().rows[0])


def test_some_files_come_in_the_order_of_all(spark: SparkSession, tmp_path: Path) -> None:
    snapshot = open_table(spark, make(spark, tmp_path / "t"))
    every = AddFiles(spark, snapshot.jsnapshot)
    paths = [row["path"] for row in every.frame().select("path").collect()]
    found = every.of([paths[4], paths[1], "gone.parquet"])
    assert [found.apply(i).path() for i in range(found.size())] == [paths[1], paths[4]]
