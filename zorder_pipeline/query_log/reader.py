"""Logs as lines, one after the other and never all at once: statements, or executions of a Spark event log."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot
from pyarrow import fs

from .dialects import dialect_of
from .files import LogFile, list_logs, open_log
from .spark_events import Execution, executions

__all__ = ["LogLine", "lines_of", "read_log"]

FIELDS = {
    "statement": ("statement", "statement_text", "query_text", "query", "sql", "sql_text", "text"),
    "timestamp": ("timestamp", "start_time", "ts", "time", "created_at", "event_time", "started_at"),
    "duration_ms": ("duration_ms", "total_duration_ms", "duration", "execution_duration_ms", "elapsed_ms"),
    "user": ("user", "executed_by", "user_name", "username"),
    "status": ("status", "execution_status"),
    "rows_read": ("rows_read", "read_rows", "rows_read_count"),
    "bytes_read": ("bytes_read", "read_bytes", "bytes_scanned"),
    "parameters": ("parameters", "query_parameters", "params"),
}
FINE = {"", "finished", "success", "succeeded", "ok", "completed", "none"}
BATCH = 2_000
MAX_LINE = 4_000_000
MAX_SCRIPT = 64_000_000
RAW = 2_000


@dataclass(frozen=True)
class LogLine:
    """One line of a log: a statement, an execution, or the reason why it is neither.

    Attributes:
        statement: SQL text.
        execution: a query execution of a Spark event log, instead of a statement.
        timestamp: microseconds since 1970 UTC, or None.
        failed: the log says that the statement failed.
        parameters: of a prepared statement: by name, or in order.
        reason: why the line cannot be used.
        raw: the line as far as it could be read, when ``reason`` is given.
    """

    source: str
    position: int
    statement: str = ""
    execution: Execution | None = None
    timestamp: int | None = None
    duration_ms: float | None = None
    user: str | None = None
    rows_read: int | None = None
    bytes_read: int | None = None
    failed: bool = False
    parameters: Mapping[str, Any] | tuple[Any, ...] | None = None
    reason: str | None = None
    raw: str = ""


def read_log(path: str, log_format: str = "auto") -> Iterator[LogLine]:
    """The lines of a log, or of all logs in a folder by name.

    Raises:
        LogError: there is no such path, no log in it, or it is of a format that cannot be read.
    """
    for log in list_logs(path, log_format):
        yield from lines_of(log)


def lines_of(log: LogFile, after: int = 0, share: tuple[int, int] = (0, 1)) -> Iterator[LogLine]:
    """The lines of one log. Whatever is damaged becomes a line with a reason; nothing after it is lost if possible.

    Args:
        after: only lines beyond this position.
        share: (i, n) for the i-th of n equal shares of the lines.

    Raises:
        LogError: the file cannot be opened.
    """

    def wanted(number: int) -> bool:
        return number > after and number % share[1] == share[0]

    if log.kind == "json":
        yield from _json_lines(log, wanted)
        return
    readers = {"csv": _csv, "sql": _sql, "parquet": _parquet, "events": _events}
    yield from (line for line in readers[log.kind](log) if wanted(line.position))


def _json_lines(log: LogFile, wanted: Callable[[int], bool]) -> Iterator[LogLine]:
    number = 0
    with open_log(log, log.parts[0]) as stream:
        try:
            while raw := stream.readline(MAX_LINE):
                number += 1
                whole = len(raw) < MAX_LINE or raw.endswith(b"\n")
                while not whole:
                    rest = stream.readline(MAX_LINE)
                    whole = not rest or rest.endswith(b"\n")
                if not wanted(number):
                    continue
                if len(raw) == MAX_LINE:
                    yield LogLine(log.source, number, reason="too_long", raw=raw[:RAW].decode("utf-8", "replace"))
                elif raw.strip():
                    yield _json_line(log.source, number, raw)
        except (OSError, EOFError, pa.ArrowException) as error:
            if wanted(number + 1):
                yield _damaged(log, number, error)


def _damaged(log: LogFile, number: int, error: Exception) -> LogLine:
    return LogLine(log.source, number + 1, reason="damaged_file", raw=(str(error).splitlines() or [""])[0])


def _json_line(source: str, number: int, raw: bytes) -> LogLine:
    try:
        record = json.loads(raw.decode("utf-8-sig" if number == 1 else "utf-8"))
    except UnicodeDecodeError:
        return LogLine(source, number, reason="invalid_utf8", raw=raw[:RAW].decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        reason = "malformed_json" if raw.endswith(b"\n") else "truncated"
        return LogLine(source, number, reason=reason, raw=raw[:RAW].decode("utf-8", "replace"))
    if isinstance(record, str):
        record = {"statement": record}
    return _line(source, number, record if isinstance(record, Mapping) else {"value": record})


def _csv(log: LogFile) -> Iterator[LogLine]:
    csv.field_size_limit(MAX_LINE)
    number = 0
    with open_log(log, log.parts[0]) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
        reader = csv.DictReader(line.replace("\0", "\ufffd") for line in text)
        while True:
            number += 1
            try:
                record = next(reader, None)
            except csv.Error as error:
                yield LogLine(log.source, number, reason="malformed_csv", raw=str(error))
                continue
            except (OSError, EOFError, pa.ArrowException) as error:
                yield _damaged(log, number - 1, error)
                return
            if record is None:
                return
            yield _line(log.source, number, record)


def _parquet(log: LogFile) -> Iterator[LogLine]:
    number = 0
    filesystem = fs.FileSystem.from_uri(log.source)[0] if "://" in log.source else fs.LocalFileSystem()
    try:
        with filesystem.open_input_file(log.parts[0]) as stream:
            for batch in pq.ParquetFile(stream).iter_batches(BATCH):
                for record in batch.to_pylist():
                    number += 1
                    yield _line(log.source, number, record)
    except (pa.ArrowException, OSError) as error:
        yield _damaged(log, number, error)


def _events(log: LogFile) -> Iterator[LogLine]:
    def raw_lines() -> Iterator[bytes]:
        for part in log.parts:
            with open_log(log, part) as stream:
                yield from stream

    for found in executions(raw_lines()):
        yield LogLine(
            log.source,
            found.position,
            execution=found,
            timestamp=found.timestamp,
            duration_ms=found.duration_ms,
            user=found.user,
            rows_read=found.rows_read,
            bytes_read=found.bytes_read,
            failed=found.failed,
            reason=found.damage,
            raw=found.description[:RAW] if found.damage else "",
        )


def _sql(log: LogFile) -> Iterator[LogLine]:
    number = 0
    with open_log(log, log.parts[0]) as stream:
        try:
            data = stream.read(MAX_SCRIPT + 1)
        except (OSError, EOFError, pa.ArrowException) as error:
            yield _damaged(log, 0, error)
            return
    for number, statement in enumerate(_statements(data[:MAX_SCRIPT].decode("utf-8", "replace")), 1):
        yield LogLine(log.source, number, statement)
    if len(data) > MAX_SCRIPT:
        yield LogLine(log.source, number + 1, reason="too_long", raw="a .sql script of more than 64 MB: split it")


def _statements(text: str) -> Iterator[str]:
    """Statements of a script, split at semicolons outside of strings and comments."""
    try:
        tokens = dialect_of("spark").tokenize(text)
    except sqlglot.errors.SqlglotError:
        yield from (part.strip() for part in text.split(";") if part.strip())
        return
    start = 0
    for token in tokens:
        if token.token_type == sqlglot.TokenType.SEMICOLON:
            if _says_something(text[start : token.start]):
                yield text[start : token.start].strip()
            start = token.end + 1
    if _says_something(text[start:]):
        yield text[start:].strip()


def _says_something(text: str) -> bool:
    return bool(re.sub(r"(?s)/\*.*?\*/|--[^\n]*", "", text).strip())


def _line(source: str, number: int, record: Mapping[Any, Any]) -> LogLine:
    lowered = {str(key).strip().lower(): value for key, value in record.items() if key is not None}

    def value(field: str) -> Any:
        return next((lowered[name] for name in FIELDS[field] if lowered.get(name) not in (None, "")), None)

    statement = value("statement")
    if not isinstance(statement, str) or not statement.strip():
        return LogLine(source, number, reason="no_statement", raw=str(dict(record))[:RAW])
    user, status, duration = value("user"), value("status"), _number(value("duration_ms"))
    rows, size = _number(value("rows_read")), _number(value("bytes_read"))
    return LogLine(
        source,
        number,
        statement,
        timestamp=_microseconds(value("timestamp")),
        duration_ms=duration,
        user=None if user is None else str(user),
        rows_read=None if rows is None else int(rows),
        bytes_read=None if size is None else int(size),
        failed=str(status or "").strip().lower() not in FINE,
        parameters=_parameters(value("parameters")),
    )


def _parameters(value: Any) -> Mapping[str, Any] | tuple[Any, ...] | None:
    """Parameters of a prepared statement: an object, a list, either as JSON text, or a list of name/value records."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}
    if not isinstance(value, list | tuple):
        return None
    if value and all(isinstance(item, Mapping) and "name" in item and "value" in item for item in value):
        return {str(item["name"]): item["value"] for item in value}
    return tuple(value)


def _number(value: Any) -> float | None:
    if value is None or isinstance(value, bool):
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if abs(found) < 1e18 else None


def _microseconds(value: Any) -> int | None:
    """A moment as microseconds since 1970 UTC: ISO text, or seconds, milliseconds, micro- or nanoseconds by size."""
    if isinstance(value, str):
        text = value.strip()
        if re.fullmatch(r"-?\d{1,25}(\.\d+)?", text):
            value = float(text)
        else:
            try:
                value = datetime.fromisoformat(text.replace("Z", "+00:00").replace(" UTC", "+00:00"))
            except ValueError:
                return None
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        try:
            return round(moment.timestamp() * 1e6)
        except (OverflowError, ValueError):
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) > 1e22:
        return None
    size = abs(value)
    factor = 1e6 if size < 1e11 else 1e3 if size < 1e14 else 1 if size < 1e17 else 1e-3
    return round(value * factor)
