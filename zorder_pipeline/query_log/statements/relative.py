"""Moments that statements tell by functions: now, cut to a unit, moved by intervals, and numbers and texts of them."""

from __future__ import annotations

import datetime as dt
import re

from sqlglot import exp

from zorder_pipeline.model.moments import SPANS, moved, truncated
from zorder_pipeline.model.zones import zone_of

from .clock import SPARKS, Clock
from .formats import DATE_FORMAT, FORMAT, python_form, read
from .intervals import interval_of, is_text, shifted, whole_number
from .literals import DATE_TYPES, MOMENT_TYPES, computed, plain

__all__ = ["NOW", "called", "moment", "unit_of", "with_moments"]

NOW = {"now", "getdate", "current_timestamp", "localtimestamp", "sysdate"}
SHIFTS = (exp.TsOrDsAdd, exp.DateAdd, exp.DateSub, exp.TimestampAdd, exp.TimestampSub, exp.DatetimeAdd, exp.DatetimeSub)
BACKWARDS = (exp.Sub, exp.DateSub, exp.TimestampSub, exp.DatetimeSub)
LONGER = {"ISOWEEK": "WEEK", "MM": "MONTH", "MON": "MONTH", "YYYY": "YEAR", "YY": "YEAR", "DD": "DAY"}
PARTS: dict[type[exp.Expr], str] = {exp.Year: "year", exp.Month: "month", exp.Day: "day"}
_CASTS = {"try_to_timestamp": "TIMESTAMP", "to_timestamp_ltz": "TIMESTAMP", "try_to_date": "DATE"}
_CASTS |= {"to_timestamp_ntz": "TIMESTAMPNTZ"}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY_BY_NAME = {name: day for day, full in enumerate(_DAYS) for name in (full[:2], full[:3], full)}


def moment(node: exp.Expr, clock: Clock) -> dt.date | None:
    """Dates and local times, a `datetime` where there is a time of day; None of what is none of these.

    Raises:
        ValueError, OverflowError, LookupError, TypeError, AttributeError: it has no value, or one that is not foreseen.
    """
    node = node.unnest()
    match node:
        case exp.CurrentDate():
            now = clock.now(_zone(node))
            return now.date() if now else None
        case exp.CurrentTimestamp() | exp.CurrentDatetime() | exp.Localtimestamp():
            return clock.now("UTC" if node.args.get("sysdate") else _zone(node))
        case exp.Anonymous() if called(node) in NOW:
            return clock.now()
        case exp.Add() | exp.Sub() if (parts := interval_of(node.expression)) is not None:
            return shifted(node, moment(node.this, clock), parts, clock.zone)
        case exp.Add() | exp.Sub():  # a date and a number of days
            start, count = moment(node.this, clock), plain(node.expression.unnest())
            whole = count is not None and count.kind == "number" and re.fullmatch(r"\d{1,7}", count.text)
            if not whole or count is None or start is None or isinstance(start, dt.datetime):
                return None
            return moved(start, -int(count.text) if isinstance(node, exp.Sub) else int(count.text), "DAY", clock.zone)
        case _ if isinstance(node, SHIFTS):
            return _by_a_call(node, moment(node.this, clock), clock)
        case exp.AddMonths():
            return _months_later(node, moment(node.this, clock), clock.zone)
        case exp.TimestampTrunc() | exp.DateTrunc() if not node.args.get("zone"):
            return _cut(node, moment(node.this, clock))
        case exp.LastDay() if unit_of(node) in ("", "MONTH"):
            start = moment(node.this, clock)
            after = None if start is None else moved(dt.date(start.year, start.month, 1), 1, "MONTH", clock.zone)
            return None if after is None else after - dt.timedelta(days=1)
        case exp.DateFromParts():
            return dt.date(*(whole_number(node.args[name]) for name in ("year", "month", "day")))
        case exp.Anonymous() if called(node) == "make_date":
            return dt.date(*(whole_number(item) for item in node.expressions))
        case exp.Cast() if node.to.this in DATE_TYPES and not isinstance(node.this, exp.Literal):
            return _day(moment(node.this, clock))
        case exp.TsOrDsToDate() | exp.Date() if not isinstance(node.this, exp.Literal):
            told = any(value for name, value in node.args.items() if name not in ("this", "safe"))
            return None if told else _day(moment(node.this, clock))
        case exp.TsOrDsToDate() | exp.StrToDate() if node.args.get("format") and isinstance(node.this, exp.Literal):
            return _day(read(node.this.this, node.args["format"], DATE_FORMAT))
        case exp.StrToTime() if isinstance(node.this, exp.Literal) and not node.args.get("zone"):
            return read(node.this.this, node.args["format"])
        case exp.Timestamp(this=exp.Literal(is_string=True) as text) if not node.args.get("zone"):
            return _midnight(moment(exp.cast(text.copy(), "TIMESTAMP"), clock))
        case exp.TimestampFromParts() if not node.args.get("zone") and node.args.get("hour") is not None:
            day = dt.date(*(whole_number(node.args[name]) for name in ("year", "month", "day")))
            hour, minute, second = (whole_number(node.args[name]) for name in ("hour", "min", "sec"))
            return dt.datetime.combine(day, dt.time(hour, minute, second))
        case exp.Anonymous(expressions=[exp.Literal(is_string=True) as text]) if called(node) in _CASTS:
            return moment(exp.cast(text.copy(), _CASTS[called(node)]), clock)
        case exp.NextDay():
            start, name = _day(moment(node.this, clock)), computed(node.expression)
            if start is None or name is None:
                return None
            return start + dt.timedelta((_DAY_BY_NAME[name.text.strip().lower()] - start.weekday() - 1) % 7 + 1)
        case exp.Cast() if node.to.this in MOMENT_TYPES and not isinstance(node.this, exp.Literal):
            return None if is_text(node.this) else _midnight(moment(node.this, clock))
    literal = plain(node)
    if literal is None or literal.kind not in ("date", "timestamp_ntz", "string"):
        return None
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", literal.text):
        return dt.date.fromisoformat(literal.text)
    return dt.datetime.fromisoformat(literal.text) if literal.kind == "timestamp_ntz" else None


def with_moments(node: exp.Expr, clock: Clock) -> exp.Expr:
    """The expression with the numbers and texts that moments have in it as literals: ``year(current_date())``.

    Raises:
        ValueError, OverflowError, LookupError, TypeError, AttributeError: as `moment`.
    """

    def swap(part: exp.Expr) -> exp.Expr:
        if type(part) in PARTS or (
            isinstance(part, exp.Extract) and str(part.this).upper() in ("YEAR", "MONTH", "DAY")
        ):
            name = PARTS.get(type(part)) or str(part.this).lower()
            at = moment(part.expression if isinstance(part, exp.Extract) else part.this, clock)
            return part if at is None else exp.Literal.number(getattr(at, name))
        if (number := _day_of_week(part, clock)) is not None:
            return exp.Literal.number(number)
        if isinstance(part, exp.UnixToStr) and isinstance(part.args.get("format"), exp.Literal):
            count, form = computed(part.this), python_form(part.args["format"])
            if count is None or not re.fullmatch(r"\d{1,11}", count.text) or not FORMAT.fullmatch(form):
                return part
            return exp.Literal.string(dt.datetime.fromtimestamp(int(count.text), zone_of(clock.zone)).strftime(form))
        if isinstance(part, exp.TimeToStr):
            inner = part.this.this if isinstance(part.this, exp.TimeStrToTime) else part.this
            at, form = moment(inner, clock), python_form(part.args["format"])
            known = at is not None and not is_text(inner) and FORMAT.fullmatch(form)
            return exp.Literal.string(at.strftime(form)) if at is not None and known else part
        if isinstance(part, exp.Cast) and part.to.this in exp.DataType.TEXT_TYPES and not part.to.expressions:
            at = None if is_text(part.this) else moment(part.this, clock)
            return part if at is None or isinstance(at, dt.datetime) else exp.Literal.string(at.isoformat())
        return part

    return node.copy().transform(swap, copy=False)


def _zone(node: exp.Expr) -> str | None:
    """The time zone that a call of now names; what else it may name is its precision."""
    given = node.args.get("this")
    if given is None or (isinstance(given, exp.Literal) and not given.is_string):
        return None
    if not isinstance(given, exp.Literal):
        raise ValueError("a zone that is computed")
    return str(given.this)


def called(node: exp.Expr) -> str:
    """What a function is called, in lower case, that sqlglot has no node of its own for; "" of anything else."""
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else ""


def unit_of(node: exp.Expr) -> str:
    """The unit of a call by the name that it has in `moments`, or as it is written; "" where it names none."""
    unit = node.args.get("unit")
    if isinstance(unit, exp.WeekStart):
        return "WEEK" if unit.name.upper() == "MONDAY" else "another week"
    text = str(unit.name if isinstance(unit, exp.Expr) else unit or "").upper()
    return LONGER.get(text, text)


def _day(at: dt.date | None) -> dt.date | None:
    return at.date() if isinstance(at, dt.datetime) else at


def _midnight(at: dt.date | None) -> dt.datetime | None:
    return at if at is None or isinstance(at, dt.datetime) else dt.datetime(at.year, at.month, at.day)


def _cut(node: exp.Expr, start: dt.date | None) -> dt.date | None:
    """A moment cut to a unit: ``trunc`` gives a date, ``date_trunc`` a time, unless the dialect keeps the type."""
    if start is None or (cut := truncated(start, unit_of(node))) is None:
        return None
    if isinstance(node, exp.DateTrunc):
        return _day(cut) if SPANS.get(unit_of(node), SPANS["DAY"]) >= SPANS["DAY"] else cut
    return cut if node.args.get("input_type_preserved") else _midnight(cut)


def _by_a_call(node: exp.Expr, start: dt.date | None, clock: Clock) -> dt.date | None:
    """``date_add(day, n)``, ``dateadd(unit, n, time)`` and the like."""
    count, unit = computed(with_moments(node.expression, clock)), str(node.args.get("unit") or "DAY")
    if count is None or start is None:
        return None
    if isinstance(node, exp.TsOrDsAdd) and not node.args.get("return_type"):
        start = _day(start)  # Spark's gives a date, whatever it is given
    elif isinstance(node, exp.DateAdd | exp.DateSub):
        if isinstance(start, dt.datetime) and clock.timestamp is None:
            return None  # a date, or not, by the call's form
    else:
        start = _midnight(start)
    assert start is not None
    return moved(start, -int(count.text) if isinstance(node, BACKWARDS) else int(count.text), unit, clock.zone)


def _months_later(node: exp.Expr, start: dt.date | None, zone: str) -> dt.date | None:
    count = computed(node.expression)
    if count is None or start is None:
        return None
    if not node.args.get("preserve_end_of_month"):
        start = dt.date(start.year, start.month, start.day)
    elif start.month != (start + dt.timedelta(days=1)).month:
        return None  # the last day of a month becomes the last one of another
    return moved(start, int(count.text), "MONTH", zone)


def _day_of_week(node: exp.Expr, clock: Clock) -> int | None:
    """The number of a moment's day of the week in Spark, where a call asks for it; None elsewhere."""
    of_monday = called(node) == "weekday" and len(node.expressions) == 1
    if clock.dialect not in SPARKS or not (of_monday or isinstance(node, exp.DayOfWeek)):
        return None
    at = moment(node.expressions[0] if of_monday else node.this, clock)
    return None if at is None else at.weekday() if of_monday else at.isoweekday() % 7 + 1
