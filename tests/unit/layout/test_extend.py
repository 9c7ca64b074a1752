"""Breakpoints that grow: new values are divided like the old ones, and nothing changes for those."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.layout.draft import SampledTable
from zorder_pipeline.layout.encoding import rank_encoding
from zorder_pipeline.layout.extend import extended
from zorder_pipeline.layout.grow import grow_tree
from zorder_pipeline.layout.interleave import keys
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.predicate import Comparison, Literal
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.model.schema import Column, TableSchema

Columns = dict[str, tuple[np.ndarray, np.ndarray]]


def column(values: np.ndarray, nulls: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    return values, np.random.default_rng(0).random(len(values)) >= nulls


def specs(columns: Columns) -> list[KeySpec]:
    """An interleaved key, a Hilbert curve and a tree over day and part."""
    encodings = [rank_encoding(name, "int", *columns[name]) for name in ("day", "part")]
    features = tuple(encoding.feature(4) for encoding in encodings)
    schema = TableSchema((Column("day", "int"), Column("part", "int")))
    rows = len(columns["day"][0])
    table = SampledTable.build(columns, {"day": "int", "part": "int"}, ["day", "part"], np.zeros(rows, np.int32), 40)
    asked = [
        to_boxes(Comparison(name, "=", (Literal("number", str(value)),)), schema)
        for name in ("day", "part")
        for value in range(5, 100, 9)
    ]
    tree = grow_tree(table.fine, Estimator.build(columns, schema, asked, rows), np.ones(len(asked)), rows / 40)
    return [KeySpec(features, (0, 1) * 4, curve) for curve in ("interleave", "hilbert")] + [table.spec(tree)]


def old_rows() -> Columns:
    rng = np.random.default_rng(1)
    return {"day": column(rng.integers(0, 100, 4000), 0.05), "part": column(rng.integers(0, 100, 4000))}


def new_rows(first: int, last: int) -> Columns:
    rng = np.random.default_rng(2)
    return {"day": column(rng.integers(first, last, 2000), 0.05), "part": column(rng.integers(0, 100, 2000))}


@pytest.mark.parametrize("kind", range(3))
def test_new_days_are_divided_and_old_ones_lie_as_before(kind: int) -> None:
    spec, new = specs(old_rows())[kind], new_rows(100, 130)
    longer = extended(spec, new)
    assert longer.layout_id == spec.layout_id
    assert longer.base == spec
    assert (keys(longer, old_rows()) == keys(spec, old_rows())).all()
    before, after = keys(spec, new), keys(longer, new)
    day, valid = new["day"]
    spread = [len(np.unique(key[valid & (new["part"][0] == 50)])) for key in (before, after)]
    assert spread[1] >= 4 * spread[0]  # rows of one part differ by day now
    inside = keys(longer, {"day": (np.full(2000, 50), np.ones(2000, bool)), "part": new["part"]})
    assert after[valid].min() > inside.max()  # beyond the old range is another region of the key
    assert day.min() > 99


def test_a_few_strays_extend_nothing() -> None:
    spec = specs(old_rows())[0]
    some = old_rows()
    some["day"][0][:100] = 10_000
    assert extended(spec, some) == spec
    assert extended(spec, {}) == spec


def test_extending_twice_starts_from_what_was_learned() -> None:
    spec = specs(old_rows())[0]
    once = extended(spec, new_rows(100, 130))
    assert extended(once, new_rows(140, 150)) == extended(spec, new_rows(140, 150))
    assert KeySpec.from_json(json.loads(json.dumps(once.to_json()))) == once


@given(st.lists(st.integers(-50, 400), min_size=1, max_size=60))
def test_an_extended_feature_still_orders_its_values(values: list[int]) -> None:
    spec = specs(old_rows())[0]
    feature = extended(spec, {"day": (np.array(values), np.ones(len(values), bool))}).features[0]
    assert list(feature.breakpoints) == sorted(set(feature.breakpoints))
    assert list(feature.codes) == sorted(set(feature.codes))


def test_strings_and_times_are_extended_too() -> None:
    names = np.array([f"k{i:04d}" for i in range(1000)], dtype=object)
    spec = KeySpec((rank_encoding("s", "string", names, np.ones(1000, bool)).feature(3),), (0,) * 3)
    later = np.array([f"m{i:04d}" for i in range(1000)], dtype=object)
    key = keys(extended(spec, {"s": (later, np.ones(1000, bool))}), {"s": (later, np.ones(1000, bool))})
    assert len(np.unique(key)) == 8
    assert (np.diff(key) >= 0).all()
