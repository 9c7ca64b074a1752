"""Columns whose values tell a day: dates and instants, and texts and whole numbers that stand for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

from zorder_pipeline.model.values import DAY, Value, ValueType

__all__ = ["Dated", "dated"]

EPOCH = date(1970, 1, 1)
CURRENT = 31
"""Days that the newest value may lie behind the newest query; of older data no query moves on to newer ones."""
AHEAD = 366
"""Days that the newest of whole numbers may lie ahead: most numbers are no dates, and those of some other years are."""
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
    """

    day: Callable[[Value], float | None]
    moved: Callable[[Value, int, int], Value]
    grain: float


def dated(kind: ValueType, newest: Value | None, asked: float) -> Dated | None:
    """How a column tells days; None where it tells none, or of data that nothing was added to for a month.

    Args:
        newest: the largest value of the column.
        asked: day of the newest query, since 1970.

    >>> texts = dated(ValueType("string"), "2026-11-28", 20_785.0)
    >>> texts.day("2026-11-28T05"), texts.moved("2026-11-28T05", 20_785, 20_790), texts.day("n/a")
    (20785.0, '2026-12-03T05', None)
    >>> months = dated(ValueType("int"), 202611, 20_785.0)
    >>> months.moved(202611, 20_785, 20_790)
    202612
    """
    for way in _WAYS.get(kind.family, ()):
        told = way.day(newest) if newest is not None else None
        ahead = AHEAD if kind.family == "integer" else float("inf")
        if told is not None and asked - CURRENT - way.grain <= told <= asked + ahead:
            return way
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


def _written(form: re.Pattern[str], months: bool, number: bool) -> Dated:
    """Days or months as digits, in texts that begin with them or in whole numbers that are nothing else."""

    def told(value: Value) -> float | None:
        found = form.match(str(value)) if isinstance(value, int if number else str) else None
        if found is None:
            return None
        year, month, *day = map(int, found.groups())
        try:
            return float((date(year, month, day[0] if day else 1) - EPOCH).days)
        except ValueError:
            return None

    def moved(value: Value, since: int, until: int) -> Value:
        text, start = str(value), told(value)
        assert start is not None
        there = EPOCH + timedelta(days=int(start))
        try:
            if months:
                first, then = (EPOCH + timedelta(days=day) for day in (since, until))
                year, month = divmod(
                    there.year * 12 + there.month - 1 + (then.year - first.year) * 12 + then.month - first.month, 12
                )
                there = date(year, month + 1, 1)
            else:
                there += timedelta(days=until - since)
        except (ValueError, OverflowError):  # beyond the year 9999
            return value
        parts = f"{there.year:04}", f"{there.month:02}", f"{there.day:02}"
        dash = "-" if "-" in text[:5] else ""
        written = dash.join(parts[:2] if months else parts)
        whole = written + text[len(written) :]
        return int(whole) if number else whole

    return Dated(told, moved, 30.0 if months else 1.0)


_INSTANT = (_counting(DAY // 86_400),)
_WAYS = {
    "date": (Dated(_of_date, _later_date, 1.0),),
    "timestamp": _INSTANT,
    "timestamp_ntz": _INSTANT,
    "string": (*(_written(form, False, False) for form in TEXTS), *(_written(form, True, False) for form in MONTHS)),
    "integer": (
        _written(TEXTS[1], False, True), _written(MONTHS[1], True, True), *(_counting(units) for units in UNITS)
    ),
}  # fmt: skip
