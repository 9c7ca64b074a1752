"""Time zones by names that logs and users write: regions, and offsets as Java's ``ZoneId`` takes them."""

from __future__ import annotations

import re
from datetime import timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["offset_of", "zone_of"]

_OFFSET = re.compile(
    r"Z|UTC|GMT|UT|(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<digits>\d{1,2}(?::\d\d){0,2}|\d{4}|\d{6})", re.ASCII
)
_WIDEST = timedelta(hours=18)


@lru_cache(maxsize=1_000)
def offset_of(name: str) -> timedelta | None:
    """The offset from UTC that a name tells; None of a region, and of what is none.

    >>> str(offset_of("GMT+2")), str(offset_of("+05:30")), offset_of("Europe/Berlin")
    ('2:00:00', '5:30:00', None)
    """
    found = _OFFSET.fullmatch(name)
    if found is None:
        return None
    digits = found["digits"] or "0"
    parts = digits.split(":") if ":" in digits else [digits[i : i + 2] for i in range(0, len(digits), 2)]
    hours, minutes, seconds = (*map(int, parts), 0, 0)[:3]
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if max(minutes, seconds) >= 60 or offset > _WIDEST:
        return None
    return -offset if found["sign"] == "-" else offset


def zone_of(name: str) -> tzinfo:
    """The time zone called ``name``.

    Raises:
        ZoneInfoNotFoundError: there is none, also where Python fails otherwise, as for a folder of zones.

    >>> str(zone_of("Asia/Tokyo")), str(zone_of("UTC+01:00"))
    ('Asia/Tokyo', 'UTC+01:00')
    """
    found = _found(name)
    if found is None:
        raise ZoneInfoNotFoundError(f"no time zone is called {name[:100]!r}")
    return found


@lru_cache(maxsize=1_000)
def _found(name: str) -> tzinfo | None:
    if (offset := offset_of(name)) is not None:
        return timezone(offset)
    try:
        return ZoneInfo(name)
    except (LookupError, OSError, ValueError):
        return None
