"""Breakpoints for values that came after a layout was learned: every new day would else fall into one last code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.values import comparable, order_key

from .encoding import FINE_BITS, rank_encoding

__all__ = ["extended"]

LEAST_SHARE = 0.05
"""Share of the rows that must lie beyond a feature's range for it to be extended: their epoch comes before all bits."""
LEAST_LATER = 0.005
"""The same of a clock, by which queries ask for what is new; beyond what a sample misses by chance."""
MOST_EPOCHS = 1000
"""More are not told apart by the rows that a rewrite looks at for this."""
MOST_CODES = 4096
"""Ranges that values beyond a feature's own are divided into, about: the start of each is in the rewrite's SQL."""
FEW_EPOCHS = 64
"""So many are made whatever their ranges, of which few rows make but few."""
LATER = 0.8
"""Share of the rows beyond those learned from that must lie beyond a clock's range: else it does not tell the time."""


def extended(
    spec: KeySpec, columns: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]], rows: float
) -> KeySpec:
    """``spec`` with codes for the values of a sample that lie beyond the range of its features.

    Such values are coded by rank among themselves, so that new data is divided as finely as the old was. Where there
    are several times the rows that the layout was learned from, those beyond its clock's range make up as many epochs,
    one after the other, each divided so: without them ten years of new days would be divided as one. Other features
    have one epoch: the epoch comes before all bits of a key, and many would take from what the other columns divide.
    A column of spare bits alone has none. The old values' codes stay, and so does the layout's id.

    Args:
        columns: canonical values and validity of a sample of the rows to be laid out, by column name; a column that is
            missing is left as it is.
        rows: rows that the sample stands for.

    >>> spec = KeySpec((FeatureCodes("day", "int", (5,), (0, 1), 1, high=9),), (0,), rows=2, clock="day")
    >>> day = np.array([3, 8, 10, 11, 12, 13])
    >>> extended(spec, {"day": (day, np.ones(6, dtype=bool))}, rows=6).features[0]
    FeatureCodes(column='day', type='int', breakpoints=(5, 10, 11, 12, 13), codes=(0, 1, 2, 3, 4, 5), bits=1, ...)
    """
    most = min(spec.most_epochs, MOST_EPOCHS)
    times = rows / max(1, spec.rows or rows)
    dividing = {spec.features[i].column for i in spec.telling} | {spec.clock}
    features = tuple(
        _extended(feature, *columns[feature.column], times, most, feature.column == spec.clock)
        if feature.column in columns and feature.column in dividing
        else feature.base
        for feature in spec.features
    )
    return replace(spec, features=features)


def _extended(
    feature: FeatureCodes, values: npt.NDArray[Any], valid: npt.NDArray[np.bool_], times: float, most: int, clock: bool
) -> FeatureCodes:
    """``feature`` for rows that are ``times`` those it was learned from; the clock with at most ``most`` epochs."""
    base = feature.base
    if base.high is None or not len(values):
        return base
    known = values[valid]
    last = max((base.high, *base.breakpoints[-1:]), key=order_key)  # of raw bits some begin above the largest value
    new = known[known > comparable(last, known.dtype)]
    if len(new) < max(1.0, (LEAST_LATER if clock else LEAST_SHARE) * len(values)):
        return base
    width = base.codes[-1] + 1
    late = times <= 1 or len(new) / len(known) >= LATER * (1 - 1 / times)
    most = min(most, max(MOST_CODES // width, FEW_EPOCHS)) if clock else 1
    epochs = max(1, min(most, round(times * len(new) / len(values)))) if late else 1
    ranks = rank_encoding(base.column, base.type, new, np.ones(len(new), dtype=np.bool_))
    epoch, code = np.divmod(ranks.codes * (width * epochs) >> FINE_BITS, width)
    codes = ((epoch + 1) << base.bits) + code
    first = np.ones(len(codes), dtype=np.bool_)
    first[1:] = codes[1:] != codes[:-1]
    return replace(
        base,
        breakpoints=(*base.breakpoints, *ranks.starts[first].tolist()),
        codes=(*base.codes, *codes[first].tolist()),
    )
