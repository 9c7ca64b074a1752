"""What queries read of files in their row groups, against every row group's share written out."""

from __future__ import annotations

import numpy as np
import pytest

from zorder_pipeline.model.ranges import Boxes, Interval, Range
from zorder_pipeline.model.zone_map import ColumnZones, ZoneMap
from zorder_pipeline.pipeline.learning.volumes import _shares_read


def _box(low: int, high: int) -> Boxes:
    return ((Range("a", "bigint", (Interval(low, high),)),),)


@pytest.mark.parametrize("seed", range(5))
def test_shares_read_are_those_of_the_row_groups(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, 30)
    counts[[0, 7, 29]] = 0  # files without row groups, the first and the last one among them
    file = np.repeat(np.arange(30), counts)
    low = rng.integers(0, 100, len(file))
    zones = ColumnZones(
        low, low + rng.integers(0, 20, len(file)), rng.random(len(file)) < 0.9, np.zeros(len(file), int)
    )
    rows = rng.integers(0, 50, len(file))
    groups = ZoneMap(rows, rows, {"a": zones})
    boxes = [(), ((),), *(_box(at, at + 15) for at in range(0, 100, 9))]
    hits = rng.random((len(boxes), 30)) < 0.8

    member = np.zeros((len(file), 30))
    for group, number in enumerate(file):
        member[group, number] = rows[group] / max(1, rows[file == number].sum())
    read = np.array([groups.matching(query) for query in boxes]) & hits[:, file]
    assert _shares_read(groups, file, boxes, hits) == pytest.approx(read @ member)


def test_no_row_group_and_no_query() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    none = ZoneMap(nothing, nothing, {})
    assert _shares_read(none, nothing, [((),)], np.ones((1, 2), dtype=bool)).tolist() == [[0.0, 0.0]]
    assert _shares_read(none, nothing, [], np.ones((0, 2), dtype=bool)).shape == (0, 2)
