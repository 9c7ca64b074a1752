"""Whole logs: every line is used, ignored or quarantined, and counted."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from zorder_pipeline.errors import LogError
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.workload import LoggedQuery, QueryLog
from zorder_pipeline.query_log.events.spark_events import Execution
from zorder_pipeline.query_log.statements.catalog import Catalog
from zorder_pipeline.query_log.statements.recipe import Scan
from zorder_pipeline.query_log.statements.sql import Unusable
from zorder_pipeline.query_log.statements.templates import Parser
from zorder_pipeline.query_log.statements.view_names import OF_VIEWS
from zorder_pipeline.query_log.statements.views import ViewName

from .files import LogFile, list_logs
from .known import in_any, name_of, place_of
from .marks import without_packed_copies
from .opening import unexpected
from .reader import lines_of
from .records import LogLine
from .tally import Tally
from .temp_views import TemporaryViews

__all__ = ["Interpreter", "ingest"]

MAX_PARSERS = 64
"""Sets of temporary views whose templates are kept."""

logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # its complaints about single statements are our counts


class Interpreter:
    """Turns the lines of a log into queries. Keeps its templates from line to line and log to log; not thread-safe.

    Args:
        zone: session time zone of statements whose log does not name one.
    """

    def __init__(self, catalog: Catalog, zone: str = "UTC") -> None:
        self.catalog, self.zone = catalog, zone
        self.parser = Parser(catalog)
        self._views = TemporaryViews((), catalog.dialect)
        self._parsers: OrderedDict[tuple[tuple[ViewName, tuple[int, int]], ...], Parser] = OrderedDict()

    def log(
        self, log: LogFile, after: int = 0, share: tuple[int, int] = (0, 1), damaged: Collection[int] = ()
    ) -> Iterator[tuple[LogLine, list[LoggedQuery] | Unusable]]:
        """Each line of a log with its queries, or with the reason why it has none.

        Args:
            after, share, damaged: which lines, see `lines_of`; the others may have created temporary views that these
                name.

        Raises:
            LogError: the file cannot be opened.
        """
        lines = lines_of(log, having=OF_VIEWS, dialect=self.catalog.dialect) if log.kind != "events" else ()
        self._views = TemporaryViews(lines, self.catalog.dialect)
        self._parsers.clear()
        dialect, types_of = self.catalog.dialect, self._partitioned_by
        for line in lines_of(log, after, share, dialect=dialect, types_of=types_of, damaged=damaged):
            yield line, self.one(line)

    def one(self, line: LogLine) -> list[LoggedQuery] | Unusable:
        """The queries of one line, or the reason why it has none."""
        if line.reason is not None:
            return Unusable(line.reason, ignored=line.reason == "unfinished")  # it comes with its end, if it has one
        if line.failed:
            return Unusable("failed", ignored=True)
        if line.cached:
            return Unusable("from_cache", ignored=True)
        if line.execution is not None:
            return self._executed(line, line.execution)
        try:
            parser = self._parser(line)
        except ValueError:  # too many views
            return Unusable("unsupported", ignored=False)
        scans = parser.scans(line.statement, line.timestamp, self.zone, line.parameters)
        if isinstance(scans, Unusable):
            return scans
        return [self._query(line, scan, parser.template, self.zone) for scan in scans]

    def _parser(self, line: LogLine) -> Parser:
        """The parser of a line's statement: of one that names temporary views one that knows these."""
        views = self._views.known_to(line)
        if not views:
            return self.parser
        key = tuple(sorted((name, place) for name, (place, _) in views.items()))
        if key not in self._parsers:
            temporary = {name: view for name, (_, view) in views.items()}
            self._parsers[key] = Parser(replace(self.catalog, temporary=temporary))
            if len(self._parsers) > MAX_PARSERS:
                self._parsers.popitem(last=False)
        self._parsers.move_to_end(key)
        return self._parsers[key]

    def _executed(self, line: LogLine, execution: Execution) -> list[LoggedQuery] | Unusable:
        found = []
        if len(execution.scans) > 1:  # what was read is known of all of them together
            line = replace(line, rows_read=None, bytes_read=None)
        for scan in execution.scans:
            table = self._table(scan.names) if scan.is_delta else None
            if table is not None:
                query = self._query(line, Scan(table, scan.predicate, scan.columns, scan.partial), scan.template, "")
                found.append(query)
        if found:
            return found
        others = tuple(dict.fromkeys(scan.names[0] for scan in execution.scans))
        return Unusable("other_table" if others else execution.kind, ignored=True, tables=others)

    def _table(self, names: tuple[str, ...]) -> str | None:
        return next((table for name in names if (table := self.catalog.named(name)) is not None), None)

    def _partitioned_by(self, names: tuple[str, ...]) -> dict[str, str]:
        """Types of the partition columns of the table of these names, as far as known."""
        schema = self.catalog.schemas.get(self._table(names) or "")
        return {column.name: column.type for column in schema.columns if column.partition} if schema else {}

    def _query(self, line: LogLine, scan: Scan, template: str, zone: str) -> LoggedQuery:
        return LoggedQuery(
            table=scan.table,
            predicate=scan.predicate,
            columns=scan.columns,
            template=template,
            timestamp=line.timestamp,
            duration_ms=line.duration_ms,
            user=line.user,
            source=f"{line.source}:{line.position}",
            zone=zone or (line.execution.zone if line.execution else None) or self.zone,
            rows_read=line.rows_read,
            bytes_read=line.bytes_read,
            partial=scan.partial,
        )


def ingest(
    paths: Sequence[str],
    *,
    log_format: str = "auto",
    schemas: Mapping[str, TableSchema] | None = None,
    aliases: Mapping[str, str] | None = None,
    views: Mapping[str, str] | None = None,
    dialect: str = "spark",
    zone: str = "UTC",
    without: Sequence[str] = (),
    progress: Progress = silent,
) -> QueryLog:
    """Read logs into memory and take every line apart.

    Args:
        paths: files or folders; a file that several lead to is read once.
        log_format: auto, sql, spark-events or query-history.
        schemas: schema by table.
        aliases: table by the names that statements may call it.
        views: query text by view name.
        dialect: sqlglot dialect of the statements.
        zone: session time zone of the statements.
        without: places below the folders that are logs of their own.

    Raises:
        LogError: a log cannot be read at all, or a view cannot be parsed.
    """
    catalog = Catalog.of(aliases or {}, schemas or {}, views or {}, dialect)
    interpreter = Interpreter(catalog, zone)
    queries: list[LoggedQuery] = []
    tally = Tally()
    until: int | None = None
    elsewhere, seen = in_any(without), set[str]()
    for place in paths:
        listed = list_logs(place, log_format, elsewhere, progress)
        for log in without_packed_copies(listed):
            if (name := name_of(log.source)) in seen:
                continue
            seen.add(name)
            try:
                for line, found in interpreter.log(log):
                    tally.add(found)
                    until = max((at for at in (line.timestamp, until) if at is not None), default=None)
                    queries += [] if isinstance(found, Unusable) else found
            except Exception as error:
                is_told, alone = isinstance(error, LogError), name == place_of(place)
                if is_told and alone:
                    raise
                why = error if is_told else unexpected(log.source, error)
                if alone:  # of a folder, one file costs no other one
                    raise why from error
                progress(str(why))
                tally.add(Unusable("unreadable_file", ignored=False))
    return replace(tally.log(tuple(queries)), until=until)
