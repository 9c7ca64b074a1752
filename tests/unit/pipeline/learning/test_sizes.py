"""Sizes of files: which smaller ones are worth a search of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.model.predicate import And
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.learning import sizes
from zorder_pipeline.pipeline.learning.sizes import (
    MOST_BYTES,
    MOST_FILES,
    MOST_IN_PARTITIONS,
    MOST_SOUGHT,
    SMALLER_FILE,
    columns_read,
    compact_rows,
    most_files,
    other_targets,
    query_bytes,
    sampled_for_size,
    sought_rows,
    target_rows,
)
from zorder_pipeline.pipeline.records import LearnSettings
from zorder_pipeline.relayout.file_list import FileList

SETTINGS = LearnSettings()
MEGABYTE = 1 << 20


def table(
    sizes: list[int],
    rows: int = 100_000,
    asked: int | None = None,
    ours: int = 0,
    partitioned: bool = False,
    **properties: str,
) -> Any:
    """A table of files of these bytes, each a partition of its own where it is ``partitioned``."""
    count = len(sizes)
    none = np.full(count, -1)
    listed = FileList(
        path=np.array([f"part-{i:05d}" for i in range(count)], dtype=object),
        bytes=np.array(sizes),
        rows=np.full(count, rows),
        deleted=np.zeros(count, dtype=np.int64),
        layout=("abc",) * ours + ("",) * (count - ours),
        generation=none,
        key_low=none,
        key_high=none,
        modified=np.arange(count),
        partitions=tuple((f"{i}",) if partitioned else () for i in range(count)),
        load_zones=lambda columns: {},
    )
    return SimpleNamespace(files=lambda: listed, target_file_bytes=asked, properties=properties)


def test_large_files_are_tried_smaller_down_to_a_size_that_a_log_can_list() -> None:
    few = table([256 * MEGABYTE] * 4)
    assert sought_rows(few, SETTINGS) == round(400_000 * SMALLER_FILE / (1024 * MEGABYTE))
    many = table([256 * MEGABYTE] * 2 * MOST_FILES)
    assert sought_rows(many, SETTINGS) == 100_000, "twice as many files as a sample can tell of"
    between = table([256 * MEGABYTE] * (MOST_FILES // 4))
    assert sought_rows(between, SETTINGS) == 25_000, "a fourth of the size, so a thousand files"
    assert other_targets(between, SETTINGS, 25_000) == (50_000, 100_000), "larger ones up to 128 MiB, and the present"
    near = table([72 * MEGABYTE] * 100)
    small = sought_rows(near, SETTINGS)
    assert other_targets(near, SETTINGS, small) == (100_000,), "eight times as large is nearly the present size"


def test_partitions_that_are_single_files_are_told_apart_inside_however_many_they_are() -> None:
    for partitions, files in ((100, MOST_FILES), (700, 4 * 700), (1_900, MOST_IN_PARTITIONS)):
        days = table([64 * MEGABYTE] * partitions, partitioned=True)
        assert most_files(days) == files
        assert sought_rows(days, SETTINGS) == round(100_000 * max(8 / 64, partitions / files))
        assert 100_000 in other_targets(days, SETTINGS, sought_rows(days, SETTINGS))
    assert most_files(table([64 * MEGABYTE] * 1_900)) == MOST_FILES


@pytest.mark.parametrize(
    ("days", "each", "size"),
    [
        *((14, each, 120 * 1024) for each in (12, 20, 28, 100, 1_638)),
        *((14, 24, 8 * MEGABYTE), (14, 12, 16 * MEGABYTE), (14, 3, 64 * MEGABYTE), (6, 11, 120 * 1024)),
    ],
)
def test_other_sizes_of_files_cut_equal_partitions_into_whole_files_within_all_bounds(
    days: int, each: int, size: int
) -> None:
    """12 files a day in files eight times as large were one and a half: a toss, and lost by most of the days chosen."""
    found = table([size] * each * days, rows=2_400)
    listed = replace(found.files(), partitions=tuple((f"{i // each}",) for i in range(each * days)))
    found.files = lambda: listed
    present, rows = target_rows(found, SETTINGS), each * 2_400
    targets = other_targets(found, SETTINGS, sought_rows(found, SETTINGS))
    assert targets
    for target in targets:
        assert abs(rows / target - round(rows / target)) < 0.05, targets
        assert target <= max(compact_rows(found, SETTINGS), present)
        assert days * rows / target >= 8


@pytest.mark.parametrize(
    ("given", "settings"),
    [
        (table([20 * MEGABYTE] * 100, asked=20 * MEGABYTE), SETTINGS),
        (table([20 * MEGABYTE] * 100), replace(SETTINGS, target_file_rows=100_000)),
        (table([20 * MEGABYTE] * 100), replace(SETTINGS, target_file_bytes=20 * MEGABYTE)),
        (table([20 * MEGABYTE] * 100), replace(SETTINGS, smaller_files=False)),
        (table([20 * MEGABYTE] * 100), replace(SETTINGS, enriched_share=0.5)),
        (table([20 * MEGABYTE] * 100, **{"delta.autoOptimize.autoCompact": "auto"}), SETTINGS),
        (table([15 * MEGABYTE] * 100), SETTINGS),
        (table([20 * MEGABYTE] * 100, ours=60), SETTINGS),
        (table([]), SETTINGS),
    ],
    ids=["property", "rows", "bytes", "switched off", "enriched", "auto-compaction", "small", "laid out", "empty"],
)
def test_nobody_s_choice_of_a_size_is_overruled(given: Any, settings: LearnSettings) -> None:
    assert sought_rows(given, settings) == target_rows(given, settings)
    assert target_rows(given, settings) not in other_targets(given, settings, sought_rows(given, settings))


@pytest.mark.parametrize("rows", [1, 3])
def test_a_partitioned_table_of_fewer_rows_than_files_is_worth_has_a_size_of_files(rows: int) -> None:
    """It ended in a division by zero."""
    tiny = table([10, 10], rows=rows, partitioned=True)
    assert set(other_targets(tiny, SETTINGS, 1)) <= {target_rows(tiny, SETTINGS)}


def test_where_some_partitions_are_laid_out_another_layout_is_sought_for_files_of_their_size() -> None:
    given = table([100 * MEGABYTE] * 95 + [10 * MEGABYTE] * 50, ours=0)
    listed = replace(given.files(), layout=("",) * 95 + ("abc",) * 50, rows=np.array([100_000] * 95 + [10_000] * 50))
    given.files = lambda: listed
    assert sought_rows(given, SETTINGS) == 10_000 < target_rows(given, SETTINGS)


@given(st.lists(st.integers(1, 1 << 31), min_size=1, max_size=50), st.integers(1, 10_000_000))
def test_smaller_files_are_much_smaller_neither_tiny_nor_too_many_and_the_present_size_is_weighed_too(
    sizes: list[int], rows: int
) -> None:
    given = table(sizes, rows)
    small, present = sought_rows(given, SETTINGS), target_rows(given, SETTINGS)
    others = other_targets(given, SETTINGS, small)
    assert all(target > small for target in others)
    if small == present:
        return
    per_row = sum(sizes) / (rows * len(sizes))
    assert 2 * small <= present
    assert (small + 1) * per_row >= SMALLER_FILE
    assert rows * len(sizes) / (small + 1) <= MOST_FILES
    assert present in others


def test_a_tiny_partition_of_ours_makes_no_million_of_files() -> None:
    mixed = table([256 * MEGABYTE] * 1000, rows=1_000_000, ours=1)
    mixed.files().rows[0] = 600
    assert sought_rows(mixed, SETTINGS) >= 0.99 * mixed.files().rows.sum() / MOST_FILES


def test_a_layout_of_many_tiny_files_is_sought_for_fewer_of_which_a_sample_shows_something() -> None:
    tiny = table([200_000] * 4 * MOST_SOUGHT, rows=2_000)
    assert (target_rows(tiny, SETTINGS), sought_rows(tiny, SETTINGS)) == (2_000, 8_000)
    assert 2_000 not in other_targets(tiny, SETTINGS, 8_000)
    asked = replace(SETTINGS, target_file_rows=500)
    assert sought_rows(tiny, asked) == 500
    assert sought_rows(table([200_000] * 4 * MOST_SOUGHT, rows=2_000, ours=10), SETTINGS) == 8_000


@pytest.mark.parametrize(
    ("megabytes", "ours", "sought"),
    [
        (128, 0, 100_000),
        (128, 4 * MOST_SOUGHT, 100_000),
        (1024, 0, 100_000),
        (64, 0, 200_000),
        (64, 2 * MOST_SOUGHT, 100_000),
    ],
)
def test_a_table_of_many_files_that_are_no_small_ones_keeps_their_size(megabytes: int, ours: int, sought: int) -> None:
    many = table([megabytes * 1024 * 1024] * 4 * MOST_SOUGHT, ours=ours)
    assert sought_rows(many, SETTINGS) == sought


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A table of 100 rows with a column of a dotted name, a struct, long texts, and a partition column."""
    paths = [("net.amount",), ("id",), ("S", "x"), ("text",), ("ds",)]
    leaves = [
        SimpleNamespace(path=path, column=Column(".".join(path), "int", partition=path == ("ds",))) for path in paths
    ]
    monkeypatch.setattr(sizes, "table_column_bytes", lambda _: BYTES)
    found = table([1_000], rows=100)
    found.leaves, found.partition_columns = leaves, ("ds",)
    found.schema = TableSchema(tuple(leaf.column for leaf in leaves))
    return found


BYTES = {"net.amount": 900.0, "id": 100.0, "S": 10.0, "text": 3.0 * MOST_BYTES}


def test_what_is_read_is_told_by_whole_columns_whatever_their_names_are(described: Any) -> None:
    asked = [("ID", "net.amount"), ("net.amount",), ("ds",), ("id", "ds"), ("s.X", "s.x.y"), ("net",), ()]
    queries = [LoggedQuery("t", And(()), columns=names) for names in asked]
    everything = {"net.amount", "id", "S", "text"}
    assert columns_read(described, queries) == [
        {"id", "net.amount"}, {"net.amount"}, set(), {"id"}, {"S"}, everything, everything,
    ]  # fmt: skip
    assert query_bytes(described, queries).tolist() == [1000, 900, 0, 100, 10, *[sum(BYTES.values())] * 2]


def test_long_texts_are_not_sampled_for_their_size(described: Any) -> None:
    queries = [LoggedQuery("t", And(()), columns=("text", "id")), LoggedQuery("t", And(()), columns=("text",))]
    assert sampled_for_size(described, queries, 100) == ["id"]
    assert sampled_for_size(described, queries, 30) == ["text", "id"]


IN_ONE_PROCESS = """
from types import SimpleNamespace
import numpy as np
from zorder_pipeline.model.predicate import And
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.learning import sizes, volumes

size = {f"c{i}": 0.1 * 3.0**i for i in range(40)}
sizes.table_column_bytes = lambda _: size
leaves = [SimpleNamespace(path=(name,)) for name in size]
files = SimpleNamespace(bytes=np.ones(1))
table = SimpleNamespace(leaves=leaves, partition_columns=(), files=lambda: files)
told = sizes.query_bytes(table, [LoggedQuery("t", And(()), tuple(size))])
of_files = volumes._bytes(np.ones((1, 1)), {name: np.array([part]) for name, part in size.items()}, [frozenset(size)])
print(told[0].hex(), of_files[0].hex())
"""


def test_bytes_are_the_same_in_every_process() -> None:
    """By the order in which a process iterates over sets the last bit differed, and a stored study began anew."""
    told = {
        subprocess.run(
            [sys.executable, "-c", IN_ONE_PROCESS],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert len(told) == 1
