"""What Dagster remembers of old runs: it keeps every event of every run for ever, pictures among them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

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
from dagster._core.storage.event_log import SqliteEventLogStorage

from zorder_pipeline.model.progress import Progress, silent

from .common import IMPLICIT, REQUEST, TABLES, newest_observation, newest_run
from .partition_keys import OF_PARTITIONS

__all__ = ["forget", "history"]

EVERY = 6 * 3600
SECONDS = 30.0
"""Time that one tick may take; the next goes on."""
AT_ONCE = 100
OLDEST = 36_500
"""Days: no run is older, and soon there are no dates."""
UNTOUCHED = 24 * 3600
"""Seconds for which the file of a run that nobody knows was left alone, before it is taken for one of a deleted run."""
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
        count = forget(context.instance, days, jobs, keys, context.log.warning)
        return SkipReason(f"{count:,} runs that are older than {days} days are deleted")

    return _history


def forget(
    instance: DagsterInstance, days: int, jobs: Sequence[str], keys: Sequence[AssetKey], warn: Progress = silent
) -> int:
    """Delete old runs with their events and what they printed; returns how many they were.

    With SQLite each run has a file of its own, which goes, too: Dagster would keep it, at its full size. So it did with
    the runs that version 0.2 deleted, whose files are looked for after that.

    Runs that made what an asset shows now are kept, and those of partitions, by which Dagster tells which are there.
    Those of another configuration's tables are not ours, whose jobs have the same names.

    Args:
        warn: gets a sentence about each thing that could not be deleted.
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
            try:
                _delete_file(instance, run.run_id)
                instance.compute_log_manager.delete_logs(prefix=[run.run_id])
            except Exception as error:  # of whatever store there is; the run itself is gone
                warn(f"not all that run {run.run_id} left behind could be deleted: {error}")
        if time.monotonic() > until:
            return count
    _sweep(instance, until, warn)
    return count


def _delete_file(instance: DagsterInstance, run_id: str) -> None:
    """Delete the SQLite file of a deleted run's events, where there is such a one.

    Dagster opens it for as long as one statement takes, and for a deleted run not at all. A process that has it open
    all the same goes on with what it has.
    """
    storage = instance.event_log_storage
    if not isinstance(storage, SqliteEventLogStorage):
        return
    with storage._db_lock:  # which is held for as long as this process has any of them open
        for end in ("", "-wal", "-shm"):
            Path(f"{storage.path_for_shard(run_id)}{end}").unlink(missing_ok=True)
        storage._initialized_dbs.discard(run_id)  # else it would be opened anew as an empty file, without tables


def _sweep(instance: DagsterInstance, until: float, warn: Progress) -> None:
    """Delete SQLite files that hold no event of runs that nobody knows: deleted, they were left with free pages.

    What such runs printed stays: whose they were cannot be told any more.
    """
    storage = instance.event_log_storage
    if not isinstance(storage, SqliteEventLogStorage):
        return
    since = time.time() - UNTOUCHED
    files = {run_id: Path(storage.path_for_shard(run_id)) for run_id in storage.get_all_run_ids()}
    for run_id in sorted(files.keys() - set(instance.get_run_ids())):
        if time.monotonic() > until:
            break
        try:
            if str(UUID(run_id)) != run_id or files[run_id].stat().st_mtime > since:
                continue
            if not storage.get_records_for_run(run_id, limit=1).records:
                _delete_file(instance, run_id)
        except ValueError:  # not named as a run: nothing of Dagster's
            continue
        except Exception as error:
            warn(f"{files[run_id]} could not be looked at or deleted: {error}")


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
