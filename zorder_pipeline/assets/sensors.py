"""What is watched between the nights, without Spark: partitions, new data, drifting queries, and figures for alerts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from typing import Any, TypeAlias

from dagster import (
    AssetKey,
    DagsterInstance,
    DagsterRunStatus,
    DefaultSensorStatus,
    RunRequest,
    RunsFilter,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from zorder_pipeline.config import PipelineConfig, TableConfig
from zorder_pipeline.errors import ZorderError
from zorder_pipeline.model.wording import counted

from .common import NIGHTLY_JOB, REQUEST, Shelf, backoff, newest_run
from .layout import NEWEST_QUERY
from .partition_keys import out_of_step, partitions_of
from .source import observed
from .unfinished import Unfinished
from .upstream import LATEST, Upstream, has_partitions, look

__all__ = ["chain_job", "sensors", "triggered"]

AT_ONCE = 16
"""Tables looked at at a time: reading a Delta log is waiting, mostly."""
MINUTES = 60
AGAIN = (60 * MINUTES, 24 * 60 * MINUTES)
"""Seconds after which what a failed run was asked for is asked again: the first time, and at most."""

Jobs: TypeAlias = Sequence[UnresolvedAssetJobDefinition]


def sensors(config: PipelineConfig, jobs: Jobs) -> list[SensorDefinition]:
    """The sensors that a configuration needs.

    Args:
        jobs: the tables' own jobs, see `chain_job`.
    """
    found = [delta_tables(config)]
    if any(table.trigger.new_data_share is not None for table in config.tables):
        found.append(new_data(config, jobs))
    if any(table.trigger.drift is not None for table in config.tables):
        found.append(drift(config, jobs))
    return [*found, metrics(config)] if config.monitoring.metrics_file else found


def triggered(table: TableConfig) -> bool:
    """Whether a sensor may start the table's chain."""
    return table.trigger.new_data_share is not None or table.trigger.drift is not None


def chain_job(table: str) -> str:
    """Name of the job that runs one table's chain."""
    return f"relayout_{table}"


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
        for table, found in _looked_at(watched, context, said):
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


@dataclass(frozen=True)
class Looked:
    """What `new_data` knows of a table from tick to tick.

    Attributes:
        table_id: which table it was; a dropped one may have been made anew.
        version: at which it was looked at; -1 when it is not known.
        since: what is written later is new, milliseconds since 1970: the last relayout or request.
        before: the same before the last request.
        request: the last request; "" once a relayout came after it.
    """

    table_id: str = ""
    version: int = -1
    since: int = 0
    before: int = 0
    request: str = ""

    @classmethod
    def of(cls, kept: int | list[Any]) -> Looked:
        """From the sensor's cursor; up to version 0.2 it held the time alone."""
        return cls(since=kept) if isinstance(kept, int) else cls(*kept)


def new_data(config: PipelineConfig, jobs: Jobs) -> SensorDefinition:
    """Starts a table's chain when enough of it is new."""
    watched = [t for t in config.tables if t.location is not None and t.trigger.new_data_share is not None]

    @sensor(
        name="new_data",
        jobs=jobs,
        minimum_interval_seconds=5 * MINUTES,
        default_status=DefaultSensorStatus.RUNNING,
        description=(
            "Starts a table's chain when trigger.new_data_share of its bytes came in since the last relayout or "
            "request. No Spark."
        ),
    )
    def _new_data(context: SensorEvaluationContext) -> SensorResult:
        known = {name: Looked.of(kept) for name, kept in json.loads(context.cursor or "{}").items()}
        requests, said, unfinished = [], list[str](), Unfinished(context.instance)
        now = round(time.time() * 1000)
        for table, found in _looked_at(watched, context, said, known):
            looked = known.get(table.name, Looked())
            if looked.table_id not in ("", found.table_id):
                looked = Looked()
            since = max(found.relaid_at, looked.since)
            share = found.new_share(since)
            at_work = _at_work(unfinished, table)
            said.append(f"{share:.0%} of the bytes of {table.name} are new{at_work}")
            request = looked.request if found.relaid_at <= looked.since else ""
            if share >= (table.trigger.new_data_share or 1.0) and not at_work:
                request = f"new-data-{table.name}-{found.table_id[:8]}-{found.version}-{since}"
                requests.append(_request(table, request, f"{share:.0%} of the bytes are new"))
                looked = Looked(before=since)
                since = now
            elif request and not at_work and _failed(context, request):
                why = f"{found.new_share(looked.before):.0%} of the bytes are new, and the run for them failed"
                requests.append(_request(table, request, why, again=True))
            known[table.name] = Looked(found.table_id, found.version, since, looked.before, request)
        cursor = json.dumps({name: astuple(looked) for name, looked in known.items()})
        return SensorResult(requests, None if requests else "; ".join(said), cursor)

    return _new_data


def drift(config: PipelineConfig, jobs: Jobs) -> SensorDefinition:
    """Starts a table's chain when its queries filter by other columns than those that its layout was learned for."""
    watched = [table for table in config.tables if table.trigger.drift is not None]

    @sensor(
        name="drift",
        jobs=jobs,
        minimum_interval_seconds=30 * MINUTES,
        default_status=DefaultSensorStatus.RUNNING,
        description=(
            "Starts a table's chain when the columns that its newer queries filter by differ by trigger.drift from "
            "those that its layout was learned for. Reads the state's query log, no Spark."
        ),
    )
    def _drift(context: SensorEvaluationContext) -> SensorResult | SkipReason:
        from zorder_pipeline.pipeline.measuring.moving import moved

        requests, found, unfinished = [], [], Unfinished(context.instance)
        for table in watched:
            learned_until = _learned_until(context.instance, Shelf(config, table))
            if learned_until is None:
                continue
            try:
                seen = moved(config.state, table.name, learned_until, config.retention_days)
            except (ZorderError, OSError) as error:
                found.append(_warned(context, table, error))
                continue
            if seen is None:
                continue
            at_work = _at_work(unfinished, table)
            found.append(f"the queries of {table.name} moved by {seen.distance:.0%}{at_work}")
            key = f"drift-{table.name}-{int(learned_until)}"  # once per learned layout, unless the run fails
            if seen.distance < (table.trigger.drift or 1.0) or at_work:
                continue
            again = _failed(context, key)
            if again or newest_run(context.instance, key) is None:
                requests.append(_request(table, key, seen.sentence, again=again))
        if not requests:
            return SkipReason("; ".join(found) or "nothing to compare yet")
        return SensorResult(run_requests=requests)

    return _drift


def _learned_until(instance: DagsterInstance, shelf: Shelf) -> float | None:
    """When the newest query was asked that ``bit_allocation`` used, seconds since 1970; None before there is one."""
    event = instance.get_latest_materialization_event(shelf.key("bit_allocation"))
    noted = event.asset_materialization.metadata.get(NEWEST_QUERY) if event and event.asset_materialization else None
    return noted.value if noted is not None and isinstance(noted.value, float) else None


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


def _request(table: TableConfig, key: str, why: str, *, again: bool = False) -> RunRequest:
    """A run of a table's chain; Dagster takes each run key once, so that another try needs another one."""
    tags = {"zorder/table": table.name, "zorder/started_by": "sensor", "zorder/why": why, REQUEST: key}
    return RunRequest(
        run_key=f"{key}-{round(time.time())}" if again else key, job_name=chain_job(table.name), tags=tags
    )


def _failed(context: SensorEvaluationContext, key: str) -> bool:
    """Whether the last run for a request failed or was cancelled, and so long ago that another try makes sense."""
    newest = newest_run(context.instance, key)
    if newest is None or newest.dagster_run.status not in (DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED):
        return False
    tried = context.instance.get_runs_count(RunsFilter(tags={REQUEST: key}))
    ended: float = newest.end_time or newest.update_timestamp.timestamp()
    return time.time() - ended >= backoff(*AGAIN, tried - 1)


def _at_work(unfinished: Unfinished, table: TableConfig) -> str:
    """That a run of a table's chain has not ended, whoever asked for it, in words: another waits for it; "" without."""
    jobs = {chain_job(table.name), *([NIGHTLY_JOB] if table.schedule is None else [])}
    found = next(unfinished.making(AssetKey([table.name, "clustered_table"]), jobs), None)
    return "" if found is None else f", and run {found.run_id} has yet to end"


def _warned(context: SensorEvaluationContext, table: TableConfig, error: Exception) -> str:
    context.log.warning(said := f"{table.name}: {error}")
    return said


def _looked_at(
    tables: Sequence[TableConfig],
    context: SensorEvaluationContext,
    said: list[str],
    known: Mapping[str, Looked] | None = None,
) -> Iterator[tuple[TableConfig, Upstream]]:
    """Each table as it is now; those that delta-rs cannot read are named in the tick's log and left out.

    Args:
        said: gets a sentence about each that is left out.
        known: where commits since the last look are wanted, what was seen then.
    """

    def one(table: TableConfig) -> Upstream | ZorderError:
        try:
            return look(table, LATEST if known is None else known.get(table.name, Looked()).version)
        except ZorderError as error:
            return error

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for table, found in zip(tables, pool.map(one, tables), strict=True):
            if isinstance(found, ZorderError):
                said.append(_warned(context, table, found))
            else:
                yield table, found
