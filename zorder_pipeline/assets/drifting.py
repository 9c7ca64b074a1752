"""Whether a table's queries still filter by what its layout was learned for, read from the state without Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from dagster import DagsterInstance

from zorder_pipeline.errors import LogError
from zorder_pipeline.model.predicate import comparisons, predicate_from_json
from zorder_pipeline.query_log.insight import alike

from .common import Shelf
from .layout import NEWEST_QUERY

__all__ = ["Drift", "drifted"]

FEWEST = 20
"""Newer queries that say something."""


@dataclass(frozen=True)
class Drift:
    """How far the queries have moved.

    Attributes:
        distance: 0 when the newer queries filter by the same columns as often, 1 when by entirely different ones.
        newer: queries newer than those that the layout was learned from.
        learned_until: time of the newest query that it was learned from, seconds since 1970.
    """

    distance: float
    newer: int
    learned_until: int

    @property
    def sentence(self) -> str:
        """The same in words."""
        return f"{self.newer:,} newer queries filter by other columns than before: {self.distance:.0%} moved"


def drifted(instance: DagsterInstance, shelf: Shelf) -> Drift | None:
    """Compare the stored queries before and after the newest that ``bit_allocation`` used.

    Returns:
        None when nothing was learned yet, or too few queries came since.

    Raises:
        LogError: the state's query log cannot be read by delta-rs.
    """
    event = instance.get_latest_materialization_event(shelf.key("bit_allocation"))
    noted = event.asset_materialization.metadata.get(NEWEST_QUERY) if event and event.asset_materialization else None
    if noted is None or not isinstance(noted.value, float):
        return None
    earlier: list[set[str]] = []
    later: list[set[str]] = []
    for row in _stored(shelf):
        columns = {item.column for item in comparisons(predicate_from_json(json.loads(row["predicate"])))}
        if row["query_timestamp"] is not None:
            (later if row["query_timestamp"] / 1e6 > noted.value else earlier).append(columns)
    if len(later) < FEWEST or not earlier:
        return None
    return Drift(1 - alike(earlier, later), len(later), int(noted.value))


def _stored(shelf: Shelf) -> list[dict[str, Any]]:
    import pyarrow.dataset as ds
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    path = f"{shelf.config.state.rstrip('/')}/query_log"
    try:
        rows = DeltaTable(path).to_pyarrow_dataset()
        wanted = ds.field("table_name") == shelf.table.name
        found: list[dict[str, Any]] = rows.to_table(["predicate", "query_timestamp"], filter=wanted).to_pylist()
    except (DeltaError, OSError) as error:
        raise LogError(f"delta-rs cannot read {path} ({(str(error).splitlines() or ['unknown'])[0]})") from error
    return found
