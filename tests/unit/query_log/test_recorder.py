"""What a recorder tells of executions that it lost."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from zorder_pipeline.query_log import recorder
from zorder_pipeline.query_log.recorder import FAILED, TOO_LARGE, Recorder, _Listener


def recording_to(spool: Path) -> Recorder:
    spark: Any = SimpleNamespace(_jvm=object(), sparkContext=SimpleNamespace(sparkUser=lambda: "ann"))
    return Recorder(spark, spool)


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
