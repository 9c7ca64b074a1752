"""What has the later of two entries of one table refused, wherever a table is laid out.

All tables are opened where logs are read, which is where it is seen; a step opens its own table, and that one besides
which was told to be the same: it may have been mended since.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dagster import AssetExecutionContext, JsonMetadataValue, MetadataValue

from zorder_pipeline.errors import TableError

from .common import QUERY_LOG, Shelf, opened

if TYPE_CHECKING:
    from zorder_pipeline.relayout.snapshot import TableSnapshot

__all__ = ["noted_repeated", "refuse_repeated"]

REPEATED = "tables that stand twice in tables.yaml"
"""Under this name the metadata of `query_log` tells them: the earlier entry by the later one."""


def noted_repeated(found: Mapping[str, str]) -> dict[str, MetadataValue[Any]]:
    """What `query_log` notes of what `zorder_pipeline.pipeline.repeated` found; nothing where that is nothing."""
    return {REPEATED: MetadataValue.json(dict(found))} if found else {}


def refuse_repeated(context: AssetExecutionContext, shelf: Shelf, snapshot: TableSnapshot) -> None:
    """Refuse to lay out a table that an earlier entry is, too.

    Args:
        snapshot: the table as it is now.

    Raises:
        TableError: that is so.
    """
    from zorder_pipeline.pipeline.repeated import repeated, why_repeated

    event = context.instance.get_latest_materialization_event(QUERY_LOG)
    noted = event.asset_materialization.metadata.get(REPEATED) if event and event.asset_materialization else None
    pairs = noted.value if isinstance(noted, JsonMetadataValue) else None
    first = pairs.get(shelf.table.name) if isinstance(pairs, Mapping) else None
    earlier = next((table for table in shelf.config.tables if table.name == first), None)
    if earlier is None:
        return
    try:
        other = opened(snapshot.spark, Shelf(shelf.config, earlier))
    except TableError:  # nobody lays that out now
        return
    if repeated({earlier.name: (other, ()), shelf.table.name: (snapshot, ())}):
        raise TableError(why_repeated(snapshot, earlier.name, other))
