"""Time zones by names that logs and users write."""

from __future__ import annotations

from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["zone_of"]


def zone_of(name: str) -> ZoneInfo:
    """The time zone called ``name``.

    Raises:
        ZoneInfoNotFoundError: there is none, also where Python fails otherwise, as for a folder of zones.

    >>> zone_of("Asia/Tokyo").key
    'Asia/Tokyo'
    """
    found = _found(name)
    if found is None:
        raise ZoneInfoNotFoundError(f"no time zone is called {name[:100]!r}")
    return found


@lru_cache(maxsize=1_000)
def _found(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (LookupError, OSError, ValueError):
        return None
