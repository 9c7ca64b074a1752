"""What a relayout of a whole table did to each of its partitions, while others write into it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from dagster import DagsterInstance

from zorder_pipeline import pipeline
from zorder_pipeline.assets import partitions as module
from zorder_pipeline.assets.common import Shelf
from zorder_pipeline.assets.partitions import noted_changes
from zorder_pipeline.config import PipelineConfig, TableConfig
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.relayout.file_list import FileList

pytestmark = pytest.mark.dagster

File = tuple[str, str, int]
"""Path, partition, and the version that the relayout which wrote it aimed for, -1 of others' files."""
OLD: list[File] = [("a1", "a", -1), ("a2", "a", -1), ("b1", "b", -1)]


def table(version: int, files: list[File]) -> Any:
    count = len(files)
    generation = np.array([file[2] for file in files], np.int64)
    listed = FileList(
        path=np.array([file[0] for file in files], dtype=object),
        bytes=np.full(count, 100),
        rows=np.full(count, 10),
        deleted=np.zeros(count, np.int64),
        layout=tuple("mine" if of >= 0 else "" for of in generation),
        generation=generation,
        key_low=np.full(count, -1),
        key_high=np.full(count, -1),
        modified=np.zeros(count, np.int64),
        partitions=tuple((file[1],) for file in files),
        load_zones=lambda columns: {},
    )
    return SimpleNamespace(version=version, partition_columns=["p"], files=lambda: listed)


def noted(old: list[File], new: list[File], **options: Any) -> dict[str | None, tuple[object, ...]]:
    """Files removed and added, and rows rewritten, of each partition of which something is noted."""
    told = {"location": "/t", "partitions": True, **options}
    config = PipelineConfig(state="/state", tables=(TableConfig(name="t", **told),))
    with DagsterInstance.ephemeral() as instance:
        context: Any = SimpleNamespace(instance=instance, run=SimpleNamespace(tags={}))
        shelf, result = Shelf(config, config.tables[0]), ApplyResult(9, "applied", ("worth it",))
        made = list(noted_changes(context, shelf, result, table(7, old), table(9, new)))
        assert set(instance.get_dynamic_partitions("t_partitions")) >= {str(one.partition) for one in made}
        assert made or not instance.get_dynamic_partitions("t_partitions")
    names = ("files removed", "files added", "rows rewritten")
    return {one.partition: tuple(one.metadata[name].value for name in names) for one in made}


def test_a_partition_that_others_wrote_to_meanwhile_is_not_called_applied() -> None:
    ours: list[File] = [("a3", "a", 8), ("b1", "b", -1)]
    assert noted(OLD, ours) == {"p=a": (2, 1, 10)}
    appended: list[File] = [("a4", "a", -1), ("b2", "b", -1), ("c1", "c", -1)]
    assert noted(OLD, [*ours, *appended]) == {"p=a": (2, 1, 10)}


def test_merged_files_have_the_generation_that_they_had() -> None:
    """A compaction's, or none: only that others were taken out tells them from what was appended."""
    old: list[File] = [("a1", "a", 5), ("a2", "a", 5), ("b1", "b", -1), ("b2", "b", -1)]
    new: list[File] = [("a3", "a", 5), ("b3", "b", -1), ("c1", "c", -1)]
    assert noted(old, new) == {"p=a": (2, 1, 10), "p=b": (2, 1, 10)}


@pytest.mark.parametrize("options", [{"partitions": False}, {"location": "s3a://bucket/t", "partitions": None}])
def test_of_partitions_that_dagster_does_not_show_nothing_is_noted(options: dict[str, Any]) -> None:
    """There is no such asset, and yet it got events and partitions."""
    assert noted(OLD, [("a3", "a", 8), ("b1", "b", -1)], **options) == {}


@pytest.mark.parametrize("partitions", [True, False])
def test_partitions_that_are_done_one_by_one_are_noted_where_dagster_shows_them(
    partitions: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = [pipeline.PartitionOutcome(f"p={name}", ApplyResult(9, "applied", ("worth it",))) for name in "ab"]
    monkeypatch.setattr(module, "opened", lambda *_: table(7, OLD))
    monkeypatch.setattr(module, "relayout_settings", lambda *_: None)
    monkeypatch.setattr(pipeline, "carry_out_partitions", lambda *_: iter(done))
    config = PipelineConfig(state="/s", tables=(TableConfig(name="t", location="/t", partitions=partitions),))
    with DagsterInstance.ephemeral() as instance:
        context: Any = SimpleNamespace(instance=instance, run=SimpleNamespace(tags={}), retry_number=0)
        judged: Any = SimpleNamespace(parts=(), partitions=None)
        spark: Any = None
        made = [one.partition for one in module.separately(context, Shelf(config, config.tables[0]), spark, judged)]
        shown = ["p=a", "p=b"] if partitions else []
        assert (made, sorted(instance.get_dynamic_partitions("t_partitions"))) == (shown, shown)
