"""Partitions that are asked for by name: which are there is known before anything is learned."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from dagster import AssetKey, AssetMaterialization, DagsterInstance, Failure
from deltalake import write_deltalake

from zorder_pipeline.assets import run
from zorder_pipeline.assets.common import Shelf
from zorder_pipeline.assets.partition_keys import keep_in_step
from zorder_pipeline.assets.partitions import _raise_failed, relayout_settings
from zorder_pipeline.assets.upstream import look, missing_partitions
from zorder_pipeline.config import PipelineConfig, TableConfig
from zorder_pipeline.errors import ConfigError, TableError
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.pipeline import PartitionOutcome

pytestmark = pytest.mark.dagster


@pytest.fixture
def orders(tmp_path: Path) -> TableConfig:
    days = pa.table({"ds": ["2025-01", "2025-02", "a b"], "n": [1, 2, 3]})
    write_deltalake(str(tmp_path / "orders"), days, partition_by=["ds"])
    return TableConfig(name="orders", location=str(tmp_path / "orders"))


@pytest.mark.parametrize("key", ["ds=2025-99", "2025-01", "day=2025-01", "ds=2025-01/n=1"])
def test_a_partition_that_is_not_there_is_refused_before_anything_is_learned(
    key: str, orders: TableConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def learned(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(run, "_execute", learned)
    config = PipelineConfig(state=str(tmp_path / "state"), tables=(orders,))
    with DagsterInstance.ephemeral() as instance, pytest.raises(ConfigError) as refused:
        run.run_tables(config, ["orders"], [key], instance=instance)
    assert str(refused.value) == f"orders has no partition {key}; it has 3, e.g. ds=2025-01"


def test_a_key_of_another_spelling_is_no_other_partition_in_dagster(
    orders: TableConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []

    def done(*given: Any) -> Any:
        asked.extend(given[5:])
        return SimpleNamespace(success=True, all_events=[])

    monkeypatch.setattr(run, "_execute", done)
    config = PipelineConfig(state=str(tmp_path / "state"), tables=(orders,))
    with DagsterInstance.ephemeral() as instance:
        (outcome,) = run.run_tables(config, ["orders"], ["ds=a%20b"], instance=instance)
        assert instance.get_dynamic_partitions("orders_partitions") == ["ds=a b"]
    assert (asked, list(outcome.partitions)) == (["ds=a b"], ["ds=a%20b"])


def test_a_partition_that_goes_meanwhile_leaves_the_others_to_be_done(
    orders: TableConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster refuses a key that it does not know with an error of its own, which ended the command."""
    known: dict[str, list[str]] = {}

    def done(*given: Any) -> Any:
        for key in given[5:]:
            known[key] = list(instance.get_dynamic_partitions("orders_partitions"))
        keep_in_step(instance, "orders", ["ds=2025-02"])  # as a sensor does, while this learns or is at another one
        return SimpleNamespace(success=True, all_events=[])

    monkeypatch.setattr(run, "_execute", done)
    config = PipelineConfig(state=str(tmp_path / "state"), tables=(orders,))
    with DagsterInstance.ephemeral() as instance:
        run.run_tables(config, ["orders"], ["ds=2025-01", "ds=a b"], instance=instance)
    assert list(known) == ["ds=2025-01", "ds=a b"]
    assert all(key in keys for key, keys in known.items())


def test_keys_are_compared_by_what_they_mean(orders: TableConfig) -> None:
    told = "it has 3, e.g. ds=2025-01"
    assert missing_partitions(orders, ["ds=a b", "ds=a%20b", "ds=2025%2D02"]) == ((), told)
    assert missing_partitions(orders, ["ds=2025-02", "ds=c"]) == (("ds=c",), told)


def test_a_null_of_numbers_that_is_written_as_an_empty_text_has_the_key_of_null(tmp_path: Path) -> None:
    path = tmp_path / "orders"
    write_deltalake(str(path), pa.table({"n": pa.array([None, 1], pa.int32()), "v": [1, 2]}), partition_by=["n"])
    entry = path / "_delta_log" / f"{0:020}.json"
    entry.write_text(entry.read_text().replace('"partitionValues":{"n":null}', '"partitionValues":{"n":""}'))
    table, null = TableConfig(name="orders", location=str(path)), "n=__HIVE_DEFAULT_PARTITION__"
    assert look(table).partitions == ("n=1", null)
    assert missing_partitions(table, [null, "n="])[0] == ("n=",)


@pytest.mark.parametrize(
    ("values", "key"),
    [
        (pa.array([datetime(2025, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")), "p=whatever"),
        (None, "p=1"),
    ],
    ids=["names that may differ", "no such table"],
)
def test_where_it_cannot_be_known_spark_is_left_to_say_it(tmp_path: Path, values: Any, key: str) -> None:
    if values is not None:
        write_deltalake(str(tmp_path / "t"), pa.table({"p": values, "n": [1]}), partition_by=["p"])
    assert missing_partitions(TableConfig(name="t", location=str(tmp_path / "t")), [key]) == ((), "")
    assert missing_partitions(TableConfig(name="t", catalog="db.t"), [key]) == ((), "")


@pytest.mark.parametrize(
    ("decisions", "end"),
    [
        ((), "it broke"),
        (("applied",), "it broke; the other 1 of 2 partitions are done"),
        (("applied", "nothing_to_do"), "it broke; the other 2 of 3 partitions are done"),
        (("declined", "postponed"), "it broke; the other 2 of 3 partitions: 1 declined, 1 postponed"),
        (("nothing_to_do", "declined"), "it broke; the other 2 of 3 partitions: 1 nothing to do, 1 declined"),
    ],
)
def test_of_others_is_only_spoken_where_there_are_some(decisions: tuple[str, ...], end: str) -> None:
    """Declined and postponed ones were called done."""
    context: Any = SimpleNamespace(log=logging.getLogger("quiet"))
    shelf: Any = SimpleNamespace(table=SimpleNamespace(name="orders"))
    results = [ApplyResult(7, decision, ("so it is",)) for decision in decisions]
    outcomes = [PartitionOutcome("ds=1", error=TableError("it broke"))]
    outcomes += [PartitionOutcome(f"ds={number}", result) for number, result in enumerate(results, 2)]
    with pytest.raises(Failure) as failed:
        _raise_failed(context, shelf, outcomes)
    assert failed.value.description == f"orders ds=1: {end}"


@pytest.mark.parametrize(
    ("decision", "why", "planned"),
    [
        ("not_asked", "no usable query of orders among 7 statements", False),
        ("declined", "it uses liquid clustering", True),  # by the older plan each failed
    ],
    ids=["without any layout", "of a table that may not be rewritten"],
)
def test_no_partition_is_tried_where_the_chain_has_said_why_not(
    orders: TableConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decision: str, why: str, planned: bool
) -> None:
    tried: list[object] = []

    def done(*given: Any) -> Any:
        tried.append(given)
        return SimpleNamespace(success=True, all_events=[])

    told = run.TableOutcome("orders", decision, (why,))
    monkeypatch.setattr(run, "_execute", done)
    monkeypatch.setattr(run, "_outcome", lambda *_: told)
    config = PipelineConfig(state=str(tmp_path / "state"), tables=(orders,))
    with DagsterInstance.ephemeral() as instance:
        if planned:
            instance.report_runless_asset_event(AssetMaterialization(AssetKey(["orders", "bit_allocation"])))
        assert run.run_tables(config, ["orders"], ["ds=2025-01"], instance=instance) == (told,)
    assert len(tried) == 1


def test_a_backfill_asks_for_approval_by_the_name_in_the_configuration(orders: TableConfig, tmp_path: Path) -> None:
    context: Any = SimpleNamespace(log=logging.getLogger("quiet"))
    config = PipelineConfig(state=str(tmp_path / "state"), tables=(orders,))
    assert relayout_settings(context, Shelf(config, orders)).name == "orders"
