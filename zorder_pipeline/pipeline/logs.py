"""The first step: query logs become queries of known tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.workload import QueryLog
from zorder_pipeline.query_log.catalog import Catalog
from zorder_pipeline.query_log.ingest import ingest as ingest_logs
from zorder_pipeline.query_log.spool import RECORDED, delete_moved
from zorder_pipeline.query_log.store import LogStore
from zorder_pipeline.query_log.stored import StoredLog
from zorder_pipeline.reading.file_stats import FileStats
from zorder_pipeline.relayout.snapshot import TableSnapshot

from .records import LogSource, Progress, silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Tables", "ingest", "ingest_into", "names_of", "purge", "stored_log"]


Tables = Mapping[str, tuple[TableSnapshot, Sequence[str]]]
"""By table name, its snapshot and the names statements call it by."""


def ingest(
    sources: Sequence[LogSource | str], tables: Tables | None = None, views: Mapping[str, str] | None = None
) -> QueryLog:
    """Read query logs into memory.

    Args:
        sources: the logs; a plain path is taken for a `LogSource` with nothing else said.
        tables: the tables whose queries are wanted. Without any, tables go by the names found in the statements.
        views: query text by view name.

    Raises:
        LogError: a log does not exist or is of no known format.
    """
    aliases, schemas = _names_and_schemas(tables)
    parts = [
        ingest_logs(
            [source.path],
            log_format=source.log_format,
            schemas=schemas,
            aliases=aliases,
            views=views,
            dialect=source.dialect,
            zone=source.zone,
        )
        for source in map(_source, sources)
    ]
    return QueryLog.merged(parts)


def ingest_into(
    spark: SparkSession,
    state: str,
    sources: Sequence[LogSource | str],
    tables: Tables | None = None,
    views: Mapping[str, str] | None = None,
    progress: Progress = silent,
) -> StoredLog:
    """Read on Spark what is new in query logs, and add it to the state, exactly once.

    Args:
        state: folder of the state.

    Raises:
        LogError: a log does not exist or is of no known format.
        LostRaceError: another ingestion ran at the same time; nothing was doubled.
    """
    aliases, schemas = _names_and_schemas(tables)
    store, added = LogStore(spark, state), []
    for source in map(_source, sources):
        catalog = Catalog.of(aliases, schemas, views or {}, source.dialect)
        added.append(
            store.ingest(source.path, catalog, log_format=source.log_format, zone=source.zone, progress=progress)
        )
    return StoredLog.merged(added)


def stored_log(
    spark: SparkSession, state: str, tables: Sequence[str] | None = None, days: float | None = None
) -> QueryLog:
    """The queries in the state.

    Args:
        tables: only scans of these tables.
        days: only queries of so many days before the newest; those without a time always count.
    """
    return LogStore(spark, state).load(tables, days)


def purge(spark: SparkSession, state: str, days: int, user: str | None = None) -> dict[str, int]:
    """Delete from the state what is older than ``days`` days, or all that ``user`` asked.

    That is: queries, quarantined lines and what the recorder noted. Statistics of expressions and predicates do not
    tell who asked for their constants, so with a user's queries all of them go; the next relayout, or
    `update_statistics`, gathers those that the remaining queries ask for.

    Returns:
        Deleted rows by table; of ``recorded``, files.
    """
    deleted = LogStore(spark, state).purge(days, user)
    deleted[RECORDED] = delete_moved(spark, f"{state.rstrip('/')}/{RECORDED}", days, user)
    return deleted if user is None else deleted | {"file_stats": FileStats(spark, state).purge()}


def _source(source: LogSource | str) -> LogSource:
    return LogSource(source) if isinstance(source, str) else source


def _names_and_schemas(tables: Tables | None) -> tuple[dict[str, str], dict[str, TableSchema]]:
    known = tables or {}
    aliases = {alias: name for name, (_, names) in known.items() for alias in names}
    return aliases, {name: snapshot.schema for name, (snapshot, _) in known.items()}


def names_of(table: str, snapshot: TableSnapshot, aliases: Sequence[str] = ()) -> tuple[str, ...]:
    """What a statement may call the table: its aliases, its catalog name (whole and last part), its folder's name.

    Args:
        table: path or catalog name that the snapshot was opened by.
    """
    folder = snapshot.location.rstrip("/").rsplit("/", 1)[-1]
    given = table.rstrip("/").rsplit("/", 1)[-1]
    catalog = [] if "/" in table else [table, table.rsplit(".", 1)[-1]]
    bare = re.sub(r"^[A-Za-z0-9+.-]+:(//[^/]*)?", "", snapshot.location)  # as recorders and event logs name it
    return tuple(dict.fromkeys([*aliases, *catalog, given, folder, f"delta.{snapshot.location}", bare]))
