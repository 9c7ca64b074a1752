"""Days that three partition columns tell together, ``year=2026/month=11/day=29``, and months that two of them do."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property, lru_cache

from zorder_pipeline.model.ranges import Box, Boxes, Interval, Range
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import Value, order_key

from .dated import EPOCH

__all__ = ["DateParts", "date_parts"]

NAMES = tuple(
    re.compile(rf"(.*[_. -])?({names})")
    for names in ("year|yyyy|yr|y", "month|mon|mm|mo|m", "day|date|dd|d|dom|day_?of_?month")
)
"""Of columns, in lower case, with what follows an upper case letter set apart by ``_``."""
FULL_MONTH = 28
"""Days that some month must have for a column of another name to tell days."""
LIMITS = (1970, 2200), (1, 13), (1, 32)
"""Of years, months and days: the first, and the one after the last."""

Span = tuple[int, int | None]
"""The first and the last of some years, months or days; None where there is no last one."""
Piece = tuple[tuple[int, ...], Span]
"""A year, or a year and a month, and a span of what comes next."""


@dataclass(frozen=True)
class _Part:
    """Years, months or days.

    Attributes:
        digits: of its texts at least, as in ``05``; None where it holds whole numbers.
    """

    column: Column
    limits: tuple[int, int]
    digits: int | None

    def told(self, asked: Mapping[str, Range]) -> list[tuple[int, int]]:
        """The first and last number of each interval that is asked for; none where these tell no numbers."""
        intervals = asked[self.column.name].intervals if self.column.name in asked else ()
        spans = [_span(self.limits, self.digits, interval) for interval in intervals]
        told = [span for span in spans if span is not None]
        return told if len(told) == len(spans) else []

    def endless(self, asked: Mapping[str, Range]) -> bool:
        """Whether all from some number on are asked for."""
        return all(interval.high is None for interval in asked[self.column.name].intervals)

    def range(self, spans: Iterable[Span]) -> Range:
        """What asks for some spans."""
        found: list[Interval] = []
        for first, last in spans:
            if self.digits is None or last is None:
                found.append(Interval(_written(first, self.digits), last))
            else:
                values = (_written(number, self.digits) for number in range(first, last + 1))
                found += (Interval(value, value) for value in values)
        return Range(self.column.name, self.column.type, tuple(found))


@dataclass(frozen=True)
class DateParts:
    """Partition columns that tell days, or months, together.

    Attributes:
        parts: the year, the month, and the day where there is one.
        newest: the newest day, or first of a month, among the partitions.
    """

    parts: tuple[_Part, ...]
    newest: date

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """What stands for them: year and month as texts such as ``2026-11``, and with a day as dates."""
        names = [part.column.name for part in self.parts]
        months = Column(", ".join(names[:2]), "string")
        return (months,) if len(names) == 2 else (months, Column(", ".join(names), "date"))

    @property
    def largest(self) -> dict[str, tuple[Value]]:
        """The largest value of each of `columns`."""
        values: tuple[Value, ...] = f"{self.newest:%Y-%m}", _number(self.newest)
        return {column.name: (value,) for column, value in zip(self.columns, values, strict=False)}

    def together(self, boxes: Boxes, asked: int) -> Boxes:
        """Boxes with the months or days that they ask for in one of `columns`; others stay what they are.

        Args:
            asked: day on which it was, since 1970: ``day >= 22`` of its month asks for all since the 22nd.
        """
        return tuple(self._together(box, EPOCH + timedelta(days=asked)) for box in boxes)

    def apart(self, boxes: Boxes) -> Boxes:
        """What `together` made, by the columns that there are."""
        return tuple(part for box in boxes for part in self._apart(box))

    def _together(self, box: Box, asked: date) -> Box:
        names = {part.column.name for part in self.parts}
        mine = {item.column: item for item in box if item.column in names}
        rest = tuple(item for item in box if item.column not in names)
        if len(mine) + len(rest) < len(box) or any(item.nulls for item in mine.values()):
            return box
        years, months, *days = (part.told(mine) for part in self.parts)
        if not months or len(years) != 1 or years[0][0] < years[0][1]:
            return box
        year, (month, until) = years[0][0], months[0]
        if len(mine) == 2:
            endless = year >= asked.year and self.parts[1].endless(mine)
            texts = (Interval(f"{year}-{a:02}", None if endless else f"{year}-{b:02}") for a, b in months)
            return (*rest, Range(self.columns[0].name, "string", tuple(texts)))
        if not days[0] or len(months) > 1 or month < until:
            return box
        endless = (year, month) >= (asked.year, asked.month) and self.parts[2].endless(mine)
        before, last = _number(date(year, month, 1)) - 1, monthrange(year, month)[1]
        dates = (Interval(before + a, None if endless else before + min(b, last)) for a, b in days[0])
        return (*rest, Range(self.columns[1].name, "date", tuple(dates)))

    def _apart(self, box: Box) -> Boxes:
        names = [column.name for column in self.columns]
        mine = next((item for item in box if item.column in names), None)
        if mine is None:
            return (box,)
        rest = tuple(item for item in box if item is not mine)
        found: dict[tuple[tuple[Span], ...], list[Span]] = {}
        for interval in mine.intervals:
            for within, span in _days(interval) if mine.type == "date" else _months(interval):
                found.setdefault(tuple(((number, number),) for number in within), []).append(span)
        return tuple(
            (*rest, *(part.range(spans) for part, spans in zip(self.parts, (*within, last), strict=False)))
            for within, last in found.items()
        )


def date_parts(schema: TableSchema, partitions: Iterable[Sequence[str | None]]) -> DateParts | None:
    """The partition columns that tell days or months together, told by their names and values; None without any.

    A few partitions may tell none, such as one of the year 9999 for what has no date.

    Args:
        partitions: values of the partition columns as the Delta log writes them, None for null.

    >>> schema = TableSchema(tuple(Column(name, "string", partition=True) for name in ("year", "month", "day")))
    >>> date_parts(schema, [("2026", "11", "29"), ("2026", "11", "05")]).newest
    datetime.date(2026, 11, 29)
    """
    words = {name: re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() for name in schema.partition_columns}
    years, months, days = ([name for name, word in words.items() if form.fullmatch(word)] for form in NAMES)
    distinct, place = set(map(tuple, partitions)), {name: i for i, name in enumerate(words)}
    texts = {name: {text for each in distinct if (text := each[i]) is not None} for name, i in place.items()}
    named = bool(days)
    days = days or [name for name in words if name not in (*years, *months) and _are_days(texts[name])]
    names = [*years, *months, *(name for name in days if not _are_dates(texts[name]))]
    if len(years) != 1 or len(months) != 1 or len(names) > len(LIMITS):
        return None
    values = {tuple(each[place[name]] for name in names) for each in distinct}
    if not named and any(map(_never_was, values)):
        return None
    told = {value: day for value in values if (day := _date(value)) is not None}
    columns = [column for name in names if (column := schema.find(name)) is not None]
    if 2 * len(told) <= len(values) or {column.value_type.family for column in columns} - {"integer", "string"}:
        return None
    each_part = zip(columns, LIMITS, zip(*told, strict=True), strict=False)
    return DateParts(
        tuple(_Part(column, limits, _digits(column, written)) for column, limits, written in each_part),
        max(told.values()),
    )


def _are_days(texts: Collection[str]) -> bool:
    """Whether the values of a column of any name are days of a month, 0 standing for none."""
    try:
        numbers = set(map(int, texts))
    except ValueError:
        return False
    return numbers <= set(range(LIMITS[2][1])) and max(numbers, default=0) >= FULL_MONTH


def _are_dates(texts: Collection[str]) -> bool:
    """Whether each value tells a day by itself, so that the column needs no others."""
    try:
        return bool([date.fromisoformat(text) for text in texts])
    except ValueError:
        return False


def _digits(column: Column, texts: Iterable[str | None]) -> int | None:
    return min(len(text or "") for text in texts) if column.value_type.family == "string" else None


def _date(values: Iterable[str | None]) -> date | None:
    """The day, or first of a month, that the values of a partition tell; None where they tell none."""
    try:
        year, month, *day = (int(value or "") for value in values)
        return date(year, month, *(day or (1,))) if year in range(*LIMITS[0]) else None
    except ValueError:
        return None


def _never_was(values: Sequence[str | None]) -> bool:
    """Whether it would be a day such as 31 November: then the third column holds something else, such as buckets.

    >>> _never_was(("2026", "11", "31")), _never_was(("2026", "11", "00")), _never_was(("2026", "11"))
    (True, False, False)
    """
    try:
        year, month, *day = (int(value or "") for value in values)
        return bool(day) and FULL_MONTH < day[0] < LIMITS[2][1] and day[0] > monthrange(year, month)[1]
    except ValueError:
        return False


def _number(day: date) -> int:
    return (day - EPOCH).days


def _written(number: int, digits: int | None) -> Value:
    return number if digits is None else f"{number:0{digits}}"


@lru_cache(maxsize=10_000)
def _span(limits: tuple[int, int], digits: int | None, interval: Interval) -> tuple[int, int] | None:
    """The first and last number in an interval; None without any, or where it leaves some out between them."""
    within = [number for number in range(*limits) if _holds(interval, _written(number, digits))]
    if not within or len(within) <= within[-1] - within[0]:  # among texts "10" is less than "9"
        return None
    return within[0], within[-1]


def _holds(interval: Interval, value: Value) -> bool:
    key = order_key(value)
    if interval.low is not None and (key < order_key(interval.low) or (interval.low_open and value == interval.low)):
        return False
    return (
        interval.high is None or key < order_key(interval.high) or (value == interval.high and not interval.high_open)
    )


def _days(interval: Interval) -> Iterator[Piece]:
    """The days from one date to another, or all since, by month."""
    assert isinstance(interval.low, int)
    assert interval.high is None or isinstance(interval.high, int)
    low = EPOCH + timedelta(days=interval.low)
    high = None if interval.high is None else EPOCH + timedelta(days=interval.high)
    month = low.replace(day=1)
    while month <= (high or low):
        first = low.day if month <= low < _after(month) else 1
        last = high.day if high is not None and high < _after(month) else LIMITS[2][1] - 1
        yield (month.year, month.month), (first, last)
        month = _after(month)
    if high is None:
        yield from _since(month)


def _months(interval: Interval) -> Iterator[Piece]:
    """The months from one text to another, or all since, by year."""
    low, high = (None if text is None else date.fromisoformat(f"{text!s}-01") for text in (interval.low, interval.high))
    assert low is not None
    if high is None:
        yield from _since(low)
        return
    for year in range(low.year, high.year + 1):
        yield (year,), (low.month if year == low.year else 1, high.month if year == high.year else LIMITS[1][1] - 1)


def _since(month: date) -> Iterator[Piece]:
    yield (month.year,), (month.month, LIMITS[1][1] - 1)
    yield (), (month.year + 1, None)


def _after(month: date) -> date:
    return (month + timedelta(days=31)).replace(day=1)
