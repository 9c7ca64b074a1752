"""Functions of a column against constants in Spark's plans, solved for the column, as the reader of logs solves them.

``year(ts) = 2024`` says of ``ts`` from where to where it lies. Neither Delta nor Parquet sees that, so the comparisons
are marked ``solved``; of instants they count where the session's time zone divides them by days, and where the JVM,
which evaluates them, has these begin when Python has.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from zorder_pipeline.java import class_name
from zorder_pipeline.model.literals import day_begun
from zorder_pipeline.model.moments import moved, truncated
from zorder_pipeline.model.predicate import Or, Predicate, begins_as, lies_in

from .java_zones import JavaZone
from .meanings import Tree

__all__ = ["solved"]

Find: TypeAlias = Callable[[Tree], tuple[str, str] | None]
"""Name and type of the table's column that an expression is."""
_UNITS = {
    "YEAR": "YEAR", "YYYY": "YEAR", "YY": "YEAR", "QUARTER": "QUARTER", "MONTH": "MONTH", "MON": "MONTH", "MM": "MONTH",
    "WEEK": "WEEK", "DAY": "DAY", "DD": "DAY",
}  # fmt: skip
"""What dates are cut to, by Spark's names for it."""
_DAY, _EPOCH = dt.timedelta(days=1), dt.date(1970, 1, 1)
MOST = 1_000
"""Values of one IN that are solved."""
MOST_ZONED = 200
"""Days of one IN of whose beginning the JVM is asked: each takes some calls."""

_Span: TypeAlias = tuple[dt.date, dt.date]
"""First day of what a value stands for, and the first one after it."""


def solved(subject: Tree, op: str, values: Sequence[Any], find: Find, java: JavaZone) -> Predicate | None:
    """``subject op values`` as ranges of the column in ``subject``; None where it is none that can be solved.

    Args:
        values: as Catalyst keeps them.
        java: the session's time zone.
    """
    zone = java.name
    kind = class_name(subject)
    if kind == "Substring":
        return _prefix(subject, op, values, find)
    unit: str | None = "YEAR"
    steady = False
    if kind == "Year":
        name, zoned = _day_of(subject.child(), find, zone)
    elif kind == "TruncDate":
        (name, zoned), unit = _day_of(subject.date(), find, zone), _unit(subject.format())
    elif kind == "TruncTimestamp":
        unit, zoned = _unit(subject.format()), True
        name, steady = _moment_of(subject, find, zone)
        steady |= unit == "DAY"  # of a midnight that comes twice each is one
    else:
        return None
    if name is None or unit is None or len(values) > MOST or (kind == "TruncDate" and unit == "DAY"):
        return None
    try:
        spans = [_span(kind, value, unit, zone, steady) for value in values]
    except (OverflowError, ValueError):  # days that Python does not have
        return None
    known = sorted({span for span in spans if span is not None})
    if len(known) < len(set(values)) or not known:
        return None
    whole = _joined(known)
    first, end = op not in ("<=", ">"), op not in ("<", ">=")
    bounds = {day for span in whole for day, asked in zip(span, (first, end), strict=True) if asked}
    if zoned and not (len(bounds) <= MOST_ZONED and all(map(java.agrees, bounds))):
        return None
    if op == "in":
        return Or(tuple(lies_in(name, "=", *span, derived=False, solved=True) for span in whole))
    return lies_in(name, op, *known[0], derived=False, solved=True)


def _day_of(tree: Tree, find: Find, zone: str) -> tuple[str | None, bool]:
    """The column whose days an expression is, and whether the time zone tells them."""
    if (own := find(tree)) is not None:
        return own[0] if own[1] == "date" else None, False
    if class_name(tree) != "Cast" or str(tree.dataType().catalogString()) != "date":
        return None, False
    own = find(tree.child())
    if own is None or own[1] not in ("timestamp", "timestamp_ntz"):
        return None, False
    zoned = own[1] == "timestamp"
    return own[0] if not zoned or _zone(tree) == zone else None, zoned


def _moment_of(tree: Tree, find: Find, zone: str) -> tuple[str | None, bool]:
    """The column that ``date_trunc`` cuts in the session's time zone, and whether it has local times."""
    inner = tree.timestamp()
    if _zone(tree) != zone:
        return None, False
    if (own := find(inner)) is not None:
        return own[0] if own[1] == "timestamp" else None, False
    own = find(inner.child()) if class_name(inner) == "Cast" and _zone(inner) == zone else None
    return (own[0], own[1] != "date") if own is not None and own[1] in ("date", "timestamp_ntz") else (None, False)


def _zone(tree: Tree) -> str | None:
    """The time zone in which an expression is evaluated."""
    named = tree.timeZoneId()
    return str(named.get()) if named.isDefined() else None


def _unit(tree: Tree) -> str | None:
    return _UNITS.get(str(tree.value()).upper()) if class_name(tree) == "Literal" else None


def _span(kind: str, value: Any, unit: str, zone: str, steady: bool) -> _Span | None:
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


def _joined(spans: Sequence[_Span]) -> list[_Span]:
    """Ascending spans, those that follow each other as one."""
    found = [spans[0]]
    for start, end in spans[1:]:
        if start == found[-1][1]:
            found[-1] = found[-1][0], end
        else:
            found.append((start, end))
    return found


def _prefix(subject: Tree, op: str, values: Sequence[Any], find: Find) -> Predicate | None:
    """``left(column, n) = 'text'`` and what else takes a text's first characters."""
    own = find(subject.str())
    sizes = [part.value() for part in (subject.pos(), subject.len()) if class_name(part) == "Literal"]
    if own is None or own[1] != "string" or op not in ("=", "in") or len(sizes) < 2 or len(values) > MOST:
        return None
    if sizes[0] not in (0, 1) or sizes[1] is None or sizes[1] < 1:
        return None
    found: list[Predicate] = []
    for value in values:
        try:
            text = bytes(value.getBytes()).decode()
        except UnicodeDecodeError:  # Java has a sign of its own for what is no UTF-8
            return None
        if not text:
            return None
        found.append(begins_as(own[0], text, sizes[1], derived=False))
    return found[0] if len(found) == 1 else Or(tuple(found))
