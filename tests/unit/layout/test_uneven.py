"""Trees whose files differ in size: as many files as asked for, small ones where queries look, each as it was meant."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.layout.test_trees import SCHEMA, TYPES, Columns, between
from zorder_pipeline.errors import PlanError
from zorder_pipeline.layout.blocks import split_log
from zorder_pipeline.layout.cells import cell_sizes, cut_cells
from zorder_pipeline.layout.choosing import UNEVEN
from zorder_pipeline.layout.deepen import deepened
from zorder_pipeline.layout.draft import SampledTable
from zorder_pipeline.layout.evidence import KnownTable, WeighedLog
from zorder_pipeline.layout.explain import explain
from zorder_pipeline.layout.extend import extended
from zorder_pipeline.layout.grow import SIZES, Grower, grow_tree, uneven
from zorder_pipeline.layout.interleave import keys
from zorder_pipeline.layout.learn import learn_layout
from zorder_pipeline.layout.placement import files_under
from zorder_pipeline.layout.search import SearchSettings
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.layout.tree import TreeDraft
from zorder_pipeline.model.cut_tree import LEAF, CutTree
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.ranges import Boxes

ROWS, FILES = 12_000, 60


def sample(seed: int, nulls: float = 0.0) -> Columns:
    """Three columns, a and b with most rows at their low ends."""
    rng = np.random.default_rng(seed)
    values = {"a": rng.exponential(800, ROWS), "b": rng.exponential(800, ROWS), "c": rng.integers(0, 10_000, ROWS)}
    return {name: (v.astype(np.int64), rng.random(ROWS) >= nulls) for name, v in values.items()}


def queries(seed: int, count: int = 80) -> list[Boxes]:
    """All ask for the dense corner of a and b: a fifth of the rows."""
    rng = np.random.default_rng(seed)
    return [between(a=(int(a), int(a) + 40), b=(int(b), int(b) + 40)) for a, b in rng.integers(0, 400, (count, 2))]


def prepared(
    columns: Columns, asked: list[Boxes], files: int = FILES, partition: np.ndarray | None = None
) -> tuple[SampledTable, Estimator]:
    table = SampledTable.build(columns, TYPES, list("abc"), np.zeros(ROWS, dtype=np.int32), files, partition)
    return table, Estimator.build(columns, SCHEMA, asked, ROWS)


def grown(table: SampledTable, estimator: Estimator, asked: list[Boxes]) -> TreeDraft:
    how = uneven(asked, table.encodings)
    return grow_tree(table.fine, estimator, np.ones(len(asked)), table.rows_per_file, how, table.partition)


def test_files_are_small_where_queries_look_and_unseen_ones_read_less() -> None:
    asked = queries(1)
    table, estimator = prepared(sample(0), asked)
    _, unseen = prepared(sample(0), queries(2))
    even = grow_tree(table.fine, estimator, np.ones(80), table.rows_per_file)
    tree = grown(table, estimator, asked)
    assert table.rows_read(tree, unseen).mean() < 0.75 * table.rows_read(even, unseen).mean()
    block, number = table.blocks(tree)
    assert number == FILES
    size = np.bincount(block) / table.rows_per_file
    corner = (table.fine[0] < np.quantile(table.fine[0], 0.3)) & (table.fine[1] < np.quantile(table.fine[1], 0.3))
    assert size[block[corner]].mean() < 0.8 < 1.5 < size[block[~corner]].mean()


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 1000), st.integers(2, 300), st.sampled_from([0.0, 0.3]), st.sampled_from([None, 3]))
def test_files_are_as_many_as_asked_for_and_of_the_sizes_that_the_key_tells(
    seed: int, files: int, nulls: float, partitions: int | None
) -> None:
    columns, asked = sample(seed, nulls), queries(seed, 20)
    partition = None if partitions is None else np.random.default_rng(seed).integers(0, partitions, ROWS, np.int32)
    table, estimator = prepared(columns, asked, files, partition)
    tree = grown(table, estimator, asked)
    spec = table.spec(tree)
    assert KeySpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    key = keys(spec, columns)
    assert (key == table.keys(tree)).all()
    block, number = table.blocks(tree)
    under = files_under(spec, columns, table.rows_per_file, partition)
    pairs = np.unique(np.stack([under, block]), axis=1)
    assert len(pairs.T) == under.max() + 1  # but for cells so large that their rows are dealt out they are the same
    number = int(under.max()) + 1
    assert abs(number - files) <= max(1 + (partitions or 0), 0.1 * files)
    told = cell_sizes(spec, key)
    assert told is not None
    meant = np.bincount(block) / np.bincount(block, weights=1 / told)
    filled = np.bincount(block) / table.rows_per_file / meant / np.bincount(pairs[1])
    assert filled.max() <= 2
    if partition is None:  # a small partition has a small file
        assert (filled < 0.5).sum() <= 1
        assert meant.min() >= SIZES[0] - 0.05
        assert meant.max() <= SIZES[1] + 1e-6


def test_rows_that_cannot_be_cut_are_dealt_out_over_files_of_the_usual_size() -> None:
    columns, asked = sample(0), queries(1)
    heavy = np.arange(ROWS) < ROWS // 2
    columns = {name: (np.where(heavy, 10, values), valid) for name, (values, valid) in columns.items()}
    table, estimator = prepared(columns, asked)
    spec = table.spec(grown(table, estimator, asked))
    file = files_under(spec, columns, table.rows_per_file)
    assert abs(int(file.max()) + 1 - FILES) <= 3
    assert np.bincount(file).max() <= SIZES[1] * table.rows_per_file * 1.4


def test_a_tree_without_queries_or_cuts_has_files_all_the_same() -> None:
    table, estimator = prepared(sample(0), [])
    tree = grown(table, estimator, [])
    block, number = table.blocks(tree)
    assert number == FILES
    assert np.bincount(block).max() < 2.5 * table.rows_per_file
    same = {name: (np.zeros(ROWS, dtype=np.int64), np.ones(ROWS, dtype=bool)) for name in "bc"}
    columns = {"a": (np.arange(ROWS) // (ROWS // 2), np.ones(ROWS, dtype=bool)), **same}
    table, estimator = prepared(columns, queries(1))
    assert (grown(table, estimator, queries(1)).feature != LEAF).sum() == 1


def test_cuts_inside_files_leave_the_files_as_they_were() -> None:
    asked = queries(1)
    table, estimator = prepared(sample(0), asked, 12)
    grower = Grower(table, estimator, np.ones(80), uneven(asked, table.encodings))
    tree = grower.tree()
    deeper, _ = deepened(tree, table, estimator, np.ones(80), grower)
    assert isinstance(deeper, TreeDraft)
    assert len(deeper.feature) > len(tree.feature)
    assert (table.blocks(deeper)[0] == table.blocks(tree)[0]).all()


def test_the_learner_takes_it_where_it_reads_least_and_says_so() -> None:
    columns, asked = sample(0), queries(1, 120)
    table = SampledTable.build(columns, TYPES, list("abc"), (np.arange(ROWS) % FILES).astype(np.int32), FILES)
    blocks = split_log([str(i) for i in range(120)], [None] * 120)
    known = KnownTable(table, columns, SCHEMA)
    learned = learn_layout(known, WeighedLog(asked, np.ones(120), blocks), SearchSettings(40, 0))
    assert learned.name == UNEVEN
    assert learned.spec is not None
    assert learned.spec.smallest_file < 0.5
    assert any("times the usual size" in sentence for sentence in explain(learned.spec))
    even = replace(learned.spec, tree=replace(learned.spec.tree, size=()))  # type: ignore[type-var]
    assert even.layout_id != learned.spec.layout_id
    assert even.smallest_file == 1


def test_values_that_came_later_have_files_of_the_sizes_of_those_they_repeat() -> None:
    columns, asked = sample(0), queries(1)
    table, estimator = prepared(columns, asked)
    spec = replace(table.spec(grown(table, estimator, asked)), rows=ROWS, clock="a")
    valid = np.ones(2 * ROWS, dtype=np.bool_)
    later = {name: (np.concatenate([v, v + 20_000 * (name == "a")]), valid) for name, (v, _) in columns.items()}
    longer = extended(spec, later, 2 * ROWS)
    assert longer.features[list(longer.columns).index("a")].epochs == 1
    file = files_under(longer, later, table.rows_per_file)
    old, new = file[:ROWS], file[ROWS:]
    assert not set(old) & set(new)
    assert abs(len(set(new)) - len(set(old))) <= 0.15 * FILES
    smallest = [np.bincount(part)[np.bincount(part) > 0].min() / table.rows_per_file for part in (old, new)]
    assert max(smallest) < 0.5


@pytest.mark.parametrize("size", [[1.0], [1.0, 0.0, 1.0], [1.0, float("nan"), 1.0], [1.0, 1e9, 1.0]])
def test_malformed_sizes_are_refused_in_a_sentence(size: list[float]) -> None:
    nodes = {"feature": [0, -1, -1], "cut": [1, 0, 0], "low": [1, 1, 2], "high": [2, 1, 2], "key": [0, 0, 1]}
    assert CutTree.from_json(nodes | {"size": [1.0, 0.25, 1.75]}).leaf_sizes == (0.25, 1.75)
    with pytest.raises(PlanError, match="malformed: a file's size"):
        CutTree.from_json(nodes | {"size": size})


@given(st.lists(st.tuples(st.integers(1, 60), st.sampled_from([0.25, 0.5, 1.0, 3.0])), min_size=1, max_size=60))
def test_every_range_tells_the_size_that_its_cells_were_to_have(cells: list[tuple[int, float]]) -> None:
    counts, sizes = (np.array(items) for items in zip(*cells, strict=True))
    cuts = cut_cells(np.arange(len(counts)), counts, 30, sizes=sizes)
    range_of = np.searchsorted(cuts.starts, np.arange(len(counts)), side="right")
    for i, size in enumerate(cuts.sizes):
        here = range_of == i
        assert sizes[here].min() - 1e-9 <= size <= sizes[here].max() + 1e-9
        assert size == pytest.approx(counts[here].sum() / (counts[here] / sizes[here]).sum())
    plain = cut_cells(np.arange(len(counts)), counts, 30)
    ones = cut_cells(np.arange(len(counts)), counts, 30, sizes=np.ones(len(counts)))
    assert plain.starts.tolist() == ones.starts.tolist()
    assert plain.pieces.tolist() == ones.pieces.tolist()
