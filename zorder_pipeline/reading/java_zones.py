"""Where days begin by the rules of the session's JVM, by which Spark evaluates, and not by Python's.

Each has its own copy of the time zones' history, of another age and with other choices before 1970: of some 600 regions
they tell some 100 otherwise.
"""

from __future__ import annotations

import datetime as dt
from functools import cached_property
from typing import TYPE_CHECKING, Any

from zorder_pipeline.java import java_class, jvm, scala_object
from zorder_pipeline.model.zones import zone_of

from .session import zone_rules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JavaZone"]

_AROUND = 26 * 3600
"""Seconds around the beginning of a day within which clocks may be put so that instants change sides."""
_STEP = 900
_UTC = dt.UTC
MOST_KNOWN = 100_000
_known: dict[tuple[str, str, dt.date], bool] = {}
"""What was found of days, by the version of Java's rules and the zone's name."""


class JavaZone:
    """A time zone by the rules of a session's JVM.

    Args:
        name: as the session calls it.
    """

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.spark, self.name = spark, name

    @cached_property
    def formats_anew(self) -> bool:
        """Whether the session writes times as Spark 3 and later do, and not by the formatter before them."""
        return str(self.spark.conf.get("spark.sql.legacy.timeParserPolicy")).upper() != "LEGACY"

    def agrees(self, day: dt.date) -> bool:
        """Whether Python knows the same offsets around the beginning of a day, so that it begins at one instant.

        False where that cannot be told: of a zone, or a day, that one of both does not have.
        """
        key = zone_rules(jvm(self.spark)), self.name, day
        if key not in _known:
            if len(_known) >= MOST_KNOWN:
                _known.clear()
            _known[key] = self._compared(day)
        return _known[key]

    def _compared(self, day: dt.date) -> bool:
        from py4j.protocol import Py4JError

        try:
            zone = zone_of(self.name)
            if zone.utcoffset(None) is not None:  # one offset for ever
                return True
            begun = int(dt.datetime(day.year, day.month, day.day, tzinfo=zone).timestamp())
            offsets = self._offsets(begun)
            moments = {*range(begun - _AROUND, begun + _AROUND, _STEP)}
            moments |= {at + more for at, _ in offsets[1:] for more in (-1, 0)}
            return all(_offset(zone, moment) == _latest(offsets, moment) for moment in moments)
        except (Py4JError, LookupError, OverflowError, ValueError):
            return False

    @cached_property
    def _rules(self) -> Any:
        utils = scala_object(self.spark, "org.apache.spark.sql.catalyst.util.DateTimeUtils")
        return utils.getZoneId(self.name).getRules()

    @cached_property
    def _instants(self) -> Any:
        return java_class(self.spark, "java.time.Instant")

    def _offsets(self, begun: int) -> list[tuple[int, int]]:
        """From when on, in seconds since 1970, which offset in seconds holds around an instant, in this order."""
        found: list[tuple[int, int]] = []
        at = begun + _AROUND
        while (change := self._rules.previousTransition(self._instants.ofEpochSecond(at))) is not None:
            at = int(change.toEpochSecond())
            if at <= begun - _AROUND:
                break
            found.append((at, int(change.getOffsetAfter().getTotalSeconds())))
        first = begun - _AROUND
        base = self._rules.getOffset(self._instants.ofEpochSecond(first)).getTotalSeconds()
        return [(first, int(base)), *reversed(found)]


def _offset(zone: dt.tzinfo, moment: int) -> int:
    found = (dt.datetime(1970, 1, 1, tzinfo=_UTC) + dt.timedelta(seconds=moment)).astimezone(zone).utcoffset()
    return round(found.total_seconds()) if found is not None else 0


def _latest(offsets: list[tuple[int, int]], moment: int) -> int:
    return [offset for at, offset in offsets if at <= moment][-1]
