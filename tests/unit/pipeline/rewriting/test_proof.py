"""What counts as the same content: nulls of live rows, in columns that both versions count."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from zorder_pipeline.pipeline.rewriting.proof import _nulls


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
