"""What counts as the same content: nulls of live rows, in columns that both versions count. And how full files are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from zorder_pipeline.pipeline.rewriting.proof import _new_file_rows, _nulls
from zorder_pipeline.relayout.file_list import FileList


def version(
    rows: list[int], deleted: list[int], nulls: dict[str, list[int]], parts: list[str | None] | None = None
) -> Any:
    """A version of a table whose files have so many live rows, deleted ones, and nulls by column with deleted ones."""
    zones = {name: SimpleNamespace(null_count=np.array(counts)) for name, counts in nulls.items()}
    partitions = tuple((part,) for part in parts) if parts is not None else ((),) * len(rows)
    files = SimpleNamespace(rows=np.array(rows), deleted=np.array(deleted), zones=zones, partitions=partitions)
    return SimpleNamespace(files=lambda: files, partition_columns=["p"] if parts is not None else [])


def test_deleted_rows_are_no_lost_nulls() -> None:
    """A rewrite drops what deletion vectors hide, so that rightly fewer nulls are counted after it."""
    before = version([8, 4], [2, 0], {"a": [3, 1], "k": [0, 0], "p": [10, 0]}, [None, "x"])
    after = version([8, 4], [0, 0], {"a": [2, 1], "k": [0, 0], "p": [8, 0]}, [None, "x"])
    assert len(set(_nulls(before, after))) == 1


def test_a_column_that_was_not_counted_before_is_not_compared() -> None:
    """Files get statistics by a rewrite when delta.dataSkippingStatsColumns names more columns now."""
    before, after = version([5], [0], {"a": [1], "late": [-1]}), version([5], [0], {"a": [1], "late": [4]})
    assert len(set(_nulls(before, after))) == 1


def test_lost_values_are_seen() -> None:
    before = version([8, 4], [0, 0], {"a": [3, 1], "p": [8, 0]}, [None, "x"])
    assert len(set(_nulls(before, version([12], [0], {"a": [5], "p": [0]}, ["x"])))) == 2
    assert len(set(_nulls(before, version([8, 4], [0, 0], {"a": [3, 2], "p": [8, 0]}, [None, "x"])))) == 2
    assert len(set(_nulls(before, version([12], [0], {"a": [4], "p": [0]}, ["x"])))) == 2


def listed(rows: list[int], size: list[float] | None = None, parts: str = "") -> Any:
    """A version whose files are of a layout of ours, and meant to be of these sizes."""
    count, none = len(rows), np.zeros(len(rows), np.int64)
    files = FileList(
        path=np.array([f"part-{i}-{rows[i]}" for i in range(count)], dtype=object),
        bytes=none,
        rows=np.array(rows),
        deleted=none,
        layout=("mine",) * count,
        generation=none,
        key_low=none,
        key_high=none,
        modified=none,
        partitions=tuple((part,) for part in parts or "p" * count),
        load_zones=lambda columns: {},
        size=None if size is None else np.array(size),
    )
    return SimpleNamespace(files=lambda: files)


@pytest.mark.parametrize(
    ("size", "uneven", "found"),
    [
        (None, False, (50, 200, 150)),
        ([0, 0, 0, 0], False, (50, 200, 150)),
        ([0.25, 1, 3, 0.5], True, (200, 200, 50)),
        ([0.25, 0, 3, 0], True, (200, 50)),  # of the public committer's nothing is told
        ([0, 0, 0, 0], True, ()),
    ],
)
def test_how_full_a_file_is_goes_by_the_size_that_its_layout_meant_it_to_have(
    size: list[float] | None, uneven: bool, found: tuple[float, ...]
) -> None:
    """Small files where queries look often were taken for odd ones."""
    after = listed([50, 200, 150, 7], size, "pppq")  # what is left in a partition of one file is no size
    assert _new_file_rows(listed([]), after, uneven) == found
    assert _new_file_rows(after, after, uneven) == ()
