"""The first step: query logs become queries of known tables."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from zorder_pipeline.errors import TableError
from zorder_pipeline.model.places import is_same_place, is_uri, known_as, local_path, without_root
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.workload import QueryLog
from zorder_pipeline.query_log.intake.ingest import ingest as ingest_logs
from zorder_pipeline.query_log.intake.known import place_of, real_place_of
from zorder_pipeline.query_log.intake.store import LogStore
from zorder_pipeline.query_log.intake.stored import StoredLog
from zorder_pipeline.query_log.statements.catalog import SESSION_CATALOG, Catalog
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table
from zorder_pipeline.state.delta_tables import is_delta_table, sql_name

from .records import LogSource
from .repeated import repeated, why_repeated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.config import PipelineConfig

__all__ = ["Tables", "Unopened", "configured_sources", "configured_tables", "ingest", "ingest_into"]
__all__ += ["names_and_schemas", "names_in_state", "names_of", "places_in_state", "redact_key", "stored_log"]


@dataclass(frozen=True)
class Unopened:
    """A table that cannot be opened now: its queries are known by its names, without its columns.

    A night without it would be one of another configuration, and all logs would be read again, twice; so would one
    without the names that follow from where it lies.

    Attributes:
        location: URI of the table's folder.
    """

    location: str
    asked_schema: None = None
    table_id: str = ""

    @classmethod
    def at(cls, place: str) -> Unopened:
        """The table in a folder.

        >>> Unopened.at("/lake/t/").location, Unopened.at("s3a://lake/t").location
        ('file:/lake/t', 's3a://lake/t')
        """
        local = local_path(place)
        return cls((place if local is None else f"file:{Path(local).absolute()}").rstrip("/"))


Tables = Mapping[str, tuple[TableSnapshot | Unopened, Sequence[str]]]
"""By table name, its snapshot and the names statements call it by."""


def configured_tables(spark: SparkSession, config: PipelineConfig, warn: Progress = silent) -> Tables:
    """The tables of a configuration, as queries are read with. One that cannot be opened is known by where it lies.

    One that is configured by its catalog name is known by where it lay when a log was last read with it; it is left
    out when none was, and then the logs are read again as soon as it can be opened.

    Args:
        warn: told of each table that cannot be opened, or that an earlier entry is, too (`repeated`).
    """
    known: dict[str, tuple[TableSnapshot | Unopened, Sequence[str]]] = {}
    for table in config.tables:
        found: TableSnapshot | Unopened
        try:
            found = open_table(spark, table.table, committer=table.layout.committer)
        except TableError as error:
            warn(f"{table.name}: {error}")
            place = table.location or LogStore(spark, config.state).places().get(table.name)
            if place is None:
                continue
            found = Unopened.at(place)
        known[table.name] = (found, names_of(table.table, found, table.names))
    for name, first in repeated(known).items():
        warn(f"{name}: {why_repeated(known[name][0], first, known[first][0])}")
    return known


def configured_sources(config: PipelineConfig, given: LogSource) -> list[LogSource]:
    """A log as the configuration reads it: as the configured one that it is or lies in; and those that lie in it."""
    listed = [LogSource(log.path, log.format, log.dialect, log.time_zone) for log in config.query_logs]
    around = [log for log in listed if place_of(log.path) == place_of(given.path) or _is_below(given.path, log.path)]
    nearest = max(around, key=lambda log: len(place_of(log.path)), default=given)
    return [replace(nearest, path=given.path), *(log for log in listed if _is_below(log.path, given.path))]


def _is_below(place: str, folder: str) -> bool:
    return place_of(place).startswith(f"{place_of(folder)}/")


def _others(places: Iterable[str], source: str) -> list[str]:
    """Logs of their own that links in a source may lead to, or that lie in it: all but itself and what it lies in."""
    own = real_place_of(source)
    return [place for place in places if not f"{own}/".startswith(f"{real_place_of(place)}/")]


def ingest(
    sources: Sequence[LogSource | str],
    tables: Tables | None = None,
    views: Mapping[str, str] | None = None,
    progress: Progress = silent,
) -> QueryLog:
    """Read query logs into memory; of what is named twice, also as part of a folder, each line once.

    Args:
        sources: the logs; a plain path is taken for a `LogSource` with nothing else said.
        tables: the tables whose queries are wanted. Without any, tables go by the names found in the statements.
        views: query text by view name.

    Raises:
        LogError: a log does not exist or is of no known format.
    """
    aliases, schemas = names_and_schemas(tables)
    named = {real_place_of(source.path): source for source in reversed([_source(source) for source in sources])}
    logs = list(reversed(named.values()))
    parts = [
        ingest_logs(
            [source.path],
            log_format=source.log_format,
            schemas=schemas,
            aliases=aliases,
            views=views,
            dialect=source.dialect,
            zone=source.zone,
            without=_others((other.path for other in logs), source.path),
            progress=progress,
        )
        for source in logs
    ]
    return QueryLog.merged(parts)


def ingest_into(
    spark: SparkSession,
    state: str,
    sources: Sequence[LogSource | str],
    tables: Tables | None = None,
    views: Mapping[str, str] | None = None,
    progress: Progress = silent,
    beside: Sequence[str] = (),
) -> StoredLog:
    """Read on Spark what is new in query logs, and add it to the state, exactly once.

    What was read for other tables is read again for these, and replaced.

    Args:
        state: folder of the state.
        tables: the tables whose queries are wanted. Without any, tables go by the names found in the statements, and
            nothing is replaced.
        beside: places of logs that are read on their own; one inside a folder of logs is no part of that.

    Raises:
        LogError: a log does not exist or is of no known format, or, without tables, was read otherwise before.
        LostRaceError: another ingestion ran at the same time; nothing was doubled.
    """
    aliases, schemas = names_and_schemas(tables)
    lying = {name: found.location for name, (found, _) in (tables or {}).items()}
    store, added = LogStore(spark, state), []
    logs = [_source(source) for source in sources]
    logs = [log if is_uri(log.path) else replace(log, path=os.path.abspath(log.path)) for log in logs]  # for executors
    places = [*beside, *(source.path for source in logs)]
    for source in logs:
        catalog = Catalog.of(aliases, schemas, views or {}, source.dialect, lying)
        added.append(
            store.ingest(
                source.path,
                catalog,
                log_format=source.log_format,
                zone=source.zone,
                progress=progress,
                without=_others(places, source.path),
                adding=tables is None,
            )
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


def places_in_state(spark: SparkSession, state: str) -> dict[str, str]:
    """Where the configuration's tables lay when logs were last read into a state, as URI by name."""
    return LogStore(spark, state).places()


def names_in_state(spark: SparkSession, state: str, table: str, snapshot: TableSnapshot) -> list[str]:
    """What a state may call a table: the configuration's names of what lay there when logs were last read, first, and
    what statements may call it, but for the configuration's names of other tables.

    Args:
        table: path or catalog name that the snapshot was opened by.
    """
    places = places_in_state(spark, state)
    mine = [name for name, place in places.items() if is_same_place(place, snapshot.location)]
    others = {name.lower() for name in places} - {name.lower() for name in mine}
    return [name for name in names_of(table, snapshot, mine) if name.lower() not in others]


def redact_key(spark: SparkSession, state: str | None) -> str:
    """What names of expressions and predicates are made from that must tell no literal: the same in all nights.

    It is the id of a table of the state, which nothing shows; a new one each time where no log was stored yet.
    """
    place = None if state is None else LogStore(spark, state).path("log_files")
    if place is None or not is_delta_table(spark, place):
        return uuid.uuid4().hex
    return str(spark.sql(f"DESCRIBE DETAIL {sql_name(place)}").collect()[0]["id"])


def _source(source: LogSource | str) -> LogSource:
    return LogSource(source) if isinstance(source, str) else source


def names_and_schemas(tables: Tables | None) -> tuple[dict[str, str], dict[str, TableSchema]]:
    """Table by each name that statements may use, and schema by table.

    Two folders of one name: what only follows from it names neither table, where it would name the one that comes last.
    One folder of two tables: it is the first one, whose are the names of both.
    """
    known = tables or {}
    given: dict[str, str] = {}
    implied: dict[str, set[str]] = {}
    lying: dict[str, str] = {}
    for table, (snapshot, names) in known.items():
        first = lying.setdefault(known_as(snapshot.location), table)
        place = f"delta.{snapshot.location}"
        certain = names.index(place) + 1 if place in names else len(names)
        given |= dict.fromkeys((name.lower() for name in names[:certain]), first)
        for name in names[certain:]:
            implied.setdefault(name.lower(), set()).add(first)
    alone = {name: next(iter(claimed)) for name, claimed in implied.items() if len(claimed) == 1}
    return alone | given, {
        name: found.asked_schema for name, (found, _) in known.items() if found.asked_schema is not None
    }


def names_of(table: str, snapshot: TableSnapshot | Unopened, aliases: Sequence[str] = ()) -> tuple[str, ...]:
    """What a statement may call the table: its aliases, its catalog name, where it lies; and what follows from these.

    That is the last part or two of the catalog name, and of its folder's path. It names a table only as long as no
    other table is called so. Tables of the session's catalog are also called without its name.

    Args:
        table: path or catalog name that the snapshot was opened by.
    """
    bare = without_root(snapshot.location)  # as recorders and event logs name it
    folders = [part for part in bare.split("/") if part]
    catalog = [] if "/" in table else [table, table.removeprefix(SESSION_CATALOG)]
    parts = table.split(".") if catalog else table.rstrip("/").rsplit("/", 1)[-1:]
    certain = [*aliases, *catalog, bare, f"delta.{snapshot.location}"]
    implied = [parts[-1], *([".".join(parts[-2:])] if catalog else []), *folders[-1:], ".".join(folders[-2:])]
    return tuple(dict.fromkeys([*certain, *implied]))
