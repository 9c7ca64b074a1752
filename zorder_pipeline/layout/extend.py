"""Breakpoints for values that came after a layout was learned: every new day would else fall into one last code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec

from .encoding import FINE_BITS, rank_encoding

__all__ = ["extended"]

LEAST_SHARE = 0.05
"""Share of the rows that must lie beyond a feature's range for it to be extended."""


def extended(spec: KeySpec, columns: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]]) -> KeySpec:
    """``spec`` with codes for the values of a sample that lie beyond the range of its features.

    Such values are coded by rank among themselves, so that new data is divided as finely as the old was; the old
    values' codes stay, and so does the layout's id.

    Args:
        columns: canonical values and validity of a sample of the rows to be laid out, by column name; a column that is
            missing is left as it is.

    >>> spec = KeySpec((FeatureCodes("day", "int", (5,), (0, 1), 1, high=9),), (0,))
    >>> day = np.array([3, 8, 10, 11, 12, 13])
    >>> extended(spec, {"day": (day, np.ones(6, dtype=bool))}).features[0].breakpoints
    (5, 10, 12)
    """
    features = tuple(
        _extended(feature, *columns[feature.column]) if feature.column in columns else feature.base
        for feature in spec.features
    )
    return replace(spec, features=features)


def _extended(feature: FeatureCodes, values: npt.NDArray[Any], valid: npt.NDArray[np.bool_]) -> FeatureCodes:
    base = feature.base
    if base.high is None or not len(values):
        return base
    new = values[valid]
    new = new[new > base.high]
    if len(new) < max(1.0, LEAST_SHARE * len(values)):
        return base
    ranks = rank_encoding(base.column, base.type, new, np.ones(len(new), dtype=np.bool_))
    codes = ranks.codes * (base.codes[-1] + 1) >> FINE_BITS
    first = np.ones(len(codes), dtype=np.bool_)
    first[1:] = codes[1:] != codes[:-1]
    return replace(
        base,
        breakpoints=(*base.breakpoints, *ranks.starts[first].tolist()),
        codes=(*base.codes, *(int(code) + (1 << base.bits) for code in codes[first])),
    )
