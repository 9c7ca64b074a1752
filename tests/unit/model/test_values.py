"""Canonical values: order, nulls, widths, and their JSON form."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.model.values import ValueType, canonical_array, sort_unique, value_from_json, value_to_json


@pytest.mark.parametrize(
    ("array", "type_name", "expected"),
    [
        (pa.array([3, None, -1], pa.int8()), "tinyint", [3, 0, -1]),
        (pa.array([True, None, False]), "boolean", [1, 0, 0]),
        (pa.array([dt.date(1970, 1, 3), None]), "date", [2, 0]),
        (pa.array([dt.datetime(1970, 1, 1, 0, 0, 1)], pa.timestamp("us", "UTC")), "timestamp", [1_000_000]),
        (pa.array([1_500], pa.timestamp("ns")), "timestamp_ntz", [1]),
        (pa.array([Decimal(10**35 + 15)], pa.decimal128(38, 0)), "decimal(38,0)", [10**35 + 15]),
        (pa.array([Decimal("-1.25"), None], pa.decimal128(12, 2)), "decimal(12,2)", [-125, 0]),
        (pa.array([Decimal("-1.25"), None], pa.decimal128(38, 2)), "decimal(38,2)", [-125, 0]),
        (pa.array(["b", None], pa.large_string()), "string", ["b", ""]),
        (pa.array(["b", "a", "b"]).dictionary_encode(), "string", ["b", "a", "b"]),
        (pa.chunked_array([[1.5], [None]]), "float", [1.5, 0.0]),
    ],
)
def test_arrow_columns_become_canonical(array: pa.Array, type_name: str, expected: list) -> None:
    value_type = ValueType.parse(type_name)
    values, valid = canonical_array(array, value_type)
    assert values.tolist() == expected
    assert values.dtype == value_type.numpy_dtype
    assert valid.tolist() == [item is not None for item in array.to_pylist()]


def test_a_slice_of_decimals_keeps_its_place() -> None:
    array = pa.array([Decimal("1.00"), Decimal("2.00"), Decimal("3.00")], pa.decimal128(9, 2))[1:]
    assert canonical_array(array, ValueType.parse("decimal(9,2)"))[0].tolist() == [200, 300]


def test_a_nested_type_has_no_order() -> None:
    with pytest.raises(ValueError, match="array<int> have no order"):
        canonical_array(pa.array([[1]]), ValueType.parse("array<int>"))


@pytest.mark.parametrize(
    ("name", "family", "bounds"),
    [
        ("LONG", "integer", (-(1 << 63), (1 << 63) - 1)),
        ("byte", "integer", (-128, 127)),
        ("decimal(3, 1)", "decimal", (-999, 999)),
        ("varchar(10)", "string", None),
        ("map<string,int>", "other", None),
        ("string collate UNICODE_CI", "other", None),
    ],
)
def test_types_are_recognised(name: str, family: str, bounds: tuple | None) -> None:
    value_type = ValueType.parse(name)
    assert (value_type.family, value_type.bounds) == (family, bounds)


@given(st.one_of(st.integers(), st.floats(), st.text(), st.binary()))
def test_values_survive_json(value: object) -> None:
    back = value_from_json(value_to_json(value))
    assert back == value or (back != back and value != value)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=3)))
def test_strings_are_ordered_by_their_utf8_bytes(words: list[str]) -> None:
    array = np.empty(len(words), dtype=object)
    array[:] = words
    assert sort_unique(array).tolist() == sorted(set(words), key=lambda word: word.encode())


def test_nan_is_sorted_last_and_once() -> None:
    assert str(sort_unique(np.array([np.nan, 1.0, np.nan, np.inf]))) == "[ 1. inf nan]"
