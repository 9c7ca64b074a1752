"""The committer by public API: whole partitions, races, proof after the commit, what it refuses, and Spark Connect."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F

from tests.spark.delta_feature_cases import CASES, Case, made
from tests.spark.test_delta_features import CONF, streamed
from tests.spark.test_races import VECTORS, check
from tests.spark.writers import Race, create, relayout, rows_at, spec_for
from zorder_pipeline import pipeline
from zorder_pipeline.benchmarks.data import session_conf
from zorder_pipeline.errors import LostRaceError, TableError, UnsupportedTableError, VerificationError
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.pipeline import LearnSettings
from zorder_pipeline.relayout import public_commit, restoring, rewrite
from zorder_pipeline.relayout import rollback as rollbacks
from zorder_pipeline.relayout import snapshot as snapshots
from zorder_pipeline.relayout.chosen_files import ChosenFiles
from zorder_pipeline.relayout.compaction import Compaction
from zorder_pipeline.relayout.history import bytes_added, history_of
from zorder_pipeline.relayout.job import RelayoutResult
from zorder_pipeline.relayout.public_commit import PublicCommitter
from zorder_pipeline.relayout.rollback import rollback
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table

ROWS = "SELECT /*+ REPARTITION(4) */ (id * 7919) % 400 AS k"


@pytest.fixture(autouse=True, scope="module")
def _quick(spark: SparkSession) -> Iterator[None]:
    with session_conf(spark, CONF):
        yield


def opened(spark: SparkSession, path: str) -> TableSnapshot:
    return open_table(spark, path, committer="public")


def relaid(spark: SparkSession, path: str, **options: Any) -> RelayoutResult:
    return relayout(spark, path, spec_for("k"), snapshot=opened(spark, path), **options)


def content(spark: SparkSession, path: str) -> list[str]:
    return sorted(map(str, spark.read.format("delta").load(path).collect()))


def laid_out(spark: SparkSession, path: str, *, where: str | None = None, verify: str = "hash") -> ApplyResult:
    """The table after a relayout by k through the pipeline, whose rows are checked."""
    settings = LearnSettings(target_file_rows=100)
    plan = pipeline.layout_by_hand(spark, path, {"k": 2}, settings=settings, committer="public")
    before = content(spark, path)
    done = pipeline.apply(spark, path, plan, force=True, where=where, verify=verify, committer="public")
    assert content(spark, path) == before
    return done


def changed(monkeypatch: pytest.MonkeyPatch, change: Callable[[DataFrame], DataFrame]) -> None:
    """Let ``change`` do something to the rows of the first attempt, or to the table, before they are written."""
    replace, pending = PublicCommitter.replace, [change]

    def other(self: PublicCommitter, rows: DataFrame, how: Any) -> Any:
        return replace(self, pending.pop()(rows) if pending else rows, how)

    monkeypatch.setattr(PublicCommitter, "replace", other)


def meanwhile(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> threading.Thread:
    """Run ``act`` while the first attempt writes: one of its tasks waits until that is done."""
    properties = spark._jvm.java.lang.System  # type: ignore[union-attr]
    properties.setProperty("zorder.race", "planned")

    def run() -> None:
        deadline = time.monotonic() + 60
        while properties.getProperty("zorder.race") != "writing" and time.monotonic() < deadline:
            time.sleep(0.02)
        act()
        properties.setProperty("zorder.race", "done")

    def slow(rows: DataFrame) -> DataFrame:
        told = "reflect('java.lang.System', 'setProperty', 'zorder.race', 'writing')"
        over = "reflect('java.lang.System', 'getProperty', 'zorder.race') = 'done'"
        nap = f"IF({over}, '', reflect('java.lang.Thread', 'sleep', 100L))"
        waits = f"{told} = 'planned' AND size(transform(sequence(1, 300), i -> {nap})) = 0"
        value = F.expr(f"IF(id = 777 AND {waits}, 0L, v)")
        return rows.select(*(value.alias("v") if name == "v" else F.col(name) for name in rows.columns))

    changed(monkeypatch, slow)
    thread = threading.Thread(target=run)
    thread.start()
    return thread


# ---------------------------------------------------------------------------------------------- what is rewritten


@pytest.mark.slow
@pytest.mark.parametrize("partitioned", [False, True])
def test_a_second_run_commits_nothing_and_new_rows_bring_in_their_partition(
    spark: SparkSession, tmp_path: Path, partitioned: bool
) -> None:
    path = create(spark, tmp_path / "a [b]{c}%20", VECTORS, partitioned=partitioned, files=2)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 10 = 3")
    before = rows_at(spark, path)
    done = relaid(spark, path, verify="hash")
    commit = history_of(opened(spark, path), 1)[0]
    assert (done.committed, done.rows, done.version, done.files_removed) == (True, 1800, 2, 6 if partitioned else 2)
    assert (commit["operation"], commit["isolationLevel"]) == ("WRITE", "SnapshotIsolation")
    assert rows_at(spark, path) == before
    assert not relaid(spark, path).committed
    known = opened(spark, path).files()
    assert set(known.layout) == {spec_for("k").layout_id}
    assert known.zone_map().matching is not None
    assert sorted(open_table(spark, path).files().zones["k"].low) == sorted(known.zones["k"].low)
    spark.sql(f"INSERT INTO delta.`{path}` SELECT id, 5L, 0L, 0L FROM range(6000, 6010)")
    done = relaid(spark, path)
    assert done.rows == 10 + sum(row[3] == 0 or not partitioned for row in before)
    left = opened(spark, path).files()
    assert set(known.path) & set(left.path) == {name for name in known.path if "p=1" in name or "p=2" in name}
    assert rollback(spark, path, committer="public").restored_version == 3


@pytest.mark.slow
def test_files_of_a_transaction_are_known_and_the_other_way_round_they_are_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = create(spark, tmp_path / "t")
    relayout(spark, path, spec_for("k"))
    one, other = open_table(spark, path).files(), opened(spark, path).files()
    place = {name.rsplit("/", 1)[-1]: i for i, name in enumerate(other.path)}
    order = [place[name] for name in one.path]
    for name in ("bytes", "rows", "generation", "key_low", "key_high", "modified"):
        assert getattr(one, name).tolist() == getattr(other, name)[order].tolist(), name
    assert not relaid(spark, path).committed
    assert relaid(spark, path, full=True).committed
    assert set(open_table(spark, path).files().layout) == {""}


@pytest.mark.slow
def test_partitions_of_nulls_odd_texts_and_instants(spark: SparkSession, tmp_path: Path) -> None:
    path = f"{tmp_path}/t"
    odd = "element_at(array('it''s', 'a/b=%20:\\\\', '\u00fc \\n', string(NULL), 'NULL', '__x'), int(id % 6) + 1)"
    values = f"{odd} AS s, timestamp_micros(id % 2 * 1234567 + 1762063200000000) AS at, double('NaN') AS n"
    columns = f"{ROWS}, id, {values}, id % 2 = 0 AS b, date_from_unix_date(id % 2) AS d, X'4142' AS y"
    spark.sql(
        f"CREATE TABLE delta.`{path}` USING delta PARTITIONED BY (s, at, n, b, d, y) AS {columns} FROM range(400)"
    )
    with session_conf(spark, {"spark.sql.session.timeZone": "America/New_York"}):  # the instants lie in an hour of two
        one = laid_out(spark, path, where="s = 'it''s' OR s IS NULL")
        assert 0 < one.rows < 200
        assert one.rows + laid_out(spark, path).rows == 400


@pytest.mark.slow
def test_settings_of_the_table_leave_the_files_as_they_were_given(spark: SparkSession, tmp_path: Path) -> None:
    own = {"delta.autoOptimize.optimizeWrite": "true", "delta.autoOptimize.autoCompact": "true"}
    path = create(spark, tmp_path / "t", own)
    with session_conf(spark, {"spark.databricks.delta.autoCompact.minNumFiles": "2"}):
        assert relaid(spark, path).files_added == 7
    assert len(opened(spark, path).files()) == 7


# ---------------------------------------------------------------------------------------------------------- races


@pytest.mark.matrix
@pytest.mark.parametrize("partitioned", [pytest.param(False, marks=pytest.mark.slow), True])
def test_what_others_append_before_and_while_it_writes_is_there_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitioned: bool
) -> None:
    path = create(spark, tmp_path / "t", partitioned=partitioned, files=2)
    before, append = rows_at(spark, path), f"INSERT INTO delta.`{path}` VALUES"
    thread = meanwhile(spark, monkeypatch, lambda: spark.sql(f"{append} (7002, 5, 0, 0), (7003, 5, 0, 9)"))
    snapshot = opened(spark, path)
    spark.sql(f"{append} (7000, 5, 0, 0), (7001, 5, 0, 8)")
    done = relayout(spark, path, spec_for("k"), snapshot=snapshot, verify="hash")
    thread.join()
    ours = next(row for row in history_of(opened(spark, path)) if row["version"] == done.version)
    assert (ours["readVersion"], done.version) == (1, 3), "the second append did not come while it wrote"
    assert rows_at(spark, path) == sorted([*before, (7000, 5, 0, 0), (7001, 5, 0, 8), (7002, 5, 0, 0), (7003, 5, 0, 9)])
    layouts = dict(zip(opened(spark, path).files().path, opened(spark, path).files().layout, strict=True))
    assert 1 <= sum(not layout for layout in layouts.values()) <= 3


@pytest.mark.slow
def test_a_delete_while_it_writes_is_not_undone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = create(spark, tmp_path / "t")
    thread = meanwhile(spark, monkeypatch, lambda: spark.sql(f"DELETE FROM delta.`{path}` WHERE id < 100"))
    assert relaid(spark, path).rows == 1900  # the second attempt
    thread.join()
    assert spark.read.format("delta").load(path).count() == 1900
    monkeypatch.setattr(rewrite, "ATTEMPTS", 1)
    thread = meanwhile(spark, monkeypatch, lambda: spark.sql(f"UPDATE delta.`{path}` SET v = 1 WHERE id < 200"))
    with pytest.raises(LostRaceError, match="nothing was committed"):
        relaid(spark, path, full=True)
    thread.join()
    assert spark.read.format("delta").load(path).where("v = 1").count() == 100


@pytest.mark.slow
def test_a_column_that_is_added_meanwhile_keeps_its_values(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = create(spark, tmp_path / "t")

    def add(rows: DataFrame) -> DataFrame:
        spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS (more STRING)")
        spark.sql(f"INSERT INTO delta.`{path}` VALUES (7000, 5, 0, 0, 'kept')")
        return rows

    changed(monkeypatch, add)
    done = relaid(spark, path)
    assert done.rows == 2001
    assert spark.read.format("delta").load(path).where("more = 'kept'").count() == 1


@pytest.mark.parametrize(
    "others", [pytest.param(0, marks=pytest.mark.slow), pytest.param(120, marks=pytest.mark.matrix)]
)
def test_a_column_that_is_dropped_and_added_again_meanwhile_does_not_get_its_values_back(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    """Also where a stream commits so often that this is none of the newest commits any more."""
    path = create(spark, tmp_path / "t", {"delta.columnMapping.mode": "name"})

    def swap(rows: DataFrame) -> DataFrame:
        spark.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN v")
        spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN v BIGINT AFTER k")
        for version in range(3, 3 + others):
            told = {"timestamp": int(time.time() * 1000), "operation": "STREAMING UPDATE", "operationParameters": {}}
            (Path(path) / "_delta_log" / f"{version:020}.json").write_text(json.dumps({"commitInfo": told}) + "\n")
        return rows

    changed(monkeypatch, swap)
    assert relaid(spark, path).rows == 2000
    assert spark.read.format("delta").load(path).where("v IS NOT NULL").count() == 0


@pytest.mark.matrix
def test_a_commit_that_does_not_say_what_it_did_is_one_as_any(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``commitInfo`` is optional by Delta's protocol; the relayout was told as one that nobody had verified."""
    path = create(spark, tmp_path / "t", {"delta.columnMapping.mode": "name"})

    def append(rows: DataFrame) -> DataFrame:
        spark.sql(f"INSERT INTO delta.`{path}` VALUES (7000, 5, 0, 0)")
        entry = Path(path) / "_delta_log" / f"{1:020}.json"
        lines = [line for line in entry.read_text().splitlines() if '"commitInfo"' not in line]
        (entry.parent / f".{entry.name}.crc").unlink()
        entry.write_text("\n".join(lines) + "\n")
        return rows

    changed(monkeypatch, append)
    done = relaid(spark, path)
    assert (done.version, done.rows) == (2, 2001)
    assert [row["operation"] for row in history_of(opened(spark, path))] == ["WRITE", None, "WRITE"]
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN v TO w")
    assert open_table(spark, path).asked_schema.former == (("v", "w"),)


@pytest.mark.slow
def test_a_table_that_is_emptied_after_the_plan_has_nothing_to_do(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark, tmp_path / "t")
    planned = opened(spark, path)
    spark.sql(f"DELETE FROM delta.`{path}`")
    assert not relayout(spark, path, spec_for("k"), snapshot=planned).committed
    assert opened(spark, path).version == 1


@pytest.mark.slow
def test_the_session_s_own_transaction_and_skipping_are_not_the_relayout_s(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, save, names = create(spark, tmp_path / "t"), DataFrameWriter.save, ("stats.skipping", "write.txnAppId")
    own = dict(zip((*names, "write.txnVersion"), ("false", "nightly", "1"), strict=True))
    seen = []

    def spied(self: DataFrameWriter, *args: Any) -> None:
        seen.append([spark.conf.get(f"spark.databricks.delta.{name}", None) for name in names])
        save(self, *args)

    with session_conf(spark, {f"spark.databricks.delta.{name}": value for name, value in own.items()}):
        spark.sql(f"INSERT INTO delta.`{path}` VALUES (7000, 5, 0, 0)")
        monkeypatch.setattr(DataFrameWriter, "save", spied)
        assert relaid(spark, path).rows == 2001
        assert spark.conf.get("spark.databricks.delta.write.txnAppId") == "nightly"
    assert seen == [["true", None]]


@pytest.mark.matrix
@pytest.mark.parametrize("committer", ["transaction", "public"])
def test_what_was_written_is_told_whatever_the_session_keeps_of_it(
    spark: SparkSession, tmp_path: Path, committer: str
) -> None:
    """Without metrics in the history no byte was credited, and the relayout was never seen undone."""
    path = create(spark, tmp_path / "t")
    with session_conf(spark, {"spark.databricks.delta.history.metricsEnabled": "false"}):
        snapshot = open_table(spark, path, committer=committer)
        done = relayout(spark, path, spec_for("k"), snapshot=snapshot)
    assert (done.rows, done.files_removed, done.files_added) == (2000, 6, 7)
    assert min(done.bytes_rewritten, done.bytes_added) > 0
    told = history_of(opened(spark, path), 1)[0]["operationMetrics"]
    assert (bytes_added(told), told["numRemovedFiles"]) == (done.bytes_added, "6")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("partitioned", [False, True])
def test_writers_of_all_kinds_and_relayouts_lose_and_double_no_row(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitioned: bool
) -> None:
    from tests.spark import writers

    find = writers.open_table
    monkeypatch.setattr(writers, "open_table", lambda session, path: find(session, path, committer="public"))
    path = create(spark, tmp_path / "t", partitioned=partitioned, files=2)
    race = Race(spark, path, 5, 40, patience=600)
    race.run(2, 0, [(spec_for("k"), spec_for("id", "k"))])
    kinds = check(race, samples=5)
    assert kinds["WRITE"] > 1


@pytest.mark.slow
@pytest.mark.parametrize("committer", ["transaction", "public"])
def test_rows_that_spark_holds_in_its_cache_do_not_come_back(
    spark: SparkSession, tmp_path: Path, committer: str
) -> None:
    path = create(spark, tmp_path / "t", partitioned=True, files=2)
    cached = spark.read.format("delta").load(path).cache()
    try:
        assert cached.count() == 2000
        DeltaTable(path).update(updates={"v": "9"}, predicate="id < 100")
        assert spark.read.format("delta").load(path).where("v = 9").count() == 0, "nothing is read from the cache"
        snapshot = open_table(spark, path, committer=committer)
        assert relayout(spark, path, spec_for("k"), snapshot=snapshot, verify="hash").rows == 2000
        assert sum(row[2] == 9 for row in rows_at(spark, path, 2)) == 100
    finally:
        cached.unpersist()


# ---------------------------------------------------------------------------------------------- proof and rollback


@pytest.mark.parametrize(
    ("verify", "wrong", "told"),
    [
        ("counts", lambda rows: rows.where("id != 77"), "1999 rows were there after the relayout of 2000 before"),
        pytest.param(
            "hash",
            lambda rows: rows.withColumn("v", F.expr("IF(id = 77, 1L, v)")),
            "differ from those read",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_commit_whose_rows_differ_is_taken_back(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verify: str, wrong: Any, told: str
) -> None:
    path = create(spark, tmp_path / "t")
    before = rows_at(spark, path)
    changed(monkeypatch, wrong)
    with pytest.raises(VerificationError, match=f"{told}.*; version 1 was taken back, .* lies again as at version 0"):
        relaid(spark, path, verify=verify)
    assert rows_at(spark, path) == before
    assert opened(spark, path).version == 2


@pytest.mark.slow
def test_a_wrong_commit_that_others_have_built_on_is_left_to_people(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, verify = create(spark, tmp_path / "t"), PublicCommitter._verify

    def late(self: PublicCommitter, version: int, mode: str) -> None:
        spark.sql(f"INSERT INTO delta.`{path}` VALUES (7000, 5, 0, 0)")
        verify(self, version, mode)

    changed(monkeypatch, lambda rows: rows.where("id != 77"))
    monkeypatch.setattr(PublicCommitter, "_verify", late)
    with pytest.raises(VerificationError, match=r"version 1 was left as it is, .* up to version 2 since: .* AS OF 0"):
        relaid(spark, path)
    assert spark.read.format("delta").load(path).count() == 2000


@pytest.mark.slow
def test_taking_back_brings_back_what_others_commit_meanwhile(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, take = create(spark, tmp_path / "t"), public_commit.restore

    def late(*args: Any) -> str:
        spark.sql(f"INSERT INTO delta.`{path}` VALUES (7000, 5, 0, 0)")
        return take(*args)

    changed(monkeypatch, lambda rows: rows.where("id != 77"))
    monkeypatch.setattr(public_commit, "restore", late)
    told = "while version 1 was taken back, others committed version 2 .* version 4 brought these back; .* in version 0"
    with pytest.raises(VerificationError, match=told):
        relaid(spark, path)
    assert spark.read.format("delta").load(path).where("id = 7000").count() == 1


@pytest.mark.slow
def test_an_overwrite_that_fails_after_its_commit_counts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, save = create(spark, tmp_path / "t"), DataFrameWriter.save

    def broken(self: DataFrameWriter, *args: Any) -> None:
        save(self, *args)
        raise ConnectionError("the line is dead")

    monkeypatch.setattr(DataFrameWriter, "save", broken)
    assert relaid(spark, path).version == 1


def aged(path: str) -> None:
    """Let the table's commits be 60 days old: more than removed files are kept."""
    for entry in (Path(path) / "_delta_log").glob("*.json"):
        os.utime(entry, (time.time() - 60 * 86400,) * 2)


@pytest.mark.slow
@pytest.mark.parametrize("committer", ["transaction", "public"])
def test_a_table_that_nobody_wrote_for_long_is_verified_and_can_be_taken_back(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, committer: str
) -> None:
    path = f"{tmp_path}/t"
    columns = f"{ROWS}, id, 0L AS v, timestamp_seconds(1750000000 + id % 2 * 86400) AS p"
    spark.sql(f"CREATE TABLE delta.`{path}` USING delta PARTITIONED BY (p) AS {columns} FROM range(400)")
    before = rows_at(spark, path)
    aged(path)
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    snapshot = open_table(spark, path, committer=committer)
    assert relayout(spark, path, spec_for("k"), snapshot=snapshot, verify="hash", bin_bytes=1).version == 2
    assert rollback(spark, path, committer=committer).restored_version == 0
    assert rows_at(spark, path) == before
    changed(monkeypatch, lambda rows: rows.where("id != 77"))
    if committer == "public":
        with pytest.raises(VerificationError, match="version 4 was taken back"):
            relaid(spark, path, full=True)
    assert rows_at(spark, path) == before


@pytest.mark.slow
def test_a_rollback_brings_back_what_others_commit_meanwhile(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = create(spark, tmp_path / "t")
    relaid(spark, path)
    late = [f"INSERT INTO delta.`{path}` VALUES (7000, 5, 0, 0)"]
    look = rollbacks._before_last_relayout

    def slow(snapshot: TableSnapshot) -> int:
        found = look(snapshot)
        if late:
            spark.sql(late.pop())
        return found

    monkeypatch.setattr(rollbacks, "_before_last_relayout", slow)
    told = "did not last: others committed version 2 of .* at that moment, and version 4 brought these back"
    with pytest.raises(LostRaceError, match=told):
        rollback(spark, path)
    assert spark.read.format("delta").load(path).where("id = 7000").count() == 1
    assert rollback(spark, path, 0).version == 5


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("step", "error", "told"),
    [
        ("save", ConnectionError("dead"), "is not known, nor verified: .* shows 'zorder layout [^']*' in the userMeta"),
        ("_verify", TableError("gone"), r"version 1 of .* was committed and not verified \(gone\): .* RESTORE TABLE"),
        ("_verify", KeyboardInterrupt(), "version 1 of .* not verified: .* also removes whatever was committed after"),
    ],
)
def test_whatever_fails_from_the_commit_on_says_what_is_there(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException, told: str
) -> None:
    def failing(*args: Any, **options: Any) -> None:
        raise error

    path = create(spark, tmp_path / "t")
    monkeypatch.setattr(DataFrameWriter if step == "save" else PublicCommitter, step, failing)
    with pytest.raises((VerificationError, KeyboardInterrupt)) as caught:
        relaid(spark, path)
    assert re.search(told, " ".join([str(caught.value), *getattr(caught.value, "__notes__", ())]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answered", "told"),
    [
        (0, "is not known, nor verified"),
        (1, "1999 rows were there .*version 1 was left as it is, as it could not be taken back"),
        (2, "1999 rows were there .* was restored to version 0; whether others committed .* is not known .dead.: DESC"),
    ],
)
def test_a_history_that_cannot_be_read_after_the_commit_hides_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answered: int, told: str
) -> None:
    path, asked = create(spark, tmp_path / "t"), []

    def failing(snapshot: TableSnapshot, limit: int | None = None) -> Any:
        asked.append(limit)
        if len(asked) > answered:
            raise ConnectionError("dead")
        return history_of(snapshot, limit)

    changed(monkeypatch, lambda rows: rows.where("id != 77"))
    for module in (public_commit, restoring):
        monkeypatch.setattr(module, "history_of", failing)
    with pytest.raises(VerificationError, match=told):
        relaid(spark, path)


# ------------------------------------------------------------------------------------------------------- features

REFUSED = {
    "delta.enableRowTracking = true": "delta.enableRowTracking = true, and .* new ids; .* committer: transaction",
    "delta.appendOnly = true": "delta.appendOnly = true, and .* may not replace its files",
}


@pytest.mark.parametrize("setting", REFUSED)
def test_a_property_that_it_cannot_keep_is_refused(spark: SparkSession, tmp_path: Path, setting: str) -> None:
    path = f"{tmp_path}/t"
    spark.sql(f"CREATE TABLE delta.`{path}` USING delta TBLPROPERTIES ({setting}) AS {ROWS} FROM range(9)")
    with pytest.raises(UnsupportedTableError, match=REFUSED[setting]):
        laid_out(spark, path)
    assert opened(spark, path).version == 0


@pytest.mark.matrix
def test_a_property_that_is_set_after_the_plan_in_any_writing_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark, tmp_path / "t")
    planned = opened(spark, path)
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.appendOnly = 'True')")
    with pytest.raises(UnsupportedTableError, match="may not replace its files"):
        relayout(spark, path, spec_for("k"), snapshot=planned)
    assert opened(spark, path).version == 1


@pytest.mark.matrix
def test_identity_columns_and_liquid_clustering_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    path, liquid = f"{tmp_path}/t", f"{tmp_path}/liquid"
    spark.sql(f"CREATE TABLE delta.`{path}` (k BIGINT, i BIGINT GENERATED ALWAYS AS IDENTITY) USING delta")
    spark.sql(f"INSERT INTO delta.`{path}` (k) {ROWS} FROM range(9)")
    with pytest.raises(UnsupportedTableError, match=r"identity column.*; .* committer: transaction"):
        laid_out(spark, path)
    spark.sql(f"CREATE TABLE delta.`{liquid}` (k BIGINT) USING delta CLUSTER BY (k)")
    with pytest.raises(UnsupportedTableError, match="CLUSTER BY NONE"):
        laid_out(spark, liquid)


@pytest.mark.slow
def test_a_generated_column_of_another_time_zone_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = f"{tmp_path}/t"
    columns = "(k BIGINT, at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)))"
    spark.sql(f"CREATE TABLE delta.`{path}` {columns} USING delta")
    spark.sql(f"INSERT INTO delta.`{path}` (k, at) {ROWS}, timestamp_seconds(id * 8639) FROM range(400)")
    with (
        session_conf(spark, {"spark.sql.session.timeZone": "America/New_York"}),
        pytest.raises(TableError, match=r"set spark.sql.session.timeZone .*; nothing was committed"),
    ):
        laid_out(spark, path)


@pytest.mark.slow
@pytest.mark.parametrize("committer", ["transaction", "public"])
def test_timestamps_of_partitions_that_name_no_zone_are_refused(
    spark: SparkSession, tmp_path: Path, committer: str
) -> None:
    path, told = (
        f"{tmp_path}/t",
        "partition column at name no time zone .e.g. 2025-01-01.(05:00:00|10:00:00.000000Z as).*timeZone of its",
    )
    at = "timestamp'2025-01-01 05:00:00' + make_dt_interval(id % 2) AS at, timestamp_ntz'2025-01-01 05:00:00' AS plain"
    old = {"spark.databricks.delta.write.utcTimestampPartitionValues": "false"}
    with session_conf(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        with session_conf(spark, old):
            columns = f"{ROWS}, id, {at}"
            spark.sql(
                f"CREATE TABLE delta.`{path}` USING delta PARTITIONED BY (at, plain) AS {columns} FROM range(400)"
            )
        before = content(spark, path)
        with pytest.raises(UnsupportedTableError, match=told):
            relayout(spark, path, spec_for("k"), snapshot=open_table(spark, path, committer=committer))
        assert open_table(spark, path).version == 0
        spark.read.format("delta").load(path).write.format("delta").mode("overwrite").save(path)
        snapshot = open_table(spark, path, committer=committer)
        assert relayout(spark, path, spec_for("k"), snapshot=snapshot, verify="hash").rows == 400
        assert content(spark, path) == before


@pytest.mark.slow
@pytest.mark.parametrize("committer", ["transaction", "public"])
def test_generated_columns_beside_a_timestamp_partition_are_written_in_the_session_s_zone(
    spark: SparkSession, tmp_path: Path, committer: str
) -> None:
    path = f"{tmp_path}/t"
    columns = "(k BIGINT, id BIGINT, at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)))"
    with session_conf(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        spark.sql(f"CREATE TABLE delta.`{path}` {columns} USING delta PARTITIONED BY (at)")
        insert = f"INSERT INTO delta.`{path}` (k, id, at)"
        spark.sql(f"{insert} {ROWS}, id, timestamp'2025-11-01 22:00:00' + make_dt_interval(id % 2) FROM range(400)")
        before = content(spark, path)
        snapshot = open_table(spark, path, committer=committer)
        assert relayout(spark, path, spec_for("k"), snapshot=snapshot, verify="hash").rows == 400
        assert content(spark, path) == before
        spark.sql(f"{insert} VALUES (1, 1, timestamp'2025-11-05 22:00:00'), (1, 1, timestamp'2025-11-02T05:30:00Z')")
        with (
            session_conf(spark, {"spark.sql.session.timeZone": "Europe/Paris"}),
            pytest.raises(TableError, match=r"set spark.sql.session.timeZone to its writers'"),
        ):
            relayout(spark, path, spec_for("k"), snapshot=open_table(spark, path, committer=committer), full=True)
        snapshot = open_table(spark, path, committer=committer)
        with pytest.raises(
            TableError, match=r"hour that comes twice in the session's, .* in UTC; leave that one out by"
        ):
            relayout(spark, path, spec_for("k"), snapshot=snapshot, full=True)
        done = relayout(spark, path, spec_for("k"), snapshot=snapshot, where="at > '2025-11-04'", full=True)
        assert (done.committed, done.rows) == (True, 1)


@pytest.mark.matrix
def test_merging_alone_and_unknown_committers_are_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = create(spark, tmp_path / "t")
    with pytest.raises(TableError, match="no committer 'Public'; choose one of auto, transaction, public"):
        open_table(spark, path, committer="Public")
    monkeypatch.setattr(snapshots, "has_jvm", lambda spark: False)
    with pytest.raises(UnsupportedTableError, match=r"merging files .* Delta's OPTIMIZE"):
        pipeline.compact(spark, path)
    with pytest.raises(UnsupportedTableError, match=r"merging files .* committer: transaction, or Delta's OPTIMIZE"):
        rewrite.rewrite(opened(spark, path), Compaction(2000))
    with pytest.raises(UnsupportedTableError, match=r"by public API alone, .* committer: transaction"):
        ChosenFiles(open_table(spark, path)).index([])


@pytest.mark.matrix
def test_an_untested_delta_is_refused_but_by_public_api(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = create(spark, tmp_path / "t")
    monkeypatch.setattr(snapshots, "session_versions", lambda spark: (spark.version, "5.0.0"))
    with pytest.raises(UnsupportedTableError, match=r"supported are Spark .* or choose committer: public"):
        open_table(spark, path)
    assert laid_out(spark, path, verify="counts").decision == "applied"


QUICK = "column mapping by id, after two columns swapped their names"
FALSE = "ALTER TABLE {t} SET TBLPROPERTIES (%s = false)"
RENAME = "ALTER TABLE {t} RENAME COLUMN `part.two` TO `part two`"
CURES = {  # why a case's table is refused, and what makes it fit
    CASES[0].name: ("delta.enableRowTracking = true", FALSE % "delta.enableRowTracking"),
    CASES[1].name: ("a dot in it", RENAME),
    CASES[8].name: ("delta.appendOnly = true", FALSE % "delta.appendOnly"),
    CASES[-1].name: ("delta.enableRowTracking = true", FALSE % "delta.enableRowTracking"),
}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case.name == QUICK else pytest.mark.slow, id=case.name) for case in CASES]
)
def test_nobody_notices_a_relayout(spark: SparkSession, tmp_path: Path, case: Case) -> None:
    kept = tuple(text.replace("ALWAYS AS IDENTITY", "BY DEFAULT AS IDENTITY") for text in case.make)
    path, checkpoint = made(spark, tmp_path, case._replace(make=kept)), tmp_path / "checkpoint"
    table, (why, cure) = f"delta.`{path}`", CURES.get(case.name, ("", ""))
    if cure:
        with pytest.raises(UnsupportedTableError, match=why):
            laid_out(spark, path)
        spark.sql(cure.replace("{t}", table))
    before, rows = open_table(spark, path), content(spark, path)
    streamed(spark, path, checkpoint)
    plan = pipeline.layout_by_hand(spark, path, case.bits, settings=LearnSettings(target_file_rows=100))
    assert plan.schema_hash == opened(spark, path).schema.fingerprint
    done = pipeline.apply(spark, path, plan, force=True, verify=case.verify, committer="public")
    assert (done.decision, done.rows, done.version) == ("applied", len(rows), before.version + 1)
    after = open_table(spark, path)
    for part in ("metadata", "protocol"):
        assert getattr(after.jsnapshot, part)().json() == getattr(before.jsnapshot, part)().json()
    assert content(spark, path) == rows
    if "changeDataFeed" in after.features:
        changes = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", done.version)
        assert changes.load(path).count() == 0
    assert pipeline.apply(spark, path, plan, force=True, committer="public").decision == "nothing_to_do"
    spark.sql(f"INSERT INTO {table} {case.insert} FROM range(10)")
    assert streamed(spark, path, checkpoint) == 10
    for statement in case.writes:
        spark.sql(statement.replace("{t}", table))
    then = case.then.replace("part.two", "part two") if cure == RENAME else case.then
    assert spark.sql(f"SELECT {then} FROM {table}").collect()[0][0] is True


# -------------------------------------------------------------------------------------------------- Spark Connect

CHILD = """
import json
import sys
import warnings

warnings.simplefilter("ignore")  # a running server does not take every setting

from pathlib import Path

from pyspark.sql import SparkSession

from zorder_pipeline import pipeline
from zorder_pipeline.errors import TableError, UnsupportedTableError
from zorder_pipeline.pipeline import LearnSettings
from zorder_pipeline.state.ledger import Ledger
from zorder_pipeline.relayout.rollback import rollback
from zorder_pipeline.relayout.snapshot import open_table
from zorder_pipeline.spark import spark_conf

builder = SparkSession.builder.remote("local[2]")
for key, value in spark_conf({"spark.driver.memory": "1g", **json.loads(sys.argv[2])}).items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
folder = Path(sys.argv[1])
path, state = str(folder / "t"), str(folder / "state")
rows = "SELECT /*+ REPARTITION(4) */ (id * 7919) % 3000 AS k, id, string(id % 2) AS p FROM range(3000)"
spark.sql(f"CREATE TABLE delta.`{path}` USING delta PARTITIONED BY (p) AS {rows}").collect()


def content():
    return sorted(map(str, spark.read.format("delta").load(path).collect()))


def applied(plan, **options):
    done = pipeline.apply(spark, path, plan, state=state, **options)
    assert content() == before
    return done.decision


before = content()
by_hand = pipeline.layout_by_hand(spark, path, {"k": 3}, settings=LearnSettings(target_file_rows=500))
for where in ("rand() < 0.5", f"p IN (SELECT p FROM delta.`{path}`)", "true"):
    try:
        applied(by_hand, force=True, where=where)
    except TableError as error:
        assert "has to be a condition on the partition columns p" in str(error)
    else:
        raise AssertionError(where)
assert applied(by_hand, force=True, verify="hash") == "applied"
assert applied(by_hand, force=True) == "nothing_to_do"
(folder / "state" / "STOP").write_text("not now")
assert applied(by_hand, force=True, full=True) == "postponed"
(folder / "state" / "STOP").unlink()
assert [(entry.version, entry.cost_measured > 0) for entry in Ledger(spark, state).entries()] == [(1, True)]
if sys.argv[3] == "learning":
    log = folder / "log.sql"
    log.write_text(";\\n".join(f"SELECT id FROM t WHERE k BETWEEN {i} AND {i + 5}" for i in range(0, 2900, 29)))
    learned = pipeline.learn(spark, path, [str(log)], settings=LearnSettings(target_file_rows=250, trials=20))
    assert applied(learned, force=True) == "applied"
    ledger = Ledger(spark, state)
    ledger.measured(ledger.entries(learned.table_id)[-1], {"queries": 5, "before": 0.5, "after": None})
    assert Ledger(spark, state).entries()[-1].measured_queries == 5
assert pipeline.inspect(spark, path)["clustered_fraction"] == 1
assert rollback(spark, path).restored_version == (1 if sys.argv[3] == "learning" else 0)
assert content() == before
try:
    open_table(spark, path, committer="transaction")
except UnsupportedTableError as error:
    assert "no JVM (Spark Connect)" in str(error) and "committer: public" in str(error)
else:
    raise AssertionError
spark.stop()
print("all held")
"""


@pytest.mark.skipif(
    find_spec("grpc_status") is None, reason="needs pyspark[connect]: pip install zorder-pipeline[connect]"
)
@pytest.mark.slow
@pytest.mark.parametrize("also", ["", "learning"])
def test_a_spark_connect_session_applies_and_rolls_back(tmp_path: Path, also: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    child = [sys.executable, "-c", CHILD, str(tmp_path), json.dumps(CONF), also]
    done = subprocess.run(child, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.stdout.endswith("all held\n"), done.stderr[-3000:]
