"""What starts a table's chain between the nights: enough new data, and queries that drift."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, TypeAlias

from dagster import (
    DagsterInstance,
    DefaultSensorStatus,
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

from .common import Shelf, newest_run
from .layout import FORMER_NAMES, NEWEST_QUERY
from .ticks import MINUTES, answered_at, at_work, has_failed, looked_at, request_for, warned
from .unfinished import Unfinished
from .upstream import NEVER, Relaid

__all__ = ["Jobs", "drift", "new_data", "triggered"]

SECONDS = 30.0
"""Time that a tick of `drift` may take, of the 60 that Dagster gives it; the next one goes on."""

Jobs: TypeAlias = Sequence[UnresolvedAssetJobDefinition]


def triggered(table: TableConfig) -> bool:
    """Whether a sensor may start the table's chain."""
    return table.trigger.new_data_share is not None or table.trigger.drift is not None


@dataclass(frozen=True)
class Looked:
    """What `new_data` knows of a table from tick to tick.

    Attributes:
        table_id: which table it was; a dropped one may have been made anew.
        version: at which it was looked at; -1 when it is not known.
        since: what others write later is new, milliseconds since 1970: the version that the last relayout read, or the
            last decision or request.
        before: the same before the last request.
        request: the last request; "" once a relayout or a decision came after it.
        relaid: the last relayout, which may be behind more commits than are looked at.
    """

    table_id: str = ""
    version: int = -1
    since: int = 0
    before: int = 0
    request: str = ""
    relaid: Relaid = NEVER

    @classmethod
    def of(cls, kept: int | list[Any]) -> Looked:
        """From the sensor's cursor; up to version 0.2 it held the time alone, and for a while not the last relayout."""
        return cls(since=kept) if isinstance(kept, int) else cls(*kept[:5], *(Relaid(*told) for told in kept[5:]))


def new_data(config: PipelineConfig, jobs: Jobs) -> SensorDefinition:
    """Starts a table's chain when enough of it is new."""
    watched = [t for t in config.tables if t.location is not None and t.trigger.new_data_share is not None]

    @sensor(
        name="new_data",
        jobs=jobs,
        minimum_interval_seconds=5 * MINUTES,
        default_status=DefaultSensorStatus.RUNNING,
        description=(
            "Starts a table's chain when trigger.new_data_share of its bytes came in since the last relayout, decision "
            "or request. No Spark."
        ),
    )
    def _new_data(context: SensorEvaluationContext) -> SensorResult:
        known = {name: Looked.of(kept) for name, kept in json.loads(context.cursor or "{}").items()}
        requests, said, unfinished = [], list[str](), Unfinished(context.instance)
        now = round(time.time() * 1000)
        for table, found in looked_at(watched, context, said, {name: looked.version for name, looked in known.items()}):
            looked = known.get(table.name, Looked())
            if looked.table_id not in ("", found.table_id):
                looked = Looked()
            if found.relaid == NEVER or found.relaid.at == looked.relaid.at:  # of which less and less is looked at
                found = replace(found, relaid=looked.relaid)
            since, least = max(found.relaid.read_at, looked.since), table.trigger.new_data_share or 1.0
            request = looked.request if found.relaid.at <= looked.since else ""
            busy = at_work(unfinished, table)
            if not busy and (request or found.new_share(since) >= least):
                answered = answered_at(context.instance, Shelf(config, table))
                request = request if answered <= looked.since else ""
                since = max(since, answered)
            share = found.new_share(since)
            said.append(f"{share:.0%} of the bytes of {table.name} are new{busy}")
            if share >= least and not busy:
                request = f"new-data-{table.name}-{found.table_id[:8]}-{found.version}-{since}"
                requests.append(request_for(table, request, f"{share:.0%} of the bytes are new"))
                looked = Looked(before=since)
                since = now
            elif request and not busy and has_failed(context, request):
                why = f"{found.new_share(looked.before):.0%} of the bytes are new, and the run for them failed"
                requests.append(request_for(table, request, why, again=True))
            known[table.name] = Looked(found.table_id, found.version, since, looked.before, request, found.relaid)
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
        from zorder_pipeline.query_log.intake.without_spark import StoredQueries

        requests, found, unfinished = [], [], Unfinished(context.instance)
        queries, until = None, time.monotonic() + SECONDS
        first = next((i for i, table in enumerate(watched) if table.name == context.cursor), 0)
        context.update_cursor("")
        for number, table in enumerate([*watched[first:], *watched[:first]]):
            if number and time.monotonic() > until:
                context.update_cursor(table.name)
                found.append(f"{counted(len(watched) - number, 'table')} from {table.name} on come with the next tick")
                break
            if (learned := _learned(context.instance, Shelf(config, table))) is None:
                continue
            learned_until, former = learned
            try:
                queries = queries or StoredQueries(config.state)
                seen = moved(queries, table.name, learned_until, config.retention_days, former)
            except (ZorderError, OSError) as error:
                found.append(warned(context, table, error))
                continue
            if seen is None:
                continue
            busy = at_work(unfinished, table)
            found.append(f"the queries of {table.name} moved by {seen.distance:.0%}{busy}")
            key = f"drift-{table.name}-{int(learned_until)}"  # once per learned layout, unless the run fails
            if seen.distance < (table.trigger.drift or 1.0) or busy:
                continue
            again = has_failed(context, key)
            if again or newest_run(context.instance, key) is None:
                requests.append(request_for(table, key, seen.sentence, again=again))
        if not requests:
            return SkipReason("; ".join(found) or "nothing to compare yet")
        return SensorResult(run_requests=requests)

    return _drift


def _learned(instance: DagsterInstance, shelf: Shelf) -> tuple[float, dict[str, str]] | None:
    """When the newest query was asked that ``bit_allocation`` used, seconds since 1970, and what the table's columns
    were called before they were renamed; None before there is one.
    """
    event = instance.get_latest_materialization_event(shelf.key("bit_allocation"))
    told = event.asset_materialization.metadata if event and event.asset_materialization else {}
    newest, former = (noted.value if (noted := told.get(name)) else None for name in (NEWEST_QUERY, FORMER_NAMES))
    return (newest, former if isinstance(former, dict) else {}) if isinstance(newest, float) else None
