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

from zorder_pipeline.model.ranges import Boxes, Interval, Range
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.values import DAY, Value, ValueType
from zorder_pipeline.model.workload import LoggedQuery

from .dated import Dated, dated

__all__ = ["Following", "following"]

RECENT = 31.0
"""Days behind its query up to which a bound, in doubt, is one that moves on."""
DOUBT = 1.0
"""What that counts for: as logarithm of the odds."""
DAYS = 2
"""On which a template must have been asked for its bounds to tell; those of the others tell together."""

Bound = tuple[str, str, bool]
"""Template, column, and whether it is an upper bound."""
Seen = list[tuple[float, float]]
"""Day on which it was asked, and day that the bound told, of each query."""


@dataclass(frozen=True)
class Following:
    """Which bounds move on.

    Attributes:
        dated: how columns tell days, by their names.
        moving: the bounds that move on.
        newest: when the newest query was asked, in days since 1970.
    """

    dated: Mapping[str, Dated] = field(default_factory=dict)
    moving: frozenset[Bound] = frozenset()
    newest: float = 0.0

    def boxes(self, boxes: Boxes, template: str, asked: int, ahead: int) -> Boxes:
        """What a query would ask for some days after the newest one; the same boxes where none of its bounds moves.

        Args:
            asked: day on which it asked for ``boxes``, since 1970.
            ahead: days after that of the newest query.
        """
        until = math.floor(self.newest) + ahead

        def later(item: Range) -> Range:
            way = self.dated.get(item.column)
            sides = tuple((template, item.column, upper) in self.moving for upper in (False, True))
            if way is None or not any(sides):
                return item
            moved = tuple(_later(each, way, sides, asked, until) for each in item.intervals)
            return item if moved == item.intervals else replace(item, intervals=moved)

        return tuple(tuple(map(later, box)) for box in boxes)


def following(
    queries: Sequence[LoggedQuery], boxes: Sequence[Boxes], schema: TableSchema, newest: Mapping[str, Value]
) -> Following:
    """Which bounds of a table's queries move on with time.

    A bound stays or moves on as explains it better: the logarithm of the odds is half the different pairs of days times
    that of the variances, of the days that it tells and of how far these lie behind the days on which it was asked.

    Args:
        boxes: the ranges that each query asks for.
        newest: the largest value of each column that is known of the table.
    """
    timed = [(query, box) for query, box in zip(queries, boxes, strict=True) if query.timestamp is not None]
    if not timed:
        return Following()
    last = max(query.timestamp or 0 for query, _ in timed) / DAY
    ways = {
        column.name: way
        for column in schema.columns
        if (way := dated(ValueType.parse(column.type), newest.get(column.name), last)) is not None
    }
    seen: dict[Bound, Seen] = {}
    for query, box in timed:
        for column, upper, day in _bounds(box, ways):
            seen.setdefault((query.template, column, upper), []).append(((query.timestamp or 0) / DAY, day))
    few = {bound for bound, days in seen.items() if len({math.floor(asked) for asked, _ in days}) < DAYS}
    together: dict[tuple[str, bool], Seen] = {}
    for bound in few:
        together.setdefault(bound[1:], []).extend(seen[bound])
    moving = {
        bound
        for bound, days in seen.items()
        if _moves(together[bound[1:]] if bound in few else days, ways[bound[1]].grain)
    }
    return Following(ways, frozenset(moving), last)


def _bounds(boxes: Boxes, ways: Mapping[str, Dated]) -> list[tuple[str, bool, float]]:
    """The outermost bounds of each dated column: column, whether it is the upper one, and the day that it tells."""
    intervals: dict[str, list[Interval]] = {}
    for item in (item for box in boxes for item in box if item.column in ways):
        intervals.setdefault(item.column, []).extend(item.intervals)
    found = []
    for column, some in intervals.items():
        for upper in (False, True):
            values = [each.high if upper else each.low for each in some]
            days = [None if value is None else ways[column].day(value) for value in values]
            told = [day for day in days if day is not None]
            if told and len(told) == len(days):
                found.append((column, upper, max(told) if upper else min(told)))
    return found


def _moves(days: Seen, grain: float) -> bool:
    """Whether a bound moves on with the days on which it is asked."""
    asked, told = np.array(sorted(set(days)), dtype=np.float64).T
    if grain or not np.any(told % 1):  # whole days
        grain, (asked, told) = max(grain, 1.0), np.unique(np.stack([np.floor(asked), told]), axis=1)
    least = (grain or 0.2) / 4
    lag: npt.NDArray[np.float64] = asked - told
    odds = len(told) / 2 * math.log((float(np.var(told)) + least**2) / (float(np.var(lag)) + least**2))
    return odds + (DOUBT if float(np.median(np.abs(lag))) <= RECENT + grain else -DOUBT) > 0


def _later(interval: Interval, way: Dated, sides: tuple[bool, ...], since: int, until: int) -> Interval:
    """The interval with the bounds that move on as they are on another day."""
    bounds = (interval.low, interval.high)
    if any(moves and bound is not None and way.day(bound) is None for moves, bound in zip(sides, bounds, strict=True)):
        return interval  # of a text such as a prefix, one end of which is none
    low, high = (
        way.moved(bound, since, until) if moves and bound is not None else bound
        for moves, bound in zip(sides, bounds, strict=True)
    )
    return replace(interval, low=low, high=high)
