"""Keys of partitions in Dagster: none is taken away while partitions of its table are being backfilled."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from dagster import AssetKey, DagsterInstance, DagsterRun, DagsterRunStatus, SensorResult
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from deltalake import DeltaTable, write_deltalake

from zorder_pipeline.assets import build_definitions
from zorder_pipeline.assets.partition_keys import keep_in_step, out_of_step
from zorder_pipeline.config import PipelineConfig, TableConfig

from .test_sensors import tick

pytestmark = pytest.mark.dagster

BACKFILLED = AssetKey(["t", "clustered_partitions"])
ALL, LEFT = ["ds=1", "ds=2", "ds=3"], ["ds=1", "ds=2"]


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as made:
        keep_in_step(made, "t", ALL)
        yield made


def backfill(asset: AssetKey, status: BulkActionStatus = BulkActionStatus.REQUESTED) -> PartitionBackfill:
    return PartitionBackfill(
        backfill_id="one", status=status, from_failure=False, tags={}, backfill_timestamp=time.time(),
        asset_selection=[asset],
    )  # fmt: skip


def run_of(asset: AssetKey, status: DagsterRunStatus, **tags: str) -> DagsterRun:
    named = {f"dagster/{name}": value for name, value in tags.items()}
    return DagsterRun(job_name="__ASSET_JOB", status=status, asset_selection=frozenset({asset}), tags=named)


def test_dagsters_partitions_become_those_of_the_table(instance: DagsterInstance) -> None:
    assert out_of_step(instance, "t", ["ds=4", "ds=2", "ds=0"]) == (["ds=4", "ds=0"], ["ds=1", "ds=3"])
    keep_in_step(instance, "t", ["ds=4", "ds=2", "ds=0"])
    assert instance.get_dynamic_partitions("t_partitions") == ["ds=2", "ds=4", "ds=0"]


@pytest.mark.parametrize("status", [BulkActionStatus.REQUESTED, BulkActionStatus.CANCELING, BulkActionStatus.FAILING])
def test_what_vanishes_during_a_backfill_stays_until_that_has_ended(
    instance: DagsterInstance, status: BulkActionStatus
) -> None:
    instance.add_backfill(begun := backfill(BACKFILLED, status))
    keep_in_step(instance, "t", [*LEFT, "ds=4"])  # what is new comes all the same
    assert instance.get_dynamic_partitions("t_partitions") == [*ALL, "ds=4"]
    instance.update_backfill(begun.with_status(BulkActionStatus.COMPLETED_FAILED))
    keep_in_step(instance, "t", [*LEFT, "ds=4"])
    assert instance.get_dynamic_partitions("t_partitions") == [*LEFT, "ds=4"]


@pytest.mark.parametrize("tag", ["partition", "asset_partition_range_start"])
def test_what_vanishes_while_a_run_of_partitions_waits_stays_for_it(instance: DagsterInstance, tag: str) -> None:
    begun = instance.add_run(run_of(BACKFILLED, DagsterRunStatus.NOT_STARTED, **{tag: "ds=3"}))
    assert out_of_step(instance, "t", LEFT) == ([], [])
    instance.report_run_canceled(begun)
    assert out_of_step(instance, "t", LEFT) == ([], ["ds=3"])


def test_what_is_under_way_elsewhere_keeps_nothing(instance: DagsterInstance) -> None:
    other = AssetKey(["u", "clustered_partitions"])
    instance.add_backfill(backfill(other))
    instance.add_run(run_of(other, DagsterRunStatus.STARTED, partition="ds=3"))
    instance.add_run(run_of(AssetKey(["t", "clustered_table"]), DagsterRunStatus.STARTED))
    assert out_of_step(instance, "t", LEFT) == ([], ["ds=3"])


def test_the_sensor_leaves_them_too(instance: DagsterInstance, tmp_path: Path) -> None:
    days = pa.table({"ds": ["1", "2", "3"], "n": [1, 2, 3]})
    write_deltalake(str(tmp_path / "t"), days, partition_by=["ds"])
    DeltaTable(tmp_path / "t").delete("ds = '3'")
    table = TableConfig(name="t", location=str(tmp_path / "t"))
    defs = build_definitions(PipelineConfig(tables=(table,), state=str(tmp_path / "state")))
    instance.add_backfill(begun := backfill(BACKFILLED))
    during = tick(defs, "delta_tables", instance)
    instance.update_backfill(begun.with_status(BulkActionStatus.CANCELED))
    after = tick(defs, "delta_tables", instance)
    assert isinstance(during, SensorResult)
    assert isinstance(after, SensorResult)
    assert not during.dynamic_partitions_requests
    assert [list(asked.partition_keys) for asked in after.dynamic_partitions_requests or ()] == [["ds=3"]]
