"""Columns of which expressions in Spark's plans tell days: dates and times, and counts since 1970 made times of."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from zorder_pipeline.java import class_name
from zorder_pipeline.model.counted import SECOND, Count
from zorder_pipeline.model.predicate import Literal, day_literal

from .java_zones import JavaZone
from .meanings import Tree

__all__ = ["DayColumn", "Find", "count", "day_column", "from_unixtime", "moment_column", "zone_of_tree"]

Find: TypeAlias = Callable[[Tree], tuple[str, str] | None]
"""Name and type of the table's column that an expression is."""
COUNTED = {"SecondsToTimestamp": SECOND, "MillisToTimestamp": 1_000, "MicrosToTimestamp": 1}
"""What makes times of counts, and the microseconds that these count in."""
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_WRITTEN = "yyyy-MM-dd HH:mm:ss"
_PARTS = {1_000: 1_000, 1_000_000: 1_000_000}


@dataclass(frozen=True)
class DayColumn:
    """A column whose values an expression tells by days.

    Attributes:
        name: of the column.
        zoned: whether the time zone tells its days.
        local: whether it has dates or local times of which the expression makes instants.
        dates: whether it has dates.
        counts: what it counts, if it does.
    """

    name: str
    zoned: bool
    local: bool = False
    dates: bool = False
    counts: Count | None = None

    def begun(self, day: dt.date, java: JavaZone) -> Literal | None:
        """Where a day begins among the column's values; None where the JVM may see that otherwise."""
        return self.unchecked(day) if not self.zoned or java.agrees(day) else None

    def unchecked(self, day: dt.date) -> Literal | None:
        """The same of a day by which nothing is compared, or that is known to be alike in the JVM."""
        return day_literal(day) if self.counts is None else self.counts.of_day(day)


def day_column(tree: Tree, find: Find, java: JavaZone) -> DayColumn | None:
    """The column whose days an expression of type DATE is."""
    if (own := find(tree)) is not None:
        return DayColumn(own[0], zoned=False) if own[1] == "date" else None
    if class_name(tree) != "Cast" or str(tree.dataType().catalogString()) != "date":
        return None
    inner = tree.child()
    own = find(inner)
    if own is not None and own[1] == "timestamp_ntz":
        return DayColumn(own[0], zoned=False)
    if own is not None and own[1] != "timestamp":
        return None
    if class_name(inner) == "FromUnixTime":  # a text, of which a date is made
        return _written_count(inner, find, java)
    if zone_of_tree(tree) != java.name:
        return None
    return DayColumn(own[0], zoned=True) if own is not None else _counted(inner, find, java)


def moment_column(tree: Tree, find: Find, java: JavaZone) -> DayColumn | None:
    """The column of which an expression of type TIMESTAMP is made, for what tells its days in the session's zone."""
    if (own := find(tree)) is not None:
        return DayColumn(own[0], zoned=True) if own[1] == "timestamp" else None
    if (found := _counted(tree, find, java)) is not None:
        return found
    if class_name(tree) != "Cast" or zone_of_tree(tree) != java.name:
        return None
    inner = tree.child()
    if class_name(inner) == "FromUnixTime":  # a text, of which a time of the same day is made
        return _written_count(inner, find, java)
    own = find(inner)
    if own is None or own[1] not in ("date", "timestamp_ntz"):
        return None
    return DayColumn(own[0], zoned=True, local=True, dates=own[1] == "date")


def _counted(tree: Tree, find: Find, java: JavaZone) -> DayColumn | None:
    own = count(tree, find, java)
    return None if own is None else DayColumn(own.name, zoned=True, counts=own)


def _written_count(tree: Tree, find: Find, java: JavaZone) -> DayColumn | None:
    """The count of which ``from_unixtime`` writes days and times."""
    form = tree.format()
    if zone_of_tree(tree) != java.name or class_name(form) != "Literal" or str(form.value()) != _WRITTEN:
        return None
    return from_unixtime(tree, find, java)


def from_unixtime(tree: Tree, find: Find, java: JavaZone) -> DayColumn | None:
    """The column that a FromUnixTime writes."""
    own = _parts(tree.sec(), find, SECOND, java)
    return None if own is None else DayColumn(own.name, zoned=True, counts=own)


def count(tree: Tree, find: Find, java: JavaZone) -> Count | None:
    """The column of whose counts an expression of type TIMESTAMP makes times."""
    kind = class_name(tree)
    if kind in COUNTED:
        return _parts(tree.child(), find, COUNTED[kind], java)
    if kind != "Cast" or str(tree.dataType().catalogString()) != "timestamp":
        return None
    return _parts(tree.child(), find, SECOND, java)


def _parts(tree: Tree, find: Find, span: int, java: JavaZone) -> Count | None:
    """The column itself, or under a division by a thousand or a million and casts that keep its values."""
    tree, cut = _uncast(tree), False
    if class_name(tree) in ("Divide", "IntegralDivide"):
        by = tree.right()
        parts = int(by.value()) if class_name(by) == "Literal" and by.value() in _PARTS else 0
        if not parts or span % parts:
            return None
        tree, span, cut = _uncast(tree.left()), span // parts, True
    own = find(tree)
    return Count(own[0], span, cut, java.name) if own is not None and own[1] in _WHOLE else None


def _uncast(tree: Tree) -> Tree:
    while class_name(tree) == "Cast" and str(tree.dataType().catalogString()) in ("bigint", "double"):
        tree = tree.child()
    return tree


def zone_of_tree(tree: Tree) -> str | None:
    """The time zone in which an expression is evaluated."""
    named = tree.timeZoneId()
    return str(named.get()) if named.isDefined() else None
