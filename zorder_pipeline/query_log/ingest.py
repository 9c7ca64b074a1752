"""Whole logs: every line is used, ignored or quarantined, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.workload import LoggedQuery, QueryLog

from .reader import LogLine, read_log
from .sql import Unusable, parse_statement, template_of

__all__ = ["ingest"]

MAX_KEPT = 1000
"""Quarantined lines kept with their text; all are counted."""


def ingest(
    paths: Sequence[str],
    *,
    log_format: str = "auto",
    schemas: Mapping[str, TableSchema] | None = None,
    aliases: Mapping[str, str] | None = None,
    dialect: str = "spark",
    zone: str = "UTC",
) -> QueryLog:
    """Read logs and take every statement apart.

    Args:
        paths: files or folders.
        schemas: schema by table.
        aliases: table by the names that statements may call it.
        zone: session time zone of the statements.

    Raises:
        LogError: a log cannot be read at all.
    """
    known = {name.lower(): table for name, table in (aliases or {}).items()}
    queries: list[LoggedQuery] = []
    ignored: Counter[str] = Counter()
    quarantined: Counter[str] = Counter()
    kept: list[tuple[str, int, str, str]] = []
    lines = used = 0
    for path in paths:
        for line in read_log(path, log_format):
            lines += 1
            if line.failed:
                ignored["failed"] += 1
                continue
            found = _usable(line, known, schemas or {}, dialect, zone)
            if isinstance(found, Unusable):
                (ignored if found.ignored else quarantined)[found.reason] += 1
                if not found.ignored and len(kept) < MAX_KEPT:
                    kept.append((line.source, line.position, found.reason, (line.statement or line.raw)[:2000]))
                continue
            used += 1
            queries.extend(found)
    return QueryLog(tuple(queries), lines, used, dict(ignored), dict(quarantined), tuple(kept))


def _usable(
    line: LogLine, aliases: Mapping[str, str], schemas: Mapping[str, TableSchema], dialect: str, zone: str
) -> list[LoggedQuery] | Unusable:
    if line.reason is not None:
        return Unusable(line.reason, ignored=False)
    scans = parse_statement(
        line.statement, dialect=dialect, aliases=aliases, schemas=schemas, timestamp=line.timestamp, zone=zone
    )
    if isinstance(scans, Unusable):
        return scans
    template = template_of(line.statement, dialect)
    return [
        LoggedQuery(
            table=scan.table,
            predicate=scan.predicate,
            columns=scan.columns,
            template=template,
            timestamp=line.timestamp,
            duration_ms=line.duration_ms,
            user=line.user,
            source=f"{line.source}:{line.position}",
            partial=scan.partial,
        )
        for scan in scans
    ]
