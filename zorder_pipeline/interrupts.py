"""SIGINT and SIGTERM while Spark works: its jobs end, and what cleans up afterwards gets its own answers."""

from __future__ import annotations

import contextlib
import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["StopJobs", "stop_jobs_first", "stop_jobs_on"]

SECONDS_TO_CANCEL = 5.0


class StopJobs:
    """A signal handler that cancels a session's jobs, and then does what another one would have done at once.

    pyspark's own cancels on the connection of the main thread, which waits there for the answer to another call: that
    fails, with stack traces, and the jobs go on. Another thread has a connection of its own. The main thread's is given
    up: the answer may still come, and would be taken for that to the next call, and each later one for that to the call
    after it. (py4j gives it up for a KeyboardInterrupt alone, and then shuts all other threads' as well.)

    Args:
        then: the other handler; a KeyboardInterrupt is raised where it is none that can be called, or returns.
    """

    def __init__(self, spark: SparkSession, then: Any) -> None:
        self._context, self._then = spark.sparkContext, then
        self._client: Any = getattr(self._context._gateway, "_gateway_client", None)

    @property
    def possible(self) -> bool:
        """Whether each thread has a connection of its own, as it has unless PYSPARK_PIN_THREAD=false."""
        return hasattr(self._client, "get_thread_connection")

    def __call__(self, number: int, frame: FrameType | None) -> NoReturn:
        """Handle the signal; in the main thread, as Python does."""
        canceller = threading.Thread(target=self._cancel, name="zorder-cancel", daemon=True)
        canceller.start()
        canceller.join(SECONDS_TO_CANCEL)
        if (own := self._client.get_thread_connection()) is not None:
            own.close()
        if callable(self._then):
            self._then(number, frame)
        raise KeyboardInterrupt

    def _cancel(self) -> None:
        with contextlib.suppress(Exception):  # Java is gone, and its jobs with it
            self._context.cancelAllJobs()


def stop_jobs_on(number: signal.Signals, spark: SparkSession, then: Any) -> None:
    """Handle a signal by `StopJobs`; changes nothing where that is not possible.

    Args:
        then: what is done afterwards, see `StopJobs`.
    """
    if (handler := StopJobs(spark, then)).possible:
        signal.signal(number, handler)


def stop_jobs_first(spark: SparkSession) -> None:
    """Have the handlers of SIGINT and SIGTERM that are in force now stop the session's jobs before they raise.

    For what puts handlers of its own in the place of the session's, as Dagster does in each step of a run: "terminate"
    in its UI is a SIGINT. Done again it changes nothing, nor in another thread than the main one.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        now = signal.getsignal(number)
        if callable(now) and not isinstance(now, StopJobs):
            stop_jobs_on(number, spark, now)
