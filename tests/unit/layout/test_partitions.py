"""A table's partitions in the simulation: a file has rows of one partition only, cut as the relayout cuts it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.layout.test_trees import SCHEMA, TYPES, Columns, between
from zorder_pipeline.layout.cells import TOLERANCE, cut_cells
from zorder_pipeline.layout.draft import Draft, SampledTable
from zorder_pipeline.layout.grow import MOST_PARTITIONS, Grower, GrowSettings, grow_by_predicates, grow_tree, uneven
from zorder_pipeline.layout.placement import files_under
from zorder_pipeline.layout.similar import with_similar
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.layout.tree import TreeDraft
from zorder_pipeline.model.cut_tree import LEAF
from zorder_pipeline.model.ranges import Boxes


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


ROWS = 12_000


def sample(seed: int) -> Columns:
    rng = np.random.default_rng(seed)
    return {name: (rng.integers(0, 10_000, ROWS), np.ones(ROWS, dtype=np.bool_)) for name in "abc"}


def squares(seed: int, count: int = 60) -> list[Boxes]:
    """A range of a and one of b each."""
    corners = np.random.default_rng(seed).integers(0, 9_000, (count, 2)).tolist()
    return [between(a=(a, a + 999), b=(b, b + 999)) for a, b in corners]


def prepared(columns: Columns, asked: list[Boxes], files: int, partition: np.ndarray) -> tuple[SampledTable, Estimator]:
    table = SampledTable.build(columns, TYPES, list("abc"), np.zeros(ROWS, np.int32), files, partition.astype(np.int32))
    return table, Estimator.build(columns, SCHEMA, asked, ROWS)


def grown(
    table: SampledTable, estimator: Estimator, how: GrowSettings | None = None, partition: np.ndarray | None = None
) -> TreeDraft:
    return grow_tree(table.fine, estimator, np.ones(estimator.queries), table.rows_per_file, how, partition)


@pytest.mark.parametrize("seed", range(3))
def test_the_cut_of_two_files_per_partition_is_the_one_after_which_least_is_read(seed: int) -> None:
    """Every cut that may be tried is made and read by the estimator, whose blocks are partitions and sides."""
    columns = sample(seed)
    partition = columns["a"][0] // 2_500
    asked = [
        between(a=(a, a + 1_500), b=(b, b + 2_500))
        for a, b in np.random.default_rng(seed).integers(0, 8_000, (60, 2)).tolist()
    ]
    table, estimator = prepared(columns, asked, 8, partition)
    tree = grown(table, estimator, GrowSettings(quantiles=7, prior=0.0, inner=0), table.partition)
    assert table.blocks(tree)[1] == 8
    read = table.rows_read(tree, estimator).mean()
    for codes in table.fine:
        for share in (3 / 8, 4 / 8, 5 / 8):  # others leave a side that is no whole file
            block = partition * 2 + (codes >= np.quantile(codes, share))
            assert read <= estimator.rows_read(block.astype(np.int32), 8).mean() * 1.01
    assert 1 in tree.feature  # all partitions at once would seem to be told apart best by a


@pytest.mark.parametrize("kind", ["even", "uneven"])
def test_a_partitioned_tables_tree_has_as_many_leaves_as_a_partition_has_files(kind: str) -> None:
    columns, asked = sample(0), squares(1)
    partition = np.arange(ROWS) % 4
    table, estimator = prepared(columns, asked, 64, partition)
    _, unseen = prepared(columns, squares(2), 64, partition)
    how = GrowSettings(inner=0) if kind == "even" else uneven(asked, table.encodings)
    tree, blind = grown(table, estimator, how, table.partition), grown(table, estimator, how)
    leaves = (tree.feature == LEAF) & ~tree.inside
    assert kind == "uneven" or 15 <= leaves.sum() <= 17
    block, number = table.blocks(tree)
    assert abs(number - 64) <= 4
    assert np.bincount(block).max() <= (2 if kind == "even" else 3.5) * table.rows_per_file
    assert table.rows_read(tree, unseen).mean() < 1.02 * table.rows_read(blind, unseen).mean()
    orders = [Draft((0, 1) * 3), Draft((0, 1, 0, 1)), Draft((0,) * 6), Draft((1,) * 6)]
    assert table.rows_read(tree, unseen).mean() < 1.1 * min(table.rows_read(o, unseen).mean() for o in orders)


def test_partitions_of_one_file_and_those_that_nobody_reads_have_no_say() -> None:
    """Half of the table is small partitions whose queries restrict b, a quarter is never asked: the rest wants a."""
    columns = sample(0)
    c = np.where(np.arange(ROWS) < 6_000, np.arange(ROWS) // 100, np.where(np.arange(ROWS) < 9_000, 1_000, 2_000))
    columns["c"] = (c.astype(np.int64), np.ones(ROWS, dtype=np.bool_))
    rng = np.random.default_rng(0)
    lows = rng.integers(0, 9_000, 90).tolist()
    asked = [
        between(b=(x, x + 500), c=(0, 999)) if i % 3 else between(a=(x, x + 500), c=(1_000, 1_000))
        for i, x in enumerate(lows)
    ]
    table, estimator = prepared(columns, asked, 60, c)
    tree = grown(table, estimator, GrowSettings(inner=0), table.partition)
    assert set(tree.feature[tree.feature != LEAF].tolist()) == {0}
    assert (tree.feature == LEAF).sum() == pytest.approx(15, abs=1)


def test_of_many_partitions_those_from_which_most_is_read_are_looked_at_and_without_queries_nothing_breaks() -> None:
    columns, asked = sample(0), squares(1, 20)
    partition = np.arange(ROWS) % (2 * MOST_PARTITIONS)
    for queries, files in ((asked, 200), ([], 200), (asked, 2), ([], 2)):
        table, estimator = prepared(columns, queries, files, partition)
        for how in (None, uneven(queries, table.encodings)):
            block, number = table.blocks(grown(table, estimator, how, table.partition))
            assert number >= 2 * MOST_PARTITIONS
            assert len(np.unique(np.stack([block, partition]), axis=1).T) == number


def test_leaves_that_are_files_are_files_of_each_partition() -> None:
    columns, asked = sample(0), squares(1)
    partition = np.arange(ROWS) % 3
    table, estimator = prepared(columns, asked, 48, partition)
    tree = grow_by_predicates(table, estimator, np.ones(60), asked)
    block, number = table.blocks(tree)
    assert len(np.unique(np.stack([block, partition]), axis=1).T) == number <= 48
    assert number > 24


@pytest.mark.parametrize("files", [10, 120, 240, 600])
def test_a_tree_whose_leaves_are_files_has_no_more_of_them_where_many_partitions_are_small(files: int) -> None:
    """One half of the rows is one partition, the other half a hundred."""
    columns, asked = sample(0), squares(1)
    partition = np.where(np.arange(ROWS) % 2 == 0, 0, 1 + np.arange(ROWS) % 101)
    table, estimator = prepared(columns, asked, files, partition)
    tree = grow_by_predicates(table, estimator, np.ones(60), asked)
    most = int(np.maximum(1, np.round(np.bincount(partition) / table.rows_per_file)).sum())
    assert 102 <= table.blocks(tree)[1] <= most
    assert files < 240 or (tree.feature != LEAF).any()


@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("kind", ["even", "uneven"])
def test_a_column_that_follows_the_partitions_is_cut_in_each_of_them(kind: str, others: bool) -> None:
    """A cut by it makes a file more of one partition, one by another column of each: both are worth their files."""
    columns = sample(0)
    partition = columns["a"][0] // 625  # sixteen, of twelve files each

    def asked(seed: int) -> list[Boxes]:
        lows = np.random.default_rng(seed).integers(0, 9_000, (120, 2)).tolist()
        return [
            between(a=(a, a + 600), b=(b, b + 900)) if others and i % 2 else between(a=(a, a + 60))
            for i, (a, b) in enumerate(lows)
        ]

    table, estimator = prepared(columns, asked(1), 192, partition)
    _, unseen = prepared(columns, asked(2), 192, partition)
    how = GrowSettings() if kind == "even" else uneven(asked(1), table.encodings)
    tree, blind = grown(table, estimator, how, table.partition), grown(table, estimator, how)
    assert abs(table.blocks(tree)[1] - 192) <= 4
    read = table.rows_read(tree, unseen).mean()
    assert read < (0.98 if others else 1.06) * table.rows_read(blind, unseen).mean()
    assert read < 1.06 * min(
        table.rows_read(Draft(o), unseen).mean() for o in ((0,) * 12, (0, 0, 0, 0, 1) * 3, (1,) * 4)
    )


def test_of_columns_that_follow_the_partitions_and_others_each_is_cut_where_it_saves_most() -> None:
    """Dates of order and of shipping, and a customer, of a table by months of order.

    Cuts by the date of shipping divide two or three months each, and leave whole files of none.
    """
    assert np.mean([_shipped(seed) for seed in (1, 2, 3, 4)]) < 0.96


def _shipped(seed: int) -> float:
    """What is read of the tree of the partitions, as a share of what is of one that knows of none."""
    rows, rng = 40_000, np.random.default_rng(seed)
    ordered = np.sort(rng.integers(0, 25_000, rows))
    values = {"a": ordered, "b": rng.integers(0, 10_000, rows), "c": ordered + rng.integers(0, 300, rows)}
    columns = {name: (codes, np.ones(rows, dtype=np.bool_)) for name, codes in values.items()}
    partition = (ordered * 24 // 25_000).astype(np.int32)

    def asked(seed: int, number: int) -> list[Boxes]:
        rng = np.random.default_rng(seed)
        at, customers = rng.integers(0, rows, number), rng.integers(0, 9_000, number).tolist()
        return [
            [
                between(a=(a, a + 120)),
                between(c=(c, c + 120)),
                between(a=(a, a + 1_500), b=(b, b + 1_500)),
            ][i % 3]
            for i, (a, b, c) in enumerate(zip(ordered[at].tolist(), customers, values["c"][at].tolist(), strict=True))
        ]

    table = SampledTable.build(columns, TYPES, list("abc"), np.zeros(rows, np.int32), 240, partition)
    known, weights = with_similar(Estimator.build(columns, SCHEMA, asked(1, 150), rows), np.ones(150))
    unseen = Estimator.build(columns, SCHEMA, asked(2, 300), rows)
    own, blind = (grow_tree(table.fine, known, weights, table.rows_per_file, None, of) for of in (partition, None))
    return float(table.rows_read(own, unseen).mean() / table.rows_read(blind, unseen).mean())


def test_partitions_of_one_file_each_have_files_of_the_usual_size() -> None:
    """Few rows in the partitions that are asked for made a size of files out of what these lack to a whole one."""
    counts = [1_400] * 20 + [50] * 40
    partition = np.repeat(np.arange(60, dtype=np.int32), counts)
    rng = np.random.default_rng(3)
    columns = {name: (rng.integers(0, 10_000, len(partition)), np.ones(len(partition), bool)) for name in "abc"}
    columns["c"] = (partition.astype(np.int64), columns["c"][1])
    starts = rng.integers(0, 9_000, 100).tolist()
    asked = [between(c=(20 + i % 40, 20 + i % 40), a=(a, a + 500)) for i, a in enumerate(starts)]
    table = SampledTable.build(columns, TYPES, list("abc"), np.zeros(len(partition), np.int32), 29, partition)
    tree = grown(
        table, Estimator.build(columns, SCHEMA, asked, len(partition)), uneven(asked, table.encodings), partition
    )
    spec = table.spec(tree)
    assert table.blocks(tree)[1] == len(set(files_under(spec, columns, table.rows_per_file, partition))) == 60


def test_of_two_trees_of_a_partitioned_table_the_one_is_taken_that_reads_less() -> None:
    """With more partitions than are looked at only the tree that knows of none cuts the others."""
    columns = sample(0)
    partition = columns["a"][0] // 100
    asked = [between(a=(low, low + 20)) for low in np.random.default_rng(0).integers(0, 9_900, 300).tolist()]
    table, estimator = prepared(columns, asked, 400, partition)
    ones = np.ones(300)
    tree = Grower(table, estimator, ones, GrowSettings()).tree()
    own = grown(table, estimator, None, table.partition)
    assert table.rows_read(tree, estimator).mean() < 0.8 * table.rows_read(own, estimator).mean()


def test_of_many_partitions_those_from_which_most_is_read_are_looked_at() -> None:
    """Half of them are asked by a twice as often as the others are by b."""
    columns = sample(0)
    partition = np.arange(ROWS) % (2 * MOST_PARTITIONS)
    columns["c"] = (partition.astype(np.int64), np.ones(ROWS, dtype=np.bool_))
    rng = np.random.default_rng(0)
    asked = [
        between(**{"a" if c % 2 else "b": (low, low + 1_500), "c": (c, c)})
        for c in range(2 * MOST_PARTITIONS)
        for low in rng.integers(0, 8_000, 4 if c % 2 else 2).tolist()
    ]
    table, estimator = prepared(columns, asked, 6 * 2 * MOST_PARTITIONS, partition)
    tree = grown(table, estimator, GrowSettings(inner=0), table.partition)
    assert set(tree.feature[tree.feature != LEAF].tolist()) == {0}


def test_of_unequal_partitions_there_are_as_many_leaves_as_a_typical_rows_has_files() -> None:
    """One of twenty files and ten of two: eleven files, as half of the rows lie in the large one."""
    columns, asked = sample(0), squares(1)
    partition = np.where(np.arange(ROWS) % 2 == 0, 0, 1 + np.arange(ROWS) // 2 % 10)
    table, estimator = prepared(columns, asked, 40, partition)
    tree = grown(table, estimator, GrowSettings(inner=0), table.partition)
    assert 10 <= (tree.feature == LEAF).sum() <= 12
