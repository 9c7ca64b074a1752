"""Unsigned forms against the total order, Impala's comparator against interleaving, raw features against the forms."""

import json
import math
from functools import cache
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from zorder_pipeline.errors import PlanError
from zorder_pipeline.layout.bits import compare_z_order, most_significant_dimension, raw_encoding, unsigned_form
from zorder_pipeline.layout.encoding import codes_of
from zorder_pipeline.layout.interleave import interleave, round_robin
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.values import ValueType, order_key

WIDTHS = (32, 64, 128)


def whole(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high) | st.sampled_from([low, low + 1, -1, 0, 1, high - 1, high])


def signed(bits: int) -> st.SearchStrategy[int]:
    return whole(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def digits(count: int) -> st.SearchStrategy[int]:
    return whole(1 - 10**count, 10**count - 1)


def floats(width: int) -> st.SearchStrategy[float]:
    smallest, largest = (2.0**-149, 2.0**127 * (2 - 2**-23)) if width == 32 else (5e-324, 1.7976931348623157e308)
    edges = [math.inf, -math.inf, math.nan, 0.0, -0.0, smallest, -smallest, largest, -largest]
    return st.floats(width=width).map(lambda value: math.nan if math.isnan(value) else value) | st.sampled_from(edges)


CHARACTERS = st.sampled_from(list("\0\1 Aaz\x7f\x80é߿ࠀ\ud7ff\ue000\ufffd\uffff\U00010000\U0001f600\U0010ffff"))
CASES: dict[str, tuple[int, st.SearchStrategy]] = {  # bits that values fill, values
    "boolean": (1, st.integers(0, 1)),
    "tinyint": (8, signed(8)),
    "smallint": (16, signed(16)),
    "int": (32, signed(32)),
    "bigint": (64, signed(64)),
    "date": (32, whole(-719_162, 2_932_896) | signed(32)),  # 0001-01-01 to 9999-12-31
    "timestamp": (64, whole(-62_135_596_800_000_000, 253_402_300_799_999_999)),
    "timestamp_ntz": (64, signed(64)),
    "decimal(3,1)": (32, digits(3)),
    "decimal(9,0)": (32, digits(9)),
    "decimal(10,2)": (64, digits(10)),
    "decimal(18,4)": (64, digits(18)),
    "decimal(19,0)": (128, digits(19)),
    "decimal(38,10)": (128, digits(38)),
    "float": (32, floats(32)),
    "double": (64, floats(64)),
    "string": (128, st.text(CHARACTERS, max_size=20) | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)),
    "binary": (128, st.binary(max_size=20) | st.lists(st.sampled_from([0, 1, 127, 128, 255])).map(bytes)),
}


def canonical(values: list, type_name: str) -> tuple[np.ndarray, np.ndarray]:
    """Canonical values and validity of Python values; None is null."""
    blank = {"string": "", "binary": b""}.get(type_name, 0)
    array = np.empty(len(values), dtype=ValueType.parse(type_name).numpy_dtype)
    array[:] = [blank if value is None else value for value in values]
    return array, np.array([value is not None for value in values], dtype=bool)


def forms(values: list, type_name: str, width: int, nulls: str = "own") -> list[int]:
    return unsigned_form(*canonical(values, type_name), ValueType.parse(type_name), width, nulls).tolist()


@cache
def raw(type_name: str, bits: int) -> FeatureCodes:
    return raw_encoding("x", type_name, bits)


# ------------------------------------------------------------------------------------------------------ the form


@pytest.mark.parametrize(
    ("type_name", "width", "value", "form"),
    [
        ("int", 32, -(2**31), "00000000"),  # the seed: INT_MIN is 000...000, INT_MIN + 1 is 000...001,
        ("int", 32, -(2**31) + 1, "00000001"),
        ("int", 32, 0, "80000000"),
        ("int", 32, 2**31 - 1, "ffffffff"),  # INT_MAX is 111...111
        ("bigint", 64, -1, "7fffffffffffffff"),
        ("bigint", 32, -1, "7fffffff"),
        ("smallint", 32, 1, "80010000"),  # shifted up, then the sign bit is flipped
        ("tinyint", 64, -2, "7e00000000000000"),
        ("tinyint", 128, 127, "ff" + "00" * 15),
        ("boolean", 32, 1, "80000000"),
        ("boolean", 32, 0, "00000000"),
        ("date", 32, -1, "7fffffff"),  # 1969-12-31
        ("timestamp", 64, -1, "7fffffffffffffff"),
        ("decimal(9,2)", 32, -1, "7fffffff"),
        ("decimal(18,2)", 64, 1, "8000000000000001"),
        ("decimal(38,0)", 128, -1, "7" + "f" * 31),
        ("decimal(38,0)", 128, 10**38 - 1, f"{10**38 - 1 + 2**127:032x}"),
        ("float", 32, 1.0, "bf800000"),
        ("float", 32, -1.0, "407fffff"),  # negative: all bits flipped
        ("float", 64, -1.0, "407fffff00000000"),
        ("float", 32, math.inf, "ff800000"),
        ("float", 32, -math.inf, "007fffff"),
        ("double", 64, -0.0, "8000000000000000"),
        ("double", 64, 5e-324, "8000000000000001"),
        ("double", 64, -5e-324, "7ffffffffffffffe"),
        ("double", 64, math.nan, "0000000000000000"),
        ("string", 32, "ab", "61620000"),  # filled with zeros at the end
        ("string", 32, "abcde", "61626364"),
        ("string", 64, "é", "c3a9000000000000"),
        ("string", 128, "", "00" * 16),
        ("binary", 32, b"\xff\x00\x01", "ff000100"),
        ("bigint", 64, None, "0000000000000000"),
        ("string", 128, None, "00" * 16),
    ],
)
def test_seed_001_vectors(type_name: str, width: int, value: object, form: str) -> None:
    assert f"{forms([value], type_name, width, 'impala')[0]:0{width // 4}x}" == form


@settings(deadline=None)
@pytest.mark.parametrize("type_name", CASES)
@given(st.data())
def test_forms_come_in_the_total_order(type_name: str, data: st.DataObject) -> None:
    """Strictly where the width has room for the type: then only null's neighbours may meet, at form 1."""
    size, strategy = CASES[type_name]
    values = data.draw(st.lists(st.none() | strategy, max_size=12))
    for width in WIDTHS:
        found = forms(values, type_name, width)
        assert all((value is None) == (form == 0) for value, form in zip(values, found, strict=True))
        assert all(form < 1 << width for form in found)
        present = [(value, form) for value, form in zip(values, found, strict=True) if value is not None]
        for (a, form_a), (b, form_b) in combinations(sorted(present, key=lambda pair: order_key(pair[0])), 2):
            assert form_a <= form_b
            if order_key(a) == order_key(b):
                assert form_a == form_b
            elif type_name in ("string", "binary"):
                short = [value.encode() if isinstance(value, str) else value for value in (a, b)]
                if all(len(value) <= width // 8 and 0 not in value for value in short):
                    assert form_a < form_b
            elif size <= width:
                assert form_a < form_b or (size == width and form_b == 1)


@settings(deadline=None)
@pytest.mark.parametrize("type_name", CASES)
@given(st.data())
def test_impala_differs_only_in_null_nan_and_the_smallest_value(type_name: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | CASES[type_name][1], max_size=12))
    for width in WIDTHS:
        theirs, ours = forms(values, type_name, width, "impala"), forms(values, type_name, width)
        for value, impala, own in zip(values, theirs, ours, strict=True):
            if value is None or value != value:
                assert impala == 0
            else:
                assert own == max(impala, 1)
        widest = forms(values, type_name, 128, "impala")
        assert theirs == [form >> (128 - width) for form in widest]  # one form, cut to the width


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("type_name", ["float", "double"])
def test_null_and_nan_have_places_of_their_own(type_name: str, width: int) -> None:
    null, low, high, nan = forms([None, -math.inf, math.inf, math.nan], type_name, width)
    assert 0 == null < low < high < nan
    signalling = np.array([0xFFF8_0000_0000_0001, 0x7FF8_0000_0000_00FF], dtype=np.uint64).view(np.float64)
    assert forms(signalling.tolist(), type_name, width) == [nan, nan]  # every NaN is the same value


@pytest.mark.parametrize(("type_name", "bits"), [("int", 32), ("bigint", 64)])
def test_a_full_type_gives_up_the_difference_of_its_two_smallest_values_for_null(type_name: str, bits: int) -> None:
    low = -(1 << (bits - 1))
    assert forms([None, low, low + 1, low + 2], type_name, bits) == [0, 1, 1, 2]
    wider = forms([None, low, low + 1, low + 2], type_name, 2 * bits)
    assert sorted(set(wider)) == wider


def test_the_value_of_a_null_row_is_never_looked_at() -> None:
    values = np.array(["a", None, 7], dtype=object)
    assert unsigned_form(values, np.array([True, False, False]), ValueType("string"), 32).tolist() == [0x61000000, 0, 0]


@pytest.mark.parametrize("type_name", CASES)
@pytest.mark.parametrize(("width", "dtype"), [(32, np.uint32), (64, np.uint64), (128, object)])
def test_no_rows_and_only_nulls(type_name: str, width: int, dtype: type) -> None:
    for values in ([], [None, None]):
        found = unsigned_form(*canonical(values, type_name), ValueType.parse(type_name), width)
        assert (found.dtype, found.tolist()) == (dtype, [0] * len(values))


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(ValueError, match="array<int> have no order"):
        unsigned_form(np.zeros(1), np.ones(1, bool), ValueType.parse("array<int>"))
    with pytest.raises(ValueError, match="16 bits; one of 32, 64, 128"):
        unsigned_form(np.zeros(1, int), np.ones(1, bool), ValueType("int"), 16)


# ------------------------------------------------------------------------------------------------ the comparator


def interleaved(row: tuple[int, ...], width: int) -> int:
    """The Z-order key by bit strings; the first dimension is the most significant."""
    return int("".join(map("".join, zip(*(format(value, f"0{width}b") for value in row), strict=True))), 2)


def test_seed_001_compares_one_three_before_two_zero() -> None:
    assert compare_z_order((1, 3), (2, 0)) == -1
    assert most_significant_dimension((1, 3), (2, 0)) == 0  # both differ at the upper bit: the first of them
    assert most_significant_dimension((2, 0), (2, 1)) == 1
    assert most_significant_dimension((0, 4, 0), (3, 0, 4)) == 1
    assert compare_z_order((5, 5), (5, 5)) == 0


@given(st.data(), st.sampled_from(WIDTHS), st.integers(2, 4))
def test_the_comparator_agrees_with_interleaving(data: st.DataObject, width: int, dimensions: int) -> None:
    row = st.tuples(*[st.integers(0, (1 << width) - 1) | st.integers(0, 3)] * dimensions)
    left, right = data.draw(st.tuples(row, row))
    a, b = interleaved(left, width), interleaved(right, width)
    assert compare_z_order(left, right) == (a > b) - (a < b)
    assert compare_z_order(right, left) == (b > a) - (b < a)


@pytest.mark.parametrize("dimensions", [2, 3, 4])
def test_the_comparator_agrees_with_the_numpy_kernel_on_columns_of_different_types(dimensions: int) -> None:
    rng = np.random.default_rng(dimensions)
    bits, rows = 60 // dimensions, 120
    columns = [
        ("smallint", rng.integers(-(2**15), 2**15, rows)),
        ("double", rng.normal(size=rows) * 10.0 ** rng.integers(-5, 6, rows)),
        ("string", np.array([rng.bytes(5).hex() for _ in range(rows)], dtype=object)),
        ("boolean", rng.integers(0, 2, rows)),
    ][:dimensions]
    valid = rng.random((dimensions, rows)) > 0.1
    codes = [
        unsigned_form(values, valid[i], ValueType(name), 32) >> np.uint32(32 - bits)
        for i, (name, values) in enumerate(columns)
    ]
    keys = interleave(codes, [bits] * dimensions, round_robin([bits] * dimensions))
    table = np.stack(codes, axis=1).tolist()
    for i, j in product(range(rows), repeat=2):
        assert compare_z_order(table[i], table[j]) == np.sign(keys[i] - keys[j])


# -------------------------------------------------------------------------------------------------- raw features


@settings(deadline=None)
@pytest.mark.parametrize("type_name", CASES)
@given(st.data(), st.integers(1, 12))
def test_raw_codes_are_the_top_bits_of_the_form(type_name: str, data: st.DataObject, bits: int) -> None:
    values = data.draw(st.lists(st.none() | CASES[type_name][1], max_size=20))
    found = codes_of(raw(type_name, bits), *canonical(values, type_name)).tolist()
    for width in WIDTHS:
        assert found == [form >> (width - bits) for form in forms(values, type_name, width)]


@pytest.mark.parametrize("bits", [1, 7, 8, 9, 12])
@pytest.mark.parametrize("type_name", CASES)
def test_a_raw_feature_has_just_the_codes_that_values_have(type_name: str, bits: int) -> None:
    """Each breakpoint is of the type and has the code it begins; a key of it survives JSON."""
    feature = raw(type_name, bits)
    starts = canonical(list(feature.breakpoints), type_name)
    assert codes_of(feature, *starts).tolist() == list(feature.codes[1:])
    assert [form >> (32 - bits) for form in forms(list(feature.breakpoints), type_name, 32)] == list(feature.codes[1:])
    if bounds := feature.value_type.bounds:
        assert all(bounds[0] < value <= bounds[1] for value in feature.breakpoints)
    keys = [order_key(value) for value in feature.breakpoints]
    assert all(a < b for a, b in pairwise(keys))
    spec = KeySpec((feature,), (0,) * bits)
    back = KeySpec.from_json(json.loads(json.dumps(spec.to_json())))
    assert back.layout_id == spec.layout_id


def test_raw_string_codes_hold_for_every_kind_of_character() -> None:
    edges = [0, 1, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x3FFFF, 0x40000, 0x10FFFF]
    points = [p for p in [*edges, *range(0, 0x110000, 37)] if not 0xD800 <= p <= 0xDFFF]
    words = ["", *map(chr, points), *(chr(a) + chr(b) for a in [0, 1, 0x41, 0x7F] for b in points[::7])]
    for feature in (raw("string", 8), raw("string", 12)):
        found = codes_of(feature, *canonical(words, "string")).tolist()
        assert found == [form >> (32 - feature.bits) for form in forms(words, "string", 32)]
        assert all(point.encode() for point in feature.breakpoints)  # valid strings, without lone surrogates


@example(-0.0, 12)
@example(math.inf, 12)
@given(st.floats(allow_nan=False), st.integers(1, 12))
def test_raw_float_codes_keep_infinities_and_zeros(value: float, bits: int) -> None:
    codes = codes_of(raw("double", bits), np.array([-math.inf, value, -value, math.inf, math.nan]), np.ones(5, bool))
    assert codes[0] == 0
    assert codes[0] <= min(codes[1:3])
    assert max(codes[1:3]) <= codes[3] <= codes[4]
    assert codes[1] == codes_of(raw("double", bits), np.array([value + 0.0]), np.ones(1, bool))[0]


def test_nan_and_infinity_part_where_the_bits_suffice() -> None:
    feature = raw("float", 12)
    assert math.isnan(feature.breakpoints[-1])
    found = codes_of(feature, np.array([math.inf, math.nan]), np.ones(2, bool))
    assert found.tolist() == [0xFF8, 0xFFC]


def test_raw_booleans_and_more_bits_than_a_type_has() -> None:
    assert (raw("boolean", 3).breakpoints, raw("boolean", 3).codes) == ((1,), (0, 4))
    assert raw("tinyint", 12).breakpoints == tuple(range(-127, 128))
    assert raw("tinyint", 12).codes == tuple(range(0, 4096, 16))


@settings(deadline=None, max_examples=20)
@pytest.mark.parametrize("type_name", [name for name in CASES if name != "binary"])
@given(st.data(), st.integers(1, 12))
def test_bits_in_which_all_values_agree_are_passed_over(type_name: str, data: st.DataObject, bits: int) -> None:
    """What is left still comes in the values' order, and parts the smallest from the largest."""
    values = data.draw(st.lists(CASES[type_name][1], min_size=1, max_size=20))
    ordered = sorted(values, key=lambda value: order_key(canonical([value], type_name)[0].tolist()[0]))
    array, valid = canonical(ordered, type_name)
    low, high = array.tolist()[0], array.tolist()[-1]
    feature = raw_encoding("x", type_name, bits, (low, high))
    found = codes_of(feature, array, valid)
    assert (np.diff(found) >= 0).all()
    if bits > 1 and order_key(low) < order_key(high) and type_name not in ("string", "float", "double"):
        assert found[0] < found[-1]


def test_ordinary_columns_have_raw_bits_that_tell_their_values_apart() -> None:
    days = np.arange(8766, 10957)  # 1994 to 1999
    feature = raw_encoding("day", "date", 4, (8766, 10956))
    assert len(np.unique(codes_of(feature, days, np.ones(len(days), bool)))) > 8
    assert feature.high == 10956
    keys = [f"Customer#{i:09d}" for i in range(0, 20000, 7)]
    found = codes_of(raw_encoding("name", "string", 12, (keys[0], keys[-1])), *canonical(keys, "string"))
    assert len(np.unique(found)) == 20  # thousands: of ten digits each has bits of its own
    assert raw_encoding("x", "int", 3, (5, 5)).high == 5


def test_raw_encoding_refuses_what_it_cannot_do() -> None:
    with pytest.raises(PlanError, match="array<int> has no order and so no raw bits; leave it out"):
        raw_encoding("tags", "array<int>", 4)
    with pytest.raises(PlanError, match="more than 12 raw bits; use --encoding rank"):
        raw_encoding("x", "int", 13)
    with pytest.raises(PlanError, match="x:0 asks for no bits; give 1 to 12"):
        raw_encoding("x", "int", 0)
