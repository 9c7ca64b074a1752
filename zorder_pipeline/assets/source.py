"""The data table as it is upstream: observed from its Delta log, without Spark."""

from dagster import (
    AssetsDefinition,
    AssetSpec,
    DataVersion,
    Failure,
    ObserveResult,
    SourceAsset,
    observable_source_asset,
)

from zorder_pipeline.config import TableConfig

from .common import Shelf

__all__ = ["data_table"]

DESCRIPTION = (
    "**The table as others write it.** Observing it reads the newest version from its Delta log, so that Dagster knows "
    "when the layout is older than the data."
)


def data_table(shelf: Shelf) -> AssetsDefinition | SourceAsset | AssetSpec:
    """The upstream asset; a table known by its catalog name only is shown but cannot be observed without Spark."""
    table, key = shelf.table, shelf.key("data")
    name = {"dagster/table_name": table.catalog or table.name}
    if table.location is None:
        return AssetSpec(key, group_name=table.name, kinds={"deltalake"}, description=DESCRIPTION, metadata=name)
    uri = {"dagster/uri": table.location if ":" in table.location else f"file://{table.location}"}

    @observable_source_asset(
        key=key,
        group_name=table.name,
        description=DESCRIPTION,
        metadata=name | uri,
        tags={"dagster/kind/deltalake": ""},
    )
    def _data() -> ObserveResult:
        return observe(table)

    return _data


def observe(table: TableConfig) -> ObserveResult:
    """Newest version of the table, read by delta-rs.

    Raises:
        Failure: delta-rs cannot read it; the nightly run, which uses Spark, is not affected.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        found = DeltaTable(str(table.location), without_files=True)
    except (DeltaError, OSError) as error:
        reason = (str(error).splitlines() or ["unknown"])[0]
        raise Failure(
            f"{table.name}: delta-rs cannot read {table.location} ({reason}); the nightly run checks it with Spark",
            allow_retries=False,
        ) from error
    version = found.version()
    return ObserveResult(data_version=DataVersion(str(version)), metadata={"Delta version": version})
