"""Days told by their year, month and day: as digits of a text, year first, or by several conditions together."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import product

from .moments import moved
from .predicate import FLIPPED

__all__ = ["WRITTEN", "WrittenDays", "days_together", "joined_days", "written_days"]

WRITTEN = "%Y-%m-%d %H:%M:%S"
"""How Spark writes a time where no format is told, as Python has it."""
_FORM = re.compile(r"%Y(?:[-/._ ]?%m(?:[-/._ ]?%d(?:[ _]?%H(?::?%M(?::?%S)?)?)?)?)?")
_PARTS = (("%S", "DAY"), ("%M", "DAY"), ("%H", "DAY"), ("%d", "DAY"), ("%m", "MONTH"), ("%Y", "YEAR"))
_FIRST_YEAR = 1000
"""Below it Python and Java disagree about zeros before."""


@dataclass(frozen=True)
class WrittenDays:
    """The days whose texts begin as one does.

    Attributes:
        start, end: the first of them, and the first one after.
        whole: whether the text tells all that its format does.
        finer: whether it tells a time of day, too.
    """

    start: dt.date
    end: dt.date
    whole: bool
    finer: bool

    def compared(self, op: str) -> str | None:
        """The operator by which days stand to these where texts stand to the text by ``op``, or lie further out.

        None where nothing is said of days.

        >>> [written_days(text, "%Y-%m-%d").compared(op) for text, op in (("2024-03", ">"), ("2024-03-01", ">"))]
        ['>=', '>']
        >>> written_days("2024-03", "%Y-%m-%d").compared("="), written_days("2024 03", "%Y %m").compared("=")
        (None, '=')
        >>> written_days("2024-03-01 10", "%Y-%m-%d %H:%M").compared("<"), written_days("2024", "%Y").compared("like")
        ('<=', None)
        """
        if op == "starts_with":
            return "="
        if self.finer:
            further = {">": ">=", ">=": ">=", "<": "<=", "<=": "<="} | ({"=": "=", "<=>": "="} if self.whole else {})
            return further.get(op)
        if not self.whole:  # which no text of a day is: all of these come after it
            return {">": ">=", ">=": ">=", "<": "<", "<=": "<"}.get(op)
        return op if op in FLIPPED else None


def written_days(text: str, form: str, *, number: bool = False) -> WrittenDays | None:
    """What a text is compared with says of days that are written in a form; None where that is not told.

    Args:
        form: year, month and day, and times of the day, in this order, in Python's directives.
        number: whether the texts are compared as numbers: of another length they lie otherwise.

    >>> written_days("202403", "%Y%m")
    WrittenDays(start=datetime.date(2024, 3, 1), end=datetime.date(2024, 4, 1), whole=True, finer=False)
    >>> written_days("2024-13", "%Y-%m"), written_days("2024-03", "%m-%Y"), written_days("0999", "%Y")
    (None, None, None)
    """
    if not _FORM.fullmatch(form) or (number and not re.fullmatch(r"(%[YmdHMS])+", form)):
        return None
    for part, unit in _PARTS:
        if (at := form.find(part)) < 0:
            continue
        known = form[: at + 2]
        if number and known != form:
            return None
        try:
            start = dt.datetime.strptime(text, known)
            if start.year < _FIRST_YEAR or start.strftime(known) != text:
                continue
            end = moved(start.date(), 1, unit, "UTC")
        except (ValueError, OverflowError):
            continue
        return None if end is None else WrittenDays(start.date(), end, known == form, part in ("%H", "%M", "%S"))
    return None


MOST_SPANS = 400
Span = tuple[dt.date, dt.date]
"""A first day, and the first one after the last."""


def days_together(parts: Mapping[str, Collection[int]]) -> list[Span] | None:
    """The days whose parts all have one of some values, as spans; None where the parts say nothing together.

    Args:
        parts: the values of ``YEAR``, ``QUARTER``, ``MONTH`` and ``DAY``, as far as each is told.

    >>> [(str(a), str(b)) for a, b in days_together({"YEAR": [2024], "MONTH": [3, 4, 12]})]
    [('2024-03-01', '2024-05-01'), ('2024-12-01', '2025-01-01')]
    >>> days_together({"MONTH": [3], "DAY": [1]}) is None, days_together({"YEAR": [2023], "MONTH": [2], "DAY": [29]})
    (True, [])
    """
    years, days = parts.get("YEAR"), parts.get("DAY")
    if years is None or not ({"QUARTER", "MONTH"} & parts.keys()) or (days is not None and "MONTH" not in parts):
        return None
    months = [m for m in range(1, 13) if m in parts.get("MONTH", range(1, 13))]
    months = [m for m in months if (m + 2) // 3 in parts.get("QUARTER", range(1, 5))]
    if not all(1 <= year < dt.MAXYEAR for year in years) or len(years) * len(months) * len(days or [0]) > MOST_SPANS:
        return None
    spans: list[Span] = []
    for year, month in product(sorted(years), months):
        first = dt.date(year, month, 1)
        after = dt.date(year + month // 12, month % 12 + 1, 1)
        if days is None:
            spans.append((first, after))
        else:
            own = (first + dt.timedelta(day - 1) for day in sorted(days) if 1 <= day <= (after - first).days)
            spans += [(day, day + dt.timedelta(1)) for day in own]
    return joined_days(spans)


def joined_days(spans: Collection[Span]) -> list[Span]:
    """Ascending spans, those that follow each other as one."""
    found: list[Span] = []
    for start, end in spans:
        if found and start == found[-1][1]:
            found[-1] = found[-1][0], end
        else:
            found.append((start, end))
    return found
