"""The estimator against a brute-force oracle, and against `ZoneMap.matching` on the same blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zorder_pipeline.layout import skipping
from zorder_pipeline.layout.skipping import Estimator, stored_bounds
from zorder_pipeline.model.predicate import And, Comparison, Literal, Or, Predicate
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import ValueType
from zorder_pipeline.model.zone_map import ColumnZones, ZoneMap

SCHEMA = TableSchema(
    (Column("i", "int"), Column("d", "double"), Column("s", "string"), Column("b", "boolean", delta_stats=False))
)
ASKED = (("s", "string", "b"), ("i", "number", "1"))
NUMBERS = st.integers(-6, 6)
WORDS = st.text("ab\0z", max_size=3) | st.sampled_from(["x" * 31, "x" * 32 + "a", "x" * 32 + "b", "x" * 40])


def literal(column: str, draw: st.DrawFn) -> Literal:
    if column == "s":
        return Literal("string", draw(WORDS))
    if column == "b":
        return Literal("boolean", "true")
    return Literal("number", draw(st.sampled_from(["0", "2.5", "-3", "nan" if column == "d" else "4"])))


@st.composite
def predicates(draw: st.DrawFn, depth: int = 2) -> Predicate:
    if depth and draw(st.booleans()):
        children = tuple(draw(st.lists(predicates(depth - 1), min_size=1, max_size=3)))
        return And(children) if draw(st.booleans()) else Or(children)
    column = draw(st.sampled_from("idsb"))
    op = draw(
        st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "between", "in", "is_null", "is_not_null", "starts_with"])
    )
    if op == "starts_with" and column != "s":
        op = "="
    count = {"between": 2, "in": 3, "is_null": 0, "is_not_null": 0}.get(op, 1)
    return Comparison(column, op, tuple(literal(column, draw) for _ in range(count)))


def zones(values: np.ndarray, valid: np.ndarray, kind: str, block: np.ndarray, blocks: int) -> ColumnZones:
    """Bounds per block in the plainest way: Python's min and max over the stored bounds, NaN last."""

    def key(value: object) -> tuple[bool, object]:
        return (isinstance(value, float) and np.isnan(value), value)

    stored_low, stored_high = stored_bounds(values, ValueType.parse(kind))
    low, high = np.empty(blocks, dtype=values.dtype), np.empty(blocks, dtype=values.dtype)
    known, nulls = np.zeros(blocks, dtype=bool), np.zeros(blocks, dtype=np.int64)
    for b in range(blocks):
        rows = np.flatnonzero((block == b) & valid)
        nulls[b] = ((block == b) & ~valid).sum()
        if len(rows):
            low[b] = min((stored_low[r] for r in rows), key=key)
            high[b] = max((stored_high[r] for r in rows), key=key)
            known[b] = True
        elif values.dtype == object:
            low[b] = high[b] = ""
    return ColumnZones(low, high, known, nulls)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_rows_read_agree_with_zone_maps_built_by_hand(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 30))
    blocks = data.draw(st.integers(1, 5))
    block = np.array(data.draw(st.lists(st.integers(0, blocks - 1), min_size=n, max_size=n)), dtype=np.int32)

    def column(values: st.SearchStrategy, dtype: object) -> tuple[np.ndarray, np.ndarray]:
        drawn = data.draw(st.lists(values, min_size=n, max_size=n))
        array = np.empty(n, dtype=dtype)
        array[:] = drawn
        return array, np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))

    columns = {
        "i": column(NUMBERS, np.int64),
        "d": column(st.sampled_from([-3.0, 0.0, 2.5, float("nan"), float("inf")]), np.float64),
        "s": column(WORDS, object),
    }
    boxes = to_boxes(data.draw(predicates()), SCHEMA)
    got = Estimator.build(columns, SCHEMA, [boxes, ((),)], n).rows_read(block, blocks)
    rows = np.bincount(block, minlength=blocks)
    by_column = {c: zones(*columns[c], SCHEMA.find(c).type, block, blocks) for c in columns}
    zone_map = ZoneMap(rows, rows * 0, by_column)
    expected = rows[zone_map.matching(boxes) & (rows > 0)].sum()
    assert got.tolist() == [expected, n]


def test_a_timestamp_maximum_is_read_one_millisecond_later() -> None:
    low, high = stored_bounds(np.array([1_234_567]), ValueType("timestamp"))
    assert (low[0], high[0]) == (1_234_000, 1_235_000)


def test_texts_that_end_in_nul_are_other_texts() -> None:
    values, valid = np.array(["a", "a\0"], dtype=object), np.ones(2, dtype=bool)
    asked = [to_boxes(Comparison("s", op, (Literal("string", "a\0"),)), SCHEMA) for op in ("=", "<", ">=", ">")]
    found = Estimator.build({"s": (values, valid)}, SCHEMA, asked, 2).rows_read(np.arange(2, dtype=np.int32), 2)
    assert found.tolist() == [1, 1, 1, 0]


@pytest.mark.parametrize("length", [32, 33])
def test_string_bounds_are_cut_at_32_characters(length: int) -> None:
    low, high = stored_bounds(np.array(["y" * length], dtype=object), ValueType("string"))
    assert low[0] == "y" * 32
    assert high[0] > "y" * length or length == 32


def test_partitions_are_told_by_their_values_themselves() -> None:
    """Which the log has whole, where the statistics of files have 32 characters, and milliseconds."""
    texts = np.array(["y" * 40 + "a", "y" * 40 + "b"], dtype=object)
    moments, first = np.array([1, 2]), "1970-01-01 00:00:00.000001"
    for kind, values, literal in (("string", texts, texts[0]), ("timestamp", moments, first)):
        asked = Comparison("p", "=", (Literal("string", literal),))
        found = []
        for partition in (True, False):
            schema = TableSchema((Column("p", kind, partition=partition),))
            columns = {"p": (values, np.ones(2, dtype=bool))}
            estimator = Estimator.build(columns, schema, [to_boxes(asked, schema)], 2)
            found.append(estimator.rows_read(np.arange(2, dtype=np.int32), 2)[0])
        assert found == [1, 2]


def test_a_column_is_sorted_once_for_as_long_as_it_lives() -> None:
    text = np.array(["b", "a", "c"], dtype=object)
    columns = {"s": (text, np.array([True, True, False])), "i": (np.array([3, 1, 2]), np.ones(3, dtype=bool))}
    queries = [to_boxes(Comparison(name, "=", (Literal(kind, value),)), SCHEMA, "UTC") for name, kind, value in ASKED]
    first, before = Estimator.build(columns, SCHEMA, queries, 3), len(skipping._DOMAINS)
    second = Estimator.build(columns, SCHEMA, queries[:1], 3)
    assert len(skipping._DOMAINS) == before
    blocks = np.arange(3, dtype=np.int32)
    assert first.rows_read(blocks, 3).tolist() == [1, 1]
    assert second.rows_read(blocks, 3).tolist() == [1]
    other = {**columns, "s": (text[::-1].copy(), columns["s"][1][::-1].copy())}
    assert Estimator.build(other, SCHEMA, queries, 3).rows_read(blocks, 3).tolist() == [1, 1]
    del columns, other, text
    assert len(skipping._DOMAINS) <= before - 2
