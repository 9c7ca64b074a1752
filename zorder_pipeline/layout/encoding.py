"""From column values to codes: rank codes learned from a sample, and the evaluation of any feature in numpy.

A *fine code* has `FINE_BITS` bits; a feature that takes t bits in a key uses the t most significant ones, so every
layout of a search shares one set of fine codes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.key_spec import FeatureCodes
from zorder_pipeline.model.values import Value, sort_unique

__all__ = ["FINE_BITS", "Encoding", "codes_of", "has_nan", "rank_encoding"]

FINE_BITS = 16
"""Resolution of fine codes: more than any sample that fits a driver can tell apart by rank."""


@dataclass(frozen=True)
class Encoding:
    """A column's fine codes, as learned from a sample.

    Attributes:
        column: column name.
        type: Spark type name.
        starts: canonical values, strictly ascending; the value at which each fine code begins.
        codes: fine code from each of ``starts`` on, strictly ascending, shape like ``starts``.
        null_code: fine code of nulls.
        distinct: distinct values in the sample.
        high: the largest of them, NaN aside.
        nulls: whether the sample has nulls.
    """

    column: str
    type: str
    starts: npt.NDArray[Any]
    codes: npt.NDArray[np.int64]
    null_code: int
    distinct: int
    high: Value | None = None
    nulls: bool = False

    @property
    def levels(self) -> npt.NDArray[np.int64]:
        """Every fine code that rows of the sample have, nulls among them, ascending."""
        return np.union1d(self.codes, [self.null_code]) if self.nulls else self.codes

    @property
    def useful_bits(self) -> int:
        """Bits after which no further bit separates rows of the sample; 0 for a constant."""
        differing = self.levels[1:] ^ self.levels[:-1]  # neighbours part at the highest bit in which they differ
        return FINE_BITS + 1 - min((int(bits).bit_length() for bits in np.unique(differing)), default=FINE_BITS + 1)

    def fine(self, values: npt.NDArray[Any], valid: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
        """Fine codes of rows, shape like ``values``."""
        place = np.searchsorted(self.starts, values, side="right") - 1
        codes = self.codes[np.maximum(place, 0)] if len(self.codes) else np.zeros(len(values), dtype=np.int64)
        return np.where(valid, codes, self.null_code).astype(np.int32)

    def feature(self, bits: int) -> FeatureCodes:
        """The feature that uses the ``bits`` most significant bits of the fine code."""
        coarse = self.codes >> (FINE_BITS - bits)
        first = np.ones(len(coarse), dtype=np.bool_)
        first[1:] = coarse[1:] != coarse[:-1]
        starts, codes = self.starts[first], coarse[first]
        nan_code = int(coarse[-1]) if has_nan(self.starts) else None
        if has_nan(starts):
            starts, codes = starts[:-1], codes[:-1]
        return FeatureCodes(
            column=self.column,
            type=self.type,
            breakpoints=tuple(starts[1:].tolist()),
            codes=tuple(int(code) for code in codes) or (0,),
            bits=bits,
            null_code=int(self.null_code) >> (FINE_BITS - bits),
            high=self.high,
            nan_code=nan_code,
        )


def rank_encoding(column: str, type_name: str, values: npt.NDArray[Any], valid: npt.NDArray[np.bool_]) -> Encoding:
    """Codes by rank in the sample: a value's code is its mid-rank quantile, ties together, nulls below every value.

    Under skew raw values leave most cells empty, while each bit of a rank code halves the rows (design section 5). A
    heavy hitter gets a code of its own, and with few distinct values each gets one.

    Args:
        values: canonical values of the sample's rows, shape (n,).
        valid: False where null, shape (n,).

    >>> rank_encoding("x", "int", np.array([5, 7, 7, 9]), np.ones(4, bool)).feature(2)
    FeatureCodes(column='x', type='int', breakpoints=(7, 9), codes=(0, 2, 3), bits=2, null_code=0, high=9, ...)
    """
    present = values[valid]
    nulls = len(values) - len(present)
    starts = sort_unique(present)
    if not len(starts):
        return Encoding(column, type_name, starts, np.zeros(0, dtype=np.int64), 0, 0, nulls=nulls > 0)
    place = np.searchsorted(starts, present)
    counts = np.bincount(place, minlength=len(starts))
    middle = nulls + np.cumsum(counts) - counts / 2
    codes = (middle / len(values) * (1 << FINE_BITS)).astype(np.int64)
    keep = np.ones(len(codes), dtype=np.bool_)
    keep[1:] = codes[1:] != codes[:-1]
    null_code = int(nulls / 2 / len(values) * (1 << FINE_BITS))
    largest = starts[:-1][-1:] if has_nan(starts) else starts[-1:]
    high = largest.tolist()[0] if len(largest) else None
    return Encoding(column, type_name, starts[keep], codes[keep], null_code, len(starts), high, nulls > 0)


def has_nan(ascending: npt.NDArray[Any]) -> bool:
    """Whether values in their total order, which ends with NaN, have one."""
    return bool(len(ascending)) and isinstance(ascending[-1], float) and math.isnan(ascending[-1])


def codes_of(feature: FeatureCodes, values: npt.NDArray[Any], valid: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Codes of rows in ``feature``, shape like ``values``: the numpy form of what Spark computes in a rewrite."""
    breakpoints = np.empty(len(feature.breakpoints), dtype=feature.value_type.numpy_dtype)
    breakpoints[:] = feature.breakpoints
    codes = np.asarray(feature.codes, dtype=np.int64)[np.searchsorted(breakpoints, values, side="right")]
    if feature.nan_code is not None:
        codes = np.where(np.isnan(values), feature.nan_code, codes)
    return np.where(valid, codes, feature.null_code)
