"""Columns of whole numbers that count since 1970, of which queries make times: these lie as their counts do."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from .literals import divides
from .moments import instant
from .predicate import Comparison, Literal, Predicate, day_literal

__all__ = ["SECOND", "Count", "in_long_years"]

SECOND = 1_000_000
"""Microseconds."""


@dataclass(frozen=True)
class Count:
    """A column that counts since 1970 UTC.

    Attributes:
        name: of the column.
        span: microseconds that it counts in.
        cut: whether what is less than a second may have been cut off its times.
        zone: time zone in which its times are local.
    """

    name: str
    span: int
    cut: bool
    zone: str

    def compared(self, op: str, at: int, *, derived: bool) -> Predicate | None:
        """Counts whose times stand to an instant by ``op``, one of `predicate.FLIPPED`; None where that is not told.

        Args:
            at: microseconds since 1970 UTC.
            derived: see `Comparison`.

        >>> Count("a", 1_000, False, "UTC").compared("<=", 1_500, derived=True).to_sql()
        'a <= 1'
        >>> Count("a", 1_000, True, "UTC").compared("=", 5_000_000, derived=True).to_sql()
        'a BETWEEN 5000 AND 5999'
        """
        first, last = -(-at // self.span), at // self.span
        if op == "<>":
            exact = first == last and not self.cut
            return Comparison(self.name, op, (_number(first),), derived, solved=True) if exact else None
        if self.cut and (at <= 0 or at % SECOND):
            return None
        if self.cut and op in ("=", "<=>", "<="):  # of the seconds that were cut off
            last += SECOND // self.span - 1
        if op in ("=", "<=>"):
            if first == last:
                return Comparison(self.name, op, (_number(first),), derived, solved=True)
            return Comparison(self.name, "between", (_number(first), _number(last)), derived, solved=True)
        bound = first if op in (">=", "<") else last
        return Comparison(self.name, op, (_number(bound),), derived, solved=True)

    def of_day(self, day: dt.date) -> Literal | None:
        """The first count of a day; None where the zone divides times otherwise, or counts are cut towards 1970.

        >>> Count("a", 1_000, False, "Europe/Berlin").of_day(dt.date(1970, 1, 2)).text
        '82800000'
        """
        told = divides(day_literal(day), self.zone)
        at = instant(dt.datetime(day.year, day.month, day.day), self.zone) if told else None
        return None if at is None or (self.cut and at <= 0) else _number(-(-at // self.span))


def in_long_years(column: str, counts: Count | None, *, derived: bool) -> Comparison:
    """What holds of all moments of years with more than four digits: written out, "+10000" comes before all others.

    Args:
        counts: what the column counts, if it does not hold dates or times.

    >>> in_long_years("ts", None, derived=True).to_sql()
    "ts > DATE '9999-12-31'"
    """
    last = day_literal(dt.date.max)
    if counts is not None:  # in any time zone: these are less than a day apart from UTC
        last = _number((dt.date.max - dt.date(1970, 1, 1)).days * 86_400 * SECOND // counts.span)
    return Comparison(column, ">", (last,), derived)


def _number(count: int) -> Literal:
    return Literal("number", str(count))
