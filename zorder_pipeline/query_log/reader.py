"""Log files as lines: JSON Lines, CSV, Parquet and .sql, plain or gzipped, in a file or a folder of them."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot

from zorder_pipeline.errors import LogError

__all__ = ["LogLine", "read_log"]

FIELDS = {
    "statement": ("statement", "statement_text", "query_text", "query", "sql", "sql_text", "text"),
    "timestamp": ("timestamp", "start_time", "ts", "time", "created_at", "event_time", "started_at"),
    "duration_ms": ("duration_ms", "total_duration_ms", "duration", "execution_duration_ms", "elapsed_ms"),
    "user": ("user", "executed_by", "user_name", "username"),
    "status": ("status", "execution_status"),
}
FINE = {"", "finished", "success", "succeeded", "ok", "completed", "none"}
SUFFIXES = {".jsonl": "json", ".json": "json", ".ndjson": "json", ".csv": "csv", ".parquet": "parquet", ".sql": "sql"}
SUFFIXES |= {".log": "json", ".txt": "sql"}
BATCH = 10_000


@dataclass(frozen=True)
class LogLine:
    """One line of a log: a statement, or the reason why there is none.

    Attributes:
        statement: SQL text; "" when ``reason`` says why the line is unusable.
        timestamp: microseconds since 1970 UTC, or None.
        failed: the log says that the statement failed.
    """

    source: str
    position: int
    statement: str = ""
    timestamp: int | None = None
    duration_ms: float | None = None
    user: str | None = None
    failed: bool = False
    reason: str | None = None
    raw: str = ""


def read_log(path: str, log_format: str = "auto") -> Iterator[LogLine]:
    """The lines of a log file, or of all log files in a folder by name.

    Raises:
        LogError: there is no such path, no log in it, or it is of a format that cannot be read.
    """
    place = Path(path.removeprefix("file://"))
    if log_format == "spark-events":
        raise LogError(
            f"{path}: Spark event logs cannot be read by this version; give the statements as JSON Lines or .sql"
        )
    if not place.exists():
        raise LogError(
            f"query log {path} does not exist; give a file or a folder of .jsonl, .csv, .parquet or .sql files"
        )
    if place.is_file():
        yield from _file(place)
        return
    files = sorted(
        p for p in place.rglob("*") if p.is_file() and not any(q.startswith((".", "_")) for q in p.parts[-2:])
    )
    known = [p for p in files if _kind(p) is not None]
    if not known:
        raise LogError(f"folder {path} holds no query log; expected .jsonl, .csv, .parquet or .sql files (also .gz)")
    for item in known:
        yield from _file(item)


def _kind(path: Path) -> str | None:
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1]) if suffixes else None


def _file(path: Path) -> Iterator[LogLine]:
    kind = _kind(path)
    if kind == "parquet":
        yield from _parquet(path)
        return
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as stream:
            head = stream.read(4096)
            if b'"Event":"SparkListener' in head.replace(b" ", b""):
                raise LogError(f"{path} is a Spark event log, which this version cannot read; give JSON Lines or .sql")
            kind = kind or ("json" if head.lstrip().startswith(b"{") else "sql")
            stream.seek(0)
            readers = {"json": _json_lines, "csv": _csv, "sql": _sql}
            yield from readers[kind](path, stream)
    except (OSError, EOFError) as error:
        raise LogError(f"query log {path} cannot be read: {error}") from error


def _json_lines(path: Path, stream: Any) -> Iterator[LogLine]:
    for number, raw in enumerate(stream, 1):
        if not raw.strip():
            continue
        try:
            record = json.loads(raw.decode("utf-8"))
        except UnicodeDecodeError:
            yield LogLine(str(path), number, reason="invalid_utf8", raw=repr(raw[:200]))
            continue
        except (ValueError, RecursionError):
            yield LogLine(str(path), number, reason="malformed_json", raw=raw.decode("utf-8", "replace")[:2000])
            continue
        if isinstance(record, str):
            record = {"statement": record}
        yield _line(path, number, record if isinstance(record, Mapping) else {})


def _csv(path: Path, stream: Any) -> Iterator[LogLine]:
    csv.field_size_limit(1 << 30)
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
    try:
        for number, record in enumerate(csv.DictReader(line.replace("\0", "\ufffd") for line in text), 2):
            yield _line(path, number, record)
    except csv.Error as error:
        yield LogLine(str(path), 0, reason="malformed_csv", raw=str(error))


def _parquet(path: Path) -> Iterator[LogLine]:
    try:
        file = pq.ParquetFile(path)
        number = 0
        for batch in file.iter_batches(BATCH):
            for record in batch.to_pylist():
                number += 1
                yield _line(path, number, record)
    except (pa.ArrowException, OSError) as error:
        raise LogError(f"query log {path} is no readable Parquet file: {str(error).splitlines()[0]}") from error


def _sql(path: Path, stream: Any) -> Iterator[LogLine]:
    text = stream.read().decode("utf-8", "replace")
    for number, statement in enumerate(_statements(text), 1):
        yield LogLine(str(path), number, statement)


def _statements(text: str) -> Iterator[str]:
    """Statements of a script, split at semicolons outside of strings and comments."""
    try:
        tokens = sqlglot.tokenize(text, read="spark")
    except sqlglot.errors.SqlglotError:
        yield from (part for part in text.split(";") if part.strip())
        return
    start = 0
    for token in tokens:
        if token.token_type == sqlglot.TokenType.SEMICOLON:
            if re.sub(r"(?s)/\*.*?\*/|--[^\n]*", "", text[start : token.start]).strip():
                yield text[start : token.start].strip()
            start = token.end + 1
    if re.sub(r"(?s)/\*.*?\*/|--[^\n]*", "", text[start:]).strip():
        yield text[start:].strip()


def _line(path: Path, number: int, record: Mapping[Any, Any]) -> LogLine:
    lowered = {str(key).strip().lower(): value for key, value in record.items() if key is not None}

    def value(field: str) -> Any:
        return next((lowered[name] for name in FIELDS[field] if lowered.get(name) not in (None, "")), None)

    statement = value("statement")
    if not isinstance(statement, str) or not statement.strip():
        return LogLine(str(path), number, reason="no_statement", raw=str(dict(record))[:2000])
    user, status = value("user"), value("status")
    duration = value("duration_ms")
    try:
        milliseconds = None if duration is None else float(duration)
    except (TypeError, ValueError):
        milliseconds = None
    return LogLine(
        str(path),
        number,
        statement,
        _microseconds(value("timestamp")),
        milliseconds,
        None if user is None else str(user),
        failed=str(status or "").strip().lower() not in FINE,
    )


def _microseconds(value: Any) -> int | None:
    """A moment as microseconds since 1970 UTC: ISO text, or seconds, milliseconds, micro- or nanoseconds by size."""
    if isinstance(value, str):
        text = value.strip()
        if re.fullmatch(r"-?\d+(\.\d+)?", text):
            value = float(text)
        else:
            try:
                value = datetime.fromisoformat(text.replace("Z", "+00:00").replace(" UTC", "+00:00"))
            except ValueError:
                return None
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return round(moment.timestamp() * 1e6)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    size = abs(value)
    factor = 1e6 if size < 1e11 else 1e3 if size < 1e14 else 1 if size < 1e17 else 1e-3
    return round(value * factor)
