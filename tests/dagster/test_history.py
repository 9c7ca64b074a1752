"""Old runs are forgotten, but for what shows how things are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from dagster import (
    AssetCheckKey,
    AssetKey,
    AssetObservation,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    Output,
    SkipReason,
    asset,
    build_sensor_context,
    job,
    materialize,
    op,
)

from zorder_pipeline.assets import build_definitions
from zorder_pipeline.assets import history as histories
from zorder_pipeline.assets.common import REQUEST, TABLES
from zorder_pipeline.assets.history import forget
from zorder_pipeline.config import MonitoringConfig, PipelineConfig, TableConfig

pytestmark = pytest.mark.dagster

NOW = datetime.now(UTC)


def ended(instance: DagsterInstance, days: int, job: str = "nightly_relayout", **options: Any) -> str:
    """A run that began so many days ago; its id."""
    run = DagsterRun(job_name=job, status=options.pop("status", DagsterRunStatus.SUCCESS), **options)
    with patch("dagster._core.storage.runs.sql_run_storage.get_current_datetime", lambda: NOW - timedelta(days=days)):
        instance.add_run(run)
    return run.run_id


def test_old_runs_are_deleted_but_for_what_is_shown_now(tmp_path: Path) -> None:
    key, stranger = AssetKey(["t", "cost_benefit"]), AssetKey(["x", "y"])

    @asset(key=key)
    def judged() -> None:
        return None

    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        gone = [
            ended(instance, 45, status=DagsterRunStatus.FAILURE, tags={REQUEST: "new-data-t"}),
            ended(instance, 40, tags={TABLES: "t,dropped"}),
            ended(instance, 31, "relayout_t", status=DagsterRunStatus.FAILURE),
            ended(instance, 35, "__ASSET_JOB", asset_selection=frozenset([key])),
            ended(instance, 34, "__ASSET_JOB", asset_check_selection=frozenset([AssetCheckKey(key, "file_sizes")])),
        ]
        kept = [
            ended(instance, 29),
            ended(instance, 40, status=DagsterRunStatus.STARTED),
            ended(instance, 40, "job_of_others"),
            ended(instance, 40, tags={TABLES: "x"}),  # another configuration's night
            ended(instance, 40, "__ASSET_JOB", asset_selection=frozenset([key, stranger])),
            ended(instance, 40, "__ASSET_JOB", asset_selection=frozenset()),
            ended(instance, 40, "__ASSET_JOB", asset_check_selection=frozenset([AssetCheckKey(stranger, "full")])),
            ended(instance, 40, tags={"dagster/partition": "ds=1"}),
            ended(instance, 39, status=DagsterRunStatus.FAILURE, tags={REQUEST: "new-data-t"}),
        ]
        with patch("dagster._core.storage.runs.sql_run_storage.get_current_datetime", lambda: NOW - timedelta(days=50)):
            kept.append(materialize([judged], instance=instance).run_id)
        with patch.object(histories, "AT_ONCE", 1):
            assert forget(instance, 10**9, ["nightly_relayout", "relayout_t"], [key]) == 0, "for ever"
        assert forget(instance, 30, ["nightly_relayout", "relayout_t"], [key]) == 5
        assert {run.run_id for run in instance.get_runs()} == set(kept)
        assert not any(instance.has_run(run) for run in gone)
        assert forget(instance, 30, ["nightly_relayout", "relayout_t"], [key]) == 0
        made = instance.get_latest_materialization_event(key)
        assert made is not None
        assert made.run_id == kept[-1]


def left_of(folder: Path, run: str) -> list[str]:
    """What lies anywhere under the name of a run, but for the files that SQLite has while it is open."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob(f"*{run}*") if path.suffix in ("", ".db"))


def test_what_a_deleted_run_took_of_the_disk_is_free(tmp_path: Path) -> None:
    """Dagster's own deletion leaves the SQLite file of its events as large as it was, and what it printed."""
    key = AssetKey(["t", "cost_benefit"])

    @op
    def prints() -> None:
        print("a literal")

    @job(name="nightly_relayout")
    def night() -> None:
        prints()

    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        runs = []
        for days in (50, 40, 20):
            at = NOW - timedelta(days=days)
            with patch("dagster._core.storage.runs.sql_run_storage.get_current_datetime", lambda at=at: at):
                runs.append(night.execute_in_process(instance=instance).run_id)
        assert all(left_of(tmp_path, run) == [f"history/runs/{run}.db", f"storage/{run}"] for run in runs)
        with patch.object(instance.compute_log_manager, "delete_logs", side_effect=OSError("read-only")):
            warned: list[str] = []
            assert forget(instance, 45, ["nightly_relayout"], [key], warned.append) == 1
        assert warned == [f"not all that run {runs[0]} left behind could be deleted: read-only"]
        assert forget(instance, 30, ["nightly_relayout"], [key]) == 1
        assert left_of(tmp_path, runs[1]) == []
        assert left_of(tmp_path, runs[2]), "young enough to stay"
        assert instance.all_logs(runs[1]) == [], "asked for again it has no events, and not: no such table"
        assert instance.all_logs(runs[2])


def test_files_of_runs_that_were_deleted_earlier_are_deleted_once_they_hold_nothing(tmp_path: Path) -> None:
    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        runs = tmp_path / "history" / "runs"

        @job
        def others() -> None: ...

        deleted, young, known = (others.execute_in_process(instance=instance).run_id for _ in range(3))
        half = others.execute_in_process(instance=instance).run_id
        instance.delete_run(deleted)
        instance.delete_run(young)
        instance.run_storage.delete_run(half)  # its events are still there
        (runs / "notes.db").write_bytes(b"of somebody else")
        broken = runs / f"{DagsterRun(job_name='j').run_id}.db"
        broken.write_bytes(b"no database" * 1000)
        for path in runs.glob("*.db"):
            if path.stem not in (young, "index"):
                os.utime(path, (0, 0))
        warned: list[str] = []
        assert forget(instance, 30, ["nightly_relayout"], [AssetKey("t")], warned.append) == 0
        there = {path.name for path in runs.glob("*.db")}
        assert there == {f"{run}.db" for run in (young, known, half)} | {"index.db", "notes.db", broken.name}
        assert len(warned) == 1
        assert warned[0].startswith(f"{broken} could not be looked at or deleted: ")


def test_the_run_of_the_newest_observation_is_kept(tmp_path: Path) -> None:
    key = AssetKey(["t", "clustered_table"])

    @op
    def declines() -> Iterator[AssetObservation | Output[None]]:
        yield AssetObservation(key, description="declined: not worth it")
        yield Output(None)

    @job(name="nightly_relayout")
    def night() -> None:
        declines()

    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        for days in (50, 40):
            at = NOW - timedelta(days=days)
            with patch("dagster._core.storage.runs.sql_run_storage.get_current_datetime", lambda at=at: at):
                newest = night.execute_in_process(instance=instance).run_id
        assert forget(instance, 30, ["nightly_relayout"], [key]) == 1
        assert [run.run_id for run in instance.get_runs()] == [newest]


def test_the_sensor_is_there_where_runs_are_to_be_forgotten(tmp_path: Path) -> None:
    config = PipelineConfig(tables=(TableConfig(name="t", location="/t"),), state=str(tmp_path))
    assert "history" not in [sensor.name for sensor in build_definitions(config).sensors or ()]
    config = config.model_copy(update={"monitoring": MonitoringConfig(keep_runs_days=30)})
    defs = build_definitions(config)
    with DagsterInstance.ephemeral() as instance:
        gone = ended(instance, 31, "answer_approval")
        result = defs.resolve_sensor_def("history")(build_sensor_context(instance=instance, definitions=defs))
        assert isinstance(result, SkipReason)
        assert result.skip_message == "1 runs that are older than 30 days are deleted"
        assert not instance.has_run(gone)
