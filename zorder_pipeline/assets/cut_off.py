"""Runs whose process was killed: they look as if they went on, and would hold their place in the pool for ever.

Nobody ends a run whose process went down with its machine, or of ``zorder run``, before ``max_runtime``: the next
night would wait for it without a word, and the daemon launches none while the pool is taken. So each run holds a lock
on a file, which the system frees with the process, and who comes later, a run or the sensor, ends the runs whose locks
nobody holds.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from dagster import (
    DagsterInstance,
    DefaultSensorStatus,
    SensorDefinition,
    SensorEvaluationContext,
    SkipReason,
    sensor,
)

from zorder_pipeline.model.progress import Progress

__all__ = ["at_work", "cut_off", "end_cut_off"]

FOLDER = "zorder_at_work"
"""Under DAGSTER_HOME; a file of each run in it."""
BEGUN = "."
"""What the names of files begin with whose lock is not yet held."""
LOOK_AGAIN = 15.0
"""Seconds after which a run that waits for another looks whether that is still there."""
EVERY = 60
"""Seconds after which the sensor does."""


def cut_off() -> SensorDefinition:
    """The sensor that ends the runs whose process was killed, for those that the daemon does not launch until then."""

    @sensor(
        name="cut_off",
        minimum_interval_seconds=EVERY,
        default_status=DefaultSensorStatus.RUNNING,
        description="Notes runs as failed whose process was killed, and frees their places in the pool. No Spark.",
    )
    def _cut_off(context: SensorEvaluationContext) -> SkipReason:
        said: list[str] = []
        if not context.instance.is_ephemeral:
            with contextlib.suppress(OSError):  # as `at_work`: where no file can be made there is none
                end_cut_off(context.instance, Path(context.instance.root_directory) / FOLDER, said.append)
        return SkipReason("; ".join(said) or "no run was cut off")

    return _cut_off


@contextlib.contextmanager
def at_work(instance: DagsterInstance, run: str, pool: str | None, say: Progress) -> Iterator[None]:
    """Hold the run's lock while the block runs, after those that were cut off are ended; told is for whom it waits.

    Where no file can be locked, as in some containers, this does nothing: what is cut off there the daemon has to end.

    Args:
        pool: in which the run's steps wait for places; None where they wait for none.
    """
    if instance.is_ephemeral:
        yield
        return
    folder, ended, say = Path(instance.root_directory) / FOLDER, threading.Event(), _once(say)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            end_cut_off(instance, folder, say)
            stack.enter_context(_locked(folder, run))
        if pool is not None:
            with contextlib.suppress(Exception):  # it only tells
                _tell_of_others(instance, pool, run, say)
            # also where none holds the pool now: another may take it between two steps, and be killed
            watch = threading.Thread(target=_watch, args=(instance, folder, pool, run, say, ended), daemon=True)
            watch.start()
            stack.callback(watch.join)
            stack.callback(ended.set)
        yield


def end_cut_off(instance: DagsterInstance, folder: Path, say: Progress) -> None:
    """Note the runs as failed whose lock nobody holds any more, and free their places in pools.

    Args:
        say: told which runs these are, and of which it cannot be told.
    """
    for file in sorted(folder.glob("[!.]*")):
        try:
            with _opened(file) as found:
                fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not os.path.samestat(os.fstat(found.fileno()), file.stat()):  # gone, or another's by now
                    continue
                run = instance.get_run_by_id(file.name)
                if run is not None and not run.is_finished:
                    instance.report_run_failed(run, "its process was killed, or its machine went down")
                    say(f"run {file.name} was cut off; it is noted as failed, and what it had committed stays")
                if instance.event_log_storage.supports_global_concurrency_limits:
                    instance.event_log_storage.free_concurrency_slots_for_run(file.name)
                file.unlink(missing_ok=True)
        except BlockingIOError:  # its process is at work
            continue
        except OSError as error:
            if file.exists():  # else it is gone: the run ended by itself since, or another one was faster
                say(
                    f"whether run {file.name} was cut off cannot be told, as {file} cannot be locked "
                    f"({error.strerror}): let one user alone run what shares this DAGSTER_HOME, on a file system that "
                    "shares locks"
                )


def _opened(file: Path) -> IO[str]:
    """A file to be locked: for writing, without which NFS locks none; for reading where it is another user's."""
    try:
        return file.open("r+")
    except PermissionError:
        return file.open()


@contextlib.contextmanager
def _locked(folder: Path, run: str) -> Iterator[None]:
    """A locked file of the run's name; it gets that when it is locked, so that nobody takes it for one cut off."""
    folder.mkdir(exist_ok=True)
    begun, path = folder / f"{BEGUN}{run}.{os.getpid()}", folder / run
    with begun.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        begun.rename(path)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _holders(instance: DagsterInstance, pool: str, run: str) -> list[str]:
    """The other runs that have all places of a pool; none where one is left, or is this run's own."""
    storage = instance.event_log_storage
    if not storage.supports_global_concurrency_limits:
        return []
    info = storage.get_concurrency_info(pool)
    holding = {slot.run_id for slot in info.claimed_slots}
    return [] if run in holding or len(info.claimed_slots) < info.slot_count else sorted(holding)


def _tell_of_others(instance: DagsterInstance, pool: str, run: str, say: Progress) -> None:
    """Who has all places of the pool now."""
    if others := _holders(instance, pool, run):
        say(
            f"waiting for run {', '.join(others)}, which has the pool {pool}; if nobody works on that any more, "
            "free its slot in Dagster's UI (Deployment, Concurrency)"
        )


def _once(say: Progress) -> Progress:
    """Says the same sentence no second time."""
    said: set[str] = set()

    def saying(sentence: str) -> None:
        if sentence not in said:
            said.add(sentence)
            say(sentence)

    return saying


def _watch(instance: DagsterInstance, folder: Path, pool: str, run: str, say: Progress, ended: threading.Event) -> None:
    """While a run goes on, end what is cut off, and tell whom it waits for."""
    while not ended.wait(LOOK_AGAIN):
        with contextlib.suppress(Exception):  # of the database, which may be there again when it is asked next
            end_cut_off(instance, folder, say)
            _tell_of_others(instance, pool, run, say)
