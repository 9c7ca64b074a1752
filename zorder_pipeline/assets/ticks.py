"""What the sensors' ticks share: tables looked at without Spark, and what a request for a run has come to."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from dagster import AssetKey, DagsterInstance, DagsterRunStatus, RunRequest, RunsFilter, SensorEvaluationContext

from zorder_pipeline.config import TableConfig
from zorder_pipeline.errors import ZorderError

from .common import NIGHTLY_JOB, REQUEST, Shelf, backoff, chain_job, newest_answers, newest_run
from .unfinished import Unfinished
from .upstream import LATEST, Upstream, look

__all__ = ["MINUTES", "answered_at", "at_work", "has_failed", "looked_at", "request_for", "warned"]

AT_ONCE = 16
"""Tables looked at at a time: reading a Delta log is waiting, mostly."""
MINUTES = 60
AGAIN = (60 * MINUTES, 24 * 60 * MINUTES)
"""Seconds after which what a failed run was asked for is asked again: the first time, and at most."""


def request_for(table: TableConfig, key: str, why: str, *, again: bool = False) -> RunRequest:
    """A run of a table's chain; Dagster takes each run key once, so that another try needs another one."""
    tags = {"zorder/table": table.name, "zorder/started_by": "sensor", "zorder/why": why, REQUEST: key}
    return RunRequest(
        run_key=f"{key}-{round(time.time())}" if again else key, job_name=chain_job(table.name), tags=tags
    )


def has_failed(context: SensorEvaluationContext, key: str) -> bool:
    """Whether the last run for a request failed or was cancelled, and so long ago that another try makes sense."""
    newest = newest_run(context.instance, key)
    if newest is None or newest.dagster_run.status not in (DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED):
        return False
    tried = context.instance.get_runs_count(RunsFilter(tags={REQUEST: key}))
    ended: float = newest.end_time or newest.update_timestamp.timestamp()
    return time.time() - ended >= backoff(*AGAIN, tried - 1)


def at_work(unfinished: Unfinished, table: TableConfig) -> str:
    """That a run of a table's chain has not ended, whoever asked for it, in words: another waits for it; "" without."""
    jobs = {chain_job(table.name), *([NIGHTLY_JOB] if table.schedule is None else [])}
    found = next(unfinished.making(AssetKey([table.name, "clustered_table"]), jobs), None)
    return "" if found is None else f", and run {found.run_id} has yet to end"


def answered_at(instance: DagsterInstance, shelf: Shelf) -> int:
    """When the newest run began that left the table as it is, milliseconds since 1970; 0 without one."""
    newest = max(
        (found for _, found in newest_answers(instance, shelf)), key=lambda found: found.timestamp, default=None
    )
    if newest is None:
        return 0
    run = instance.get_run_record_by_id(newest.run_id)  # None once it was deleted
    return round(1000 * (run.start_time if run is not None and run.start_time else newest.timestamp))


def warned(context: SensorEvaluationContext, table: TableConfig, error: Exception) -> str:
    """Note in a tick's log what is wrong with a table; the sentence."""
    context.log.warning(said := f"{table.name}: {error}")
    return said


def looked_at(
    tables: Sequence[TableConfig],
    context: SensorEvaluationContext,
    said: list[str],
    versions: Mapping[str, int] | None = None,
) -> Iterator[tuple[TableConfig, Upstream]]:
    """Each table as it is now; those that delta-rs cannot read are named in the tick's log and left out.

    Args:
        said: gets a sentence about each that is left out.
        versions: where commits since the last look are wanted, at which version that was; -1, or none, when it is not
            known.
    """

    def one(table: TableConfig) -> Upstream | ZorderError:
        try:
            return look(table, LATEST if versions is None else versions.get(table.name, -1))
        except ZorderError as error:
            return error

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for table, found in zip(tables, pool.map(one, tables), strict=True):
            if isinstance(found, ZorderError):
                said.append(warned(context, table, found))
            else:
                yield table, found
