"""Keys of a table's partitions in Dagster, which a sensor and each night keep equal to those of the Delta table."""

from collections.abc import Sequence

from dagster import AssetKey, DagsterInstance, DynamicPartitionsDefinition
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus

from .unfinished import Unfinished

__all__ = ["OF_PARTITIONS", "PARTITIONS", "keep_in_step", "out_of_step", "partitions_of"]

PARTITIONS = "clustered_partitions"
OF_PARTITIONS = ("dagster/partition", "dagster/asset_partition_range_start", "dagster/backfill")
"""Tags of runs that are about some partitions."""
UNDER_WAY = [BulkActionStatus.REQUESTED, BulkActionStatus.CANCELING, BulkActionStatus.FAILING]


def partitions_of(table: str) -> DynamicPartitionsDefinition:
    """The partitions of a table; a sensor keeps them equal to those of the Delta table."""
    return DynamicPartitionsDefinition(name=f"{table}_partitions")


def out_of_step(instance: DagsterInstance, table: str, keys: Sequence[str]) -> tuple[list[str], list[str]]:
    """Which of a Delta table's ``keys`` Dagster does not know yet, and which it should know no more.

    None of these while partitions of the table are being backfilled: Dagster fails a backfill as a whole, and cancels
    its runs, once one of its partitions is gone, and a run of a range once its first or last one is.
    """
    known = set(instance.get_dynamic_partitions(str(partitions_of(table).name)))
    new, gone = [key for key in keys if key not in known], sorted(known - set(keys))
    return new, gone if gone and not _under_way(instance, AssetKey([table, PARTITIONS])) else []


def keep_in_step(instance: DagsterInstance, table: str, keys: Sequence[str]) -> None:
    """Make Dagster's partitions of a table those of the Delta table."""
    name = str(partitions_of(table).name)
    new, gone = out_of_step(instance, table, keys)
    instance.add_dynamic_partitions(name, new)
    for key in gone:
        instance.delete_dynamic_partition(name, key)


def _under_way(instance: DagsterInstance, asset: AssetKey) -> bool:
    """Whether a backfill of some of the asset's partitions, or a run of them, has not ended."""
    backfills = instance.get_backfills(BulkActionsFilter(statuses=UNDER_WAY))
    if any(asset in (backfill.asset_selection or ()) for backfill in backfills):
        return True
    return any(any(tag in run.tags for tag in OF_PARTITIONS) for run in Unfinished(instance).making(asset))
