"""Constant expressions folded to one literal: casts, arithmetic, intervals, and time relative to the query."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from sqlglot import exp
from sqlglot.errors import SqlglotError

from zorder_pipeline.model.predicate import Literal

from .literals import DATE_TYPES, computed, plain
from .moments import moved

__all__ = ["Clock", "fold"]

NOW = {"now", "getdate", "current_timestamp", "localtimestamp", "sysdate"}
VARYING = (exp.Column, exp.Select, exp.AggFunc, exp.Anonymous, exp.Parameter, exp.Placeholder, exp.Rand)


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
    if (found := plain(node)) is not None:
        return found
    try:
        moment = _moment(node, clock)
        if moment is not None:
            return _shown(moment)
        if node.find(*VARYING):
            return None
        return computed(node)
    except (SqlglotError, ValueError, OverflowError, ArithmeticError, AttributeError, TypeError, LookupError):
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
            return _shifted(node, _moment(node.this, clock), node.expression, clock.zone)
        case exp.Add() | exp.Sub():  # a date and a number of days
            start, count = _moment(node.this, clock), plain(node.expression.unnest())
            whole = count is not None and count.kind == "number" and re.fullmatch(r"\d{1,7}", count.text)
            if not whole or count is None or start is None or isinstance(start, dt.datetime):
                return None
            return moved(start, -int(count.text) if isinstance(node, exp.Sub) else int(count.text), "DAY", clock.zone)
        case exp.TsOrDsAdd() | exp.DateAdd() | exp.DateSub():
            count = computed(node.expression)
            start = _moment(node.this, clock)
            unit = str(node.args.get("unit") or "DAY")
            written = isinstance(start, dt.datetime) and clock.timestamp is None  # a date, or not, by the call's form
            if count is None or start is None or written:
                return None
            sign = -1 if isinstance(node, exp.DateSub) else 1
            return moved(start, sign * int(count.text), unit, clock.zone)
        case exp.AddMonths():
            count, start = plain(node.expression), _moment(node.this, clock)
            return None if count is None or start is None else moved(start, int(count.text), "MONTH", clock.zone)
        case exp.Cast() if node.to.this in DATE_TYPES and not isinstance(node.this, exp.Literal):
            inner = _moment(node.this, clock)
            return inner.date() if isinstance(inner, dt.datetime) else inner
    literal = plain(node)
    if literal is None or literal.kind not in ("date", "timestamp_ntz", "string"):
        return None
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", literal.text):
        return dt.date.fromisoformat(literal.text)
    return dt.datetime.fromisoformat(literal.text) if literal.kind == "timestamp_ntz" else None


def _shifted(node: exp.Expr, start: dt.date | None, interval: exp.Interval, zone: str) -> dt.date | None:
    count = plain(interval.this.unnest()) if interval.this is not None else None
    unit = interval.args.get("unit")
    if start is None or count is None or unit is None or not re.fullmatch(r"[+-]?\d+", count.text.strip()):
        return None
    found = moved(start, -int(count.text) if isinstance(node, exp.Sub) else int(count.text), str(unit), zone)
    # a string stays one: against a date its time of day is dropped
    return None if _is_text(node.this) and isinstance(found, dt.datetime) else found


def _is_text(node: exp.Expr) -> bool:
    """Whether a moment is a string, which it stays with an interval added."""
    node = node.unnest()
    if isinstance(node, exp.Add | exp.Sub):
        return isinstance(node.expression, exp.Interval) and _is_text(node.this)
    return isinstance(node, exp.Literal)
