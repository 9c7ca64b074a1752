"""Bounds in Delta's log that may lie on the wrong side of the values, made wide enough to hold them.

Delta itself believes them: what it leaves out by them a plain read does not return either. Where more is asked of them
than Delta asks, such as each value of an IN, they have to be sure.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from zorder_pipeline.model.values import ValueType
from zorder_pipeline.model.zone_map import ColumnZones, Mask

__all__ = ["loosened"]

DOUBLE_DIGITS = 15
"""Digits up to which every decimal is told apart from all others by its nearest double."""
SHARE = 1 << 49
"""A value divided by it is more than three roundings to doubles change the value."""
STANDARD = 65_750_400_000_000
"""1972-02-01 in microseconds: the last zone whose offset from UTC had seconds has had none since that January."""
MINUTE = 60_000_000
_LEAST, _MOST = np.iinfo(np.int64).min + MINUTE, np.iinfo(np.int64).max - MINUTE


def loosened(zones: ColumnZones, of_type: str, foreign: Mask | None) -> ColumnZones:
    """The zones of a column with bounds between which all values lie; the same object where nothing is doubted.

    Args:
        of_type: Spark type of the column.
        foreign: files of writers that may tell decimals as doubles, as delta-rs does, shape (n,); None without any.
    """
    kind = ValueType.parse(of_type)
    if zones.exact:
        return zones
    if kind.family == "decimal" and kind.digits > DOUBLE_DIGITS and foreign is not None:
        low, high = zones.low.copy(), zones.high.copy()
        low[foreign] -= np.abs(low[foreign]) // SHARE
        high[foreign] += np.abs(high[foreign]) // SHARE
        return replace(zones, low=low, high=high)
    early = zones.known & (zones.low < STANDARD + MINUTE) if kind.family == "timestamp" else None
    if early is not None and early.any():  # Delta 3 told offsets without their seconds
        low = np.where(early, np.maximum(zones.low, _LEAST) - MINUTE, zones.low)
        early = zones.high < STANDARD + MINUTE
        return replace(zones, low=low, high=np.where(early, np.minimum(zones.high, _MOST) + MINUTE, zones.high))
    return zones
