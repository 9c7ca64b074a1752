"""The handlers of SIGINT and SIGTERM that stop Spark's jobs first; that they do is a test with Spark and Dagster."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from zorder_pipeline.interrupts import StopJobs, stop_jobs_first

BOTH = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """As Dagster's interruptions are."""


def framework_s(_number: int, _frame: object) -> None:
    raise Stopped


def spark(done: list[str], *, pinned: bool = True, dead: bool = False) -> Any:
    """A session that notes what is asked of it.

    Args:
        pinned: each thread has a connection of its own.
        dead: Java is gone.
    """

    def cancel() -> None:
        done.append(f"cancelled in {threading.current_thread().name}")
        if dead:
            raise ConnectionError

    client: Any = SimpleNamespace()
    if pinned:
        client.get_thread_connection = lambda: SimpleNamespace(close=lambda: done.append("given up"))
    gateway = SimpleNamespace(_gateway_client=client)
    return SimpleNamespace(sparkContext=SimpleNamespace(_gateway=gateway, cancelAllJobs=cancel))


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = [signal.getsignal(number) for number in BOTH]
    yield
    for number, handler in zip(BOTH, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize("number", BOTH)
@pytest.mark.parametrize("dead", [False, True])
def test_jobs_end_before_the_framework_hears_of_it(number: signal.Signals, dead: bool) -> None:
    done: list[str] = []
    signal.signal(number, framework_s)
    stop_jobs_first(spark(done, dead=dead))
    with pytest.raises(Stopped):
        signal.raise_signal(number)
    assert done == ["cancelled in zorder-cancel", "given up"]


@pytest.mark.parametrize("then", [signal.SIG_IGN, None, lambda *_: None])
def test_without_another_handler_that_raises_it_is_a_keyboard_interrupt(then: Any) -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        StopJobs(spark(done), then)(signal.SIGINT, None)
    assert done[-1] == "given up"


def test_it_is_put_before_each_handler_once_and_before_none_that_does_nothing() -> None:
    signal.signal(signal.SIGINT, framework_s)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    session = spark([])
    stop_jobs_first(session)
    first = signal.getsignal(signal.SIGINT)
    stop_jobs_first(session)
    assert isinstance(first, StopJobs)
    assert signal.getsignal(signal.SIGINT) is first
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_neither_from_another_thread_nor_where_threads_share_connections() -> None:
    signal.signal(signal.SIGINT, framework_s)
    other = threading.Thread(target=stop_jobs_first, args=[spark([])])
    other.start()
    other.join()
    stop_jobs_first(spark([], pinned=False))
    assert signal.getsignal(signal.SIGINT) is framework_s
