"""The piecewise curve: every cut halves what the bits so far leave, and the upper levels follow the queries."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from zorder_pipeline.layout.draft import Draft, SampledTable
from zorder_pipeline.layout.encoding import FINE_BITS
from zorder_pipeline.layout.piecewise import piecewise_curve
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.layout.tree import leaf_of
from zorder_pipeline.model.ranges import Boxes, Interval, Range
from zorder_pipeline.model.schema import Column, TableSchema

ROWS, FILES = 4_096, 32
SCHEMA = TableSchema((Column("a", "bigint", delta_stats=True), Column("b", "bigint", delta_stats=True)))


def _table() -> tuple[SampledTable, dict[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]]]:
    rng = np.random.default_rng(0)
    columns = {name: (rng.permutation(ROWS), np.ones(ROWS, dtype=np.bool_)) for name in "ab"}
    stored = np.zeros(ROWS, dtype=np.int32)
    return SampledTable.build(columns, {"a": "bigint", "b": "bigint"}, ["a", "b"], stored, FILES), columns


def _half_and_half(number: int) -> Boxes:
    """Where a is low queries ask for short ranges of a, where it is high for short ranges of b."""
    start = number * 37 % (ROWS // 2)
    low = Range("a", "bigint", (Interval(start, start + 30),))
    high = (
        Range("a", "bigint", (Interval(ROWS // 2, ROWS),)),
        Range("b", "bigint", (Interval(start * 2, start * 2 + 60),)),
    )
    return ((low,),) if number % 2 else (high,)


def test_cuts_are_the_middles_of_cells_and_files_are_full() -> None:
    table, columns = _table()
    estimator = Estimator.build(columns, SCHEMA, [_half_and_half(i) for i in range(100)], ROWS)
    tree = piecewise_curve(table.fine, estimator, np.ones(100), table.rows_per_file)
    leaf = leaf_of(table.fine, tree.feature, tree.cut, tree.low, tree.high)
    assert np.bincount(leaf).max() * 8 <= ROWS / FILES
    cells = {0: {0: (0, 1 << FINE_BITS), 1: (0, 1 << FINE_BITS)}}
    for node in range(len(tree.feature)):
        if tree.low[node] == node:
            continue
        f, cut = int(tree.feature[node]), int(tree.cut[node])
        begin, end = cells[node][f]
        size = end - begin
        while cut != begin + size // 2:  # a bit that divided no row was taken without a cut
            begin, size = (begin, size // 2) if cut < begin + size // 2 else (begin + size // 2, size // 2)
            assert size > 1
        middle = {int(tree.low[node]): (begin, cut), int(tree.high[node]): (cut, begin + size)}
        for child, span in middle.items():
            cells[child] = {**cells[node], f: span}
    assert table.blocks(tree)[1] in range(FILES - 4, FILES + 5)


def test_regions_that_are_asked_differently_are_cut_differently() -> None:
    table, columns = _table()
    estimator = Estimator.build(columns, SCHEMA, [_half_and_half(i) for i in range(100)], ROWS)
    tree = piecewise_curve(table.fine, estimator, np.ones(100), table.rows_per_file)
    assert tree.feature[0] == 0
    assert (tree.feature[tree.low[0]], tree.feature[tree.high[0]]) == (0, 1)
    curve = Draft(tuple(i % 2 for i in range(8)))
    assert table.rows_read(tree, estimator).mean() < 0.9 * table.rows_read(curve, estimator).mean()
