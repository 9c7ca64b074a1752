"""By which layout a table lies, told from its files."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from zorder_pipeline.pipeline.learning.keeping import layout_of
from zorder_pipeline.relayout.file_list import FileList


def table(files: list[tuple[str, str, int, int]]) -> Any:
    """A table of files: each its partition, layout, generation and rows."""
    partitions, layouts, generations, rows = zip(*files, strict=True) if files else ((),) * 4
    none = np.full(len(files), -1)
    listed = FileList(
        path=np.array([f"part-{i:05d}" for i in range(len(files))], dtype=object),
        bytes=none,
        rows=np.array(rows, dtype=np.int64),
        deleted=none,
        layout=tuple(layouts),
        generation=np.array(generations, dtype=np.int64),
        key_low=none,
        key_high=none,
        modified=none,
        partitions=tuple((value,) for value in partitions),
        load_zones=lambda columns: {},
    )
    return SimpleNamespace(files=lambda: listed)


@pytest.mark.parametrize(
    ("files", "layout"),
    [
        ([], ""),
        ([("", "", -1, 60), ("", "a", 1, 40)], ""),
        ([("", "", -1, 40), ("", "a", 1, 60)], "a"),
        ([(f"d{i}", "", -1, 100) for i in range(9)] + [("d9", "a", 1, 100)], "a"),
        ([(f"d{i}", "a", 1, 100) for i in range(9)] + [("d9", "b", 5, 100)], "b"),
        ([("d1", "a", 1, 100), ("d2", "b", 5, 40), ("d2", "", -1, 60)], "a"),
    ],
    ids=["empty", "too few rows", "most rows", "one partition", "the newest", "the newest that holds most of one"],
)
def test_a_table_lies_by_the_newest_layout_that_holds_most_of_a_partition(
    files: list[tuple[str, str, int, int]], layout: str
) -> None:
    assert layout_of(table(files)) == layout
