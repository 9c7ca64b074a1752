"""When queries ran, and dates and local times, moved by intervals as Spark moves them."""

from __future__ import annotations

import calendar
import datetime as dt
import time

from .zones import zone_of

__all__ = ["DAY_SECONDS", "EVER", "FIRST", "MONTHS", "SPANS", "asked_at", "instant", "latest", "moved", "truncated"]

DAY_SECONDS = 86_400
FIRST = 86_400_000_000
"""1970-01-02: no query was asked before; exports write 0, in any zone, or the years 1, 1601 or 1900 for no time."""
EVER = 500_000
"""Days beyond any query or night: dates and times of more days ago have no number."""
SPANS = {"DAY": DAY_SECONDS, "WEEK": 7 * DAY_SECONDS, "HOUR": 3600, "MINUTE": 60, "SECOND": 1}
MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def latest() -> int:
    """The last moment, in microseconds since 1970 UTC, at which a logged query can have run: clocks differ by a day."""
    return round((time.time() + DAY_SECONDS) * 1e6)


def asked_at(timestamp: int) -> int | None:
    """``timestamp``, or None, an unknown time, where no query can have run then.

    A window of days is counted back from the newest query: one line from the future would leave all others out.

    >>> asked_at(1_705_312_800_000_000)
    1705312800000000
    >>> asked_at(253_402_300_799_000_000), asked_at(-62_135_596_800_000_000), asked_at(0)  # 9999-12-31, 0001-01-01
    (None, None, None)
    """
    return timestamp if FIRST <= timestamp <= latest() else None


def moved(start: dt.date, count: int, unit: str, zone: str) -> dt.date | None:
    """``start`` and ``count`` units; a local time of ``zone`` where there is a time of day.

    Days and longer units are added to the local time, shorter ones to the instant. None where the zone's offset changes
    in between, or is not told by the local time, so that these differ.

    Raises:
        ValueError, OverflowError, LookupError: there is no such day or zone.

    >>> moved(dt.datetime(2024, 3, 1), 5, "HOURS", "America/New_York")
    datetime.datetime(2024, 3, 1, 5, 0)
    >>> moved(dt.datetime(2024, 3, 10), 5, "HOURS", "America/New_York")
    """
    unit = unit.upper().removesuffix("S")
    found: dt.date
    if unit in MONTHS:
        month = start.year * 12 + start.month - 1 + count * MONTHS[unit]
        year, month = divmod(month, 12)
        day = min(start.day, calendar.monthrange(year, month + 1)[1])
        found = start.replace(year=year, month=month + 1, day=day)
    elif unit in SPANS:
        if not isinstance(start, dt.datetime) and SPANS[unit] < DAY_SECONDS:
            start = dt.datetime(start.year, start.month, start.day)
        found = start + dt.timedelta(seconds=count * SPANS[unit])
    else:
        return None
    if not isinstance(start, dt.datetime) or not isinstance(found, dt.datetime):
        return found
    before, after = _offset(start, zone), _offset(found, zone)
    steady = after is not None and (before == after or unit in MONTHS or SPANS[unit] >= DAY_SECONDS)
    return found if steady else None


def truncated(start: dt.date, unit: str) -> dt.date | None:
    """The beginning of the unit that a day or a local time lies in; None of a unit that is none. Weeks begin on Monday.

    >>> truncated(dt.date(2024, 6, 12), "QUARTER"), truncated(dt.datetime(2024, 6, 12, 10, 30), "WEEK")
    (datetime.date(2024, 4, 1), datetime.datetime(2024, 6, 10, 0, 0))
    """
    if unit in MONTHS:
        first = (start.month - 1) // MONTHS[unit] * MONTHS[unit] + 1
        start = start.replace(month=first, day=1)
    elif unit in ("WEEK", "DAY"):
        start -= dt.timedelta(days=start.weekday() if unit == "WEEK" else 0)
    elif unit not in SPANS:
        return None
    if not isinstance(start, dt.datetime):
        return start
    of_day = dt.timedelta(hours=start.hour, minutes=start.minute, seconds=start.second, microseconds=start.microsecond)
    return start - of_day % dt.timedelta(seconds=min(SPANS.get(unit, DAY_SECONDS), DAY_SECONDS))


def instant(local: dt.datetime, zone: str) -> int | None:
    """Microseconds since 1970 UTC of a local time; None of one that the zone has twice or not at all.

    >>> instant(dt.datetime(1970, 1, 2), "+01:00"), instant(dt.datetime(2024, 10, 27, 2, 30), "Europe/Berlin")
    (82800000000, None)
    """
    offset = _offset(local, zone)
    return None if offset is None else (local - offset - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)


def _offset(local: dt.datetime, zone: str) -> dt.timedelta | None:
    """Offset from UTC of a local time; None of one that the zone has twice or not at all."""
    here = zone_of(zone)
    first, second = (local.replace(tzinfo=here, fold=fold).utcoffset() for fold in (0, 1))
    return first if first == second else None
