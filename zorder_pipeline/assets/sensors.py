"""What is watched between the nights, without Spark: partitions, new data, drifting queries, and figures for alerts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dagster import (
    DagsterInstance,
    DefaultSensorStatus,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)

from zorder_pipeline.config import PipelineConfig
from zorder_pipeline.model.wording import counted

from .common import Shelf
from .partition_keys import out_of_step, partitions_of
from .source import observed
from .ticks import MINUTES, looked_at
from .triggers import Jobs, drift, new_data
from .upstream import has_partitions

__all__ = ["sensors"]


def sensors(config: PipelineConfig, jobs: Jobs) -> list[SensorDefinition]:
    """The sensors that a configuration needs.

    Args:
        jobs: the tables' own jobs, see `zorder_pipeline.assets.common.chain_job`.
    """
    found = [delta_tables(config)]
    if any(table.trigger.new_data_share is not None for table in config.tables):
        found.append(new_data(config, jobs))
    if any(table.trigger.drift is not None for table in config.tables):
        found.append(drift(config, jobs))
    return [*found, metrics(config)] if config.monitoring.metrics_file else found


def delta_tables(config: PipelineConfig) -> SensorDefinition:
    """Keeps Dagster's partitions and data versions equal to those of the Delta tables."""
    watched = [table for table in config.tables if table.location is not None]

    @sensor(
        name="delta_tables",
        minimum_interval_seconds=5 * MINUTES,
        default_status=DefaultSensorStatus.RUNNING,
        description="Keeps the partitions and data versions in Dagster equal to those of the Delta tables. No Spark.",
    )
    def _delta_tables(context: SensorEvaluationContext) -> SensorResult:
        seen: dict[str, str] = json.loads(context.cursor or "{}")
        events, requests, said = [], [], list[str]()
        for table, found in looked_at(watched, context, said):
            shelf = Shelf(config, table)
            now = f"{found.table_id}-{found.version}"
            if seen.get(table.name) != now:
                said.append(f"{table.name} is at version {found.version:,}")
                events.append(observed(shelf.key("data"), found))
            if has_partitions(table):
                requests += _steps(context.instance, table.name, found.partitions)
            seen[table.name] = now
        why = "; ".join(said) or f"nothing new in {counted(len(watched), 'table')}"
        return SensorResult(None, why, json.dumps(seen), requests, asset_events=events)

    return _delta_tables


def _steps(instance: DagsterInstance, table: str, keys: Sequence[str]) -> list[Any]:
    """Requests that make the known partitions ``keys``."""
    partitions = partitions_of(table)
    new, gone = out_of_step(instance, table, keys)
    requests: list[Any] = [partitions.build_add_request(new)] if new else []
    return [*requests, partitions.build_delete_request(gone)] if gone else requests


def metrics(config: PipelineConfig) -> SensorDefinition:
    """Writes the file of OpenMetrics."""

    @sensor(
        name="metrics",
        minimum_interval_seconds=MINUTES,
        default_status=DefaultSensorStatus.RUNNING,
        description=f"Writes {config.monitoring.metrics_file} for alerting. No Spark.",
    )
    def _metrics(context: SensorEvaluationContext) -> SkipReason:
        from .openmetrics import write_metrics

        count = write_metrics(context.instance, config)
        return SkipReason(f"{count} figures written to {config.monitoring.metrics_file}")

    return _metrics
