"""Breakpoints that grow: new values are divided like the old ones, and nothing changes for those."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.errors import PlanError
from zorder_pipeline.layout.bits import raw_encoding
from zorder_pipeline.layout.draft import SampledTable
from zorder_pipeline.layout.encoding import codes_of, rank_encoding
from zorder_pipeline.layout.extend import MOST_CODES, MOST_EPOCHS, extended
from zorder_pipeline.layout.grow import grow_tree
from zorder_pipeline.layout.interleave import keys
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.predicate import Comparison, Literal
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import order_key

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
    return [KeySpec(features, (0, 1) * 4, curve) for curve in ("interleave", "gray", "hilbert")] + [table.spec(tree)]


def old_rows() -> Columns:
    rng = np.random.default_rng(1)
    return {"day": column(rng.integers(0, 100, 4000), 0.05), "part": column(rng.integers(0, 100, 4000))}


def new_rows(first: int, last: int) -> Columns:
    rng = np.random.default_rng(2)
    return {"day": column(rng.integers(first, last, 2000), 0.05), "part": column(rng.integers(0, 100, 2000))}


@pytest.mark.parametrize("kind", range(4))
def test_new_days_are_divided_and_old_ones_lie_as_before(kind: int) -> None:
    spec, new = specs(old_rows())[kind], new_rows(100, 130)
    longer = extended(spec, new, 2000)
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


@pytest.mark.parametrize("kind", range(4))
def test_many_times_the_rows_make_as_many_epochs_each_divided_like_the_old_rows(kind: int) -> None:
    spec, new = replace(specs(old_rows())[kind], rows=4000, clock="day"), new_rows(100, 500)
    longer = extended(spec, new, 32_000)
    assert longer.features[[f.column for f in longer.features].index("day")].epochs == 8
    assert longer.layout_id == spec.layout_id
    assert longer.base == spec
    key, (day, valid) = keys(longer, new), new["day"]
    epoch = key[valid] >> spec.bits
    assert sorted(set(epoch.tolist())) == list(range(1, 9))
    assert key.max() <= longer.highest
    spans = [np.ptp(day[valid][epoch == number]) for number in range(1, 9)]
    assert max(spans) <= 70  # 400 days in eight epochs
    feature = next(feature for feature in longer.features if feature.column == "day")
    code = codes_of(feature, day, valid)[valid] & ((1 << feature.bits) - 1)
    used = [len(np.unique(code[epoch == number])) for number in range(1, 9)]
    assert min(used) >= min(40, len(feature.base.codes))  # as finely as the old rows, but for fifty days an epoch
    assert KeySpec.from_json(json.loads(json.dumps(longer.to_json()))) == longer


def test_a_row_lies_in_the_latest_epoch_of_its_values() -> None:
    values = np.arange(100)
    features = tuple(rank_encoding(name, "int", *column(values)).feature(2) for name in "ab")
    spec = KeySpec(features, (0, 1, 0, 1), rows=100, clock="a")
    later = {"a": column(np.arange(100, 200)), "b": column(np.arange(50, 150))}
    longer = extended(spec, later, 800)
    assert [feature.epochs for feature in longer.features] == [8, 1]
    epochs = np.stack([codes_of(f, *later[f.column]) >> f.bits for f in longer.features])
    assert (keys(longer, later) >> spec.bits == epochs.max(axis=0)).all()


def test_there_are_no_more_epochs_than_a_key_has_numbers_for() -> None:
    day = rank_encoding("day", "int", *column(np.arange(1000))).feature(4)
    part = rank_encoding("part", "int", *column(np.arange(70_000))).feature(16)
    order = (0,) * 4 + (1,) * 16
    rows = {"day": column(np.arange(1000, 3000)), "part": column(np.arange(2000))}
    few = extended(KeySpec((day, part), order, rows=2, clock="day"), rows, 10**12)
    assert few.features[0].epochs == MOST_CODES // 16, "each start is in the SQL"
    assert keys(few, rows).max() < 1 << 62
    flag = KeySpec((rank_encoding("day", "int", *column(np.arange(1000))).feature(1),), (0,), rows=2, clock="day")
    assert extended(flag, {"day": rows["day"]}, 10**12).features[0].epochs == MOST_EPOCHS
    long = replace(day, bits=40, codes=tuple(code << 36 for code in day.codes))
    full = extended(KeySpec((long, part), (0,) * 40 + (1,) * 16, rows=2, clock="day"), rows, 10**12)
    assert full.features[0].epochs == full.most_epochs == 63
    assert full.highest < 1 << 62
    with pytest.raises(PlanError, match="no room for so many epochs"):
        replace(full, features=(replace(full.features[0], codes=(*full.features[0].codes[:-1], 64 << 40)), part))


def test_without_the_rows_it_was_learned_from_all_new_rows_are_one_epoch() -> None:
    spec = replace(specs(old_rows())[0], clock="day")
    assert extended(spec, new_rows(100, 500), 10**9) == extended(spec, new_rows(100, 500), 2000)
    assert max(feature.epochs for feature in extended(spec, new_rows(100, 500), 10**9).features) == 1


def test_a_few_strays_extend_nothing() -> None:
    spec = specs(old_rows())[0]
    some = old_rows()
    some["day"][0][:100] = 10_000
    assert extended(spec, some, 4000) == spec
    assert extended(spec, {}, 10) == spec


def test_few_rows_that_are_later_by_the_clock_extend_it() -> None:
    """A full relayout of a table to which a few days were added."""
    spec = replace(specs(old_rows())[0], clock="day")
    some = old_rows()
    some["day"][0][:40], some["part"][0][:40] = np.arange(1000, 1040), np.arange(1000, 1040)
    longer = extended(spec, some, 4000)
    assert [feature.epochs for feature in longer.features] == [1, 0]


def test_a_column_with_nan_is_extended_for_larger_numbers() -> None:
    """pandas has nulls of whole numbers as NaN."""
    old = np.where(np.arange(4000) % 10 == 0, np.nan, np.arange(4000.0))
    spec = KeySpec((rank_encoding("x", "double", old, np.ones(4000, bool)).feature(3),), (0,) * 3)
    new, valid = np.concatenate([np.arange(4000.0, 8000.0), [np.nan, -1.0, np.inf]]), np.ones(4003, bool)
    key = keys(extended(spec, {"x": (new, valid)}, 4003), {"x": (new, valid)})
    assert len(np.unique(key[:4000])) == 8
    assert (key[:4000] > 7).all()
    assert key[4000] == keys(spec, {"x": (new, valid)})[4000] < 8
    assert (key[4001], key[4002]) == (0, key[3999])


def test_extending_twice_starts_from_what_was_learned() -> None:
    spec = specs(old_rows())[0]
    once = extended(spec, new_rows(100, 130), 2000)
    assert extended(once, new_rows(140, 150), 2000) == extended(spec, new_rows(140, 150), 2000)
    assert KeySpec.from_json(json.loads(json.dumps(once.to_json()))) == once


@given(st.lists(st.integers(-50, 400), min_size=1, max_size=60), st.integers(1, 1_000_000))
def test_an_extended_feature_still_orders_its_values(values: list[int], rows: int) -> None:
    spec = replace(specs(old_rows())[0], rows=4000, clock="day")
    feature = extended(spec, {"day": (np.array(values), np.ones(len(values), bool))}, rows).features[0]
    assert list(feature.breakpoints) == sorted(set(feature.breakpoints))
    assert list(feature.codes) == sorted(set(feature.codes))


RAW: dict[str, tuple[st.SearchStrategy, type]] = {
    "int": (st.integers(-1000, 1000), np.int64),
    "date": (st.integers(0, 30_000), np.int64),
    "double": (st.floats(-1e6, 1e6) | st.sampled_from([float("nan"), float("inf")]), np.float64),
    "string": (st.text("ab\0z", max_size=3), object),
    "decimal(20,0)": (st.integers(-(10**19), 10**19), object),
}


def array(values: list[object], dtype: type) -> np.ndarray:
    found = np.empty(len(values), dtype=dtype)
    found[:] = values
    return found


@given(st.data())
def test_raw_bits_are_extended_beyond_the_last_of_them(data: st.DataObject) -> None:
    """Their breakpoints run on to the end of the dyadic range, above the largest value there was."""
    kind = data.draw(st.sampled_from(sorted(RAW)))
    strategy, dtype = RAW[kind]
    bounds = [value for value in data.draw(st.lists(strategy, min_size=2, max_size=2)) if value == value]
    known = (min(bounds), max(bounds)) if bounds else ()
    feature = raw_encoding("x", kind, data.draw(st.integers(1, 6)), known or None)
    values = array(data.draw(st.lists(strategy, min_size=1, max_size=40)), dtype)
    spec = KeySpec((feature,), (0,) * feature.bits, rows=10, clock=data.draw(st.sampled_from(["", "x"])))
    valid = np.ones(len(values), dtype=bool)
    longer = extended(spec, {"x": (values, valid)}, data.draw(st.integers(1, 1000)))
    assert longer.base == spec
    assert longer.layout_id == spec.layout_id
    key, before = keys(longer, {"x": (values, valid)}), keys(spec, {"x": (values, valid)})
    last = max((order_key(value) for value in (*feature.breakpoints[-1:], *known[1:])), default=(True, 0.0))
    old = np.array([order_key(value) <= last for value in values.tolist()])
    assert (key[old] == before[old]).all()


def test_a_layout_by_hand_divides_what_came_after_the_last_of_its_bits() -> None:
    spec = KeySpec((raw_encoding("x", "int", 2, (0, 70)),), (0, 0), rows=100, clock="x")
    values, valid = np.arange(130), np.ones(130, dtype=bool)
    assert extended(spec, {"x": (values[:90], valid[:90])}, 130) == spec, "to 96 there is room in the last code"
    longer = extended(spec, {"x": (values, valid)}, 130)
    assert longer.features[0].breakpoints[:4] == (32, 64, 96, 97)
    assert longer.features[0].epochs == 1


def test_strings_and_times_are_extended_too() -> None:
    names = np.array([f"k{i:04d}" for i in range(1000)], dtype=object)
    spec = KeySpec((rank_encoding("s", "string", names, np.ones(1000, bool)).feature(3),), (0,) * 3)
    later = np.array([f"m{i:04d}" for i in range(1000)], dtype=object)
    key = keys(extended(spec, {"s": (later, np.ones(1000, bool))}, 1000), {"s": (later, np.ones(1000, bool))})
    assert len(np.unique(key)) == 8
    assert (np.diff(key) >= 0).all()


def test_what_ends_in_nul_is_beyond_what_does_not() -> None:
    values, valid = np.array([b"a\0"] * 60 + [b"a"] * 40, dtype=object), np.ones(100, dtype=bool)
    spec = KeySpec((rank_encoding("x", "binary", np.array([b"7", b"a"], dtype=object), valid[:2]).feature(1),), (0,))
    key = keys(extended(spec, {"x": (values, valid)}, 100), {"x": (values, valid)})
    assert key[:60].min() > key[60:].max()
    spec = KeySpec((rank_encoding("x", "binary", values, valid).feature(1),), (0,))
    assert extended(spec, {"x": (values, valid)}, 100) == spec, "the largest value is not beyond itself"
