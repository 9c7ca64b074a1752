"""What Dagster remembers of old runs: it keeps every event of every run for ever, pictures among them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from dagster import (
    AssetKey,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    DefaultSensorStatus,
    RunsFilter,
    SensorDefinition,
    SensorEvaluationContext,
    SkipReason,
    sensor,
)

from .common import REQUEST, TABLES, newest_observation, newest_run
from .partition_keys import OF_PARTITIONS

__all__ = ["forget", "history"]

EVERY = 6 * 3600
SECONDS = 30.0
"""Time that one tick may take; the next goes on."""
AT_ONCE = 100
OLDEST = 36_500
"""Days: no run is older, and soon there are no dates."""
IMPLICIT = "__ASSET_JOB"
"""Job of what is materialized by hand; other code locations have one of this name, too."""
OVER = [DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED]


def history(days: int, jobs: Sequence[str], keys: Sequence[AssetKey]) -> SensorDefinition:
    """The sensor that deletes runs of ours which are older than ``days`` days.

    Args:
        jobs: names of our jobs.
        keys: our assets.
    """

    @sensor(
        name="history",
        minimum_interval_seconds=EVERY,
        default_status=DefaultSensorStatus.RUNNING,
        description=f"Deletes runs of ours that ended more than {days} days ago (monitoring.keep_runs_days). No Spark.",
    )
    def _history(context: SensorEvaluationContext) -> SkipReason:
        count = forget(context.instance, days, jobs, keys)
        return SkipReason(f"{count:,} runs that are older than {days} days are deleted")

    return _history


def forget(instance: DagsterInstance, days: int, jobs: Sequence[str], keys: Sequence[AssetKey]) -> int:
    """Delete old runs with their events; returns how many they were.

    Runs that made what an asset shows now are kept, and those of partitions, by which Dagster tells which are there.
    Those of another configuration's tables are not ours, whose jobs have the same names.
    """
    kept = {
        event.run_id
        for record in instance.get_asset_records(list(keys))
        if (event := record.asset_entry.last_materialization) is not None
    }
    kept |= {found.run_id for key in keys if (found := newest_observation(instance, key)) is not None}
    count, until = 0, time.monotonic() + SECONDS
    for run in _old(instance, datetime.now(UTC) - timedelta(days=min(days, OLDEST)), jobs, set(keys)):
        if run.run_id not in kept and not _is_open(instance, run):
            instance.delete_run(run.run_id)
            count += 1
        if time.monotonic() > until:
            break
    return count


def _is_open(instance: DagsterInstance, run: DagsterRun) -> bool:
    """Whether a sensor will look at a run again: the newest for its request, when that failed."""
    request = run.tags.get(REQUEST)
    if request is None or run.status == DagsterRunStatus.SUCCESS:
        return False
    newest = newest_run(instance, request)
    return newest is not None and newest.dagster_run.run_id == run.run_id


def _is_ours(run: DagsterRun, keys: set[AssetKey]) -> bool:
    """Whether a run of a job of such a name is ours: by what it was to make or check, or the tables that it names."""
    if run.job_name == IMPLICIT:
        checked = {check.asset_key for check in run.asset_check_selection or ()}
        wanted = checked.union(run.asset_selection or ())
        return bool(wanted) and wanted <= keys
    named = run.tags.get(TABLES)  # answers to approvals name none
    return named is None or not {key.path[0] for key in keys}.isdisjoint(named.split(","))


def _old(instance: DagsterInstance, before: datetime, jobs: Sequence[str], keys: set[AssetKey]) -> Iterator[DagsterRun]:
    """Runs of ours that were over by then, oldest first, without those of partitions."""
    for job in (*jobs, IMPLICIT):
        after = None
        while records := instance.get_run_records(
            RunsFilter(job_name=job, statuses=OVER, created_before=before, created_after=after),
            limit=AT_ONCE,
            ascending=True,
        ):
            after = records[-1].create_timestamp  # no cursor: that is a run, which may be deleted by then
            for run in (record.dagster_run for record in records):
                if _is_ours(run, keys) and not any(tag in run.tags for tag in OF_PARTITIONS):
                    yield run
