"""Logs as lines, one after the other and never all at once: statements, or executions of a Spark event log."""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from zorder_pipeline.model.json_text import json_of
from zorder_pipeline.query_log.events.plan_scans import TypesOf, no_types

from .delta_table import DeltaFile, Names
from .event_lines import event_lines
from .files import LogFile
from .opening import Watched, open_log
from .records import RAW, LogLine, line_of
from .texts import Fed, as_utf8, statements_of

__all__ = ["lines_of"]

BATCH = 2_000
MAX_LINE = 4_000_000
MAX_SCRIPT = 64_000_000
NUL = b"\0"
BLANK = b"\xef\xbb\xbf \t\r\n"
"""What a line holds that says nothing: a byte-order mark may stand on one of its own."""
_DOCUMENT = re.compile(rb"(\xef\xbb\xbf)?\s*(\[|\{\s*$|\{.*?\"\s*:\s*\[\s*([\[{\]]|$))")
"""How a file begins that is one JSON document, and not one per line."""


def lines_of(
    log: LogFile,
    after: int = 0,
    share: tuple[int, int] = (0, 1),
    having: re.Pattern[bytes] | None = None,
    dialect: str = "spark",
    types_of: TypesOf = no_types,
    damaged: Collection[int] = (),
) -> Iterator[LogLine]:
    """The lines of one log. Whatever is damaged becomes a line with a reason; nothing after it is lost if possible.

    Args:
        after: only lines beyond this position.
        share: (i, n) for the i-th of n equal shares of the lines.
        having: what a line must have to be worth reading; others may come, too.
        dialect: of the statements, by which those of a script are told apart.
        types_of: what is known of the tables that executions read, see `executions`.
        damaged: see `event_lines`.

    Raises:
        LogError: the file cannot be opened.
    """

    def wanted(number: int) -> bool:
        return number > after and number % share[1] == share[0]

    if log.kind == "json":
        yield from _json_lines(log, wanted, having)
        return
    if log.kind == "events":
        yield from event_lines(log, after, types_of, damaged)
        return
    readers = {"csv": _csv, "parquet": _parquet, "delta": _parquet}
    lines = _sql(log, dialect) if log.kind == "sql" else readers[log.kind](log)
    yield from (line for line in lines if wanted(line.position))


def _json_lines(
    log: LogFile, wanted: Callable[[int], bool], having: re.Pattern[bytes] | None = None
) -> Iterator[LogLine]:
    number, begun = 0, False
    with open_log(log, log.parts[0]) as stored:
        try:
            stream = as_utf8(stored)
            while raw := stream.readline(MAX_LINE):
                while (left := raw.lstrip(NUL)) != raw:  # what a file that was emptied has before the writer's place
                    is_cut = len(raw) >= MAX_LINE and not raw.endswith(b"\n")
                    raw = left + stream.readline(MAX_LINE) if is_cut or not left else left
                number += 1
                whole = len(raw) < MAX_LINE or raw.endswith(b"\n")
                while not whole:
                    rest = stream.readline(MAX_LINE)
                    whole = not rest or rest.endswith(b"\n")
                is_first = not begun and _DOCUMENT.match(raw) and not _is_record(log.source, raw)
                if is_first and (found := _document(log)) is not None:
                    yield from (line for line in found if wanted(line.position))
                    return
                begun = begun or bool(raw.strip(BLANK))
                if not wanted(number) or (having is not None and not having.search(raw)):
                    continue
                if len(raw) >= MAX_LINE:
                    yield LogLine(log.source, number, reason="too_long", raw=raw[:RAW].decode("utf-8", "replace"))
                elif raw.strip(BLANK):
                    yield _json_line(log.source, number, raw)
        except (OSError, EOFError, pa.ArrowException) as error:
            if wanted(number + 1):
                yield _damaged(log, number, error)


def _is_record(source: str, raw: bytes) -> bool:
    """Whether a line is a record by itself, whatever lists it has."""
    try:
        told = json_of(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return False
    return isinstance(told, Mapping) and line_of(source, 1, told).reason is None


def _document(log: LogFile) -> list[LogLine] | None:
    """A file that is one JSON document: a list of records, or an object that has one, as APIs answer.

    None where its lines are JSON by themselves. A document that is cut off is a line with a reason.
    """
    with open_log(log, log.parts[0]) as stream:
        data = as_utf8(stream).read(MAX_SCRIPT + 1).lstrip(b"\0 \t\r\n")
    try:
        told = json_of(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        if any(map(_is_json, data.split(b"\n", 2)[:2])):
            return None
        reason = "invalid_utf8" if isinstance(error, UnicodeDecodeError) else "malformed_json"
        reason = reason if data.endswith(b"\n") else "truncated"
        reason = "too_long" if len(data) > MAX_SCRIPT else reason
        return [LogLine(log.source, 1, reason=reason, raw=data[:RAW].decode("utf-8", "replace"))]
    if isinstance(told, Mapping):
        if line_of(log.source, 1, told).reason is None:  # a record in several lines
            return [_record_line(log.source, 1, told)]
        lists = [value for value in told.values() if isinstance(value, list)]
        pages = (value for value in lists if any(_has_statement(log.source, one) for one in value))
        told = next(pages, [] if lists and not any(lists) else [told])  # a page may have no row
    return [_record_line(log.source, number, record) for number, record in enumerate(told, 1)]


def _has_statement(source: str, record: Any) -> bool:
    return isinstance(record, Mapping) and line_of(source, 1, record).reason != "no_statement"


def _is_json(line: bytes) -> bool:
    try:
        return json_of(line) is not None
    except (ValueError, RecursionError):
        return False


def _record_line(source: str, number: int, record: Any) -> LogLine:
    record = {"statement": record} if isinstance(record, str) else record
    return line_of(source, number, record if isinstance(record, Mapping) else {"value": record})


def _damaged(log: LogFile, number: int, error: Exception) -> LogLine:
    return LogLine(log.source, number + 1, reason="damaged_file", raw=(str(error).splitlines() or [""])[0])


def _json_line(source: str, number: int, raw: bytes) -> LogLine:
    try:
        record = json_of(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # the end of a file may be that of half a character
        reason = "invalid_utf8" if isinstance(error, UnicodeDecodeError) else "malformed_json"
        reason = reason if raw.endswith(b"\n") else "truncated"
        return LogLine(source, number, reason=reason, raw=raw[:RAW].decode("utf-8", "replace"))
    return _record_line(source, number, record)


def _csv(log: LogFile) -> Iterator[LogLine]:
    csv.field_size_limit(MAX_LINE)
    number = 0
    with open_log(log, log.parts[0]) as stream:
        try:
            text = io.TextIOWrapper(as_utf8(stream), encoding="utf-8-sig", errors="replace", newline="")
            fed = Fed(text)
            reader = csv.DictReader(fed)
            while True:
                number += 1
                fed.record.clear()
                try:
                    record = next(reader, None)
                except csv.Error as error:
                    yield LogLine(log.source, number, reason="malformed_csv", raw=str(error))
                    continue
                if record is None:
                    return
                ended = fed.record[-1].endswith(("\n", "\r"))
                if fed.is_over or (not ended and None in record.values()):  # it ends within quotes, or misses columns
                    yield LogLine(log.source, number, reason="truncated", raw="".join(fed.record)[:RAW])
                    continue
                line, raw = line_of(log.source, number, record), "".join(fed.record)
                if any(record.get(None) or ()):  # more than the header names: something was cut at its commas
                    if not _is_quoted(line.statement, raw):
                        yield LogLine(log.source, number, user=line.user, reason="malformed_csv", raw=raw[:RAW])
                        continue
                    line = line_of(log.source, number, _up_to(line.statement, record))
                yield replace(line, ended=ended)
        except (OSError, EOFError, pa.ArrowException) as error:
            yield _damaged(log, number - 1, error)


def _up_to(cell: str, record: Mapping[Any, Any]) -> dict[str, Any]:
    """A CSV record as far as some cell: what stands behind it may belong to other columns.

    >>> _up_to("SELECT 1", {"ts": "1", "sql": "SELECT 1", "user": "Doe", "status": " Ann"})
    {'ts': '1', 'sql': 'SELECT 1'}
    """
    names = [name for name in record if name is not None]
    place = next((i for i, name in enumerate(names) if str(record[name]).strip() == cell.strip()), len(names))
    return {name: record[name] for name in names[: place + 1]}


def _is_quoted(cell: str, raw: str) -> bool:
    """Whether a CSV record has a cell in quotes, and so whole.

    >>> _is_quoted('SELECT "a", b', '1,"SELECT ""a"", b",ann'), _is_quoted("SELECT a", "1,SELECT a, b,ann")
    (True, False)
    """
    return '"' + cell.replace('"', '""') + '"' in raw


def _parquet(log: LogFile) -> Iterator[LogLine]:
    """Rows by their number in the file; of a Delta table's as that has them, without those that are deleted."""
    number, table = 0, log.delta or DeltaFile("", 0)
    deleted = np.unpackbits(np.frombuffer(table.deleted, dtype=np.uint8))
    with contextlib.closing(Watched(log, log.parts[0])) as stored:
        try:
            for batch in pq.ParquetFile(stored).iter_batches(BATCH):
                for record in _records(batch):
                    number += 1
                    if number <= len(deleted) and deleted[number - 1]:
                        continue
                    if isinstance(record, UnicodeDecodeError):
                        yield LogLine(log.source, number, reason="invalid_utf8", raw=str(record))
                    else:
                        yield line_of(log.source, number, _renamed(record, table.names) | dict(table.partition))
        except (pa.ArrowException, OSError, ValueError) as error:  # pyarrow decodes names of columns strictly, too
            if stored.failure is not None:
                raise stored.failure from stored.failure.__cause__
            yield _damaged(log, number, error)


def _renamed(value: Any, names: Names) -> Any:
    """A value with the table's names of its fields; those of lists and maps are named, too."""
    if not names:
        return value
    if isinstance(value, dict):
        found = ((*names.get(key, (key, {})), item) for key, item in value.items())
        return {name: _renamed(item, inside) for name, inside, item in found}
    if isinstance(value, list | tuple):  # a map is a list of pairs
        return type(value)(_renamed(item, names) for item in value)
    return value


def _records(batch: pa.RecordBatch) -> Iterator[dict[str, Any] | UnicodeDecodeError]:
    """Rows of a batch; of one with a moment that Python has not, all but that, and of one with no text, the error."""
    try:
        yield from batch.to_pylist()
    except (ValueError, OverflowError):
        for i in range(batch.num_rows):
            yield _record(batch, i)


def _record(batch: pa.RecordBatch, row: int) -> dict[str, Any] | UnicodeDecodeError:
    record = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            record[name] = column[row].as_py()
        except UnicodeDecodeError as error:
            return error
        except (ValueError, OverflowError):
            record[name] = None
    return record


def _sql(log: LogFile, dialect: str) -> Iterator[LogLine]:
    number = 0
    with open_log(log, log.parts[0]) as stream:
        try:
            data = as_utf8(stream).read(MAX_SCRIPT + 1).strip(NUL)
        except (OSError, EOFError, pa.ArrowException) as error:
            yield _damaged(log, 0, error)
            return
    script = data[:MAX_SCRIPT].decode("utf-8", "replace")
    for number, (statement, ended) in enumerate(statements_of(script, dialect), 1):
        yield LogLine(log.source, number, statement, ended=ended)
    if len(data) > MAX_SCRIPT:
        yield LogLine(log.source, number + 1, reason="too_long", raw="a .sql script of more than 64 MB: split it")
