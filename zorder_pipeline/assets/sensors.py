"""What is watched between the nights, without Spark: partitions, new data, drifting queries, and figures for alerts."""

from __future__ import annotations

import json
import time
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

SELDOM = 60 * MINUTES
"""Seconds from one note of a table's data version to the next: they are of no run, so nothing ever deletes them."""


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
        # table by table the version noted last, and when; up to version 0.2 another one alone
        seen: dict[str, Any] = json.loads(context.cursor or "{}")
        events, requests, said = [], [], list[str]()
        for table, found in looked_at(watched, context, said):
            shelf = Shelf(config, table)
            noted, moment = kept if isinstance(kept := seen.get(table.name), list) else ("", 0)
            if noted != found.state:
                is_due = not 0 <= time.time() - moment < SELDOM  # also of a clock that was put back
                said.append(
                    f"{table.name} is at version {found.version:,}{'' if is_due else ', to be noted within the hour'}"
                )
                if is_due:
                    events.append(observed(shelf.key("data"), found))
                    seen[table.name] = [found.state, int(time.time())]
            if has_partitions(table):
                requests += _steps(context.instance, table.name, found.partitions)
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
