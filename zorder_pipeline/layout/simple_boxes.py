"""Boxes of lists as boxes of single intervals: as few as tell the same blocks apart, or fewer and wider ones.

Intervals are of positions in a sorted domain. A block of values from position ``low`` to ``high`` matches the interval
from ``first`` to ``last`` if ``high >= first and low <= last``. A value that the domain lacks is an interval that ends
before it begins: blocks with values on both sides of the place match it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, product

from zorder_pipeline.model.ranges import Box, Interval

__all__ = ["Ends", "joined", "simple_boxes", "widened"]

MAX_EXPANSION = 64
"""Boxes that one becomes at most."""
Ends = tuple[int, int]
"""First and last position of an interval."""
Part = tuple[str, bool, Ends]
"""A column, whether it is asked for nulls, and between which positions."""


def simple_boxes(box: Box, positions: Mapping[str, Callable[[Interval], Ends]]) -> Iterable[tuple[Part, ...]]:
    """The box as a union of boxes with one interval per range, at most `MAX_EXPANSION`: else intervals are wider.

    Args:
        positions: of an interval of each column that blocks are told apart by; the other ones restrict nothing.
    """
    asked: list[list[Part]] = []
    for item in box:
        if item.column in positions:
            ends = joined(map(positions[item.column], item.tested))
            asked.append([(item.column, False, each) for each in ends] + [(item.column, True, (1, 1))] * item.nulls)
    room = MAX_EXPANSION
    for place in sorted(range(len(asked)), key=lambda place: len(asked[place])):
        asked[place] = _fewer(asked[place], room)
        room //= max(1, len(asked[place]))
    return product(*asked)


def _fewer(parts: list[Part], most: int) -> list[Part]:
    """What one range asks in at most so many parts, one of them for nulls where there is one."""
    if len(parts) <= most:
        return parts
    name, nulls, _ = parts[-1]
    if nulls and most < 2:
        return [(name, True, (0, 1))]  # of any block
    ends = widened([each for _, of_nulls, each in parts if not of_nulls], most - nulls)
    return [(name, False, each) for each in ends] + parts[-1:] * nulls


def joined(intervals: Iterable[Ends]) -> list[Ends]:
    """Intervals that exactly the same blocks match, ascending at both ends: neighbours become one.

    >>> joined([(3, 3), (1, 1), (2, 2), (7, 9), (8, 7), (5, 4)])
    [(1, 3), (5, 4), (7, 9)]
    """
    result: list[Ends] = []
    for first, last in sorted(intervals):
        begins, ends = result[-1] if result else (first, first - 2)
        if result and (last <= ends or first == begins or first - 1 <= ends >= begins):
            result[-1] = (begins, max(last, ends))
        else:
            result.append((first, last))
    return result


def widened(intervals: Sequence[Ends], most: int) -> list[Ends]:
    """At most so many intervals around ``intervals``, which are as `joined` makes them: the largest gaps stay.

    >>> widened([(1, 3), (5, 5), (9, 9)], 2)
    [(1, 5), (9, 9)]
    """
    gaps = [after[0] - before[1] for before, after in pairwise(intervals)]
    kept = sorted(sorted(range(len(gaps)), key=lambda place: -gaps[place])[: most - 1])
    starts = [0, *(place + 1 for place in kept)]
    return [(intervals[a][0], intervals[b - 1][1]) for a, b in zip(starts, [*starts[1:], len(intervals)], strict=True)]
