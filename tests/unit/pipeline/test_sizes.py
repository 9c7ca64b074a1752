"""Sizes of files: which smaller ones are worth a search of their own."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.pipeline.records import LearnSettings
from zorder_pipeline.pipeline.sizes import MOST_FILES, SMALLER_FILE, larger_targets, smaller_rows, target_rows
from zorder_pipeline.relayout.file_list import FileList

SETTINGS = LearnSettings()
MEGABYTE = 1 << 20


def table(sizes: list[int], rows: int = 100_000, asked: int | None = None, layouts: tuple[str, ...] = ()) -> Any:
    count = len(sizes)
    none = np.full(count, -1)
    listed = FileList(
        path=np.array([f"part-{i:05d}" for i in range(count)], dtype=object),
        bytes=np.array(sizes),
        rows=np.full(count, rows),
        deleted=np.zeros(count, dtype=np.int64),
        layout=layouts or ("",) * count,
        generation=none,
        key_low=none,
        key_high=none,
        modified=np.arange(count),
        partitions=((),) * count,
        load_zones=lambda columns: {},
    )
    return SimpleNamespace(files=lambda: listed, target_file_bytes=asked)


def test_large_files_are_tried_smaller_down_to_a_size_that_a_log_can_list() -> None:
    few = table([256 * MEGABYTE] * 4)
    assert smaller_rows(few, SETTINGS) == round(400_000 * SMALLER_FILE / (1024 * MEGABYTE))
    many = table([256 * MEGABYTE] * 2 * MOST_FILES)
    assert smaller_rows(many, SETTINGS) is None, "twice as many files as a sample can tell of"
    between = table([256 * MEGABYTE] * (MOST_FILES // 4))
    assert smaller_rows(between, SETTINGS) == 25_000, "a fourth of the size, so a thousand files"


@pytest.mark.parametrize(
    ("given", "settings"),
    [
        (table([20 * MEGABYTE] * 100, asked=20 * MEGABYTE), SETTINGS),
        (table([20 * MEGABYTE] * 100), replace(SETTINGS, target_file_rows=100_000)),
        (table([20 * MEGABYTE] * 100), replace(SETTINGS, target_file_bytes=20 * MEGABYTE)),
        (table([20 * MEGABYTE] * 100), replace(SETTINGS, smaller_files=False)),
        (table([15 * MEGABYTE] * 100), SETTINGS),
        (table([20 * MEGABYTE] * 100, layouts=("abc",) * 60 + ("",) * 40), SETTINGS),
        (table([]), SETTINGS),
    ],
    ids=["table property", "rows asked", "bytes asked", "switched off", "small already", "laid out", "empty"],
)
def test_nobody_s_choice_of_a_size_is_overruled(given: Any, settings: LearnSettings) -> None:
    assert smaller_rows(given, settings) is None


@given(st.lists(st.integers(1, 1 << 31), min_size=1, max_size=50), st.integers(1, 10_000_000))
def test_smaller_files_are_much_smaller_neither_tiny_nor_too_many_and_larger_ones_lead_back(
    sizes: list[int], rows: int
) -> None:
    given = table(sizes, rows)
    small, present = smaller_rows(given, SETTINGS), target_rows(given, SETTINGS)
    if small is None:
        return
    per_row = sum(sizes) / (rows * len(sizes))
    assert 2 * small <= present
    assert (small + 1) * per_row >= SMALLER_FILE
    assert rows * len(sizes) / (small + 1) <= MOST_FILES
    larger = larger_targets(given, SETTINGS, small)
    assert list(larger) == sorted({*larger, small} - {small})
