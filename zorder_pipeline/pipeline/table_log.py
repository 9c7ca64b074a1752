"""What is asked of one table: by query logs, by what a state keeps of them, or by both, each query once."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from zorder_pipeline.errors import NothingToLearnError, ZorderError
from zorder_pipeline.model.places import is_uri, shown_place
from zorder_pipeline.model.wording import counted
from zorder_pipeline.model.workload import QueryLog
from zorder_pipeline.query_log.intake.store import LogStore
from zorder_pipeline.relayout.snapshot import TableSnapshot

from .logs import ingest, names_in_state, names_of, stored_log
from .records import LogSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["asked_log", "none_stored", "refuse_unasked", "table_log"]

TOLD = 5


def table_log(
    spark: SparkSession,
    table: str,
    snapshot: TableSnapshot,
    logs: Sequence[LogSource | str] = (),
    *,
    state: str | None = None,
    aliases: Sequence[str] = (),
    days: float | None = None,
) -> QueryLog:
    """The queries of one table, under its location, whatever logs and state call it.

    What a state has read of the logs that are given, too, counts once. It may know the table by the names that it was
    configured or recorded by (`names_in_state`), and these are then names in the logs as well.

    Args:
        table: path or catalog name that the snapshot was opened by.
        logs: query logs.
        state: folder of the state, whose stored queries count; None for those of the logs alone.
        aliases: further names that logs or state may call the table by.
        days: only stored queries of so many days before the newest of the state, as nights take those of
            ``retention_days``; those without a time always count.

    Raises:
        LogError: a log cannot be read.
    """
    if state is None:
        return ingest(logs, {snapshot.location: (snapshot, names_of(table, snapshot, aliases))})
    names = tuple(dict.fromkeys([*aliases, *names_in_state(spark, state, table, snapshot)]))
    stored = stored_log(spark, state, names, days)
    mine = replace(stored, queries=tuple(replace(query, table=snapshot.location) for query in stored.queries))
    if not logs:
        return mine
    fresh = ingest([_as_stored(log) for log in logs], {snapshot.location: (snapshot, names)})
    return QueryLog.merged([mine.besides(fresh), fresh])


def _as_stored(log: LogSource | str) -> LogSource:
    """A log by the path under which a state has read it, by which its lines are known again."""
    source = LogSource(log) if isinstance(log, str) else log
    return source if is_uri(source.path) else replace(source, path=os.path.abspath(source.path))


def refuse_unasked(logs: Sequence[LogSource | str], state: str | None) -> None:
    """Refuse what has neither a log nor a state to know queries from.

    Raises:
        ZorderError: neither is named.
    """
    if not logs and state is None:
        raise ZorderError("nothing says what is asked: name a query log with --log, or a state with --state")


def asked_log(
    spark: SparkSession,
    table: str,
    snapshot: TableSnapshot,
    logs: Sequence[LogSource | str] = (),
    *,
    state: str | None = None,
    aliases: Sequence[str] = (),
    days: float | None = None,
) -> QueryLog:
    """`table_log` for what cannot do without a query.

    Raises:
        ZorderError: neither a log nor a state is named.
        NothingToLearnError: the state alone is named, and holds no query of the table.
        LogError: a log cannot be read.
    """
    refuse_unasked(logs, state)
    log = table_log(spark, table, snapshot, logs, state=state, aliases=aliases, days=days)
    if state is not None and not logs and not log.queries:
        why = none_stored(spark, state, table, snapshot, aliases, days)
        raise NothingToLearnError(f"nothing is known of what is asked of {snapshot.location}: {why}")
    return log


def none_stored(
    spark: SparkSession,
    state: str,
    table: str,
    snapshot: TableSnapshot,
    aliases: Sequence[str] = (),
    days: float | None = None,
) -> str:
    """Why a state tells no query of a table, with the way out.

    Args:
        table, aliases, days: as `table_log` was asked.
    """
    scans = LogStore(spark, state).scans()
    names = {name.lower() for name in (*aliases, *names_in_state(spark, state, table, snapshot))}
    mine = sum(count for name, count in scans.items() if name.lower() in names)
    whole = counted(sum(scans.values()), "query")
    if mine and days is not None:
        kept = f"the {counted(mine, 'query')} of it in {shown_place(state)}"
        why = f"{kept} came more than {days:g} days (retention_days) before the newest of all and count no more"
    elif scans:
        ranked = sorted(scans.items(), key=lambda item: -item[1])
        of = ", ".join(f"{name} ({count:,})" for name, count in ranked[:TOLD])
        others = f" and {counted(len(scans) - TOLD, 'further table')}" if len(scans) > TOLD else ""
        why = f"{shown_place(state)} holds {whole}, of {of}{others}; if one of these is it, name it with --alias"
    else:
        why = f"{shown_place(state)} holds no query"
    place = shlex.quote(shown_place(state))
    return (
        f"{why}; record what is asked with zorder_pipeline.record, add a log with zorder ingest --log … --state "
        f"{place}, or name one with --log"
    )
