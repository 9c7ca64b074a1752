"""What happens around a relayout's commit: tables made anew, hooks that fail, states that cannot be written, stops."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.spark.test_relayout import content, relayout, spec_for, version
from tests.spark.test_rewritten_values import created, log_was_edited
from zorder_pipeline import pipeline
from zorder_pipeline.errors import RecordError, TableError, UnsupportedTableError, VerificationError
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.pipeline import layout_by_hand
from zorder_pipeline.pipeline.judging.judgements import Rules
from zorder_pipeline.pipeline.rewriting.proof import prove
from zorder_pipeline.relayout import restoring, rewrite
from zorder_pipeline.relayout.commit import USER_METADATA, Transaction
from zorder_pipeline.relayout.history import history_of
from zorder_pipeline.relayout.rollback import rollback
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table
from zorder_pipeline.state.ledger import Ledger
from zorder_pipeline.state.session_conf import set_for_a_while

SPEC = spec_for("k")


def before_commit(monkeypatch: pytest.MonkeyPatch, happening: Callable[[], object]) -> None:
    """Let something happen once, after the files were written and before they are committed."""
    commit, happened = Transaction.commit, []

    def late(self: Transaction, *args: object) -> object:
        if not happened:
            happened.append(1)
            happening()
        return commit(self, *args)

    monkeypatch.setattr(Transaction, "commit", late)


def plain(spark: SparkSession, path: Path, partition: str = "") -> str:
    return created(spark, path, "k BIGINT, p INT", "id, id % 2", partition)


def made_anew(spark: SparkSession, path: str) -> None:
    shutil.rmtree(path)
    write_deltalake(path, pa.table({"k": pa.array(range(10), pa.int64()), "p": pa.array([0] * 10, pa.int32())}))


def opened_at_a_checkpoint(spark: SparkSession, path: str) -> TableSnapshot:
    """The newest version, of which Delta reads no entry of the log, only a checkpoint."""
    DeltaTable(path).create_checkpoint()
    log_was_edited(spark, path)
    snapshot = open_table(spark, path)
    assert snapshot.jsnapshot.logSegment().deltas().isEmpty()
    return snapshot


@pytest.mark.parametrize(
    ("late", "checkpoint"), [pytest.param(False, False, marks=pytest.mark.slow), (True, False), (True, True)]
)
def test_a_table_that_was_dropped_and_made_anew_is_left_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool, checkpoint: bool
) -> None:
    path = plain(spark, tmp_path / "t")
    if checkpoint:
        opened_at_a_checkpoint(spark, path)
    snapshot = open_table(spark, path)
    snapshot.files()
    if late:
        before_commit(monkeypatch, lambda: made_anew(spark, path))
    else:
        made_anew(spark, path)
    with pytest.raises(TableError, match="replaced by another table during the relayout; nothing was committed"):
        relayout(spark, path, SPEC, snapshot=snapshot)
    log_was_edited(spark, path)
    assert (version(spark, path), len(content(spark, path))) == (0, 10)


@pytest.mark.parametrize("lost", ["json", "checkpoint.parquet", ""])
def test_a_table_at_a_checkpoint_is_known_by_its_entry_or_the_checkpoint(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """Others may write the checkpoint once more, or clean up what is older than it."""
    path = plain(spark, tmp_path / "t")
    opened_at_a_checkpoint(spark, path)
    if lost:
        file = Path(path, "_delta_log", f"{1:020}.{lost}")
        before_commit(monkeypatch, lambda: os.utime(file, (0, 0)))
    assert relayout(spark, path, SPEC).version == 2
    assert len(content(spark, path)) == 1000


@pytest.mark.slow
def test_a_table_that_became_liquid_after_the_plan_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = plain(spark, tmp_path / "t")
    snapshot = open_table(spark, path)
    judged = pipeline.judge_table(spark, path, layout_by_hand(spark, path, {"k": 3}), gate=GateSettings(enabled=False))
    spark.sql(f"ALTER TABLE delta.`{path}` CLUSTER BY (k)")
    with pytest.raises(UnsupportedTableError, match="uses liquid clustering"):
        pipeline.carry_out(spark, judged)
    with pytest.raises(UnsupportedTableError, match="uses liquid clustering"):
        relayout(spark, path, SPEC, snapshot=snapshot)


@pytest.mark.slow
def test_a_hook_that_fails_after_the_commit_does_not_hide_it(spark: SparkSession, tmp_path: Path) -> None:
    path, state = plain(spark, tmp_path / "t"), str(tmp_path / "state")
    manifest = "'delta.compatibility.symlinkFormatManifest.enabled' = 'true'"
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({manifest})")
    (Path(path) / "_symlink_format_manifest").write_text("in its way")
    said: list[str] = []
    plan = layout_by_hand(spark, path, {"k": 3})
    done = pipeline.apply(spark, path, plan, force=True, state=state, progress=said.append)
    assert (done.decision, done.version) == ("applied", version(spark, path))
    assert any(
        f"version {done.version} is committed, but what Delta does after a commit failed" in text for text in said
    )
    assert [entry.version for entry in Ledger(spark, state).entries()] == [done.version]


@pytest.mark.slow
def test_bins_before_one_that_fails_are_told_and_recorded(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, state = plain(spark, tmp_path / "t", "p"), str(tmp_path / "state")
    plan, attempt, calls, ledger = layout_by_hand(spark, path, {"k": 3}), rewrite._attempt, [], Ledger(spark, state)

    def second_fails(*args: object) -> object:
        calls.append(1)
        if len(calls) == 2:
            assert [entry.version for entry in ledger.entries()] == [2], "a run that is killed now has left its word"
            raise VerificationError("2 rows were written of 3 read; nothing was committed")
        return attempt(*args)

    bins = rewrite.bins_of
    monkeypatch.setattr(rewrite, "_attempt", second_fails)
    monkeypatch.setattr(rewrite, "bins_of", lambda files, chosen, size: bins(files, chosen, 1))
    with pytest.raises(VerificationError, match="nothing of this bin was committed; 1 of 2 bins were committed before"):
        pipeline.apply(spark, path, plan, force=True, state=state)
    first = ledger.entries()
    assert [entry.version for entry in first] == [2]
    assert 0.4 < first[0].credited < 0.6
    assert pipeline.apply(spark, path, plan, force=True, state=state).version == 3
    assert [entry.version for entry in ledger.entries()] == [2, 3]
    again = pipeline.apply(spark, path, plan, force=True, full=True, state=state)
    assert [entry.version for entry in ledger.entries()] == [2, 3, 5], "a run of two bins is one relayout"
    assert (ledger.entries()[-1].rows, ledger.entries()[-1].credited) == (again.rows, 1.0)


@pytest.mark.slow
def test_relayouts_are_recorded_in_whatever_order_and_once(spark: SparkSession, tmp_path: Path) -> None:
    path, ledger = plain(spark, tmp_path / "t"), Ledger(spark, str(tmp_path / "state"))
    plan = layout_by_hand(spark, path, {"k": 3})
    done = {"files_removed": 1, "files_added": 1, "bytes_rewritten": 1, "rows": 1, "seconds": 1.0}
    for number in (12, 10, 12):
        ledger.record(plan, "a", number, done, {})
    assert sorted(entry.version for entry in ledger.entries()) == [10, 12]


def test_a_state_that_cannot_be_written_is_told_with_the_version_that_was_committed(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, state = plain(spark, tmp_path / "t"), tmp_path / "state"
    state.mkdir()
    (state / "relayouts").write_text("in its way")
    with pytest.raises(RecordError, match=r"version 2 of .* is committed, but could not be recorded in .*/state \("):
        pipeline.apply(spark, path, layout_by_hand(spark, path, {"k": 3}), force=True, state=str(state))
    assert version(spark, path) == 2


@pytest.mark.slow
def test_a_dry_run_asks_nobody(spark: SparkSession, tmp_path: Path) -> None:
    path, state = plain(spark, tmp_path / "t"), tmp_path / "state"
    plan, rules, gate = layout_by_hand(spark, path, {"k": 3}), Rules(approval="always"), GateSettings(enabled=False)
    told = pipeline.apply(spark, path, plan, dry_run=True, rules=rules, gate=gate, state=str(state))
    assert "would be put to a person" in told.reasons[0]
    assert not (state / "approvals").exists()
    assert (
        "waits for approval" in pipeline.apply(spark, path, plan, rules=rules, gate=gate, state=str(state)).reasons[0]
    )


def test_the_stop_variable_stops_compaction_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = plain(spark, tmp_path / "t")
    monkeypatch.setenv("ZORDER_STOP", "1")
    settings = pipeline.LearnSettings(target_file_rows=3000)
    done = pipeline.compact(spark, path, settings=settings)
    assert (done.decision, version(spark, path)) == ("postponed", 1)
    assert "ZORDER_STOP" in done.reasons[0]


@pytest.mark.slow
def test_rollback_takes_back_one_run_whole_or_says_why_not(spark: SparkSession, tmp_path: Path) -> None:
    path = plain(spark, tmp_path / "t")
    relayout(spark, path, SPEC)
    relayout(spark, path, spec_for("k", "p"))
    assert rollback(spark, path).restored_version == 2
    parts = plain(spark, tmp_path / "p", "p")
    relayout(spark, parts, SPEC, bin_bytes=1)
    assert version(spark, parts) == 3
    assert rollback(spark, parts).restored_version == 1
    with pytest.raises(TableError, match="is already taken back by version 4"):
        rollback(spark, parts)
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    relayout(spark, path, SPEC, full=True)
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('my.key' = '1')")
    with pytest.raises(TableError, match="SET TBLPROPERTIES at version 7 came after our relayout began"):
        rollback(spark, path)
    with pytest.raises(TableError, match=r"version -5 of .* must be below 7, the table's newest version"):
        rollback(spark, path, -5)


@pytest.mark.slow
def test_rollback_refuses_a_run_that_others_committed_into(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, attempt, calls = plain(spark, tmp_path / "t", "p"), rewrite._attempt, []

    def appended(*args: object) -> object:
        calls.append(1)
        if len(calls) == 2:
            spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 7)")
        return attempt(*args)

    monkeypatch.setattr(rewrite, "_attempt", appended)
    relayout(spark, path, SPEC, bin_bytes=1)
    with pytest.raises(TableError, match="WRITE at version 3 came after our relayout began"):
        rollback(spark, path)


@pytest.mark.slow
def test_a_restore_by_others_right_after_ours_is_theirs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, done, real = str(tmp_path / "t"), list[bool](), restoring.history_of
    for i in range(3):
        spark.range(5 * i, 5 * i + 5).coalesce(1).write.format("delta").mode("append").save(path)

    def after_them(*asked: Any) -> list[Any]:
        if not done:
            done.append(True)
            spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 1")
        return real(*asked)

    monkeypatch.setattr(restoring, "history_of", after_them)
    assert restoring.restore(open_table(spark, path), 0, 2) == ""
    assert (version(spark, path), spark.read.format("delta").load(path).count()) == (4, 10)


def test_rollback_after_vacuum_is_one_sentence_and_loses_no_row(spark: SparkSession, tmp_path: Path) -> None:
    path = plain(spark, tmp_path / "t")
    relayout(spark, path, SPEC)
    with set_for_a_while(spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
        spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS").collect()
    ignored = {"spark.sql.files.ignoreMissingFiles": "true"}
    with set_for_a_while(spark, ignored), pytest.raises(TableError, match="VACUUM has removed files of it"):
        rollback(spark, path)
    assert len(content(spark, path)) == 1000


@pytest.mark.slow
def test_each_commit_has_its_own_label_and_after_it_what_the_session_sets(spark: SparkSession, tmp_path: Path) -> None:
    path = plain(spark, tmp_path / "t")
    relayout(spark, path, SPEC)
    with set_for_a_while(spark, {USER_METADATA: "theirs"}):
        relayout(spark, path, SPEC, full=True)
    labels = [row["userMetadata"] for row in history_of(open_table(spark, path), 2)]
    assert labels[0].startswith(f"zorder layout {SPEC.layout_id} ")
    assert labels[0].endswith(" theirs")
    assert labels[1].startswith(f"zorder layout {SPEC.layout_id} ")


@pytest.mark.slow
def test_a_broken_commit_is_seen_also_where_the_session_sets_a_label(spark: SparkSession, tmp_path: Path) -> None:
    path = plain(spark, tmp_path / "t")
    before = open_table(spark, path)
    before.files()
    with set_for_a_while(spark, {USER_METADATA: "theirs"}):
        made = relayout(spark, path, SPEC)
    assert prove(before, open_table(spark, path), hashed=True).nothing is False
    entry = Path(path) / "_delta_log" / f"{made.version:020}.json"
    kept = entry.read_text().splitlines()
    kept.remove(next(line for line in kept if line.startswith('{"add"')))
    entry.write_text("\n".join(kept) + "\n")
    log_was_edited(spark, path)
    proof = prove(before, open_table(spark, path), hashed=True)
    assert proof.rows[0] > proof.rows[1]
    assert proof.contents[0] != proof.contents[1]
    assert prove(open_table(spark, path), open_table(spark, path)).nothing
    assert rollback(spark, path).restored_version == before.version


def test_a_comment_that_others_set_between_two_commits_of_ours_is_no_change_of_ours(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The check that the schema is unchanged failed, and asked for a rollback that is refused then."""
    path = plain(spark, tmp_path / "t")
    before = open_table(spark, path)
    relayout(spark, path, SPEC)
    spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN k COMMENT 'a key'")
    relayout(spark, path, SPEC, full=True)
    after = open_table(spark, path)
    proof = prove(before, after)
    assert proof.schemas[0] == proof.schemas[1]
    assert proof.rows == (1000, 1000)
    assert before.struct != after.struct


@pytest.mark.slow
def test_older_rows_that_break_a_constraint_are_named_as_that(spark: SparkSession, tmp_path: Path) -> None:
    path = plain(spark, tmp_path / "t")
    log = Path(path) / "_delta_log"
    entries = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
    for entry in entries:
        if "metaData" in entry:
            entry["metaData"]["configuration"]["delta.constraints.c"] = "k < 500"
        if "protocol" in entry:
            entry["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 3}
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, entries)) + "\n")
    log_was_edited(spark, path)
    with pytest.raises(TableError, match="rows that are older than the constraint may break it: repair them"):
        relayout(spark, path, SPEC)
