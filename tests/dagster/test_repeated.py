"""One table under two entries of a configuration: the later one is laid out by nothing, and the others go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dagster import DagsterInstance, Failure, build_asset_context

from zorder_pipeline import pipeline
from zorder_pipeline.assets import relayout
from zorder_pipeline.assets.common import DeltaSparkResource, Shelf
from zorder_pipeline.assets.partitions import clustered_partitions
from zorder_pipeline.assets.records import AnalysedTable, Judged
from zorder_pipeline.assets.relayout import clustered_table
from zorder_pipeline.assets.run import run_tables
from zorder_pipeline.config import PipelineConfig, TableConfig
from zorder_pipeline.errors import TableError
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.workload import QueryLog
from zorder_pipeline.pipeline import logs
from zorder_pipeline.query_log.intake.stored import StoredLog
from zorder_pipeline.relayout import snapshot

pytestmark = pytest.mark.dagster

FIRST, AGAIN = TableConfig(name="first", location="/lake/orders"), TableConfig(name="again", catalog="shop.orders")
OTHER = TableConfig(name="other", location="/lake/other")
PLAN = Plan("/lake/orders", "id", "hash", 0, None, "learned", 100)


@dataclass
class Lake:
    """Where tables lie, by what opens them; one that lies nowhere cannot be opened."""

    config: PipelineConfig
    instance: DagsterInstance
    places: dict[str, str] = field(default_factory=dict)

    def opened(self, _: object, table: str, **__: object) -> Any:
        if table not in self.places:
            raise TableError(f"{table} is no Delta table")
        place = self.places[table]
        schema = TableSchema((Column("a", "int"),))
        return SimpleNamespace(
            spark=None, location=place, table_id=place, version=1, asked_schema=schema, partition_columns=()
        )

    def backfill(self, table: TableConfig) -> None:
        asset = clustered_partitions(Shelf(self.config, table))
        self.instance.add_dynamic_partitions(f"{table.name}_partitions", ["ds=1"])
        with build_asset_context(instance=self.instance, partition_key="ds=1") as context:
            list(asset(context, SimpleNamespace(session=None), PLAN))

    def relayout(self, table: TableConfig) -> None:
        judged: Any = SimpleNamespace(decision=SimpleNamespace(approved=True))
        nothing: Any = None
        asset, analysed = clustered_table(Shelf(self.config, table)), AnalysedTable(9, (), nothing, nothing, ())
        with build_asset_context(instance=self.instance) as context:
            list(asset(context, SimpleNamespace(session=None), None, Judged(judged), analysed))


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    nothing = QueryLog((), 3, 3)
    with DagsterInstance.ephemeral() as instance:
        found = Lake(PipelineConfig(tables=(FIRST, AGAIN, OTHER), state=str(tmp_path)), instance)
        found.places = {
            "/lake/orders": "file:/lake/orders",
            "shop.orders": "file:/lake/orders",
            "/lake/other": "file:/o",
        }

        def carried_out(*_: object, **__: object) -> None:
            raise TableError("it was to be laid out")

        for where, name, by in (
            (DeltaSparkResource, "session", None),
            (logs, "open_table", found.opened),
            (snapshot, "open_table", found.opened),
            (pipeline, "stored_log", lambda *_: nothing),
            (pipeline, "ingest_into", lambda *_: StoredLog(nothing)),
            (pipeline, "tidy_state", lambda *_: {}),
            (pipeline, "rows_by_partition", lambda *_: {}),
            (pipeline, "apply_partitions", carried_out),
            (relayout, "_tonight", lambda *given: given[-1]),
            (relayout, "promises", lambda *_, **__: {}),
            (relayout, "_carried_out", carried_out),
        ):
            monkeypatch.setattr(where, name, by)
        yield found


def test_the_later_of_two_entries_of_a_table_fails_with_the_way_out_and_costs_no_other(lake: Lake) -> None:
    said: list[str] = []
    first, again, other = run_tables(lake.config, instance=lake.instance, progress=said.append)
    assert (first.decision, again.decision, other.decision) == ("not_asked", "failed", "not_asked")
    sentence = "again: it is the same table as first, in file:/lake/orders, and is not laid out a second time; keep one"
    assert again.reasons[0].startswith(sentence)
    assert sum(line.startswith(sentence) for line in said) == 1, "where logs are read"


def test_no_backfill_and_no_relayout_by_hand_lays_out_the_later_one(lake: Lake) -> None:
    """They go by plans of nights before it stood there twice."""
    run_tables(lake.config, instance=lake.instance)
    for lay_out in (lake.backfill, lake.relayout):
        with pytest.raises(Failure, match="again: it is the same table as first"):
            lay_out(AGAIN)
        with pytest.raises(Failure, match="first: it was to be laid out"):
            lay_out(FIRST)


@pytest.mark.parametrize("mended", ["taken out", "moved", "away"])
def test_what_was_mended_since_the_log_was_read_counts(lake: Lake, mended: str) -> None:
    run_tables(lake.config, instance=lake.instance)
    if mended == "taken out":
        lake.config = lake.config.model_copy(update={"tables": (AGAIN, OTHER)})
    elif mended == "moved":
        lake.places["shop.orders"] = "file:/lake/of_its_own"
    else:
        del lake.places["/lake/orders"]
    with pytest.raises(Failure, match="again: it was to be laid out"):
        lake.backfill(AGAIN)
