"""Queries that follow the newest data: which bounds of which queries move on with the day on which they are asked.

"The last week" is another week tomorrow, "since January" is not. Both are logged as literals, so which it is shows in
how the bounds of a template's queries lie: closer to each other, or closer to the days on which they were asked. Of a
log of a single day neither shows, and what lies within a month of that day is taken to move on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.ranges import Boxes, Interval, Range, starting_with
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.values import DAY, Value, ValueType
from zorder_pipeline.model.workload import LoggedQuery

from .date_parts import DateParts
from .dated import Dated, dated

__all__ = ["Following", "following"]

RECENT = 31.0
"""Days behind its query up to which a bound, in doubt, is one that moves on."""
DOUBT = 1.0
"""What that counts for: as logarithm of the odds."""
DAYS = 2
"""On which a template must have been asked for its bounds to tell; those of the others tell together."""
VALUE, RANGE, OPEN = "value", "range", "open"

Seen = set[tuple[float, float, Boxes]]
"""Day on which it was asked, day that the bound told, and all that was asked for, of each query."""


@dataclass(frozen=True)
class _Bound:
    """A bound of the queries of one template.

    Attributes:
        form: of what: `VALUE` (one or more), `RANGE`, or what is `OPEN` to the other side.
        upper: whether it is the upper one.
    """

    template: str
    column: str
    form: str
    upper: bool


@dataclass(frozen=True)
class Following:
    """Which bounds move on.

    Attributes:
        dated: how columns tell days, by their names.
        moving: the bounds that move on.
        newest: when the newest query was asked, in days since 1970.
        parts: partition columns that tell days together.
    """

    dated: Mapping[str, Dated] = field(default_factory=dict)
    moving: frozenset[_Bound] = frozenset()
    newest: float = 0.0
    parts: DateParts | None = None

    @property
    def data(self) -> float:
        """Day of the newest value of the columns on which bounds move on, of the least ahead; inf of none."""
        return min((self.dated[bound.column].newest for bound in self.moving), default=math.inf)

    def boxes(self, boxes: Boxes, template: str, asked: int, days: Sequence[int]) -> tuple[Boxes, ...]:
        """What a query would ask for on some days; the same boxes where none of its bounds moves.

        Args:
            asked: day on which it asked for ``boxes``, since 1970.
            days: after that of the newest query.
        """
        there = boxes if self.parts is None else self.parts.together(boxes, asked)
        sides: dict[str, tuple[bool, bool]] = {}
        for column, intervals in _intervals(there, self.dated).items():
            form = _form(intervals)
            lower, upper = (_Bound(template, column, form, side) in self.moving for side in (False, True))
            sides[column] = (lower and upper,) * 2 if form == VALUE else (lower, upper)
        if not any(map(any, sides.values())):
            return (boxes,) * len(days)
        newest = math.floor(self.newest)
        moved = (tuple(tuple(self._later(i, sides, asked, newest + day) for i in box) for box in there) for day in days)
        return tuple(moved if self.parts is None else map(self.parts.apart, moved))

    def _later(self, item: Range, sides: Mapping[str, tuple[bool, bool]], asked: int, until: int) -> Range:
        if not any(moves := sides.get(item.column, (False, False))):
            return item
        way = self.dated[item.column]
        return replace(item, intervals=tuple(_later(each, way, moves, asked, until) for each in item.intervals))


def following(
    queries: Sequence[LoggedQuery],
    boxes: Sequence[Boxes],
    schema: TableSchema,
    largest: Mapping[str, Sequence[Value]],
    parts: DateParts | None = None,
) -> Following:
    """Which bounds of a table's queries move on with time.

    A bound stays or moves on as explains it better: the logarithm of the odds is half the different queries times that
    of the variances, of the days that it tells and of how far these lie behind the days on which it was asked.

    Args:
        boxes: the ranges that each query asks for.
        largest: the largest values of each column, as far as they are known, see `dated`.
        parts: partition columns that tell days together, see `date_parts`.
    """
    timed = [
        (query.timestamp / DAY, query.template, parts.together(box, query.timestamp // DAY) if parts else box)
        for query, box in zip(queries, boxes, strict=True)
        if query.timestamp is not None
    ]
    if not timed:
        return Following()
    last = max(moment for moment, _, _ in timed)
    known = {**largest, **parts.largest} if parts else largest
    ways = {
        column.name: way
        for column in (*schema.columns, *(parts.columns if parts else ()))
        if (way := dated(ValueType.parse(column.type), known.get(column.name, ()), last)) is not None
    }
    seen: dict[_Bound, Seen] = {}
    for moment, template, box in timed:
        for column, intervals in _intervals(box, ways).items():
            for upper in (False, True):
                if (day := _outermost(intervals, ways[column], upper)) is not None:
                    bound = _Bound(template, column, _form(intervals), upper)
                    seen.setdefault(bound, set()).add((moment, day, box))
    together: dict[_Bound, Seen] = {}
    for bound, asked in seen.items():
        if _few(asked):
            together.setdefault(replace(bound, template=""), set()).update(asked)
    odds = {bound: _odds(asked, ways[bound.column].grain) for bound, asked in together.items()}

    def moves(bound: _Bound, asked: Seen) -> bool:
        grain = ways[bound.column].grain
        told = odds[replace(bound, template="")] if _few(asked) else _odds(asked, grain)
        lag = float(np.median([abs(moment - day) for moment, day, _ in asked]))
        return told + (DOUBT if lag <= RECENT + grain else -DOUBT) > 0

    return Following(ways, frozenset(bound for bound, asked in seen.items() if moves(bound, asked)), last, parts)


def _intervals(boxes: Boxes, ways: Mapping[str, Dated]) -> dict[str, list[Interval]]:
    """What is asked of each column that tells days."""
    found: dict[str, list[Interval]] = {}
    for item in (item for box in boxes for item in box if item.column in ways):
        found.setdefault(item.column, []).extend(item.intervals)
    return found


def _form(intervals: Sequence[Interval]) -> str:
    """What kind of condition some intervals are."""
    if all(each.low is not None and each.low == each.high for each in intervals):
        return VALUE
    closed = all(each.low is not None and each.high is not None for each in intervals)
    return RANGE if closed else OPEN


def _outermost(intervals: Sequence[Interval], way: Dated, upper: bool) -> float | None:
    """The day that the outermost bound on one side tells; None where it is open, or some bound tells none."""
    values = [each.high if upper else each.low for each in intervals]
    if upper:  # of a prefix the end is its successor, and tells no day
        values = [each.low if _prefixed(each) else each.high for each in intervals]
    days = [None if value is None else way.day(value) for value in values]
    told = [day for day in days if day is not None]
    if not told or len(told) < len(days):
        return None
    return max(told) if upper else min(told)


def _few(asked: Seen) -> bool:
    """Whether a bound was asked for on too few days to tell by itself."""
    return len({math.floor(moment) for moment, _, _ in asked}) < DAYS


def _odds(seen: Seen, grain: float) -> float:
    """Logarithm of the odds that a bound moves on with the days on which it is asked."""
    times = [(moment, day) for moment, day, _ in seen]
    if grain or not any(day % 1 for _, day in times):  # whole days
        grain = max(grain, 1.0)
        times = list({(math.floor(moment), box): (math.floor(moment), day) for moment, day, box in seen}.values())
    asked, told = np.array(times, dtype=np.float64).T
    least = (grain or 0.2) / 4
    lag: npt.NDArray[np.float64] = asked - told
    return len(told) / 2 * math.log((float(np.var(told)) + least**2) / (float(np.var(lag)) + least**2))


def _later(interval: Interval, way: Dated, moves: tuple[bool, bool], since: int, until: int) -> Interval:
    """The interval with the bounds that move on as they are on another day."""
    low, high = interval.low, interval.high
    if _prefixed(interval) and low is not None:
        told = all(moves) and way.day(low) is not None
        return starting_with(way.moved(low, since, until))[0] if told else interval
    there = [bound for bound, moved in ((low, moves[0]), (high, moves[1])) if moved and bound is not None]
    if any(way.day(bound) is None for bound in there):
        return interval
    low = way.moved(low, since, until) if moves[0] and low is not None else low
    high = way.moved(high, since, until) if moves[1] and high is not None else high
    return replace(interval, low=low, high=high)


def _prefixed(interval: Interval) -> bool:
    """Whether it holds the texts that start with its lower bound."""
    return interval.high_open and interval.low is not None and starting_with(interval.low) == (interval,)
