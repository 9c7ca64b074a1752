"""Runs whose process was killed hold no place in the pool when the next one begins."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dagster import DagsterInstance, DagsterRunStatus, SkipReason, build_sensor_context, job

from zorder_pipeline.assets import cut_off
from zorder_pipeline.assets.common import POOL
from zorder_pipeline.assets.cut_off import FOLDER, at_work, end_cut_off

pytestmark = pytest.mark.dagster

LIMITED = {"concurrency": {"pools": {"granularity": "op", "default_limit": 1}}}


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[DagsterInstance]:
    import yaml

    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(LIMITED))
    with DagsterInstance.from_config(str(tmp_path)) as made:
        made.event_log_storage.initialize_concurrency_limit_to_default(POOL)
        yield made


@job
def nothing() -> None:
    """A job of no steps."""


def begun(instance: DagsterInstance) -> str:
    """A run that has the only place in the pool."""
    run = instance.create_run_for_job(nothing, status=DagsterRunStatus.STARTED).run_id
    assert instance.event_log_storage.claim_concurrency_slot(POOL, run, "step").is_claimed
    return run


def killed(instance: DagsterInstance, run: str) -> None:
    """What the system leaves of a process that is killed: its file, which nobody has locked."""
    folder = Path(instance.root_directory) / FOLDER
    folder.mkdir(exist_ok=True)
    (folder / run).touch()


def on_nfs(monkeypatch: pytest.MonkeyPatch) -> None:
    """NFS locks byte ranges instead, and none for a descriptor that may only read."""
    locked = fcntl.flock

    def flock(file: Any, how: int) -> None:
        if fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        locked(file, how)

    monkeypatch.setattr(cut_off.fcntl, "flock", flock)


def status(instance: DagsterInstance, run: str) -> DagsterRunStatus:
    found = instance.get_run_by_id(run)
    assert found is not None
    return found.status


def test_a_run_that_was_cut_off_is_ended_by_the_next_one(instance: DagsterInstance) -> None:
    old, said = begun(instance), []
    killed(instance, old)
    with at_work(instance, "new", POOL, said.append):
        assert status(instance, old) == DagsterRunStatus.FAILURE
        assert instance.event_log_storage.claim_concurrency_slot(POOL, "new", "step").is_claimed
        assert [file.name for file in (Path(instance.root_directory) / FOLDER).iterdir()] == ["new"]
    assert said == [f"run {old} was cut off; it is noted as failed, and what it had committed stays"]
    assert not list((Path(instance.root_directory) / FOLDER).iterdir())


def test_the_sensor_ends_it_for_runs_that_are_not_launched_while_the_pool_is_taken(instance: DagsterInstance) -> None:
    watch, old, alive = cut_off.cut_off(), begun(instance), instance.create_run_for_job(nothing).run_id
    for expected in ("no run was cut off", f"run {old} was cut off; it is noted as failed, and what it had", "no run"):
        with at_work(instance, alive, POOL, lambda _: None):
            if expected.startswith("run"):
                killed(instance, old)
            found = watch(build_sensor_context(instance=instance))
        assert isinstance(found, SkipReason)
        assert str(found.skip_message).startswith(expected)
    assert (status(instance, old), status(instance, alive)) == (DagsterRunStatus.FAILURE, DagsterRunStatus.NOT_STARTED)
    assert instance.event_log_storage.claim_concurrency_slot(POOL, "new", "step").is_claimed


def test_a_run_that_goes_on_is_waited_for_and_named(instance: DagsterInstance) -> None:
    old, said = begun(instance), []
    with at_work(instance, old, POOL, said.append), at_work(instance, "new", POOL, said.append):
        assert status(instance, old) == DagsterRunStatus.STARTED
        assert not instance.event_log_storage.claim_concurrency_slot(POOL, "new", "step").is_claimed
    (sentence,) = said
    assert sentence.startswith(f"waiting for run {old}, which has the pool {POOL}; ")


def test_a_run_that_is_cut_off_while_another_waits_for_it_is_ended(
    instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cut_off, "LOOK_AGAIN", 0.05)
    old, ended = begun(instance), threading.Event()
    with at_work(instance, "new", POOL, lambda sentence: ended.set() if "was cut off" in sentence else None):
        assert not ended.is_set()
        killed(instance, old)
        assert ended.wait(60)
    assert status(instance, old) == DagsterRunStatus.FAILURE


def test_a_run_that_takes_the_pool_between_two_steps_and_is_killed_is_ended_too(
    instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a run that had to wait when it began looked for what was cut off."""
    monkeypatch.setattr(cut_off, "LOOK_AGAIN", 0.05)
    told, ended = threading.Event(), threading.Event()

    def say(sentence: str) -> None:
        (ended if "was cut off" in sentence else told).set()

    with at_work(instance, "new", POOL, say):
        old = begun(instance)
        assert told.wait(60), "for whom it waits"
        killed(instance, old)
        assert ended.wait(60)
    assert status(instance, old) == DagsterRunStatus.FAILURE


def test_a_run_that_has_a_place_of_its_own_waits_for_nobody(instance: DagsterInstance) -> None:
    instance.event_log_storage.set_concurrency_slots(POOL, 2)
    begun(instance)
    with at_work(instance, begun(instance), POOL, lambda sentence: pytest.fail(sentence)):
        pass


def test_a_database_that_is_away_for_a_moment_ends_no_watch(
    instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cut_off, "LOOK_AGAIN", 0.05)
    looks, ended, holders = [0], threading.Event(), cut_off._holders

    def away(*given: Any) -> list[str]:
        looks[0] += 1
        if looks[0] < 4:
            raise RuntimeError("the database is gone")
        return holders(*given)

    monkeypatch.setattr(cut_off, "_holders", away)
    old = begun(instance)
    with at_work(instance, "new", POOL, lambda sentence: ended.set() if "waiting for" in sentence else None):
        assert ended.wait(60)
    assert status(instance, old) == DagsterRunStatus.STARTED


def test_a_run_without_steps_in_the_pool_waits_for_nobody(instance: DagsterInstance) -> None:
    begun(instance)
    with at_work(instance, "answer", None, lambda sentence: pytest.fail(sentence)):
        pass


def test_a_finished_run_keeps_its_status(instance: DagsterInstance) -> None:
    old, said = begun(instance), []
    instance.report_run_failed(instance.get_run_by_id(old))  # type: ignore[arg-type]
    killed(instance, old)
    with at_work(instance, "new", POOL, said.append):
        assert instance.event_log_storage.claim_concurrency_slot(POOL, "new", "step").is_claimed
    assert not said


def test_a_run_that_ends_while_it_is_looked_at_was_not_cut_off(
    instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, folder = begun(instance), Path(instance.root_directory) / FOLDER
    killed(instance, old)
    monkeypatch.setattr(cut_off.fcntl, "flock", lambda *_: (folder / old).unlink())
    end_cut_off(instance, folder, lambda sentence: pytest.fail(sentence))
    assert status(instance, old) == DagsterRunStatus.STARTED
    killed(instance, old)  # NFS keeps a file that is open, under another name, when it is removed
    monkeypatch.setattr(cut_off.fcntl, "flock", lambda *_: (folder / old).rename(folder / ".nfs01"))
    end_cut_off(instance, folder, lambda sentence: pytest.fail(sentence))
    assert status(instance, old) == DagsterRunStatus.STARTED


def test_on_nfs_a_run_that_was_cut_off_is_ended(instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    on_nfs(monkeypatch)
    old, alive, said = begun(instance), instance.create_run_for_job(nothing).run_id, []
    killed(instance, old)
    with at_work(instance, alive, None, lambda _: None):
        killed(instance, old)
        end_cut_off(instance, Path(instance.root_directory) / FOLDER, said.append)
    assert (status(instance, old), status(instance, alive)) == (DagsterRunStatus.FAILURE, DagsterRunStatus.NOT_STARTED)
    assert not said, "the second time it was finished"


def test_another_users_run_is_ended_where_its_file_can_be_locked_and_named_once_where_not(
    instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, others = Path.open, [begun(instance)]

    def of_another(file: Path, mode: str = "r", *given: Any, **named: Any) -> Any:
        if mode == "r+" and file.name in others:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(file, mode, *given, **named)

    monkeypatch.setattr(Path, "open", of_another)
    folder = Path(instance.root_directory) / FOLDER
    killed(instance, others[0])
    end_cut_off(instance, folder, lambda _: None)
    assert status(instance, others[0]) == DagsterRunStatus.FAILURE
    on_nfs(monkeypatch)
    others.append(instance.create_run_for_job(nothing, status=DagsterRunStatus.STARTED).run_id)
    killed(instance, others[1])
    monkeypatch.setattr(cut_off, "LOOK_AGAIN", 0.05)
    looks, looked, said = cut_off._tell_of_others, threading.Event(), list[str]()
    with at_work(instance, "new", POOL, said.append):
        monkeypatch.setattr(cut_off, "_tell_of_others", lambda *given: (looks(*given), looked.set()))
        assert looked.wait(60)
    assert status(instance, others[1]) == DagsterRunStatus.STARTED
    (sentence,) = said
    assert sentence == (
        f"whether run {others[1]} was cut off cannot be told, as {folder / others[1]} cannot be locked (Bad file "
        "descriptor): let one user alone run what shares this DAGSTER_HOME, on a file system that shares locks"
    )


def test_nothing_is_held_where_no_file_can_be_made(instance: DagsterInstance) -> None:
    (Path(instance.root_directory) / FOLDER).write_text("no folder")
    with at_work(instance, "new", POOL, lambda _: None):
        pass
