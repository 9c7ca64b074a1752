"""Queries whose matching rows are counted in one scan."""

from __future__ import annotations

from zorder_pipeline.model.ranges import Boxes, Interval, Range
from zorder_pipeline.reading.matching import BATCH, INTERVALS, _batches


def asking(*lengths: int) -> list[Boxes]:
    """Queries of so many intervals each, no two alike."""
    intervals = [tuple(Interval(10 * i + j, 10 * i + j) for j in range(n)) for i, n in enumerate(lengths)]
    return [((Range("a", "int", each),),) for each in intervals]


def test_a_scan_compares_each_row_with_so_many_intervals() -> None:
    queries = asking(*[1] * (BATCH + 3), 3 * INTERVALS, 600, 300, 200, 1)
    found = _batches(queries)
    assert [boxes for batch in found for boxes in batch] == queries
    assert [len(batch) for batch in found] == [BATCH, 3, 1, 2, 2]
    assert _batches([]) == []
