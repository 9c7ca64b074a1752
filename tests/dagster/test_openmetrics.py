"""Figures for alerting: what is told of tables whose runs fail."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from dagster import (
    AssetKey,
    AssetMaterialization,
    AssetsDefinition,
    DagsterEvent,
    DagsterEventType,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    Failure,
    RunsFilter,
    asset,
    materialize,
)
from dagster._core.events import AssetMaterializationPlannedData
from dagster._core.execution.plan.objects import StepSuccessData

from zorder_pipeline.assets.budget import BUDGET
from zorder_pipeline.assets.openmetrics import open_metrics
from zorder_pipeline.config import PipelineConfig, TableConfig

pytestmark = pytest.mark.dagster

TABLES = tuple(TableConfig(name=name, location=f"/{name}") for name in ("t", "u", "v"))
CONFIG = PipelineConfig(tables=TABLES, state="/state")


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as found:
        yield found


def figures(instance: DagsterInstance, family: str) -> dict[str, float]:
    """Samples of a family whose only label is the table, by table."""
    lines = [line for line in open_metrics(instance, CONFIG).splitlines() if line.startswith(f"{family}{{")]
    return {line.split('"')[1]: float(line.rsplit(" ", 1)[1]) for line in lines}


def stage(key: AssetKey, before: list[AssetsDefinition], fails: bool) -> AssetsDefinition:
    @asset(key=key, deps=before)
    def made() -> None:
        if fails:
            raise Failure("a file is broken")

    return made


def night(instance: DagsterInstance, failing: dict[str, str]) -> None:
    """A run of two tables' last stages, of which one may fail of each."""
    assets: list[AssetsDefinition] = []
    for table in ("t", "u"):
        before: list[AssetsDefinition] = []
        for name in ("cost_benefit", "clustered_table"):
            before = [stage(AssetKey([table, name]), before, failing.get(table) == name)]
            assets += before
    materialize(assets, instance=instance, raise_on_error=False)


def test_a_table_whose_relayout_fails_each_night_is_told_of(instance: DagsterInstance) -> None:
    """Its analysis was fresh, and its last decision and relayout of long ago."""
    family = "zorder_failed_timestamp_seconds"
    assert figures(instance, family) == {}, "nothing was to be laid out yet"
    begun = time.time()
    for stage in ("clustered_table", "cost_benefit"):
        night(instance, {"u": stage})
        found = figures(instance, family)
        assert found["u"] >= begun
        assert (found["t"], "v" in found) == (0.0, False)
        begun = found["u"] + 1e-6
    night(instance, {})
    assert figures(instance, family) == {"t": 0.0, "u": 0.0}
    night(instance, {"u": "clustered_table"})
    night(instance, {"t": "cost_benefit"})
    assert [moment > 0 for moment in figures(instance, family).values()] == [True, False], "the newest run counts"


def test_a_step_that_all_tables_wait_for_failed_for_all(instance: DagsterInstance) -> None:
    shared = stage(BUDGET, [], fails=True)
    begun = time.time()
    last = [stage(AssetKey([table, "clustered_table"]), [shared], fails=False) for table in ("t", "u")]
    materialize([shared, *last], instance=instance, raise_on_error=False)
    assert all(moment >= begun for moment in figures(instance, "zorder_failed_timestamp_seconds").values())


def test_rows_that_are_not_known_are_not_none(instance: DagsterInstance) -> None:
    """After a commit that could not be looked at; to whoever is paged the table was emptied."""
    for table, known in (("t", {"dagster/row_count": 70}), ("u", {})):
        facts = {"files removed": 7, "Delta version": 3, **known}
        instance.report_runless_asset_event(AssetMaterialization([table, "clustered_table"], metadata=facts))
    assert figures(instance, "zorder_rows") == {"t": 70.0}
    assert figures(instance, "zorder_files_rewritten") == {"t": 7.0, "u": 7.0}


def planned(instance: DagsterInstance, steps: dict[str, list[str]], status: DagsterRunStatus) -> float:
    """A run of some tables' last stages, with the events of their steps; returns when it ended."""
    run = instance.add_run(DagsterRun(job_name="nightly_relayout"))

    def event(kind: str, **given: Any) -> None:
        instance.report_dagster_event(DagsterEvent(kind, run.job_name, **given), run.run_id)

    keys = {table: AssetKey([table, "clustered_table"]) for table in steps}
    for key in keys.values():
        of = AssetMaterializationPlannedData(key)
        event(DagsterEventType.ASSET_MATERIALIZATION_PLANNED.value, event_specific_data=of)
    for table, kinds in steps.items():
        for kind in kinds:
            data = StepSuccessData(duration_ms=1.0) if kind == "STEP_SUCCESS" else None
            event(kind, step_key=keys[table].to_python_identifier(), event_specific_data=data)
    event(f"PIPELINE_{status.value}" if status != DagsterRunStatus.STARTED else "PIPELINE_START")
    (record,) = instance.get_run_records(RunsFilter(run_ids=[run.run_id]))
    assert record.dagster_run.status == status
    return record.end_time or 0.0


DONE, SKIPPED, AT_WORK = ["STEP_START", "STEP_SUCCESS"], ["STEP_SKIPPED"], ["STEP_START"]


@pytest.mark.parametrize(
    ("status", "told"),
    [(DagsterRunStatus.FAILURE, True), (DagsterRunStatus.STARTED, False), (DagsterRunStatus.CANCELED, False)],
)
def test_a_run_that_was_killed_failed_at_the_tables_that_it_had_not_done(
    instance: DagsterInstance, status: DagsterRunStatus, told: bool
) -> None:
    """Of which no step says so, where it was killed at one or between two."""
    ended = planned(instance, {"t": DONE, "u": AT_WORK, "v": []}, status)
    expected = {"t": 0.0, "u": ended * told, "v": ended * told}
    assert figures(instance, "zorder_failed_timestamp_seconds") == expected
    ended = planned(instance, {"t": SKIPPED, "v": []}, status)
    assert figures(instance, "zorder_failed_timestamp_seconds") == {**expected, "v": ended * told}


def test_a_night_that_fails_before_its_first_step_failed_at_all_tables(instance: DagsterInstance) -> None:
    """By a broken configuration, say: the newest night is no good one, and takes back no failure of an earlier one."""
    for _ in range(2):
        ended = planned(instance, {"t": [], "u": []}, DagsterRunStatus.FAILURE)
        assert figures(instance, "zorder_failed_timestamp_seconds") == {"t": ended, "u": ended}
