"""Figures of what queries read where there is nothing to read."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zorder_pipeline.model.zone_map import ColumnZones
from zorder_pipeline.pipeline.measuring.measure import _row_group_fraction, overlap_depth


@pytest.mark.parametrize("paths", [[], ["empty.parquet"]], ids=["no file", "no row group"])
def test_of_an_empty_table_no_row_group_is_read(tmp_path: Path, paths: list[str]) -> None:
    with pq.ParquetWriter(tmp_path / "empty.parquet", pa.schema([("k", pa.int64())])):
        pass
    files = SimpleNamespace(path=np.array(paths, dtype=object))
    snapshot: Any = SimpleNamespace(location=str(tmp_path), files=lambda: files, leaves=())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = _row_group_fraction(snapshot, [((),)], np.ones((1, len(paths)), dtype=bool), np.ones(1))
    assert found == 0.0
    files.path = np.array(["gone.parquet"], dtype=object)
    assert _row_group_fraction(snapshot, [((),)], np.ones((1, 1), dtype=bool), np.ones(1)) is None


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
