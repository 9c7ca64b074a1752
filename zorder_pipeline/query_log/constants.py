"""Constant expressions folded to one literal: casts, arithmetic, intervals, and time relative to the query."""

from __future__ import annotations

import calendar
import datetime as dt
import re
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.simplify import simplify

from zorder_pipeline.model.predicate import Literal

__all__ = ["DATE_TYPES", "Clock", "fold"]

DATE_TYPES = {exp.DataType.Type.DATE, exp.DataType.Type.DATE32}
MOMENT_TYPES = {
    exp.DataType.Type.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ,
    exp.DataType.Type.TIMESTAMPLTZ,
    exp.DataType.Type.TIMESTAMPNTZ,
    exp.DataType.Type.DATETIME,
}
DOUBLES = {exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT, exp.DataType.Type.UDOUBLE}
NOW = {"now", "getdate", "current_timestamp", "localtimestamp", "sysdate"}
VARYING = (exp.Column, exp.Select, exp.AggFunc, exp.Anonymous, exp.Parameter, exp.Placeholder, exp.Rand)
SPANS = {"DAY": 86_400, "WEEK": 604_800, "HOUR": 3600, "MINUTE": 60, "SECOND": 1}
MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


@dataclass
class Clock:
    """When a statement ran.

    Attributes:
        timestamp: microseconds since 1970 UTC, or None when the log has no time.
        zone: its session's time zone.
        missed: set when relative time was asked for and could not be resolved.
    """

    timestamp: int | None = None
    zone: str = "UTC"
    missed: bool = False

    def now(self) -> dt.datetime | None:
        """Local time of the statement."""
        if self.timestamp is None:
            self.missed = True
            return None
        return dt.datetime.fromtimestamp(self.timestamp / 1e6, ZoneInfo(self.zone)).replace(tzinfo=None)


def fold(node: exp.Expr, clock: Clock) -> Literal | None:
    """A constant expression as one literal; None when it is none, or not one that can be folded."""
    node = node.unnest()
    if (found := _plain(node)) is not None:
        return found
    try:
        moment = _moment(node, clock)
        if moment is not None:
            return _shown(moment)
        if node.find(*VARYING):
            return None
        return _plain(simplify(node.copy(), dialect="spark").unnest())
    except (SqlglotError, ValueError, OverflowError, ArithmeticError, AttributeError, TypeError):
        return None


def _shown(moment: dt.date) -> Literal:
    if isinstance(moment, dt.datetime):
        return Literal("timestamp_ntz", moment.isoformat(sep=" "))
    return Literal("date", moment.isoformat())


def _moment(node: exp.Expr, clock: Clock) -> dt.date | None:
    """Dates and local times, with intervals added and taken away; a `datetime` where there is a time of day."""
    node = node.unnest()
    match node:
        case exp.CurrentDate():
            now = clock.now()
            return now.date() if now else None
        case exp.CurrentTimestamp() | exp.CurrentDatetime():
            return clock.now()
        case exp.Anonymous() if str(node.this).lower() in NOW:
            return clock.now()
        case exp.Add() | exp.Sub() if isinstance(node.expression, exp.Interval):
            return _shifted(_moment(node.this, clock), node.expression, -1 if isinstance(node, exp.Sub) else 1)
        case exp.Add() | exp.Sub():  # a date and a number of days
            start, count = _moment(node.this, clock), _plain(node.expression.unnest())
            whole = count is not None and count.kind == "number" and re.fullmatch(r"\d{1,7}", count.text)
            if not whole or count is None or start is None or isinstance(start, dt.datetime):
                return None
            return _moved(start, -int(count.text) if isinstance(node, exp.Sub) else int(count.text), "DAY")
        case exp.TsOrDsAdd() | exp.DateAdd() | exp.DateSub():
            count = _plain(simplify(node.expression.copy()).unnest())
            start = _moment(node.this, clock)
            unit = str(node.args.get("unit") or "DAY")
            if count is None or start is None:
                return None
            sign = -1 if isinstance(node, exp.DateSub) else 1
            return _moved(start, sign * int(count.text), unit)
        case exp.AddMonths():
            count, start = _plain(node.expression), _moment(node.this, clock)
            return None if count is None or start is None else _moved(start, int(count.text), "MONTH")
        case exp.Cast() if node.to.this in DATE_TYPES and not isinstance(node.this, exp.Literal):
            inner = _moment(node.this, clock)
            return inner.date() if isinstance(inner, dt.datetime) else inner
    literal = _plain(node)
    if literal is None or literal.kind not in ("date", "timestamp_ntz", "string"):
        return None
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", literal.text):
        return dt.date.fromisoformat(literal.text)
    return dt.datetime.fromisoformat(literal.text) if literal.kind == "timestamp_ntz" else None


def _shifted(start: dt.date | None, interval: exp.Interval, sign: int) -> dt.date | None:
    count = _plain(interval.this.unnest()) if interval.this is not None else None
    unit = interval.args.get("unit")
    if start is None or count is None or unit is None or not re.fullmatch(r"[+-]?\d+", count.text.strip()):
        return None
    return _moved(start, sign * int(count.text), str(unit))


def _moved(start: dt.date, count: int, unit: str) -> dt.date | None:
    unit = unit.upper().removesuffix("S")
    if unit in MONTHS:
        month = start.year * 12 + start.month - 1 + count * MONTHS[unit]
        year, month = divmod(month, 12)
        day = min(start.day, calendar.monthrange(year, month + 1)[1])
        return start.replace(year=year, month=month + 1, day=day)
    if unit not in SPANS:
        return None
    if not isinstance(start, dt.datetime) and SPANS[unit] < SPANS["DAY"]:
        start = dt.datetime(start.year, start.month, start.day)
    return start + dt.timedelta(seconds=count * SPANS[unit])


def _plain(node: exp.Expr) -> Literal | None:
    match node:
        case exp.Literal():
            return Literal("string" if node.is_string else "number", node.this)
        case exp.Neg() if (inner := _plain(node.this.unnest())) is not None and inner.kind == "number":
            return Literal("number", inner.text[1:] if inner.text.startswith("-") else "-" + inner.text)
        case exp.Boolean():
            return Literal("boolean", "true" if node.this else "false")
        case exp.Null():
            return Literal("null")
        case exp.Cast() if isinstance(node.this, exp.Literal):
            return _cast(node.this, node.to.this)
        case exp.TsOrDsToDate() | exp.Date() if isinstance(node.this, exp.Literal) and node.this.is_string:
            return Literal("date", node.this.this[:10])
    return None


def _cast(literal: exp.Literal, to: exp.DType) -> Literal | None:
    if to in DATE_TYPES and literal.is_string:
        return Literal("date", literal.this.strip()[:10])
    if to in MOMENT_TYPES and literal.is_string:
        zoned = re.search(r"\d:\d{2}.*(Z|[+-]\d{1,2}(:?\d{2})?|[A-Za-z]+/[A-Za-z_]+)$", literal.this.strip())
        return Literal("timestamp" if zoned else "timestamp_ntz", literal.this.strip())
    if to in exp.DataType.NUMERIC_TYPES:
        text = literal.this.strip()
        if to in DOUBLES and re.fullmatch(r"[+-]?[\d.]+", text):
            return Literal("number", text + "e0")  # a double, also where it looks like a whole number
        whole = to in exp.DataType.INTEGER_TYPES and not re.fullmatch(r"[+-]?\d+", text)
        return None if whole else Literal("number", text)
    if to in exp.DataType.TEXT_TYPES:
        return Literal("string", literal.this) if literal.is_string else None
    return None
