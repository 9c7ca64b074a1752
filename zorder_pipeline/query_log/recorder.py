"""A recorder for teams without logs: a session's executions as lines of an event log (seed 004, query log module).

Three levels, as in the seed: a queue in memory, files on the local disk when it is full, and the state's ``query_log``,
to which files are appended in batches. What is written has the form of Spark's own event log, so `LogStore` reads it
like any other, each execution once.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zorder_pipeline.errors import UnsupportedTableError
from zorder_pipeline.java import has_jvm, java_class, reason_of, scala_object
from zorder_pipeline.model.wording import counted

from .spool import delete_unfinished, written_to

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

__all__ = ["Recorder"]

START = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"
END = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd"
ZONE = "spark.sql.session.timeZone"
MOST_QUERIES, MOST_CHARACTERS = 500, 4 << 20
"""The queue is spilled when so many executions have come in, or so much text, since that was last tried."""
MOST_KEPT = 8
"""While nothing can be spilled the queue holds so many times that text at most."""
LARGEST_PLAN = 2 << 20
"""Characters of a plan beyond which an execution is not noted, only counted."""
TOO_LARGE, FAILED, NO_ROOM = "too large", "failed", "no room"
"""Why an execution is lost."""
INSTEAD = (
    "where these matter, let Spark write event logs (spark.eventLog.enabled) instead of recording, and read them with "
    "zorder ingest --log-format spark-events"
)


class Recorder:
    """Notes the executions of a session that read tables.

    Nothing it does reaches the queries: it hears of an execution when that has ended, on a thread of Spark's own, and
    whatever goes wrong there is counted in ``dropped``, and told by `lost`.

    Args:
        spark: a classic session.
        spool: local folder for spilled files.
        ignored: executions that read from one of these folders (a whole path, or the end of one) are not noted.

    Attributes:
        noted: executions so far.

    Raises:
        UnsupportedTableError: a Spark Connect session.
    """

    def __init__(self, spark: SparkSession, spool: str | Path, ignored: tuple[str, ...] = ()) -> None:
        if not has_jvm(spark):
            raise UnsupportedTableError(
                "recording needs a classic Spark session, and this one is Spark Connect; let the server write event "
                "logs (spark.eventLog.enabled) and read them with zorder ingest --log-format spark-events"
            )
        self.spark, self.spool = spark, Path(spool).absolute()  # files move from there by their URI
        self._ignored = re.compile(
            "|".join(rf"(?<![\w.-]){re.escape(name)}(?=[/\],\"])" for name in ignored) or r"(?!)"
        )
        self.noted = 0
        self._dropped: Counter[str] = Counter()
        self._failure = ""
        self._lines: list[str] = []
        self._characters = 0
        self._untried, self._untried_characters = 0, 0
        self._lock = threading.Lock()
        self._user = str(spark.sparkContext.sparkUser())
        self._registered: JavaObject | None = None

    @property
    def listening(self) -> bool:
        """Whether it has begun to listen and was not stopped."""
        return self._registered is not None

    @property
    def dropped(self) -> int:
        """Executions that are lost so far."""
        return self._dropped.total()

    def lost(self) -> str:
        """How many executions are lost, why, and the way out, as one sentence; "" while none is."""
        if not (count := self.dropped):
            return ""
        told = {
            TOO_LARGE: f"with plans of more than {LARGEST_PLAN / (1 << 20):g} MB",
            FAILED: f"as noting them failed ({self._failure})",
            NO_ROOM: f"as {self.spool} could not be written and memory has no room for more",
        }
        ranked = [f"{self._dropped[why]:,} {what}" for why, what in told.items() if self._dropped[why]]
        ways = [f"make {self.spool} writable, or name another folder with spool=..."] if self._dropped[NO_ROOM] else []
        ways += [INSTEAD] if count > self._dropped[NO_ROOM] else []
        were = "was" if count == 1 else "were"
        return f"{counted(count, 'execution')} {were} not recorded: {', '.join(ranked)}; {'; '.join(ways)}"

    def _drop(self, why: str, failure: Exception | None = None) -> None:
        """Count an execution that is lost."""
        said = self._failure or (f"{type(failure).__name__}: {reason_of(failure, 200)}" if failure is not None else "")
        with self._lock:
            self._dropped[why] += 1
            self._failure = said

    def start(self) -> None:
        """Begin to listen; a second call does nothing."""
        from pyspark.java_gateway import ensure_callback_server_started

        if not self.listening:
            self.spool.mkdir(parents=True, exist_ok=True)
            delete_unfinished(self.spool)
            ensure_callback_server_started(self.spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
            # py4j makes another Java object each time that it is handed one of Python's, and Spark goes by the object
            self._registered = java_class(self.spark, "java.util.Objects").requireNonNull(_Listener(self))
            self.spark._jsparkSession.listenerManager().register(self._registered)

    def stop(self) -> None:
        """Listen no more, and write what is in memory to the spool."""
        if self.listening:
            self.wait()
            with contextlib.suppress(Exception):  # the session may be gone
                self.spark._jsparkSession.listenerManager().unregister(self._registered)
            self._registered = None
        self.spill()

    def spill(self) -> Path | None:
        """Write what is in memory to a new file of the spool; None when there is nothing.

        Raises:
            OSError: it cannot be written; it stays in memory.
        """
        with self._lock:
            lines, self._lines, self._characters = self._lines, [], 0
            self._untried, self._untried_characters = 0, 0
        if not lines:
            return None
        try:
            return written_to(self.spool, [self._first_line, *lines])
        except OSError:
            with self._lock:
                self._lines = lines + self._lines
                self._characters = sum(map(len, self._lines))
                self._drop_oldest()
            raise

    @property
    def _first_line(self) -> str:
        return json.dumps({"Event": "SparkListenerApplicationStart", "User": self._user})

    def _queue(self, start: str, end: str) -> bool:
        """Put the lines of an execution into the queue; returns whether it is time to spill it.

        Where that failed it is not tried again at each execution, but when as much has come in once more.
        """
        with self._lock:
            self.noted += 1
            self._lines += [start, end]
            self._characters += len(start) + len(end)
            self._drop_oldest()
            self._untried += 1
            self._untried_characters += len(start) + len(end)
            return self._untried >= MOST_QUERIES or self._untried_characters >= MOST_CHARACTERS

    def _drop_oldest(self) -> None:
        """Drop the oldest executions beyond `MOST_KEPT`."""
        first = 0
        while self._characters > MOST_KEPT * MOST_CHARACTERS:
            self._characters -= len(self._lines[first]) + len(self._lines[first + 1])
            self._dropped[NO_ROOM] += 1
            first += 2
        del self._lines[:first]

    def wait(self) -> None:
        """Return when Spark has told of every execution that has ended."""
        with contextlib.suppress(Exception):
            self._wait()

    def _wait(self) -> None:
        self.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()

    def note(self, execution: JavaObject, nanoseconds: int, error: str | None = None) -> None:
        """Put an execution into the queue; once stopped it does nothing, as sessions cloned before go on telling."""
        if not self.listening:
            return
        ended = int(time.time() * 1000)
        began = ended - nanoseconds // 1_000_000
        plan = self._plan(execution)
        if plan is None:
            return
        key = int(execution.id())
        zone = str(execution.sparkSession().sessionState().conf().sessionLocalTimeZone())
        # by hand, as a plan is text already
        head = json.dumps({"Event": START, "executionId": key, "time": began, "modifiedConfigs": {ZONE: zone}})
        start = f'{head[:-1]}, "sparkPlanInfo": {plan}}}'
        end = json.dumps({"Event": END, "executionId": key, "time": ended, "errorMessage": error})
        if self._queue(start, end):
            with contextlib.suppress(OSError):  # what is in memory stays there
                self.spill()

    def _plan(self, execution: JavaObject) -> str | None:
        """The plan as Spark's event log writes it; None for one that reads no table, or only Delta's own log."""
        text = str(self._mapper.writeValueAsString(self._info.fromSparkPlan(execution.executedPlan())))
        if "Location" not in text or self._ignored.search(text):
            return None
        if len(text) > LARGEST_PLAN:
            self._drop(TOO_LARGE)
            return None
        return text

    @cached_property
    def _info(self) -> Any:
        return scala_object(self.spark, "org.apache.spark.sql.execution.SparkPlanInfo")

    @cached_property
    def _mapper(self) -> Any:
        found = java_class(self.spark, "com.fasterxml.jackson.databind.ObjectMapper")()
        found.registerModule(scala_object(self.spark, "com.fasterxml.jackson.module.scala.DefaultScalaModule"))
        return found


class _Listener:
    """Spark's QueryExecutionListener, called through py4j."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def onSuccess(self, name: str, execution: JavaObject, nanoseconds: int) -> None:  # noqa: N802
        """An execution has ended."""
        del name
        try:
            self.recorder.note(execution, nanoseconds)
        except Exception as failure:
            self.recorder._drop(FAILED, failure)

    def onFailure(self, name: str, execution: JavaObject, error: JavaObject) -> None:  # noqa: N802
        """An execution has failed: its scans do not say what is worth reading fast."""

    class Java:
        """What py4j needs to know."""

        implements = ("org.apache.spark.sql.util.QueryExecutionListener",)
