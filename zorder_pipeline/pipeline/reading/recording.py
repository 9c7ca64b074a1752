"""Recording what a session asks: from its executions to the state's query log."""

from __future__ import annotations

import atexit
import contextlib
import getpass
import hashlib
import json
import os
import tempfile
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from zorder_pipeline.errors import ZorderError
from zorder_pipeline.java import has_jvm, reason_of
from zorder_pipeline.model.places import known_as, local_path
from zorder_pipeline.pipeline.logs import Unopened, ingest_into, names_of, places_in_state
from zorder_pipeline.pipeline.records import LogSource
from zorder_pipeline.query_log.recorder import Recorder
from zorder_pipeline.query_log.spool import RECORDED, any_moved, moved_to, written_as
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table

from .known_files import STATE_CONF, state_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Recording", "record"]

EVERY = 300.0

_begun: list[Recording] = []
"""This process's recordings; those that have ended leave it when the next one begins."""
_beginning = threading.Lock()


class Recording:
    """A recorder at work; also a context manager, at whose end everything is in the state, or a warning says why not.

    What is lost, such as executions with very large plans, a warning tells once, at the end.

    Attributes:
        recorder: notes the executions.
    """

    def __init__(
        self, spark: SparkSession, state: str, tables: Mapping[str, str], spool: Path, every: float | None
    ) -> None:
        self.spark, self.state, self.tables, self._every = spark, state.rstrip("/"), dict(tables), every
        self._place = _in_plans(spark, self.state)
        self.recorder = Recorder(spark, spool, (self._place, "_delta_log"))
        self._stopping = threading.Event()
        self._flushing = threading.Lock()
        self._missed: set[str] = set()
        self._lying: dict[str, str] = {}
        self._timer: threading.Thread | None = None
        self._blocks = 0
        self._session = str(spark._jsparkSession.sessionUUID())
        self._told = 0

    def __repr__(self) -> str:
        found = self.recorder
        return f"<Recording into {self.state}: {found.noted:,} executions noted, {found.dropped:,} lost>"

    def start(self) -> None:
        """Begin to record."""
        self.recorder.start()
        atexit.register(self._exit)
        if self._every is not None and self._timer is None:
            self._timer = threading.Thread(target=self._run, name="zorder-recorder", daemon=True)
            self._timer.start()

    def is_like(self, other: Recording) -> bool:
        """Whether another one records the same of the same session, to the same places and as often."""
        told = [(one.tables, one.recorder.spool, one._every) for one in (self, other)]
        return self.doubles(other) and told[0] == told[1]

    def doubles(self, other: Recording) -> bool:
        """Whether executions would be in the state twice if another one ran beside it."""
        if (self._session, self._place) != (other._session, other._place):
            return False
        mine, theirs = ({*one.tables, *map(known_as, one.tables.values())} for one in (self, other))
        return not mine or not theirs or not mine.isdisjoint(theirs)

    def flush(self) -> int:
        """Append what was recorded to the state's query log; returns how many scans that added.

        Raises:
            LostRaceError: another ingestion into the state ran at the same time; nothing was doubled or lost.
            ZorderError: the session has been stopped.
        """
        with self._flushing:
            self.recorder.wait()
            self.recorder.spill()
            if self.spark.sparkContext._jsc is None:
                raise ZorderError("the session has been stopped")
            place = f"{self.state}/{RECORDED}/{self._kind}"
            moved = moved_to(self.spark, self.recorder.spool, place)
            if not moved and not (self._left and any_moved(self.spark, place)):
                return 0
            self._left = True
            opened = {name: self._opened(name, table) for name, table in self.tables.items()}
            known = {name: found for name, found in opened.items() if found is not None}
            if self.tables and all(isinstance(found, Unopened) for found, _ in known.values()):  # it waits for one
                return 0
            added = ingest_into(self.spark, self.state, [LogSource(place, "spark-events")], known)
            self._left = False
            return sum(added.tables.values())

    _left = True  # files that another process moved there, or that could not be read the last time

    @property
    def _kind(self) -> str:
        """Folder of all recorders of these tables: another's files say what else was asked, of other tables."""
        told = json.dumps(sorted(self.tables.items()))
        return hashlib.blake2b(told.encode(), digest_size=8).hexdigest()

    def _opened(self, name: str, table: str) -> tuple[TableSnapshot | Unopened, tuple[str, ...]] | None:
        """A table as queries are read with: one that cannot be opened now by where it lies, which is told once.

        Left out, all that was ever recorded would be read again, now without it and then with it; None where nobody
        knows where it lies.
        """
        found: TableSnapshot | Unopened
        try:
            found = open_table(self.spark, table)
        except ZorderError as error:
            place = self._lies_at(name, table)
            if name not in self._missed:
                self._missed.add(name)
                how = "not recorded" if place is None else "recorded without its columns"
                warnings.warn(f"queries of {name} are {how} until it can be opened: {error}", stacklevel=2)
            if place is None:
                return None
            found = Unopened.at(place)
        else:
            self._missed.discard(name)
            self._lying[name] = found.location
        return found, names_of(table, found, [name])

    def _lies_at(self, name: str, table: str) -> str | None:
        """Where a table lies, as far as it is known without opening it."""
        if name in self._lying:
            return self._lying[name]
        return _in_plans(self.spark, table) if "/" in table else places_in_state(self.spark, self.state).get(name)

    def stop(self) -> None:
        """Record no more, and append what there is to the state's query log; a warning tells what was lost."""
        try:
            self._finish()
        finally:
            self._tell_lost()

    def _finish(self) -> None:
        self._stopping.set()
        self.recorder.stop()
        atexit.unregister(self._exit)
        self.flush()

    def _exit(self) -> None:
        """The end of a process that did not stop recording: what is in memory goes to the spool."""
        try:
            self.recorder.spill()
        finally:
            self._tell_lost()

    def _tell_lost(self) -> None:
        """Tell what was lost since this was last told."""
        told, self._told = self._told, self.recorder.dropped
        if self._told > told:
            warnings.warn(self.recorder.lost(), stacklevel=3)

    def _run(self) -> None:
        while not self._stopping.wait(self._every):
            with contextlib.suppress(Exception):  # the files stay, the next time takes them up
                self.flush()

    def __enter__(self) -> Recording:
        self._blocks += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._blocks -= 1
        if self._blocks > 0:  # it goes on until the end of the outer one
            return
        hidden = [] if error is None else [Warning]  # one that is an error hides no other
        try:
            self._finish()
        except Exception as problem:  # the work recorded is done
            waits = f"it waits in {self.recorder.spool} and the next recording takes it up"
            said = f"what was recorded is not in {self.state}/query_log yet ({reason_of(problem)}); {waits}"
            with contextlib.suppress(*hidden):
                warnings.warn(said, stacklevel=2)
        with contextlib.suppress(*hidden):
            self._tell_lost()


def record(
    spark: SparkSession,
    *,
    state: str | None = None,
    tables: Mapping[str, str] | None = None,
    spool: str | None = None,
    every: float | None = EVERY,
) -> Recording:
    """Record the scans of a session's executions into the state's query log, for teams that keep no logs.

    Executions are noted when they end, kept in memory, spilled to the local disk and appended to the state in batches.
    Only classic sessions can be recorded.

    Asked for the same once more, as by a notebook's cell that is run again, it returns the recording that is at work,
    so that each execution is recorded once. That ends with `Recording.stop`, or with the outermost ``with`` block.

    Args:
        state: folder of the state; by default the session's setting ``spark.zorder.state``.
        tables: path or catalog name of tables by the names under which they are stored; without any, every table is
            stored under its location.
        spool: local folder of spilled files, by default one for a state and these tables. What a process left there
            that ended early, the next one takes up.
        every: seconds between appends; None appends only on `Recording.flush` and `Recording.stop`.

    Raises:
        UnsupportedTableError: a Spark Connect session.
        ZorderError: no state is named, ``every`` is no time, the folder of spilled files belongs to somebody else, or
            another recording of the session, with some of these tables, is at work for this state.

    ::

        with zorder_pipeline.record(spark, state="/data/state", tables={"flights": "/data/flights"}):
            spark.sql("SELECT count(*) FROM flights WHERE distance > 2000").collect()
    """
    folder = state_of(spark, state) if has_jvm(spark) else state or ""
    if folder is None:
        raise ZorderError(f"nothing says where to record to; name a folder with state=..., or set {STATE_CONF}")
    if every is not None and not 0 < every < threading.TIMEOUT_MAX:
        raise ZorderError(f"every is {every!r}; give seconds above 0, or None to append only on flush and stop")
    told = json.dumps([folder, sorted((tables or {}).items())])  # who records other tables leaves ours out
    name = hashlib.blake2b(told.encode(), digest_size=6).hexdigest()
    place = (
        Path(spool) if spool else _private(Path(tempfile.gettempdir()) / f"zorder-recorder-{getpass.getuser()}") / name
    )
    return _started(Recording(spark, folder, tables or {}, place, every))


def _started(asked: Recording) -> Recording:
    """The recording, begun, or the one that does the same already.

    Raises:
        ZorderError: one that is at work would record the same executions.
    """
    with _beginning:
        _begun[:] = [one for one in _begun if one.recorder.listening]
        for one in _begun:
            if one.is_like(asked):
                return one
            if one.doubles(asked):
                of = ", ".join(sorted(one.tables)) or "all tables"
                raise ZorderError(
                    f"this session is recorded into {one.state} already (tables: {of}; every: {one._every}; spool: "
                    f"{one.recorder.spool}), and its executions would be there twice; stop() that recording first, "
                    "which record(...) returns where it is called as it was then"
                )
        asked.start()
        _begun.append(asked)
    return asked


def _in_plans(spark: SparkSession, place: str) -> str:
    """How plans write a folder; as it was given where its filesystem cannot be reached."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if has_jvm(spark):
        with contextlib.suppress(Py4JError, PySparkException):
            return written_as(spark, place)
    local = local_path(place)
    return place if local is None else str(Path(local).absolute())


def _private(folder: Path) -> Path:
    """A folder among everybody's temporary files that nobody else reads or has made: plans hold literals.

    Raises:
        ZorderError: it is another user's.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise ZorderError(f"{folder} belongs to another user; name a folder for spilled files with spool=...")
    folder.chmod(0o700)
    return folder
