"""Figures of what queries read, of some statements at a time, and where there is nothing to read."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.pipeline.learning.stored_tables import stored_table
from zorder_pipeline.model.predicate import Comparison, Literal
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.model.zone_map import ColumnZones, ZoneMap
from zorder_pipeline.pipeline.learning import row_groups
from zorder_pipeline.pipeline.measuring import first_look, measure
from zorder_pipeline.pipeline.measuring.measure import _row_group_fractions, _row_groups, overlap_depth


@pytest.mark.parametrize("paths", [[], ["empty.parquet"]], ids=["no file", "no row group"])
def test_of_an_empty_table_no_row_group_is_read(tmp_path: Path, paths: list[str]) -> None:
    with pq.ParquetWriter(tmp_path / "empty.parquet", pa.schema([("k", pa.int64())])):
        pass
    files = SimpleNamespace(path=np.array(paths, dtype=object))
    snapshot: Any = SimpleNamespace(location=str(tmp_path), files=lambda: files, leaves=())
    groups = _row_groups(snapshot, [((),)])
    assert groups is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = _row_group_fractions(*groups, [((),)], np.ones((1, len(paths)), dtype=bool))
    assert found.tolist() == [0.0]
    files.path = np.array(["gone.parquet"], dtype=object)
    assert _row_groups(snapshot, [((),)]) is None


def asked(count: int) -> list[LoggedQuery]:
    """So many queries of ten different conditions."""
    rng = np.random.default_rng(2)
    literals = [Literal("number", str(value)) for value in rng.integers(0, 1_000, 10)]
    return [LoggedQuery("t", Comparison("a", "<", (literals[i * i % 10],)), ("a",)) for i in range(count)]


@pytest.fixture
def table(tmp_path: Path) -> Any:
    """Eight files in two row groups each, of values that lie as they came."""
    rng = np.random.default_rng(1)
    return stored_table(tmp_path, [pa.table({"a": rng.integers(100 * i, 1_000, 200)}) for i in range(8)], 100)


def test_an_evaluation_takes_some_statements_after_the_other(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All different ones by all files were numbers of eight bytes, in memory together."""
    queries, sizes = asked(200), list[int]()
    log = SimpleNamespace(lines=200, quarantined={})
    for name, found in {"open_table": table, "asked_log": log, "queries_of": queries}.items():
        monkeypatch.setattr(measure, name, lambda *_, found=found, **__: found)
    whole = measure._row_group_fractions

    def counting(zones: Any, file: Any, boxes: Any, hits: Any) -> Any:
        sizes.append(hits.size)
        return whole(zones, file, boxes, hits)

    monkeypatch.setattr(measure, "_row_group_fractions", counting)
    together = measure.evaluate(None, "t", count_matches=False)  # type: ignore[arg-type]
    monkeypatch.setattr(row_groups, "AT_ONCE", 16)
    apart = measure.evaluate(None, "t", count_matches=False)  # type: ignore[arg-type]
    assert together.to_json() == apart.to_json()
    assert (sizes[0], max(sizes[1:])) == (8 * len({query.condition for query in queries}), 16)
    zones = table.files().zone_map()
    hits = np.array([zones.matching(to_boxes(query.predicate, table.schema)) for query in queries])
    assert apart.files_per_query.tolist() == hits.sum(axis=1).tolist()
    assert apart.rows_per_query.tolist() == (200 * hits.sum(axis=1)).tolist()


def test_a_first_look_tells_each_condition_once(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which files each of a million logged scans opens was kept: a byte for each of their pairs."""
    queries, told = asked(200), list[int]()
    zones = table.files().zone_map()
    opened = np.array([zones.matching(to_boxes(query.predicate, table.schema)).sum() for query in queries])
    matching = ZoneMap.matching

    def counting(self: ZoneMap, boxes: Any) -> Any:
        told.append(1)
        return matching(self, boxes)

    monkeypatch.setattr(ZoneMap, "matching", counting)
    facts = first_look._facts("t", table, queries)
    assert facts.read_now == pytest.approx(float(np.mean(opened)) * 200 / facts.rows)
    assert len(told) == len({query.condition for query in queries}) < 11
    assert first_look._facts("t", table, []).read_now is None


@pytest.mark.parametrize("kind", ["int64", "float64", "object"])
def test_a_look_up_is_told_to_read_the_files_that_cover_the_same(kind: str) -> None:
    """With what was asked of each file's lower bound, files in no order at all seemed half as many."""
    count, rng = 40, np.random.default_rng(3)
    low, high = rng.permutation(count) + 100, rng.permutation(count) + 900

    def depth(low: np.ndarray, high: np.ndarray) -> float:
        if kind == "object":
            low, high = (np.array([f"{v:05d}" for v in values], dtype=object) for values in (low, high))
        else:
            low, high = low.astype(kind), high.astype(kind)
        return overlap_depth(ColumnZones(low, high, np.ones(count, dtype=bool), np.zeros(count, dtype=np.int64)))

    assert depth(low, high) > (0.75 if kind == "object" else 0.99) * count
    apart = np.arange(count) * 10
    assert depth(apart, apart + 9) == 1.0
    assert depth(apart, apart) == 1.0


def test_a_look_up_reads_few_files_of_large_whole_numbers() -> None:
    low = np.array([np.iinfo(np.int64).min, 0, 2**62], dtype=np.int64)
    high = np.array([-1, 2**62 - 1, np.iinfo(np.int64).max], dtype=np.int64)
    assert overlap_depth(ColumnZones(low, high, np.ones(3, dtype=bool), np.zeros(3, dtype=np.int64))) == 1.0


def test_a_look_up_reads_files_without_bounds_unless_they_are_nulls_alone() -> None:
    low, high = np.array([0, 10, 0, 0, 0]), np.array([9, 19, 0, 0, 0])
    known, nulls = np.array([True, True, False, False, False]), np.array([0, 0, 7, 0, -1])
    zones, rows = ColumnZones(low, high, known, nulls), np.full(5, 7)
    assert overlap_depth(zones, rows) == 1.0 + 2  # without nulls and without statistics
    assert overlap_depth(zones) == 1.0 + 3
    unread = ColumnZones(low, high, np.zeros(5, dtype=bool), rows)
    assert overlap_depth(unread, rows) == 0.0
