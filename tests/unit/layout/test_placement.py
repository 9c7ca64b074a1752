"""The files of a finished key are those that the search judged its draft by."""

import numpy as np
import pytest

from zorder_pipeline.layout.draft import AnyDraft, Draft, SampledTable
from zorder_pipeline.layout.grow import grow_tree
from zorder_pipeline.layout.placement import files_under
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.predicate import Comparison, Literal
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.model.schema import Column, TableSchema

ROWS, FILES = 4_000, 20
SCHEMA = TableSchema((Column("a", "int"), Column("b", "int")))


def prepared(partition: np.ndarray | None) -> tuple[SampledTable, dict, Estimator]:
    rng = np.random.default_rng(0)
    columns = {name: (rng.integers(0, 5_000, ROWS), rng.random(ROWS) < 0.95) for name in "ab"}
    stored = np.zeros(ROWS, dtype=np.int32)
    table = SampledTable.build(columns, {"a": "int", "b": "int"}, ["a", "b"], stored, FILES, partition)
    asked = [to_boxes(Comparison("ab"[i % 2], "<", (Literal("number", str(40 * i)),)), SCHEMA) for i in range(40)]
    return table, columns, Estimator.build(columns, SCHEMA, asked, ROWS)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("kind", ["bits", "tree"])
def test_rows_lie_together_as_in_the_search(kind: str, partitions: int) -> None:
    partition = np.random.default_rng(1).integers(0, partitions, ROWS).astype(np.int32) if partitions > 1 else None
    table, columns, estimator = prepared(partition)
    draft: AnyDraft = Draft((0, 1, 0, 1, 0, 1, 0))
    if kind == "tree":
        draft = grow_tree(table.fine, estimator, np.ones(40), table.rows_per_file)
    expected, number = table.blocks(draft)
    found = files_under(table.spec(draft), columns, table.rows_per_file, partition)
    assert len(np.unique(found)) == number
    assert len(np.unique(np.stack([expected, found]), axis=1).T) == number, "one of ours is one of theirs"


def test_the_rows_of_a_heavy_hitter_are_dealt_out() -> None:
    values = np.concatenate([np.full(900, 7), np.arange(100)])
    columns = {"a": (values, np.ones(1000, dtype=bool))}
    table = SampledTable.build(columns, {"a": "int"}, ["a"], np.zeros(1000, dtype=np.int32), 10)
    sizes = np.bincount(files_under(table.spec(Draft((0,) * 6)), columns, 100.0))
    assert (len(sizes), sizes.max()) == (10, pytest.approx(100, abs=30))


def test_the_rows_of_a_heavy_hitter_are_dealt_out_evenly_wherever_they_lie() -> None:
    """Every second row of the table, say: by their places in it half of the files would stay empty."""
    values = np.where(np.arange(4_000) % 4 == 0, np.arange(4_000), 7)
    values[1::4] += 4_000
    columns = {"a": (values, np.ones(4_000, dtype=bool))}
    table = SampledTable.build(columns, {"a": "int"}, ["a"], np.zeros(4_000, dtype=np.int32), 16)
    file = files_under(table.spec(Draft((0,) * 6)), columns, table.rows_per_file)
    heavy = np.bincount(file[values == 7])
    heavy = heavy[heavy > 0]
    assert len(heavy) == 8
    assert np.ptp(heavy) <= 4, "its range has some values beside it"
