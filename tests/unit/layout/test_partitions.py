"""A table's partitions in the simulation: a file has rows of one partition only, cut as the relayout cuts it."""

from __future__ import annotations

import numpy as np
import pytest

from zorder_pipeline.layout.cells import TOLERANCE, cut_cells
from zorder_pipeline.layout.draft import Draft, SampledTable


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("aligned", [True, False])
def test_every_partition_is_cut_on_its_own(seed: int, aligned: bool) -> None:
    rng = np.random.default_rng(seed)
    rows = 3000
    columns = {name: (rng.integers(0, 500, rows), np.ones(rows, dtype=np.bool_)) for name in ("a", "b")}
    partition = np.sort(rng.choice(7, rows, p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.04, 0.01])).astype(np.int32)
    rng.shuffle(partition)
    table = SampledTable.build(columns, {"a": "int", "b": "int"}, ["a", "b"], np.zeros(rows, np.int32), 30, partition)
    draft = Draft((0, 1, 0, 1, 0, 1), aligned=aligned)
    block, number = table.blocks(draft)
    assert sorted(set(block.tolist())) == list(range(number))
    for file in range(number):
        assert len(set(partition[block == file].tolist())) == 1
    keys = table.keys(draft)
    for value in range(7):
        mine = partition == value
        cells, counts = np.unique(keys[mine], return_counts=True)
        cuts = cut_cells(cells, counts, rows / 30, TOLERANCE if aligned else 0.0)
        expected = np.searchsorted(cuts.starts, keys[mine], side="right")
        _, found = np.unique(block[mine], return_inverse=True)
        assert (found == expected).all()


def test_one_partition_is_none() -> None:
    columns = {"a": (np.arange(100), np.ones(100, dtype=np.bool_))}
    table = SampledTable.build(columns, {"a": "int"}, ["a"], np.zeros(100, np.int32), 4, np.zeros(100, np.int32))
    assert table.partition is None
