"""A part of a log as Arrow batches of rows for the store: what each Spark task of an ingestion does."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from zorder_pipeline.errors import LogError
from zorder_pipeline.model.json_text import whole_text
from zorder_pipeline.model.predicate import predicate_to_json
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.query_log.insight import query_level
from zorder_pipeline.query_log.statements.catalog import Catalog, generation_of
from zorder_pipeline.query_log.statements.sql import Unusable

from .event_lines import still_damaged
from .files import LogFile
from .ingest import Interpreter
from .marks import Mark, goes_on, mark_of
from .opening import unexpected
from .stored import DAMAGED, NOTHING
from .tally import Tally

__all__ = ["MOVED", "SCHEMA", "Part", "rows_of", "worker"]

SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("source", pa.string()),
        ("position", pa.int64()),
        ("query_date", pa.date32()),
        ("table_name", pa.string()),
        ("template", pa.string()),
        ("query_timestamp", pa.int64()),
        ("duration_ms", pa.float64()),
        ("user", pa.string()),
        ("zone", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("predicate", pa.string()),
        ("rows_read", pa.int64()),
        ("bytes_read", pa.int64()),
        ("partial", pa.bool_()),
        ("level", pa.string()),
        ("reason", pa.string()),
        ("text", pa.string()),
        ("counts", pa.string()),
    ]
)
CHUNK = 2_000
TEXT = 2_000
MOVED = NOTHING | {"moved": True, "mark": None}
"""Counts of a log that was renamed before it was read to its end: the next ingestion finds it under its new name."""


@dataclass(frozen=True)
class Part:
    """A log, or what has been added to it.

    Attributes:
        name: what it is called in the store, see `zorder_pipeline.query_log.intake.known.Known`.
        after: lines up to and including this position were ingested before.
        share: (i, n) for the i-th of n equal shares of the lines.
        since: lines of this time or earlier ones are left out, microseconds since 1970 UTC.
        replaces: log that counts no more with this one.
        damaged: where files of it broke off that were read before, see `event_lines`.
        mark: of what was read before; a file that does not begin so any more has been renamed since it was listed.
    """

    log: LogFile
    zone: str
    name: str = ""
    after: int = 0
    share: tuple[int, int] = (0, 1)
    since: int | None = None
    replaces: str | None = None
    mark: Mark | None = None
    damaged: frozenset[int] = frozenset()


def rows_of(parts: Iterable[Part], catalog: Catalog) -> Iterator[pa.RecordBatch]:
    """Rows of kind ``query`` and ``quarantine``, and one of kind ``file`` per part with its counts."""
    rows: list[dict[str, Any]] = []
    for part in parts:
        for row in _rows(part, _interpreter(catalog, part.zone)):
            rows.append(row)
            if len(rows) >= CHUNK:
                yield pa.RecordBatch.from_pylist(rows, SCHEMA)
                rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, SCHEMA)


def worker(parts: list[Part], catalog: Catalog) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a Spark task does with the numbers of its parts, see `rows_of`."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from rows_of([parts[i] for i in batch.column(0).to_pylist()], catalog)

    return read


_INTERPRETERS: dict[str, Interpreter] = {}
"""Of this process: Spark's Python workers live for many tasks, and templates are worth keeping."""


def _interpreter(catalog: Catalog, zone: str) -> Interpreter:
    schemas = sorted((name, schema.fingerprint) for name, schema in catalog.schemas.items())
    key = json.dumps([generation_of(catalog, zone), schemas])
    if key not in _INTERPRETERS:
        _INTERPRETERS.clear()
        _INTERPRETERS[key] = Interpreter(catalog, zone)
    return _INTERPRETERS[key]


def _rows(part: Part, interpreter: Interpreter) -> Iterator[dict[str, Any]]:
    """The rows of a part, the last of which says what was read; what one that was not read says does not count."""
    moved = {"kind": "file", "source": part.log.source, "position": part.after, "counts": json.dumps(MOVED)}
    if part.after and part.mark is not None and not goes_on(part.log, part.mark):
        yield moved
        return
    mark = mark_of(part.log)
    try:
        read = yield from _read(part, interpreter)
    except Exception as error:  # also what nobody thought of costs this file alone
        why, tally = error if isinstance(error, LogError) else unexpected(part.log.source, error), Tally()
        if not isinstance(error.__cause__, FileNotFoundError):
            tally.add(Unusable("unreadable_file", ignored=False))
        yield moved | {"text": whole_text(str(why))[:TEXT], "counts": json.dumps(MOVED | tally.to_json())}
        return
    if mark_of(part.log) != mark:  # emptied or renamed while it was read: what came of it may be another's
        yield moved
        return
    counts = read.pop("counts") | {"mark": None if mark is None else mark.to_json()}
    yield {"kind": "file", "source": part.log.source, "counts": json.dumps(counts)} | read


def _read(part: Part, interpreter: Interpreter) -> Generator[dict[str, Any], None, dict[str, Any]]:
    """The rows of a part's lines; returns what was read.

    Raises:
        LogError: the log cannot be opened, or its filesystem fails.
    """
    tally = Tally()
    last, damaged = part.after, part.damaged
    watermark: int | None = None
    for line, found in interpreter.log(part.log, part.after, part.share, damaged):
        if part.log.kind == "events":
            damaged = still_damaged(damaged, line)
        unfit = isinstance(found, Unusable) and not found.ignored
        if line.reason not in ("truncated", "damaged_file") and (line.ended or not unfit):
            last = max(last, line.position)  # what may yet be completed is read again then
        if part.since is not None and line.timestamp is not None and line.timestamp <= part.since:
            continue
        tally.add(found)
        if line.timestamp is not None:
            watermark = max(watermark or line.timestamp, line.timestamp)
        if not isinstance(found, Unusable):
            for query in found:
                yield _query(query, line.source, line.position, interpreter.catalog)
        elif not found.ignored:
            text = (line.statement or line.raw)[:TEXT]
            row = {"kind": "quarantine", "source": line.source, "position": line.position, "text": text}
            yield row | {"reason": found.reason, "query_date": _date(line.timestamp), "user": line.user}
    counts = tally.to_json() | ({DAMAGED: sorted(damaged)} if damaged else {})
    return {"position": last, "query_timestamp": watermark, "counts": counts}


def _query(query: LoggedQuery, source: str, position: int, catalog: Catalog) -> dict[str, Any]:
    return {
        "kind": "query",
        "source": source,
        "position": position,
        "query_date": _date(query.timestamp),
        "table_name": query.table,
        "template": query.template,
        "query_timestamp": query.timestamp,
        "duration_ms": query.duration_ms,
        "user": query.user,
        "zone": query.zone,
        "columns": list(query.columns),
        "predicate": json.dumps(predicate_to_json(query.predicate)),
        "rows_read": query.rows_read,
        "bytes_read": query.bytes_read,
        "partial": query.partial,
        "level": query_level(query, catalog.schemas.get(query.table)),
    }


def _date(timestamp: int | None) -> Any:
    """Day of the query; of the ingestion when the log has no time."""
    moment = datetime.now(UTC) if timestamp is None else datetime.fromtimestamp(timestamp / 1e6, UTC)
    return moment.date()
