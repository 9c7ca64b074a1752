"""One record of a log: which of its fields, by whatever name a tool gave them, hold the statement, moment and cost."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .moments import asked_at
from .spark_events import Execution

__all__ = ["RAW", "LogLine", "line_of"]

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
RAW = 2_000
"""Characters that are kept of a line that cannot be used."""


@dataclass(frozen=True)
class LogLine:
    """One line of a log: a statement, an execution, or the reason why it is neither.

    Attributes:
        statement: SQL text.
        execution: a query execution of a Spark event log, instead of a statement.
        timestamp: microseconds since 1970 UTC, or None when the log has none at which a query can have run.
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


def line_of(source: str, number: int, record: Mapping[Any, Any]) -> LogLine:
    """A record as a line; one without a statement says so."""
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
            return asked_at(round(moment.timestamp() * 1e6))
        except (OverflowError, ValueError):
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) > 1e22:
        return None
    size = abs(value)
    factor = 1e6 if size < 1e11 else 1e3 if size < 1e14 else 1 if size < 1e17 else 1e-3
    return asked_at(round(value * factor))
