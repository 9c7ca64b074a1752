"""Trees of cuts: sizes, keys, agreement of draft and key, gains over bit orders where regions differ."""

import hashlib
import json
import signal
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from zorder_pipeline.errors import PlanError
from zorder_pipeline.layout import grow
from zorder_pipeline.layout.cells import cut_cells
from zorder_pipeline.layout.deadline import Deadline
from zorder_pipeline.layout.draft import Draft, SampledTable
from zorder_pipeline.layout.encoding import rank_encoding
from zorder_pipeline.layout.grow import SIZES, Grower, GrowSettings, grow_by_predicates, grow_tree, range_ends, uneven
from zorder_pipeline.layout.interleave import gray_rank, keys
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.layout.tree import TreeDraft, leaf_of
from zorder_pipeline.model.cut_tree import LEAF, CutTree
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.predicate import And, Comparison, Literal
from zorder_pipeline.model.ranges import Boxes, to_boxes
from zorder_pipeline.model.schema import Column, TableSchema

ROWS, FILES = 12_000, 60
SCHEMA = TableSchema(tuple(Column(name, "int") for name in "abc"))
TYPES = {column.name: column.type for column in SCHEMA.columns}
Columns = dict[str, tuple[np.ndarray, np.ndarray]]


def sample(seed: int, nulls: float = 0.0) -> Columns:
    rng = np.random.default_rng(seed)
    return {name: (rng.integers(0, 10_000, ROWS), rng.random(ROWS) >= nulls) for name in "abc"}


def between(**ranges: tuple[int, int]) -> Boxes:
    parts = tuple(
        Comparison(name, "between", (Literal("number", str(low)), Literal("number", str(high))))
        for name, (low, high) in ranges.items()
    )
    return to_boxes(And(parts), SCHEMA)


def queries(seed: int, count: int = 80) -> list[Boxes]:
    """Where a is small b is asked for, elsewhere c: no one order of bits suits both halves."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(count):
        low = int(rng.integers(0, 9_800))
        found.append(
            between(a=(0, 4_999), b=(low, low + 200)) if i % 2 else between(a=(5_000, 9_999), c=(low, low + 200))
        )
    return found


def prepared(columns: Columns, asked: list[Boxes], files: int = FILES) -> tuple[SampledTable, Estimator]:
    table = SampledTable.build(columns, TYPES, list("abc"), np.zeros(ROWS, dtype=np.int32), files)
    return table, Estimator.build(columns, SCHEMA, asked, ROWS)


def test_a_tree_divides_each_region_its_own_way() -> None:
    table, estimator = prepared(sample(0), queries(1))
    _, unseen = prepared(sample(0), queries(2))
    tree = grow_tree(table.fine, estimator, np.ones(80), table.rows_per_file)
    orders = [Draft((0, *([1, 2] * 4))), Draft((0, *[1] * 6)), Draft((1, 2) * 4)]
    best = min(table.rows_read(order, unseen).mean() for order in orders)
    assert tree.feature[0] == 0
    assert table.rows_read(tree, unseen).mean() < 0.6 * best


def test_an_interruption_while_a_tree_grows_is_one() -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def grow(times: int) -> None:
        for _ in range(times):
            grow_tree(table.fine, estimator, np.ones(80), table.rows_per_file)

    table, estimator = prepared(sample(0), queries(1))
    grow(1)  # now it is compiled
    kept = signal.signal(signal.SIGVTALRM, interrupt)
    try:
        for _ in range(5):
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.02)
            with pytest.raises(KeyboardInterrupt):
                grow(1_000)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, kept)


@pytest.mark.parametrize(("even", "fingerprint"), [(True, "755991f15fe9e31f"), (False, "bfaac18af2a22dbe")])
def test_a_tree_without_a_deadline_is_the_one_that_it_always_was(even: bool, fingerprint: str) -> None:
    """Node by node that of version 0.3, which grew it branch by branch; now it is level by level, to be stopped."""
    asked = queries(1)
    table, estimator = prepared(sample(0), asked)
    tree = grow_tree(
        table.fine, estimator, np.ones(80), table.rows_per_file, None if even else uneven(asked, table.encodings)
    )
    whole = np.concatenate([tree.feature, tree.cut, tree.low, tree.high, tree.rank, tree.inside])
    assert hashlib.sha256(whole.astype("<i8").tobytes()).hexdigest()[:16] == fingerprint
    assert not tree.hurried


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("partitioned", [True, False])
@pytest.mark.parametrize("seconds", [0.0, 0.03])
def test_a_tree_that_is_stopped_has_files_all_the_same(even: bool, partitioned: bool, seconds: float) -> None:
    asked = queries(1)
    table, estimator = prepared(sample(0), asked)
    if partitioned:
        table = replace(table, partition=(np.arange(ROWS) % 3).astype(np.int32))
    grower = Grower(table, estimator, np.ones(80), GrowSettings() if even else uneven(asked, table.encodings))
    grower.tree()  # now it is compiled
    tree = grower.tree(deadline=Deadline.after(seconds))
    assert tree.hurried or seconds
    rows = np.bincount(table.blocks(tree)[0])
    files, most = (FILES, 2.0) if even else (FILES, SIZES[1] + 0.5)
    assert files / 2 <= len(rows) <= 2 * files
    assert rows.max() <= most * ROWS / files
    spec = table.spec(tree)
    assert KeySpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


def test_a_tree_is_the_better_the_longer_it_grows() -> None:
    table, estimator = prepared(sample(0), queries(1))
    _, unseen = prepared(sample(0), queries(2))
    whole = grow_tree(table.fine, estimator, np.ones(80), table.rows_per_file)
    none = grow_tree(table.fine, estimator, np.ones(80), table.rows_per_file, deadline=Deadline.after(0.0))
    assert none.hurried
    assert table.rows_read(whole, unseen).mean() < table.rows_read(none, unseen).mean() < 1.0


@settings(max_examples=25)
@example(104, 130, 0.3)
@given(st.integers(0, 1000), st.integers(2, 300), st.sampled_from([0.0, 0.3]))
def test_files_keep_to_their_size(seed: int, files: int, nulls: float) -> None:
    columns = sample(seed, nulls)
    table, estimator = prepared(columns, queries(seed, 20), files)
    tree = grow_tree(table.fine, estimator, np.ones(20), table.rows_per_file)
    key = table.keys(tree)
    cells, counts = np.unique(key, return_counts=True)
    cuts = cut_cells(cells, counts, ROWS / files)
    sizes = np.bincount(np.searchsorted(cuts.starts, key, side="right")) / cuts.pieces
    assert sizes.max() <= 2 * ROWS / files
    assert (sizes < 0.5 * ROWS / files).sum() <= 1
    assert abs(cuts.files - files) <= max(1, 0.1 * files)


@given(st.integers(0, 1000), st.sampled_from([0.0, 0.2]))
@settings(max_examples=25)
def test_the_key_is_the_drafts(seed: int, nulls: float) -> None:
    columns = sample(seed, nulls)
    table, estimator = prepared(columns, queries(seed, 15), 20)
    for draft in (
        grow_tree(table.fine, estimator, np.ones(15), table.rows_per_file),
        grow_by_predicates(table, estimator, np.ones(15), queries(seed, 15)),
    ):
        spec = table.spec(draft)
        again = KeySpec.from_json(json.loads(json.dumps(spec.to_json())))
        assert again == spec
        assert again.layout_id == spec.layout_id
        assert (keys(spec, columns) == table.keys(draft)).all()


def test_boundaries_between_files_are_coarser_than_those_inside() -> None:
    table, estimator = prepared(sample(0), queries(1))
    tree = grow_tree(table.fine, estimator, np.ones(80), table.rows_per_file, GrowSettings(inner=2))
    leaves = np.flatnonzero(tree.feature == LEAF)
    key = np.sort(tree.keys[leaves])
    differing = (key[1:] ^ key[:-1]).astype(np.int64)
    assert (np.diff(key) > 0).all()
    assert (differing < 64).any()  # cells of one file differ in the low bits only
    block, number = table.blocks(tree)
    assert abs(number - FILES) <= 3
    assert block.max() + 1 == number


def full_grid(levels: int) -> TreeDraft:
    """A tree that cuts a and b in turns, ``levels`` times each, into cells of one code."""
    feature, cut, low, high, rank = [], [], [], [], []
    waiting = [((0, 1 << levels), (0, 1 << levels), 0)]
    while waiting:  # a node's children come after all that wait already
        (a, b, depth), node = waiting.pop(0), len(feature)
        asked = (a, b)[depth % 2]
        middle = (asked[0] + asked[1]) // 2
        inner = depth < 2 * levels
        feature.append(depth % 2 if inner else LEAF)
        cut.append(middle if inner else 0)
        rank.append(depth)
        low.append(node + len(waiting) + 1 if inner else node)
        high.append(node + len(waiting) + 2 if inner else node)
        if inner:
            halves = ((asked[0], middle), (middle, asked[1]))
            waiting += [(half, b, depth + 1) if depth % 2 == 0 else (a, half, depth + 1) for half in halves]
    return TreeDraft(*map(np.array, (feature, cut, low, high, rank)), inside=np.zeros(len(feature), dtype=np.bool_))


def test_leaves_follow_each_other_as_the_cells_of_an_order_of_bits() -> None:
    tree, levels = full_grid(3), 3
    fine = np.stack([axis.ravel() for axis in np.meshgrid(*[np.arange(1 << levels)] * 2, indexing="ij")])
    place = tree.keys[leaf_of(fine.astype(np.int32), tree.feature, tree.cut, tree.low, tree.high)]
    rank = gray_rank(list(fine), [levels] * 2, [0, 1] * levels)
    assert np.argsort(place).tolist() == np.argsort(rank).tolist()


def test_the_qd_tree_cuts_only_at_predicates_and_has_no_more_leaves_than_files() -> None:
    columns, asked = sample(0), queries(1)
    table, estimator = prepared(columns, asked)
    tree = grow_by_predicates(table, estimator, np.ones(80), asked)
    ends = range_ends(asked, table.encodings)
    inner = tree.feature != LEAF
    assert all(cut in ends[f] for f, cut in zip(tree.feature[inner], tree.cut[inner], strict=True))
    block, number = table.blocks(tree)
    assert (~inner).sum() == number <= FILES
    assert np.bincount(block).min() > 1


def test_the_qd_tree_has_as_many_files_as_its_smallest_leaf_allows() -> None:
    """Of fewer files more is read, which would flatter whoever is compared with it."""
    columns, asked = sample(5), queries(6)
    table, estimator = prepared(columns, asked)
    most = table.blocks(grow_by_predicates(table, estimator, np.ones(80), asked))[1]
    settings = GrowSettings(quantiles=0, prior=0.0, inner=0, literals=tuple(range_ends(asked, table.encodings)))
    ground = grow._ground(table.fine, estimator, np.ones(80), table.rows_per_file, table.partition)
    trees = [grow._grown(ground, np.ones(80), settings, least) for least in range(50, 250)]
    leaves = [int((tree.feature == LEAF).sum()) for tree in trees]
    assert most == max(count for count in leaves if count <= FILES)


@pytest.mark.parametrize(
    ("kind", "values", "cuts"),
    [
        ("int", np.arange(10), {"<": [4], "<=": [5], ">": [5], ">=": [4], "=": [4, 5]}),
        ("double", np.arange(10.0), {"<": [4], "<=": [5], ">": [5], ">=": [4], "=": [4, 5]}),
    ],
)
def test_ranges_end_before_or_after_their_bounds(kind: str, values: np.ndarray, cuts: dict[str, list[int]]) -> None:
    schema, valid = TableSchema((Column("a", kind),)), np.ones(10, dtype=bool)
    encoding = rank_encoding("a", kind, values, valid)
    for op, places in cuts.items():
        asked = to_boxes(Comparison("a", op, (Literal("number", "4"),)), schema)
        assert range_ends([asked], [encoding])[0].tolist() == encoding.codes[places].tolist(), op


def test_literals_beyond_64_bits_are_no_others_among_doubles() -> None:
    values, far = np.array([1.0, 1e18, 1e19, 1e30, np.inf, np.nan]), "10000000000000000000000000"
    encoding = rank_encoding("a", "double", values, np.ones(6, dtype=bool))
    for kind, expected in (("double", encoding.codes[3:4].tolist()), ("bigint", [])):
        asked = to_boxes(Comparison("a", ">", (Literal("number", far),)), TableSchema((Column("a", kind),)))
        own = encoding if kind == "double" else rank_encoding("a", kind, np.arange(6), np.ones(6, dtype=bool))
        assert range_ends([asked], [own])[0].tolist() == expected


def test_without_queries_or_values_to_cut_by_nothing_breaks() -> None:
    table, estimator = prepared(sample(0), [])
    tree = grow_tree(table.fine, estimator, np.ones(0), table.rows_per_file)
    assert table.blocks(tree)[1] == pytest.approx(FILES, abs=3)
    heavy = {
        name: (np.zeros(ROWS, dtype=np.int64) + (np.arange(ROWS) < 9), np.ones(ROWS, dtype=bool)) for name in "abc"
    }
    table, estimator = prepared(heavy, queries(1))
    tree = grow_tree(table.fine, estimator, np.ones(80), table.rows_per_file)
    assert (tree.feature == LEAF).all(), "the nine other rows are too few for a file of their own"
    assert table.blocks(tree)[1] == 1


def test_an_equal_seed_gives_an_equal_tree_and_weights_matter() -> None:
    table, estimator = prepared(sample(0), queries(1))
    one, two = (grow_tree(table.fine, estimator, np.ones(80), table.rows_per_file) for _ in range(2))
    assert (one.feature == two.feature).all()
    either = [between(b=(100 * i, 100 * i + 150)) if i % 2 else between(c=(100 * i, 100 * i + 150)) for i in range(80)]
    table, estimator = prepared(sample(0), either)
    cuts = []
    for weight in (1.0, 0.05):
        weights = np.where(np.arange(80) % 2, 1.0, weight)
        tree = grow_tree(table.fine, estimator, weights, table.rows_per_file, GrowSettings(inner=0))
        cuts.append(np.bincount(tree.feature[tree.feature != LEAF], minlength=3))
    assert cuts[1][1] > cuts[0][1] + 5
    assert cuts[1][0] == 0


@pytest.mark.parametrize(
    "data",
    [
        {"feature": [0, -1], "cut": [1, 0], "low": [1, 1], "high": [1, 1], "key": [0, 0]},
        {"feature": [0], "cut": [1], "low": [0], "high": [0], "key": [0]},
        {"feature": [-1], "cut": [0], "low": [0], "high": [0], "key": [-1]},
        {"feature": [0, -1, -1], "cut": [1, 0, 0], "low": [1, 1, 2], "high": [2, 1, 2], "key": [0, 1, 1]},
        {"feature": [0, -1, -1], "cut": [1, 0, 0], "low": [1, 1, 2], "high": [2, 1, 2]},
        {"feature": [], "cut": [], "low": [], "high": [], "key": []},
    ],
)
def test_a_malformed_tree_is_refused_in_a_sentence(data: dict) -> None:
    with pytest.raises(PlanError, match="malformed"):
        CutTree.from_json(data)


def test_a_tree_that_cuts_where_its_features_do_not_is_refused() -> None:
    table, estimator = prepared(sample(0), queries(1))
    data = table.spec(grow_tree(table.fine, estimator, np.ones(80), table.rows_per_file)).to_json()
    data["tree"]["cut"][0] = 10_000
    with pytest.raises(PlanError, match="cut that its features do not have"):
        KeySpec.from_json(data)
    with pytest.raises(PlanError, match="if and only if"):
        KeySpec.from_json(data | {"curve": "interleave"})
