"""Rank codes: monotone, ties together, heavy hitters apart, and the feature agrees with the fine codes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zorder_pipeline.errors import PlanError
from zorder_pipeline.layout.encoding import FINE_BITS, codes_of, rank_encoding
from zorder_pipeline.model.key_spec import FeatureCodes

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


@pytest.mark.parametrize(("raw", "bits"), [([7, None], 1), ([7, 7, 7, None], 2), ([7, 8] * 50 + [None], 9)])
def test_nulls_can_be_told_from_every_value(raw: list[int | None], bits: int) -> None:
    values, valid = np.array([v or 0 for v in raw]), np.array([v is not None for v in raw])
    encoding = rank_encoding("x", "int", values, valid)
    codes = codes_of(encoding.feature(encoding.useful_bits), values, valid)
    assert encoding.useful_bits <= bits
    assert len(set(codes.tolist())) == len(set(raw))


def test_nan_has_a_code_of_its_own_and_does_not_hide_the_largest_number() -> None:
    values = np.array([1.0, 2.0, np.nan, np.nan, 3.0, 0.0])
    encoding = rank_encoding("x", "double", values, np.array([True] * 5 + [False]))
    feature = encoding.feature(3)
    assert (feature.high, feature.breakpoints) == (3.0, (2.0, 3.0))
    assert (
        codes_of(feature, values, np.array([True] * 5 + [False])) == encoding.fine(values, np.arange(6) < 5) >> 13
    ).all()
    assert rank_encoding("x", "double", np.full(3, np.nan), np.ones(3, bool)).high is None
    with pytest.raises(PlanError, match="which type int does not have"):
        FeatureCodes("x", "int", (), (0,), 1, nan_code=1)


def test_nan_is_the_largest_value() -> None:
    values = np.array([1.0, np.nan, np.inf, -np.inf])
    fine = rank_encoding("x", "double", values, np.ones(4, bool)).fine(values, np.ones(4, bool))
    assert np.argsort(fine).tolist() == [3, 0, 2, 1]
