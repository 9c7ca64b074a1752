"""What a recorder tells of executions that it lost, and what becomes of those that it cannot write."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from zorder_pipeline.query_log import recorder, spool
from zorder_pipeline.query_log.recorder import FAILED, TOO_LARGE, Recorder, _Listener
from zorder_pipeline.query_log.spool import ABANDONED, delete_unfinished, written_to


def recording_to(spool: Path) -> Recorder:
    spark: Any = SimpleNamespace(_jvm=object(), sparkContext=SimpleNamespace(sparkUser=lambda: "ann"))
    found = Recorder(spark, spool)
    found._registered = object()  # type: ignore[assignment]
    return found


def test_nothing_is_told_while_nothing_is_lost(tmp_path: Path) -> None:
    found = recording_to(tmp_path)
    assert (found.dropped, found.lost()) == (0, "")


def test_a_plan_that_is_too_large_is_counted_with_its_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = recording_to(tmp_path)
    written = SimpleNamespace(writeValueAsString=lambda _: "Location " + "x" * recorder.LARGEST_PLAN)
    monkeypatch.setattr(Recorder, "_info", SimpleNamespace(fromSparkPlan=lambda _: None))
    monkeypatch.setattr(Recorder, "_mapper", written)
    execution: Any = SimpleNamespace(executedPlan=lambda: None)
    _Listener(found).onSuccess("collect", execution, 0)
    assert (found.noted, found.dropped) == (0, 1)
    assert found.lost() == (
        "1 execution was not recorded: 1 with plans of more than 2 MB; where these matter, let Spark write event logs "
        "(spark.eventLog.enabled) instead of recording, and read them with zorder ingest --log-format spark-events"
    )


def test_failures_are_told_by_the_first_and_beside_other_reasons(tmp_path: Path) -> None:
    found = recording_to(tmp_path)
    listener, execution = _Listener(found), SimpleNamespace()
    for _ in range(1_200):
        listener.onSuccess("collect", execution, 0)  # type: ignore[arg-type]
    found._drop(TOO_LARGE)
    found._drop(FAILED, ValueError("a later one"))
    told = found.lost()
    assert told.startswith("1,202 executions were not recorded: 1 with plans of more than 2 MB, 1,201 as noting them ")
    assert "failed (AttributeError: " in told
    assert "a later one" not in told


def test_a_spool_that_could_not_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spool").touch()
    monkeypatch.setattr(recorder, "MOST_CHARACTERS", 1)
    found = recording_to(tmp_path / "spool")
    found._lines = ["start", "ended"]
    with pytest.raises(FileExistsError):
        found.spill()
    assert found.lost() == (
        f"1 execution was not recorded: 1 as {tmp_path}/spool could not be written and memory has no room for more; "
        f"make {tmp_path}/spool writable, or name another folder with spool=..."
    )


def noting(found: Recorder, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Executions whose plans and the rest have some hundred characters."""
    monkeypatch.setattr(found, "_plan", lambda _: '"plan"')
    conf = SimpleNamespace(sessionLocalTimeZone=lambda: "UTC")
    session = SimpleNamespace(sessionState=lambda: SimpleNamespace(conf=lambda: conf))
    execution: Any = SimpleNamespace(id=lambda: 7, sparkSession=lambda: session)
    for _ in range(times):
        _Listener(found).onSuccess("collect", execution, 0)


def test_one_that_was_stopped_notes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = recording_to(tmp_path)
    found._registered = None
    noting(found, monkeypatch, 1)
    assert (found.noted, found.dropped, found._lines) == (0, 0, [])


def test_while_nothing_can_be_written_it_is_tried_seldom_and_memory_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spool").touch()
    tried: list[int] = []

    def cannot(place: Path, lines: list[str]) -> Path:
        tried.append(len(lines))
        return written_to(place, lines)

    monkeypatch.setattr(recorder, "written_to", cannot)
    monkeypatch.setattr(recorder, "MOST_QUERIES", 10)
    monkeypatch.setattr(recorder, "MOST_CHARACTERS", 1_000)
    monkeypatch.setattr(recorder, "MOST_KEPT", 3)
    found = recording_to(tmp_path / "spool")
    noting(found, monkeypatch, 60)
    size = len("".join(found._lines[:2]))
    assert len(tried) == 60 // -(-1_000 // size), "each time that there are as many characters more"
    assert len(found._lines) == 2 * (3_000 // size) == 2 * (found.noted - found.dropped)
    assert f"{found.dropped} as {tmp_path}/spool could not be written" in found.lost()
    (tmp_path / "spool").unlink()
    written = found.spill()
    assert written is not None
    assert len(written.read_text().splitlines()) == 1 + 2 * (3_000 // size)


def test_a_file_that_cannot_be_written_to_its_end_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spool.Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        written_to(tmp_path, ["a literal"])
    assert list(tmp_path.iterdir()) == []


def test_what_a_process_left_that_was_killed_while_it_wrote_is_deleted(tmp_path: Path) -> None:
    old, new, other = (tmp_path / name for name in ("1-2-abc.tmp", "1-3-abc.tmp", "of somebody else.tmp"))
    written = written_to(tmp_path, ["{}"])
    for file in (old, new, other):
        file.touch()
    for file in (old, other, written):
        os.utime(file, (file.stat().st_mtime - 2 * ABANDONED,) * 2)
    delete_unfinished(tmp_path)
    assert set(tmp_path.iterdir()) == {written, new, other}, "another recorder may be writing the newer one"
