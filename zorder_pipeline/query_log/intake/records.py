"""One record of a log: which of its fields, by whatever name a tool gave them, hold the statement, moment and cost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

import pandas as pd

from zorder_pipeline.model.json_text import json_of
from zorder_pipeline.model.moments import asked_at
from zorder_pipeline.model.zones import zone_of
from zorder_pipeline.query_log.events.spark_events import Execution

__all__ = ["RAW", "LogLine", "line_of"]

FIELDS = {
    "statement": ("statement", "statement_text", "query_text", "query", "sql", "sql_text", "text"),
    "timestamp": (
        *("timestamp", "start_time", "ts", "time", "created_at", "event_time", "started_at", "starttime", "createtime"),
        *("query_start_time_ms", "creation_time", "create_time", "created"),
    ),
    "duration_ms": (
        *("duration_ms", "total_duration_ms", "duration", "execution_duration_ms", "elapsed_ms", "total_elapsed_time"),
        "walltimemillis",
    ),
    "user": ("user", "executed_by", "user_name", "username", "user_email"),
    "status": ("status", "execution_status"),
    "state": ("state", "query_state"),
    "error": ("error_result", "error_message"),
    "cached": (
        *("from_result_cache", "result_from_cache", "cache_hit", "result_cache_hit"),
        *("reused_previous_result", "reusedpreviousresult"),
    ),
    "rows_read": ("rows_read", "read_rows", "rows_read_count"),
    "bytes_read": ("bytes_read", "read_bytes", "bytes_scanned", "total_bytes_processed"),
    "parameters": ("parameters", "query_parameters", "params"),
}
MEASURES = ("metrics", "statistics", "resultreuseinformation")
"""Objects in which APIs have what they measured: Databricks' in the first, Athena's in the last of the second."""
FINE = {"", "finished", "success", "succeeded", "ok", "completed", "complete", "done", "closed", "none", "true", "200"}
FINE |= {"running", "started", "executing", "queued", "pending"}
"""States of a statement that was asked and, as far as the log knows, did not fail."""
_BAD = "fail|error|exception|cancel|abort|kill|time.?out|unsuccess|reject|denied|terminat|interrupt|stopp"
_FINE = re.compile(rf"(success|finish|complet|executed(?![a-z]))(?!.*({_BAD}))")
"""How other words for these begin: ``SUCCESS_WITH_INFO``, but not ``EXECUTION_FAILED``."""
BROKEN_OFF = {
    "failed",
    "failure",
    "error",
    "err",
    "exception",
    "errored",
    "canceled",
    "cancelled",
    "aborted",
    "killed",
    "timeout",
    "timedout",
}
"""Of a column that may tell of something else, such as a place, only these count."""
NOTHING = {"", "null", "none", "nan", "\\n", "-", "0", "{}", "[]"}
"""How an export writes that there is nothing."""
TRUE = {"true", "t", "1", "yes"}
NUMERIC = re.compile(r"(tiny|small|big)?int|integer|long|short|byte|float|double|decimal.*|numeric.*|number.*", re.I)
_COUNTED = re.compile(r"-?\d{1,25}(\.\d+)?(e[+-]?\d{1,3})?", re.IGNORECASE)
_DAY = re.compile(r"((19|20)\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(\.0+)?")
"""A day as one number, which would be a second of 1970."""
_WRITTEN = re.compile(r"(\d{4}-\d|.*\b\d{1,2} [A-Za-z]{3} \d{4}).*\d:\d\d")
"""With a year first or a month's name, and a time of day: ``06/07/2024`` is a day in June or in July."""
_REGION = re.compile(r"(.*\d)\s+([A-Za-z_]+/[A-Za-z0-9_/+-]+)")
_ABBREVIATED = re.compile(r"(.*?)( ?[+-]\d{2}:?\d{2})? ([A-Z]{3,5})")
LONGEST = 100
"""Characters of a moment."""
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
        cached: the log says that its answer came from a cache of results, for which no table was read.
        parameters: of a prepared statement: by name, or in order.
        reason: why the line cannot be used.
        raw: the line as far as it could be read, when ``reason`` is given.
        ended: there is an end to it; else the file ends in it, and it may be part of a longer one.
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
    cached: bool = False
    parameters: Mapping[str, Any] | tuple[Any, ...] | None = None
    reason: str | None = None
    raw: str = ""
    ended: bool = True


def line_of(source: str, number: int, record: Mapping[Any, Any]) -> LogLine:
    """A record as a line; one without a statement says so."""
    lowered = {str(key).strip().lower(): value for key, value in record.items() if key is not None}

    def value(field: str) -> Any:
        return next((lowered[name] for name in FIELDS[field] if lowered.get(name) not in (None, "")), None)

    statement, user = value("statement"), value("user")
    user = None if user is None else str(user)
    if not isinstance(statement, str) or not statement.strip():
        return LogLine(source, number, user=user, reason="no_statement", raw=str(dict(record))[:RAW])
    status, duration = value("status"), _number(value("duration_ms"))
    rows, size = _number(value("rows_read")), _number(value("bytes_read"))
    return LogLine(
        source,
        number,
        statement.lstrip("\ufeff"),
        timestamp=_microseconds(value("timestamp")),
        duration_ms=duration,
        user=user,
        rows_read=None if rows is None else int(rows),
        bytes_read=None if size is None else int(size),
        failed=_failed(status, value("state"), value("error")),
        cached=_cached(lowered),
        parameters=_parameters(value("parameters")),
    )


def _failed(status: Any, state: Any, error: Any) -> bool:
    """Whether a log says that a statement failed."""
    told = _state(status)
    fine = told in FINE | NOTHING or _FINE.match(told) is not None
    return not fine or _state(state) in BROKEN_OFF or str(error or "").strip().lower() not in NOTHING


def _cached(record: Mapping[str, Any]) -> bool:
    """Whether a log says that an answer came from a cache of results."""
    objects = [record]
    while objects:
        named = {str(key).strip().lower(): value for key, value in objects.pop().items()}
        if any(str(named.get(name)).strip().lower() in TRUE for name in FIELDS["cached"]):
            return True
        objects += [value for name in MEASURES if isinstance(value := named.get(name), Mapping)]
    return False


def _state(status: Any) -> str:
    """A state as one word; Athena's is an object that has it."""
    if isinstance(status, Mapping):
        named = {str(key).lower(): item for key, item in status.items()}
        status = named.get("state", named.get("status"))
    return str("" if status is None else status).strip().lower()


def _parameters(value: Any) -> Mapping[str, Any] | tuple[Any, ...] | None:
    """Parameters of a prepared statement: an object, a list, either as JSON text, a list of name/value records, or what
    Databricks' query history makes of them (``named_parameters`` and ``pos_parameters``).
    """
    if isinstance(value, str):
        try:
            value = json_of(value)
        except (ValueError, RecursionError):
            return None
    if isinstance(value, Mapping) and {"named_parameters", "pos_parameters"} & value.keys():
        return _parameters(value.get("named_parameters") or value.get("pos_parameters") or ())
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}
    if not isinstance(value, list | tuple):
        return None
    if value and all(isinstance(item, Mapping) and "value" in item for item in value):
        names = [item.get("name", item.get("key")) for item in value]
        given = [_typed(item["value"], item.get("type")) for item in value]
        return tuple(given) if None in names else dict(zip(map(str, names), given, strict=True))
    if all(isinstance(item, tuple | list) and len(item) == 2 for item in value):  # a map, as Arrow hands it out
        return {str(key): item for key, item in value}
    return tuple(value)


def _typed(value: Any, kind: Any) -> Any:
    """A value that is written as text, as the number that its type says it is."""
    if not isinstance(value, str) or not isinstance(kind, str) or not NUMERIC.fullmatch(kind.strip()):
        return value
    try:
        return Decimal(value.strip())
    except InvalidOperation:
        return value


def _number(value: Any) -> float | None:
    if value is None or isinstance(value, bool):
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if abs(found) < 1e18 else None


def _written(text: str) -> datetime | None:
    """A moment that is written out: ISO, or as Trino, Snowflake, Go and HTTP write it."""
    if len(text) > LONGEST:
        return None
    if (region := _REGION.fullmatch(text)) is not None:
        try:
            return datetime.fromisoformat(region.group(1)).replace(tzinfo=zone_of(region.group(2)))
        except (ValueError, LookupError):
            return None
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00").replace(" UTC", "+00:00"))
    except ValueError:
        pass
    if not _WRITTEN.match(text):
        return None
    if (named := _ABBREVIATED.fullmatch(text)) is not None:
        if named.group(2):
            text = named.group(1) + named.group(2)
        elif named.group(3) not in ("UTC", "GMT"):
            return None  # several zones are abbreviated alike
    try:
        found = pd.Timestamp(text)
        return found.to_pydatetime(warn=False)
    except (ValueError, TypeError, OverflowError):
        return None


def _microseconds(value: Any) -> int | None:
    """A moment as microseconds since 1970 UTC: a day's or ISO text, a day as a number of eight digits, or seconds to
    nanoseconds as a number, by size.
    """
    if not isinstance(value, bool) and isinstance(value, str | int | float | Decimal):
        text = str(value).strip()
        value = _written(text.partition(".")[0]) if _DAY.fullmatch(text) else value
    if isinstance(value, str):
        text = value.strip()
        value = float(text) if _COUNTED.fullmatch(text) else _written(text)
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    elif isinstance(value, Decimal) and value.is_finite():
        value = float(value)
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
