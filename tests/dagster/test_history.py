"""Old runs are forgotten, but for what shows how things are."""

from __future__ import annotations

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
