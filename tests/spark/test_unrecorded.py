"""A process that is killed between a commit and its record: the next run finds what it committed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.test_accidents import plain, version
from zorder_pipeline import pipeline
from zorder_pipeline.errors import RecordError, VerificationError
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.pipeline import layout_by_hand
from zorder_pipeline.relayout import rewrite, unrecorded
from zorder_pipeline.relayout.snapshot import open_table
from zorder_pipeline.relayout.unrecorded import record_late
from zorder_pipeline.state.begun import FOLDER
from zorder_pipeline.state.ledger import Ledger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class KilledError(BaseException):
    """Stands for SIGKILL: nothing of ours is called after it."""


def die(*_: object) -> None:
    raise KilledError


def killed(
    spark: SparkSession,
    path: str,
    plan: Plan,
    state: str,
    monkeypatch: pytest.MonkeyPatch,
    at: Callable[..., None] = die,
    where: tuple[object, str] = (Ledger, "record"),
) -> None:
    """Relay a table and die before that is recorded, or elsewhere."""
    with monkeypatch.context() as patched:
        patched.setattr(*where, at)
        with pytest.raises(KilledError):
            pipeline.apply(spark, path, plan, force=True, state=state)


def in_small_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bin for each partition."""
    bins = rewrite.bins_of
    monkeypatch.setattr(rewrite, "bins_of", lambda files, chosen, _: bins(files, chosen, 1))


def left(state: str) -> list[str]:
    """The files of relayouts that were begun."""
    folder = Path(state) / FOLDER
    return [name for name in os.listdir(folder) if name.endswith(".json")] if folder.exists() else []


@pytest.mark.slow
def test_what_was_committed_is_recorded_by_the_next_run_with_its_plan_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, state = plain(spark, tmp_path / "t"), str(tmp_path / "state")
    plan, said = layout_by_hand(spark, path, {"k": 3}), []
    killed(spark, path, plan, state, monkeypatch)
    assert (version(spark, path), Ledger(spark, state).entries(), len(left(state))) == (2, [], 1)
    spark.sql(f"INSERT INTO delta.`{path}` SELECT * FROM delta.`{path}` LIMIT 10")
    found = pipeline.present_plan(spark, open_table(spark, path), state, progress=said.append)
    assert found == plan
    assert said == ["version 2 was committed by a run that had not recorded that; it is recorded now"]
    (entry,) = Ledger(spark, state).entries()
    before = open_table(spark, path, 1).files()
    assert (entry.version, entry.replaced_version, entry.credited, entry.merged) == (2, 1, 1.0, {})
    assert (entry.rows, entry.bytes_rewritten) == (int(before.rows.sum()), int(before.bytes.sum()))
    moment = spark.sql(f"DESCRIBE HISTORY delta.`{path}`").where("version = 2").collect()[0]["timestamp"]
    assert entry.committed_at == int(moment.timestamp() * 1e6)
    record_late(open_table(spark, path), state, said.append)
    assert (len(said), len(Ledger(spark, state).entries()), len(left(state))) == (1, 1, 1)
    monkeypatch.setattr(unrecorded, "LONGEST", 0.0)
    record_late(open_table(spark, path), state, said.append)
    assert (len(said), left(state)) == (1, [])


@pytest.mark.slow
def test_a_relayout_that_is_recorded_leaves_no_note(spark: SparkSession, tmp_path: Path) -> None:
    path, state = plain(spark, tmp_path / "t"), str(tmp_path / "state")
    plan = layout_by_hand(spark, path, {"k": 3})
    for decision in ("applied", "nothing_to_do"):
        assert pipeline.apply(spark, path, plan, force=True, state=state).decision == decision
        assert not left(state)


@pytest.mark.slow
def test_of_several_bins_what_was_recorded_before_is_not_counted_twice(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, state = plain(spark, tmp_path / "t", "p"), str(tmp_path / "state")
    plan, record, calls = layout_by_hand(spark, path, {"k": 3}), Ledger.record, []
    in_small_bins(monkeypatch)

    def second_dies(*given: object) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise KilledError
        record(*given)  # type: ignore[arg-type]

    killed(spark, path, plan, state, monkeypatch, second_dies)
    assert [entry.version for entry in Ledger(spark, state).entries()] == [2]
    record_late(open_table(spark, path), state)
    (entry,) = Ledger(spark, state).entries()
    assert (entry.version, entry.credited, entry.rows) == (3, 1.0, int(open_table(spark, path).files().rows.sum()))


@pytest.mark.slow
def test_a_run_that_another_recorded_while_it_worked_is_found_again_when_it_dies(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, state = plain(spark, tmp_path / "t", "p"), str(tmp_path / "state")
    plan, said, record, calls = layout_by_hand(spark, path, {"k": 3}), [], Ledger.record, []
    in_small_bins(monkeypatch)

    def another_first(self: Ledger, *given: object) -> None:
        calls.append(1)
        if len(calls) > 1:
            raise KilledError
        with monkeypatch.context() as patched:
            patched.setattr(Ledger, "record", record)
            record_late(open_table(spark, path), state, said.append)
        record(self, *given)  # type: ignore[arg-type]

    killed(spark, path, plan, state, monkeypatch, another_first)
    assert [entry.version for entry in Ledger(spark, state).entries()] == [2]
    record_late(open_table(spark, path), state, said.append)
    assert [sentence.partition(" was ")[0] for sentence in said] == ["version 2", "version 3"]
    (entry,) = Ledger(spark, state).entries()
    assert (entry.version, entry.credited, entry.rows) == (3, 1.0, int(open_table(spark, path).files().rows.sum()))


@pytest.mark.slow
def test_a_commit_that_its_run_gave_up_for_lost_is_recorded(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, state = plain(spark, tmp_path / "t"), str(tmp_path / "state")
    plan, attempt = layout_by_hand(spark, path, {"k": 3}), rewrite._attempt

    def lost(*given: object) -> None:
        attempt(*given)  # type: ignore[arg-type]
        raise VerificationError("it is not known whether it was committed")

    with monkeypatch.context() as patched:
        patched.setattr(rewrite, "_attempt", lost)
        with pytest.raises(VerificationError):
            pipeline.apply(spark, path, plan, force=True, state=state)
    assert Ledger(spark, state).entries() == []
    assert pipeline.present_plan(spark, open_table(spark, path), state) == plan
    assert [entry.version for entry in Ledger(spark, state).entries()] == [2]


@pytest.mark.slow
def test_what_could_not_be_recorded_is_recorded_when_the_state_can_be_written_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, state = plain(spark, tmp_path / "t"), tmp_path / "state"
    state.mkdir()
    (state / "relayouts").write_text("in its way")
    plan = layout_by_hand(spark, path, {"k": 3})
    with pytest.raises(RecordError, match="; the next run does it"):
        pipeline.apply(spark, path, plan, force=True, state=str(state))
    (state / "relayouts").unlink()
    assert pipeline.present_plan(spark, open_table(spark, path), str(state)) == plan


def test_one_that_committed_nothing_is_forgotten_in_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, state = plain(spark, tmp_path / "t"), str(tmp_path / "state")
    killed(spark, path, layout_by_hand(spark, path, {"k": 3}), state, monkeypatch, where=(rewrite, "_attempt"))
    (name,) = left(state)
    for longest, kept in ((1000.0, [name]), (0.0, [])):
        monkeypatch.setattr(unrecorded, "LONGEST", longest)
        record_late(open_table(spark, path), state)
        assert (left(state), Ledger(spark, state).entries()) == (kept, [])


def test_a_note_that_cannot_be_read_is_as_none(spark: SparkSession, tmp_path: Path) -> None:
    path, state = plain(spark, tmp_path / "t"), tmp_path / "state"
    (state / FOLDER).mkdir(parents=True)
    snapshot = open_table(spark, path)
    for number, text in enumerate(('{"run": "zorder layout a b', "{}", "[]")):
        (state / FOLDER / f"{snapshot.table_id}.{number}.json").write_text(text)
    record_late(snapshot, str(state))
    assert Ledger(spark, str(state)).entries() == []
