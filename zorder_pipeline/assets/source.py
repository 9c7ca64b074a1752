"""The data table as it is upstream: observed from its Delta log, without Spark."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dagster import (
    AssetKey,
    AssetObservation,
    AssetsDefinition,
    AssetSpec,
    DataVersion,
    Failure,
    ObserveResult,
    SourceAsset,
    observable_source_asset,
)

from zorder_pipeline.config import PipelineConfig, TableConfig
from zorder_pipeline.errors import TableError
from zorder_pipeline.model.places import uri_of

from .common import Shelf
from .upstream import Upstream, look

__all__ = ["data_table", "observations", "observed"]

DESCRIPTION = (
    "**The table as others write it.** Observing it reads the newest version from its Delta log, so that Dagster knows "
    "when the layout is older than the data. Our own relayouts change no data and make no new data version."
)


def data_table(shelf: Shelf) -> AssetsDefinition | SourceAsset | AssetSpec:
    """The upstream asset; a table known by its catalog name only is shown but cannot be observed without Spark."""
    table, key = shelf.table, shelf.key("data")
    name = {"dagster/table_name": table.catalog or table.name}
    if table.location is None:
        return AssetSpec(
            key,
            group_name=table.name,
            kinds={"deltalake"},
            description=DESCRIPTION,
            metadata=name,
            owners=list(table.owners),
            tags=shelf.tags("data"),
        )
    uri = {"dagster/uri": uri_of(table.location)}

    @observable_source_asset(
        key=key,
        group_name=table.name,
        description=DESCRIPTION,
        metadata=name | uri,
        tags=shelf.tags("data") | {"dagster/kind/deltalake": ""},
    )
    def _data() -> ObserveResult:
        try:
            found = look(table)
        except TableError as error:
            raise Failure(f"{table.name}: {error}", allow_retries=False) from error
        return ObserveResult(data_version=DataVersion(found.state), metadata=_facts(found))

    return _data


def observed(key: AssetKey, found: Upstream) -> AssetObservation:
    """The same as an event that another asset or a sensor logs."""
    tags: Mapping[str, str] = {"dagster/data_version": found.state}
    return AssetObservation(key, metadata=_facts(found), tags=tags)


def observations(config: PipelineConfig, tables: Sequence[TableConfig]) -> Iterator[AssetObservation]:
    """An observation of each of some tables that delta-rs can read."""
    for table in tables:
        try:
            yield observed(Shelf(config, table).key("data"), look(table))
        except TableError:
            continue


def _facts(found: Upstream) -> dict[str, Any]:
    return {"Delta version": found.version, "files": len(found.sizes), "partitions": len(found.partitions)}
