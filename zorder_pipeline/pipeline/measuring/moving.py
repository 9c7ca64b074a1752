"""Whether a table's queries still filter by what its layout was learned for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from zorder_pipeline.query_log.insight import alike
from zorder_pipeline.query_log.intake.without_spark import StoredQueries

__all__ = ["Moved", "moved"]

FEWEST = 20
"""Newer queries that say something."""
COMPARED = 100
"""Queries before them that they are compared with, at least, where there are so many.

Not with all: a layout that was learned after the move would be found wanting until the old queries are forgotten.
"""


@dataclass(frozen=True)
class Moved:
    """How far the queries have moved.

    Attributes:
        distance: 0 when the newer queries filter by the same columns as often, 1 when by entirely different ones.
        newer: queries newer than those that the layout was learned from.
    """

    distance: float
    newer: int

    @property
    def sentence(self) -> str:
        """The same in words."""
        return f"{self.newer:,} newer queries filter by other columns than before: {self.distance:.0%} moved"


def moved(
    queries: StoredQueries, table: str, learned_until: float, days: float, former: Mapping[str, str] | None = None
) -> Moved | None:
    """Compare the stored queries after the newest that a layout was learned from with as many before it.

    Args:
        queries: those of the state.
        learned_until: when that one was asked, seconds since 1970 UTC.
        days: how long stored queries count, see ``retention_days``.
        former: names that columns had before they were renamed, with the name of today.

    Returns:
        None when too few queries came since.

    Raises:
        LogError: the state's query log cannot be read by delta-rs.
    """
    asked = queries.moments(table, days)
    newer = int((asked / 1e6 > learned_until).sum())
    if newer < FEWEST or newer == len(asked):
        return None
    compared = min(len(asked), newer + max(COMPARED, newer))
    stored = queries.filtered_columns(table, int(asked[-compared]))[-compared:]
    called = {old.lower(): name for old, name in (former or {}).items()}
    columns = [{called.get(name.lower(), name) for name in names} for names in stored]
    return Moved(1 - alike(columns[:-newer], columns[-newer:]), newer)
