"""Columns whose values tell a day: dates and instants, and texts and whole numbers that stand for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from zorder_pipeline.model import moments
from zorder_pipeline.model.values import Value, ValueType

__all__ = ["Dated", "dated"]

EPOCH = date(1970, 1, 1)
CURRENT = 31
"""Days that the newest value may lie behind the newest query; of older data no query moves on to newer ones."""
AHEAD = 366
"""Days that the newest of whole numbers may lie ahead: most numbers are no dates, and those of some other years are."""
LEAST_DIGITS = 100_000
"""The smallest whole number of a year, a month, and perhaps a day."""
UNITS = (1, 1_000, 1_000_000)
"""Of whole numbers that count from 1970: seconds, milliseconds and microseconds."""
TEXTS = (re.compile(r"(\d{4})-(\d\d)-(\d\d)(?!\d)"), re.compile(r"(\d{4})(\d\d)(\d\d)(?:\D|\d\d$|$)"))
MONTHS = (re.compile(r"(\d{4})-(\d\d)$"), re.compile(r"(\d{4})(\d\d)$"))


@dataclass(frozen=True)
class Dated:
    """How the values of a column tell a day.

    Attributes:
        day: days since 1970 that a value tells, with its part of a day where it has one; None where it tells none.
        moved: the value that was asked for on one day as it would be asked for on another, both as days since 1970.
        grain: days that neighbouring values are apart, about; 0 where these are moments.
        newest: day of the newest value.
    """

    day: Callable[[Value], float | None]
    moved: Callable[[Value, int, int], Value]
    grain: float
    newest: float = 0.0


def dated(kind: ValueType, largest: Sequence[Value], asked: float) -> Dated | None:
    """How a column tells days; None where it tells none, or of data that nothing was added to for a month.

    Args:
        largest: the column's largest values, the largest first: the first that tells a day is the newest, as some are
            none, such as "unknown".
        asked: day of the newest query, since 1970.

    >>> texts = dated(ValueType("string"), ["unknown", "2026-11-28"], 20_785.0)
    >>> texts.day("2026-11-28T05"), texts.moved("2026-11-28T05", 20_785, 20_790), texts.day("n/a")
    (20785.0, '2026-12-03T05', None)
    >>> months = dated(ValueType("int"), [202611], 20_785.0)
    >>> months.moved(202611, 20_785, 20_790)
    202612
    """
    ahead = AHEAD if kind.family == "integer" else float("inf")
    for way in _WAYS.get(kind.family, ()):
        told = (day for value in largest if (day := way.day(value)) is not None and day <= asked + ahead)
        newest = next(told, None)
        if newest is not None and newest >= asked - CURRENT - way.grain:
            return replace(way, newest=newest)
    return None


def _of_date(value: Value) -> float | None:
    return float(value) if isinstance(value, int) else None


def _later_date(value: Value, since: int, until: int) -> Value:
    assert isinstance(value, int)
    return value + until - since


def _counting(units: int) -> Dated:
    """Moments as whole numbers, so many a second."""
    day = units * 86_400

    def told(value: Value) -> float | None:
        return value / day if isinstance(value, int) else None

    def moved(value: Value, since: int, until: int) -> Value:
        assert isinstance(value, int)
        return value + (until - since) * day

    return Dated(told, moved, 0.0)


def _written(form: re.Pattern[str], months: bool) -> Dated:
    """Days or months as digits that texts begin with."""

    def start(value: Value) -> date | None:
        found = form.match(value) if isinstance(value, str) else None
        if found is None:
            return None
        year, month, *day = map(int, found.groups())
        try:
            return date(year, month, day[0] if day else 1)
        except ValueError:
            return None

    def told(value: Value) -> float | None:
        there = start(value)
        return None if there is None else float((there - EPOCH).days)

    def moved(value: Value, since: int, until: int) -> Value:
        there = start(value)
        assert there is not None
        assert isinstance(value, str)
        try:
            if months:
                first, then = (EPOCH + timedelta(days=day) for day in (since, until))
                count = (then.year - first.year) * 12 + then.month - first.month
                later = moments.moved(there, count, "MONTH", "UTC")
            else:
                later = moments.moved(there, until - since, "DAY", "UTC")
        except (ValueError, OverflowError):  # beyond the year 9999
            return value
        assert later is not None
        parts = f"{later.year:04}", f"{later.month:02}", f"{later.day:02}"
        written = ("-" if value[4] == "-" else "").join(parts[:2] if months else parts)
        return written + value[len(written) :]

    return Dated(told, moved, 30.0 if months else 1.0)


def _digits(texts: Dated) -> Dated:
    """The same as whole numbers that are nothing else; the one before the first of a month, or after its last, too."""

    def beside(value: Value) -> tuple[str, int] | None:
        """The number itself or its neighbour that is a day, and how far that is from it."""
        if isinstance(value, int):
            for off in (0, 1, -1):
                if value + off >= LEAST_DIGITS and texts.day(text := str(value + off)) is not None:
                    return text, off
        return None

    def told(value: Value) -> float | None:
        found = beside(value)
        day = None if found is None else texts.day(found[0])
        return None if found is None or day is None else day - found[1] * texts.grain

    def moved(value: Value, since: int, until: int) -> Value:
        found = beside(value)
        assert found is not None
        return int(str(texts.moved(found[0], since, until))) - found[1]

    return Dated(told, moved, texts.grain)


_INSTANT = (_counting(UNITS[-1]),)
_WAYS = {
    "date": (Dated(_of_date, _later_date, 1.0),),
    "timestamp": _INSTANT,
    "timestamp_ntz": _INSTANT,
    "string": (*(_written(form, False) for form in TEXTS), *(_written(form, True) for form in MONTHS)),
    "integer": (
        *(_digits(_written(form, months)) for form, months in ((TEXTS[1], False), (MONTHS[1], True))),
        *(_counting(units) for units in UNITS),
    ),
}
