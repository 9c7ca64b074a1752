"""Functions that tell days against constants, solved for their column: ``date_format(ts, 'yyyy-MM') = '2024-03'``.

The column holds dates or times, or counts since 1970 that the statement makes times of.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

from sqlglot import exp

from zorder_pipeline.model.counted import Count, in_long_years
from zorder_pipeline.model.moments import SPANS, moved, truncated
from zorder_pipeline.model.predicate import FLIPPED, Literal, Or, Predicate, day_literal, lies_in
from zorder_pipeline.model.schema import Column
from zorder_pipeline.model.written_days import WRITTEN, written_days

from .clock import SPARKS, Clock
from .constants import fold
from .counted import counted
from .formats import python_form
from .intervals import interval_of
from .literals import DATE_TYPES, computed
from .relative import unit_of
from .types import Find, is_own_type

__all__ = ["Days", "by_days", "days_of"]

DATE_CASTS = (exp.TsOrDsToDate, exp.Date)
_SHIFTS = (exp.TsOrDsAdd, exp.DateAdd, exp.DateSub)
MOST_DAYS = 4_000_000
"""Days by which a date is moved: there are no more."""


@dataclass(frozen=True)
class Days:
    """A column whose values tell days.

    Attributes:
        name: of the column.
        dates: whether it is known to hold dates, without times.
        counts: what it counts, if it does.
    """

    name: str
    dates: bool
    counts: Count | None = None

    def literal(self, day: dt.date) -> Literal:
        """Where a day begins among its values.

        Raises:
            ValueError: it begins at no single one.
        """
        found = day_literal(day) if self.counts is None else self.counts.of_day(day)
        if found is None:
            raise ValueError(f"{day} begins at no single count")
        return found

    def told(self, op: str, start: dt.date, end: dt.date, *, solved: bool = True) -> Predicate:
        """Days from ``start`` up to ``end`` compared with ``op``."""
        own = self.literal(start), self.literal(end)
        return lies_in(self.name, op, *own, derived=True, solved=solved or self.counts is not None)


def by_days(left: exp.Expr, op: str, literal: Literal, find: Find, clock: Clock) -> Predicate | None:
    """``left op literal`` as a range of the column in ``left``; None when it is none that can be solved."""
    for solver in (_year, _trunc, _written, _between, _later, _day_of):
        try:
            if (told := solver(left, op, literal, find, clock)) is not None:
                return told
        except (OverflowError, ValueError, LookupError):  # days that there are not, or that begin twice
            return None
    return None


def _year(left: exp.Expr, op: str, literal: Literal, find: Find, clock: Clock) -> Predicate | None:
    if isinstance(left, exp.Extract) and str(left.this).upper() == "YEAR":
        inner = left.expression
    elif isinstance(left, exp.Year):
        inner = left.this
    else:
        return None
    found = days_of(inner, find, clock)
    if found is None or not literal.text.isdecimal() or not 1 <= int(literal.text) < 9999:
        return None
    year = int(literal.text)
    return found.told(op, dt.date(year, 1, 1), dt.date(year + 1, 1, 1))


def _trunc(left: exp.Expr, op: str, literal: Literal, find: Find, clock: Clock) -> Predicate | None:
    left = _without_date_cast(left)  # which begins a day, as every unit that is solved
    if not isinstance(left, exp.TimestampTrunc | exp.DateTrunc) or literal.kind not in (
        "string",
        "date",
        "timestamp_ntz",
    ):
        return None
    found, start = days_of(left.this, find, clock), _day(literal)
    unit = unit_of(left)
    if found is None or start is None or left.args.get("zone"):
        return None
    if unit == "WEEK" and op not in ("=", ">=", "<="):
        return None  # some dialects' weeks begin on Sunday: only these ranges cover both
    if SPANS.get(unit, SPANS["DAY"]) < SPANS["DAY"] or truncated(start, unit) != start:
        return None  # shorter than a day, unknown, or no such unit begins there
    end = moved(start, 1, unit, "UTC")
    return found.told(op, start, end) if end is not None else None


def _written(left: exp.Expr, op: str, literal: Literal, find: Find, clock: Clock) -> Predicate | None:
    """Year, month and day as digits, in this order: texts that lie as their days do."""
    match left:
        case _ if clock.dialect == "hive":  # whose YYYY, the year of a week, is not told from yyyy
            return None
        case exp.TimeToStr(this=inner, args={"format": exp.Literal() as form}):
            found = days_of(inner.this if isinstance(inner, exp.TimeStrToTime) else inner, find, clock)
        case exp.UnixToStr(args={"format": exp.Literal() as form}):
            found = _counts(left, find, clock)
        case _:
            return None
    if found is None or literal.kind not in ("string", "number"):
        return None
    days = written_days(literal.text, python_form(form), number=literal.kind == "number")
    further = None if days is None else days.compared(op)
    if days is None or further is None:
        return None
    if further not in ("<", "<="):
        return found.told(further, days.start, days.end)
    told = found.told(further, days.start, days.end)
    return Or((told, in_long_years(found.name, found.counts, derived=True)))


def _between(left: exp.Expr, op: str, literal: Literal, find: Find, clock: Clock) -> Predicate | None:
    """``datediff(current_date(), d) <= 7``, of dates or, in Spark, of times cut to days."""
    if not isinstance(left, exp.DateDiff) or unit_of(left) not in ("", "DAY") or left.args.get("zone"):
        return None
    sparks = clock.dialect in SPARKS
    if sparks and left.args.get("unit"):  # with one Spark counts days between times, of which scans make none
        return None
    for column, other, sign in ((left.this, left.expression, 1), (left.expression, left.this, -1)):
        found = days_of(column, find, clock)
        if found is None or not (found.dates or sparks):
            continue
        fixed = fold(other, clock)
        day = None if fixed is None else _day(fixed, cut=sparks)
        count = _whole(literal)
        if day is None or count is None:
            return None
        start = day + dt.timedelta(days=sign * count)
        return found.told(op if sign > 0 else FLIPPED[op], start, start + dt.timedelta(days=1))
    return None


def _later(left: exp.Expr, op: str, literal: Literal, find: Find, clock: Clock) -> Predicate | None:
    """``date_add(d, 7) >= '2024-03-01'``, and with an interval of days."""
    days = _moved_by(left)
    found = None if days is None else days_of(left.this, find, clock)
    # Spark's date_add makes a date of a time, others add to the time
    of_days = isinstance(left, exp.TsOrDsAdd) and clock.dialect in SPARKS and not left.args.get("return_type")
    if days is None or found is None or not (found.dates or of_days):
        return None
    day = _day(literal)
    if day is None:
        return None
    start = day - dt.timedelta(days=days)
    return found.told(op, start, start + dt.timedelta(days=1))


def _moved_by(left: exp.Expr) -> int | None:
    """The days by which a date is moved; None where that is not what an expression does."""
    sign = -1 if isinstance(left, exp.Sub | exp.DateSub) else 1
    if isinstance(left, exp.Add | exp.Sub):
        parts = interval_of(left.expression)
        if parts is None or any(unit.upper().removesuffix("S") != "DAY" for _, unit in parts):
            return None
        days = sum(count for count, _ in parts)
    elif isinstance(left, _SHIFTS) and unit_of(left) in ("", "DAY") and isinstance(left.expression, exp.Expr):
        count = computed(left.expression)
        number = None if count is None else _whole(count)
        if number is None:
            return None
        days = number
    else:
        return None
    return sign * days if abs(days) <= MOST_DAYS else None


def _day_of(left: exp.Expr, op: str, literal: Literal, find: Find, clock: Clock) -> Predicate | None:
    if (inner := _without_date_cast(left)) is left:
        return None
    found, day = days_of(inner, find, clock), _day(literal)
    if found is None or day is None:
        return None
    return found.told(op, day, day + dt.timedelta(days=1), solved=False)  # Spark does so itself


def days_of(node: exp.Expr, find: Find, clock: Clock) -> Days | None:
    """The column under casts to dates, and to the type that it has, or under what makes times of counts."""
    node = _without_date_cast(node)
    form = node.args.get("format") if isinstance(node, exp.UnixToStr) else None
    of_a_day = form is None or (isinstance(form, exp.Literal) and python_form(form) == WRITTEN)
    if of_a_day and (counts := _counts(node, find, clock)) is not None:
        return counts
    found = find(node)
    if isinstance(node, exp.Cast) and (inner := find(node.this)) is not None and inner[1] is not None:
        found = inner if is_own_type(inner[1], node.to) else None
    if found is None or not _temporal(found[1]):
        return None
    dates = found[1] is not None and found[1].value_type.family == "date"
    return Days(found[0], dates)


def _counts(node: exp.Expr, find: Find, clock: Clock) -> Days | None:
    own = counted(node, find, clock)
    return None if own is None else Days(own.name, False, own)


def _day(literal: Literal, cut: bool = False) -> dt.date | None:
    """The day that a constant is, as a rule at midnight.

    Args:
        cut: also the day of another time of day.
    """
    if cut and literal.kind == "timestamp_ntz":
        return dt.datetime.fromisoformat(literal.text).date()
    match = re.fullmatch(r"(\d{4}-\d{2}-\d{2})(?:[T ]00:00(?::00(?:\.0+)?)?)?", literal.text.strip())
    try:
        return dt.date.fromisoformat(match.group(1)) if match else None
    except ValueError:
        return None


def _whole(literal: Literal) -> int | None:
    """A number of days."""
    if literal.kind != "number" or not re.fullmatch(r"[+-]?\d{1,7}", literal.text):
        return None
    return int(literal.text) if abs(int(literal.text)) <= MOST_DAYS else None


def _temporal(column: Column | None) -> bool:
    """Whether dates bound the column: a string column of dates, say, is cast row by row, in any format Spark reads."""
    return column is None or column.value_type.family in ("date", "timestamp", "timestamp_ntz")


def _without_date_cast(node: exp.Expr) -> exp.Expr:
    node = node.unnest()
    to_date = isinstance(node, DATE_CASTS) and not node.args.get("format") and not node.args.get("zone")
    if isinstance(node, exp.Cast):  # Spark's CAST is parsed as TRY_CAST
        to_date = node.to.this in DATE_TYPES
    elif isinstance(node, exp.TimeStrToTime):
        to_date = True
    inner = node.this
    return _without_date_cast(inner) if to_date and isinstance(inner, exp.Expr) else node
