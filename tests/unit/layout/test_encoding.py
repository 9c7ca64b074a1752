"""Rank and raw codes: monotone, ties together, heavy hitters apart, and the feature agrees with the fine codes."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zorder_pipeline.errors import PlanError
from zorder_pipeline.layout.encoding import FINE_BITS, codes_of, rank_encoding, raw_encoding

VALUES = st.lists(st.one_of(st.none(), st.integers(-50, 50)), min_size=1, max_size=200)


@settings(deadline=None)
@given(VALUES, st.integers(1, FINE_BITS))
def test_rank_codes_are_monotone_and_features_are_prefixes_of_fine_codes(raw: list[int | None], bits: int) -> None:
    values = np.array([0 if v is None else v for v in raw])
    valid = np.array([v is not None for v in raw])
    encoding = rank_encoding("x", "int", values, valid)
    fine = encoding.fine(values, valid)
    order = np.argsort(values[valid], kind="stable")
    assert (np.diff(fine[valid][order]) >= 0).all()
    assert fine.min() >= 0
    assert fine.max() < 1 << FINE_BITS
    feature = encoding.feature(bits)
    assert (codes_of(feature, values, valid) == fine >> (FINE_BITS - bits)).all()


def test_every_bit_of_a_rank_code_halves_skewed_data() -> None:
    values = np.random.default_rng(0).lognormal(0, 3, 4096)
    codes = codes_of(rank_encoding("x", "double", values, np.ones(4096, bool)).feature(3), values, np.ones(4096, bool))
    assert np.bincount(codes, minlength=8).tolist() == [512] * 8


def test_a_heavy_hitter_and_few_distinct_values_get_codes_of_their_own() -> None:
    values = np.repeat([1, 2, 3], [10, 80, 10])
    encoding = rank_encoding("x", "int", values, np.ones(100, bool))
    assert len(set(encoding.feature(2).codes)) == 3
    assert encoding.distinct == 3
    assert encoding.useful_bits == 2


@pytest.mark.parametrize("raw", [[7, 7, 7], [None, None]])
def test_a_constant_has_no_useful_bits(raw: list[int | None]) -> None:
    values, valid = np.array([0 if v is None else v for v in raw]), np.array([v is not None for v in raw])
    assert rank_encoding("x", "int", values, valid).useful_bits == 0


def test_nan_is_the_largest_value() -> None:
    values = np.array([1.0, np.nan, np.inf, -np.inf])
    fine = rank_encoding("x", "double", values, np.ones(4, bool)).fine(values, np.ones(4, bool))
    assert np.argsort(fine).tolist() == [3, 0, 2, 1]


@given(st.floats(allow_nan=False), st.integers(1, 10))
def test_raw_double_codes_are_the_top_bits_of_the_ordered_form(value: float, bits: int) -> None:
    """Seed 001: flip the sign bit of positive floats, all bits of negative ones."""
    value += 0.0  # -0.0 equals 0.0
    raw = struct.unpack("<Q", struct.pack("<d", value))[0]
    ordered = raw ^ (1 << 63) if raw < 1 << 63 else ~raw & (1 << 64) - 1
    feature = raw_encoding("x", "double", bits)
    got = codes_of(feature, np.array([value]), np.ones(1, bool))[0]
    every = [ordered >> (64 - bits)]
    # codes are dense: those of NaN patterns and of the empty gap at zero are closed up, so compare by order
    other = 1.0
    other_raw = (struct.unpack("<Q", struct.pack("<d", other))[0] ^ (1 << 63)) >> (64 - bits)
    other_got = codes_of(feature, np.array([other]), np.ones(1, bool))[0]
    assert np.sign(got - other_got) == np.sign(every[0] - other_raw)


@pytest.mark.parametrize(("type_name", "width"), [("tinyint", 8), ("smallint", 16), ("int", 32), ("bigint", 64)])
def test_raw_integer_codes_flip_the_sign_bit(type_name: str, width: int) -> None:
    feature = raw_encoding("x", type_name, 3)
    values = np.array([-(1 << (width - 1)), -1, 0, (1 << (width - 1)) - 1])
    expected = [(int(v) + (1 << (width - 1))) >> (width - 3) for v in values]
    assert codes_of(feature, values, np.ones(4, bool)).tolist() == expected


def test_raw_encoding_refuses_what_it_cannot_do() -> None:
    with pytest.raises(PlanError, match="string has no raw bit form; use --encoding rank"):
        raw_encoding("name", "string", 4)
    with pytest.raises(PlanError, match="more than 12 raw bits"):
        raw_encoding("x", "int", 13)
