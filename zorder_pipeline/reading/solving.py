"""Functions of a column against constants in Spark's plans, solved for the column, as the reader of logs solves them.

``year(ts) = 2024`` says of ``ts`` from where to where it lies. Neither Delta nor Parquet sees that, so the comparisons
are marked ``solved``; of instants they count where the session's time zone divides them by days, and where the JVM,
which evaluates them, has these begin when Python has.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any

from zorder_pipeline.java import class_name
from zorder_pipeline.model.counted import in_long_years
from zorder_pipeline.model.literals import day_begun
from zorder_pipeline.model.moments import moved, truncated
from zorder_pipeline.model.predicate import FLIPPED, Or, Predicate, begins_as, lies_in
from zorder_pipeline.model.written_days import Span, days_together, joined_days, written_days

from .day_columns import DayColumn, Find, count, day_column, from_unixtime, moment_column, zone_of_tree
from .java_zones import JavaZone
from .meanings import Tree

__all__ = ["PARTS", "Part", "part", "solved", "together"]

_UNITS = {
    "YEAR": "YEAR", "YYYY": "YEAR", "YY": "YEAR", "QUARTER": "QUARTER", "MONTH": "MONTH", "MON": "MONTH", "MM": "MONTH",
    "WEEK": "WEEK", "DAY": "DAY", "DD": "DAY",
}  # fmt: skip
"""What dates are cut to, by Spark's names for it."""
_DIRECTIVES = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_FORM = re.compile(r"(?:yyyy|MM|dd|HH|mm|ss|[-/._: ])+")
PARTS = {"Year": "YEAR", "Quarter": "QUARTER", "Month": "MONTH", "DayOfMonth": "DAY"}
"""Parts of dates that say more together than each by itself."""
_DAY, _EPOCH = dt.timedelta(days=1), dt.date(1970, 1, 1)
MOST = 1_000
"""Values of one IN that are solved."""
MOST_ZONED = 200
"""Days of one IN of whose beginning the JVM is asked: each takes some calls."""
Part = tuple[DayColumn, str, frozenset[int]]
"""A column, the part of its days that is asked for, and the values that it may have."""


def solved(subject: Tree, op: str, values: Sequence[Any], find: Find, java: JavaZone) -> Predicate | None:
    """``subject op values`` as ranges of the column in ``subject``; None where it is none that can be solved.

    Args:
        values: as Catalyst keeps them.
        java: the session's time zone.
    """
    if not values or len(values) > MOST:
        return None
    try:
        match class_name(subject):
            case "Substring":
                return _prefix(subject, op, values, find)
            case "Year" | "TruncDate" | "TruncTimestamp" as kind:
                return _cut(kind, subject, op, values, find, java)
            case "DateFormatClass" | "FromUnixTime" as kind:
                return _written(kind, subject, op, values, find, java)
            case "DateDiff":
                return _between(subject, op, values, find, java)
            case "DateAdd" | "DateSub" as kind:
                return _later(kind, subject, op, values, find, java)
            case "Cast":
                return _of_day(subject, op, values, find, java) or _counted(subject, op, values, find, java)
            case "SecondsToTimestamp" | "MillisToTimestamp" | "MicrosToTimestamp":
                return _counted(subject, op, values, find, java)
    except (OverflowError, ValueError):  # days that Python does not have
        pass
    return None


def part(subject: Tree, op: str, values: Sequence[Any], find: Find, java: JavaZone) -> Part | None:
    """What a condition says of one part of a column's days; None of any other condition."""
    kind = class_name(subject)
    if kind not in PARTS or op not in ("=", "in") or len(values) > MOST:
        return None
    own = day_column(subject.child(), find, java)
    return None if own is None else (own, PARTS[kind], frozenset(map(int, values)))


def together(parts: Sequence[Part], java: JavaZone) -> list[Predicate]:
    """What conditions on parts of days say together, besides what each says alone."""
    asked: dict[DayColumn, dict[str, frozenset[int]]] = {}
    for own, name, values in parts:
        known = asked.setdefault(own, {})
        known[name] = known[name] & values if name in known else values
    told = ((own, days_together(known)) for own, known in asked.items())
    found = [_listed(own, spans, java) for own, spans in told if spans]
    return [predicate for predicate in found if predicate is not None]


def _cut(kind: str, subject: Tree, op: str, values: Sequence[Any], find: Find, java: JavaZone) -> Predicate | None:
    unit, steady = "YEAR", False
    if kind == "Year":
        own = day_column(subject.child(), find, java)
    elif kind == "TruncDate":
        own, unit = day_column(subject.date(), find, java), _unit(subject.format())
    else:
        unit = _unit(subject.format())
        own = moment_column(subject.timestamp(), find, java) if zone_of_tree(subject) == java.name else None
        # of a midnight that comes twice each is one
        steady = unit == "DAY" or (own is not None and own.local and not own.dates)
    if own is None or not unit or (kind == "TruncDate" and unit == "DAY"):
        return None
    return _compared(own, op, [_span(kind, value, unit, java.name, steady) for value in values], java)


def _span(kind: str, value: Any, unit: str, zone: str, steady: bool) -> Span | None:
    """The days that are cut to a value; None where none are, or where the time zone makes that doubtful."""
    if kind == "Year":
        return (dt.date(value, 1, 1), dt.date(value + 1, 1, 1)) if 1 <= value < dt.MAXYEAR else None
    start = _EPOCH + value * _DAY if kind == "TruncDate" else day_begun(value, zone, steady)
    if start is None or truncated(start, unit) != start:
        return None
    end = moved(start, 1, unit, zone)
    if end is None or (kind == "TruncTimestamp" and day_begun(end, zone, steady) is None):
        return None
    return start, end


def _written(kind: str, subject: Tree, op: str, values: Sequence[Any], find: Find, java: JavaZone) -> Predicate | None:
    """``date_format(ts, 'yyyy-MM') = '2024-03'``: year, month and day as digits, in this order."""
    pattern = subject.right() if kind == "DateFormatClass" else subject.format()
    form = _form(pattern)
    if not form or zone_of_tree(subject) != java.name or not java.formats_anew:
        return None
    own = moment_column(subject.left(), find, java) if kind == "DateFormatClass" else from_unixtime(subject, find, java)
    if own is None:
        return None
    days = [written_days(bytes(value.getBytes()).decode(), form) for value in values]
    operator = "=" if op == "in" else op
    further = [None if each is None else each.compared(operator) for each in days]
    known = [(each.start, each.end) for each, told in zip(days, further, strict=True) if each is not None and told]
    if own.local:  # clocks that are put move times that there are not to another hour, or another day
        begin = (day_begun(day, java.name, steady=not own.dates) for span in known for day in span)
        if any(day is None for day in begin):
            return None
    if op == "in" or further[0] == "=":
        return _listed(own, known, java) if len(known) == len(days) else None
    if not known or further[0] is None:
        return None
    found = _compared(own, further[0], known, java)
    if found is None or further[0] not in ("<", "<="):
        return found
    return Or((found, in_long_years(own.name, own.counts, derived=False)))


def _form(pattern: Tree) -> str:
    """A pattern of Java's in Python's directives; "" of any that is not made of digits."""
    text = str(pattern.value()) if class_name(pattern) == "Literal" else ""
    return re.sub("|".join(_DIRECTIVES), lambda found: _DIRECTIVES[found[0]], text) if _FORM.fullmatch(text) else ""


def _between(subject: Tree, op: str, values: Sequence[Any], find: Find, java: JavaZone) -> Predicate | None:
    """``datediff(current_date(), d) <= 7``."""
    end, start = subject.endDate(), subject.startDate()
    if class_name(end) == "Literal":
        fixed, own, sign = end, day_column(start, find, java), -1
    elif class_name(start) == "Literal":
        fixed, own, sign = start, day_column(end, find, java), 1
    else:
        return None
    if own is None or fixed.value() is None:
        return None
    days = [_EPOCH + (fixed.value() + sign * value) * _DAY for value in values]
    return _compared(own, op if sign > 0 else FLIPPED.get(op, op), [(day, day + _DAY) for day in days], java)


def _later(kind: str, subject: Tree, op: str, values: Sequence[Any], find: Find, java: JavaZone) -> Predicate | None:
    """``date_add(d, 7) >= DATE '2024-03-01'``."""
    by, own = subject.days(), day_column(subject.startDate(), find, java)
    if own is None or class_name(by) != "Literal" or by.value() is None:
        return None
    more = int(by.value()) if kind == "DateSub" else -int(by.value())
    days = [_EPOCH + (value + more) * _DAY for value in values]
    return _compared(own, op, [(day, day + _DAY) for day in days], java)


def _of_day(subject: Tree, op: str, values: Sequence[Any], find: Find, java: JavaZone) -> Predicate | None:
    """The days of counts; of times Spark itself makes ranges."""
    own = day_column(subject, find, java)
    if own is None:
        return None
    days = [_EPOCH + value * _DAY for value in values]
    return _compared(own, op, [(day, day + _DAY) for day in days], java)


def _counted(subject: Tree, op: str, values: Sequence[Any], find: Find, java: JavaZone) -> Predicate | None:
    """``timestamp_seconds(a) >= TIMESTAMP '2024-03-01 12:00:00'``."""
    own = count(subject, find, java)
    if own is None:
        return None
    told = [own.compared("=" if op == "in" else op, value, derived=False) for value in values]
    known = tuple(each for each in told if each is not None)
    if not known or len(known) < len(told):
        return None
    return known[0] if op != "in" else Or(known)


def _compared(own: DayColumn, op: str, spans: Sequence[Span | None], java: JavaZone) -> Predicate | None:
    """Days of a column compared with some; None where that is not told of each of them."""
    known = [span for span in spans if span is not None]
    if len(known) < len(spans) or not known:
        return None
    if op == "in":
        return _listed(own, known, java)
    first, end = op not in ("<=", ">"), op not in ("<", ">=")
    begun = [
        own.begun(day, java) if asked else own.unchecked(day) for day, asked in zip(known[0], (first, end), strict=True)
    ]
    if begun[0] is None or begun[1] is None:
        return None
    return lies_in(own.name, op, begun[0], begun[1], derived=False, solved=True)


def _listed(own: DayColumn, spans: Sequence[Span], java: JavaZone) -> Predicate | None:
    """Days of a column in any of some spans."""
    whole = joined_days(sorted(set(spans)))
    if own.zoned and 2 * len(whole) > MOST_ZONED:
        return None
    begun = [(own.begun(start, java), own.begun(end, java)) for start, end in whole]
    parts = [
        lies_in(own.name, "=", start, end, derived=False, solved=True)
        for start, end in begun
        if start is not None and end is not None
    ]
    return Or(tuple(parts)) if parts and len(parts) == len(begun) else None


def _unit(tree: Tree) -> str:
    return _UNITS.get(str(tree.value()).upper(), "") if class_name(tree) == "Literal" else ""


def _prefix(subject: Tree, op: str, values: Sequence[Any], find: Find) -> Predicate | None:
    """``left(column, n) = 'text'`` and what else takes a text's first characters."""
    own = find(subject.str())
    sizes = [part.value() for part in (subject.pos(), subject.len()) if class_name(part) == "Literal"]
    if own is None or own[1] != "string" or op not in ("=", "in") or len(sizes) < 2:
        return None
    if sizes[0] not in (0, 1) or sizes[1] is None or sizes[1] < 1:
        return None
    found: list[Predicate] = []
    for value in values:
        text = bytes(value.getBytes()).decode()  # a UnicodeDecodeError is a ValueError: Java has a sign for these
        if not text:
            return None
        found.append(begins_as(own[0], text, sizes[1], derived=False))
    return found[0] if len(found) == 1 else Or(tuple(found))
