"""A session's settings: some for a while, those that the state is written under, and the time zone."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from zorder_pipeline.java import has_jvm, java_class

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["OWN_COMMITS", "ZONE", "active", "alone", "apart", "own_setting", "session_zone", "set_for_a_while"]

ZONE = "spark.sql.session.timeZone"
_COPY_OF = "_zorder_copy_of"

OWN_COMMITS: dict[str, str | None] = {
    "spark.databricks.delta.write.txnAppId": None,
    "spark.databricks.delta.write.txnVersion": None,
}
"""The session's own are for its own commits: one of theirs may be skipped for ours, or ours for one of theirs."""
DEFAULTS = "spark.databricks.delta.properties.defaults."
"""What the settings of a session begin with by which its new tables get properties and features."""
LASTING = ("logRetentionDuration", "deletedFileRetentionDuration", "enableExpiredLogCleanup", "coordinatedCommits.")
"""Those that hold for the state's tables, too: how long what is deleted stays, and who orders commits."""

_held: dict[tuple[str, str], tuple[int, str | None]] = {}
"""Of a session and a setting: who uses it, and what it was before."""
_holding = threading.Lock()


@contextlib.contextmanager
def set_for_a_while(spark: SparkSession, conf: Mapping[str, str | None]) -> Iterator[None]:
    """Settings of the session while the block runs; the last of several relayouts at once puts them back.

    Args:
        conf: values by name; None unsets.
    """
    settings, session = spark.conf, _session_id(spark)
    entered: list[str] = []
    try:
        with _holding:
            for key, value in conf.items():
                users, before = _held.get((session, key)) or (0, settings.get(key, None))
                _put(settings, key, value)
                _held[session, key] = (users + 1, before)
                entered.append(key)
        yield
    finally:
        with _holding:
            for key in entered:
                users, before = _held.pop((session, key))
                if users > 1:
                    _held[session, key] = (users - 1, before)
                    continue
                with contextlib.suppress(Exception):  # the session is dead: what the block did matters more
                    _put(settings, key, before)


def session_zone(spark: SparkSession) -> str:
    """The session's time zone, which is the machine's where the session names none."""
    return spark.conf.get(ZONE) or "UTC"  # without a default of ours, in whose place Spark tells the machine's


def own_setting(spark: SparkSession, key: str) -> str | None:
    """A setting of the session's own, whatever `set_for_a_while` has put in its place just now; None of one unset."""
    with _holding:
        held = _held.get((_session_id(spark), key)) if _held else None
        found: str | None = spark.conf.get(key, None) if held is None else held[1]
    return found


@contextlib.contextmanager
def alone(spark: SparkSession, conf: Mapping[str, str | None] | None = None) -> Iterator[SparkSession]:
    """A copy of the session to read in, which is this thread's active one in the block; other threads do not notice it.

    It has the session's own settings, not those that other threads have set for a while (`set_for_a_while`): what it
    reads has the values that the session reads. In Spark Connect it is the session itself, changed for a while.

    Args:
        conf: further settings by name; None unsets.
    """
    if not has_jvm(spark):
        with set_for_a_while(spark, conf or {}):
            yield spark
        return
    with _holding:
        session, own = _session_id(spark), spark._jsparkSession.cloneSession()
        before = {key: value for (holder, key), (_, value) in _held.items() if holder == session}
    for key, value in {**before, **(conf or {})}.items():
        _put(own.conf(), key, value)
    found = copy.copy(spark)  # and not made anew, as Python's RDDs would then be taken for rows of that one
    for name in ("conf", "catalog", "_conf", "_catalog"):  # by which it would go on with the other one
        vars(found).pop(name, None)
    found._jsparkSession, classic, mine = own, type(spark), _original(spark)

    def made(*args: Any, **options: Any) -> DataFrame:
        try:
            return classic.createDataFrame(found, *args, **options)
        finally:
            classic._activeSession = mine  # which PySpark has for all threads

    vars(found).update({_COPY_OF: mine, "createDataFrame": made})
    with active(found, own):
        yield found


@contextlib.contextmanager
def active(spark: SparkSession, session: JavaObject) -> Iterator[None]:
    """Have a session of the JVM be the one that Spark and Delta ask for settings in this thread, in the block.

    Whoever makes a DataFrame of Python's data in the block by another session makes that one the active one.
    """
    classic, sessions = type(spark), java_class(spark, "org.apache.spark.sql.classic.SparkSession")
    in_python, before = _original(classic._activeSession), sessions.getActiveSession()
    sessions.setActiveSession(session)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # the session is dead: what the block did matters more
            classic._activeSession = in_python
            sessions.setActiveSession(before.get()) if before.isDefined() else sessions.clearActiveSession()


def _original(session: Any) -> Any:
    """The session that one is a copy of, which `alone` made; of others, and of none, itself."""
    return session if session is None else vars(session).get(_COPY_OF, session)


@contextlib.contextmanager
def apart(frame: DataFrame, *, new: bool) -> Iterator[DataFrame]:
    """Rows as they are to be written to a table of ours, in the block: by the session's settings, but `OWN_COMMITS`.

    In a classic session that happens in a copy of it, so that what its other threads do meanwhile, beside a recording
    for one, has the settings that it was given; in Spark Connect they change for a while.

    Args:
        new: the write makes the table, which gets none of the properties that new tables have by default but those
            that are `LASTING`: it could not be changed (``appendOnly``), would keep what is purged (deletion vectors,
            change data feed), or be read by nobody but Spark.
    """
    spark = frame.sparkSession
    conf = OWN_COMMITS | (_defaults(spark) if new else {})
    if not has_jvm(spark):
        with set_for_a_while(spark, conf):
            yield frame
        return
    from pyspark.sql import DataFrame

    own = spark._jsparkSession.cloneSession()
    for key, value in conf.items():
        _put(own.conf(), key, value)
    plan = frame._jdf.queryExecution().analyzed()
    yield DataFrame(java_class(spark, "org.apache.spark.sql.classic.Dataset").ofRows(own, plan), spark)


def _defaults(spark: SparkSession) -> dict[str, str | None]:
    """The session's settings of what new tables are like by default but `LASTING`, to be unset."""
    found = (name for name in spark.conf.getAll if name.startswith(DEFAULTS))
    return dict.fromkeys(name for name in found if not name.removeprefix(DEFAULTS).startswith(LASTING))


def _session_id(spark: SparkSession) -> str:
    """What tells a session from others, whichever Python object stands for it."""
    return str(spark._jsparkSession.sessionUUID() if has_jvm(spark) else spark.session_id)  # type: ignore[attr-defined]


def _put(settings: Any, key: str, value: str | None) -> None:
    if value is None:
        settings.unset(key)
    else:
        settings.set(key, value)
