"""When a statement ran, which is what the moments that it tells by functions are counted from."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from zorder_pipeline.model.zones import zone_of

__all__ = ["IN_SECONDS", "SPARKS", "Clock"]

SPARKS = ("spark", "databricks", "hive")
"""Dialects in which days of the week and seconds mean what they do in Spark."""

IN_SECONDS = ("spark", "databricks")
"""Dialects in which a number that is cast to a time counts seconds: Hive takes it for milliseconds."""


@dataclass
class Clock:
    """When a statement ran.

    Attributes:
        timestamp: microseconds since 1970 UTC, or None when the log has no time.
        zone: its session's time zone.
        dialect: of the statement: days of the week are numbered differently.
        missed: set when relative time was asked for and could not be resolved.
    """

    timestamp: int | None = None
    zone: str = "UTC"
    dialect: str = "spark"
    missed: bool = False

    def now(self, zone: str | None = None) -> dt.datetime | None:
        """Local time of the statement, in the session's zone or another one."""
        if self.timestamp is None:
            self.missed = True
            return None
        return dt.datetime.fromtimestamp(self.timestamp / 1e6, zone_of(zone or self.zone)).replace(tzinfo=None)
