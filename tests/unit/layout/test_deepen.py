"""Spare bits: today's files stay as good as they were, and a table that has grown is divided further."""

import numpy as np
import pytest

from zorder_pipeline.layout.deepen import WORSE, deepened
from zorder_pipeline.layout.draft import Draft, SampledTable
from zorder_pipeline.layout.explain import explain
from zorder_pipeline.layout.grow import Grower, GrowSettings
from zorder_pipeline.layout.placement import files_under
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.layout.tree import TreeDraft
from zorder_pipeline.model.predicate import And, Comparison, Literal
from zorder_pipeline.model.ranges import Boxes, to_boxes
from zorder_pipeline.model.schema import Column, TableSchema

ROWS = 20_000
TYPES = {"a": "int", "b": "int", "day": "date", "flag": "int"}
SCHEMA = TableSchema(tuple(Column(name, kind) for name, kind in TYPES.items()))
Columns = dict[str, tuple[np.ndarray, np.ndarray]]


def columns(days: tuple[int, int] = (0, 100), seed: int = 0) -> Columns:
    rng, valid = np.random.default_rng(seed), np.ones(ROWS, dtype=bool)
    ranges = {"a": (0, 1000), "b": (0, 1000), "day": days, "flag": (0, 2)}
    return {name: (rng.integers(low, high, ROWS), valid) for name, (low, high) in ranges.items()}


def between(name: str, low: int, width: int) -> And:
    ends = (("<=", low + width), (">=", low))
    return And(tuple(Comparison(name, sign, (Literal("number", str(value)),)) for sign, value in ends))


def asked(seed: int, names: tuple[str, ...] = ("a", "b")) -> list[Boxes]:
    rng = np.random.default_rng(seed)
    return [
        to_boxes(And(tuple(between(name, int(rng.integers(0, 900)), 60) for name in names)), SCHEMA) for _ in range(80)
    ]


def sampled(features: list[str], files: int = 6) -> tuple[SampledTable, Columns]:
    rows = columns()
    return SampledTable.build(rows, TYPES, features, np.zeros(ROWS, np.int32), files), rows


def read(table: SampledTable, draft: Draft | TreeDraft, rows: Columns, files: int, queries: list[Boxes]) -> float:
    block = files_under(table.spec(draft), rows, ROWS / files).astype(np.int32)
    return float(Estimator.build(rows, SCHEMA, queries, ROWS).rows_read(block, int(block.max()) + 1).mean())


def test_an_order_goes_on_with_what_helps_smaller_files_and_reads_the_same_today() -> None:
    table, rows = sampled(["a", "b", "flag"])
    estimator = Estimator.build(rows, SCHEMA, asked(0), ROWS)
    short = Draft((0, 1, 0))
    longer, spare = deepened(short, table, estimator, np.ones(80))
    assert isinstance(longer, Draft)
    assert longer.order[:3] == short.order
    assert spare == len(longer.order) - 3 >= 4
    assert set(longer.order) == {0, 1}  # nobody asks for the flag
    unseen = asked(1)
    assert read(table, longer, rows, 6, unseen) <= 1.01 * read(table, short, rows, 6, unseen)
    assert read(table, longer, rows, 64, unseen) < 0.5 * read(table, short, rows, 64, unseen)
    words = explain(table.spec(longer))
    assert not any("inside files" in sentence for sentence in words)
    from dataclasses import replace

    assert f"the last {spare} bits order rows inside files" in explain(replace(table.spec(longer), spare=spare))[-1]


@pytest.mark.parametrize("order", [(0, 1, 2, 2), (0, 1, 0, 1, 2), (0, 1, 0, 2, 2)])
def test_last_bits_that_tell_no_files_apart_are_found_anew(order: tuple[int, ...]) -> None:
    """Files of today end at cells of fewer bits; what a search puts after them has helped nobody yet."""
    table, rows = sampled(["a", "b", "flag"], 4)
    estimator = Estimator.build(rows, SCHEMA, asked(0), ROWS)
    longer, spare = deepened(Draft(order), table, estimator, np.ones(80))
    assert isinstance(longer, Draft)
    assert set(longer.order) == {0, 1}
    assert spare == len(longer.order) - 2
    as_found = Draft((*order, *longer.order[len(order) :]))
    unseen = asked(1)
    assert read(table, longer, rows, 4, unseen) <= 1.01 * read(table, Draft(order), rows, 4, unseen)
    assert read(table, longer, rows, 64, unseen) < 0.7 * read(table, as_found, rows, 64, unseen)


@pytest.mark.parametrize("files", [17, 18])
def test_a_bit_that_moves_the_ends_of_files_gives_way_to_another(files: int) -> None:
    """The next bit of a would help smaller files most, and let today's end where they read more."""
    table, rows = sampled(["a", "b", "flag"], files)
    estimator = Estimator.build(rows, SCHEMA, asked(0), ROWS)
    short = Draft((0, 1, 0, 1))
    longer, spare = deepened(short, table, estimator, np.ones(80))
    assert isinstance(longer, Draft)
    assert longer.order[4] == 1
    assert spare >= 6
    today = [float(table.rows_read(draft, estimator).sum()) for draft in (short, longer)]
    assert today[1] <= WORSE * today[0]


def test_a_key_ends_where_nothing_is_gained() -> None:
    table, rows = sampled(["flag", "a"])
    flags = [to_boxes(Comparison("flag", "=", (Literal("number", str(i % 2)),)), SCHEMA) for i in range(80)]
    estimator = Estimator.build(rows, SCHEMA, flags, ROWS)
    assert deepened(Draft((0,)), table, estimator, np.ones(80)) == (Draft((0,)), 0)


def test_a_small_sample_says_nothing_of_small_cells() -> None:
    rows = {name: (values[:90], valid[:90]) for name, (values, valid) in columns().items()}
    table = SampledTable.build(rows, TYPES, ["a", "b"], np.zeros(90, np.int32), 6)
    estimator = Estimator.build(rows, SCHEMA, asked(0), 90)
    longer, _ = deepened(Draft((0, 1, 0)), table, estimator, np.ones(80))
    assert isinstance(longer, Draft)
    assert len(longer.order) == 3  # cells of eleven rows


def test_a_tree_gets_further_cuts_inside_its_files() -> None:
    table, rows = sampled(["a", "b"])
    estimator = Estimator.build(rows, SCHEMA, asked(0), ROWS)
    grower = Grower(table, estimator, np.ones(80), GrowSettings())
    tree = grower.tree()
    deeper, spare = deepened(tree, table, estimator, np.ones(80), grower)
    assert isinstance(deeper, TreeDraft)
    assert spare == 0
    assert len(deeper.feature) > 2 * len(tree.feature)
    unseen = asked(1)
    assert read(table, deeper, rows, 6, unseen) <= 1.01 * read(table, tree, rows, 6, unseen)
    assert read(table, deeper, rows, 200, unseen) < 0.8 * read(table, tree, rows, 200, unseen)


def test_a_hilbert_curve_and_a_key_that_is_long_enough_stay() -> None:
    table, rows = sampled(["a", "b"])
    estimator = Estimator.build(rows, SCHEMA, asked(0), ROWS)
    for draft in (Draft((0, 1) * 3, "hilbert"), Draft((0, 1) * 8)):
        assert deepened(draft, table, estimator, np.ones(80)) == (draft, 0)
