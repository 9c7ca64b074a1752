"""What a sample says of one column: how many values, how skewed, and how well the present files already separate it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.values import ValueType

from .ordering import Codes, ranks
from .sample import SampleColumn

__all__ = ["Profile", "profile"]


@dataclass(frozen=True)
class Profile:
    """What the sample says of a column.

    Attributes:
        distinct: distinct values in the sample, nulls not counted.
        null_share: share of rows that are null, 0 to 1.
        top_share: share of the rows that have the most frequent value (skew), 0 to 1.
        overlap_depth: mean number of present files between whose smallest and largest sampled value a value of the
            sample lies; 1 is perfectly clustered. The files' true ranges are at least as wide.
        span: largest less smallest value of a type of whole numbers, in its units; None for every other type.
    """

    distinct: int = 0
    null_share: float = 0.0
    top_share: float = 0.0
    overlap_depth: float = 0.0
    span: int | None = None


def profile(column: SampleColumn, file: npt.NDArray[np.int32], kind: ValueType) -> Profile:
    """Describe one sampled column of a type.

    >>> column = SampleColumn(np.array([1, 2, 3, 3]), np.array([True, True, True, True]))
    >>> profile(column, np.array([0, 0, 1, 1], dtype=np.int32), ValueType.parse("int"))
    Profile(distinct=3, null_share=0.0, top_share=0.5, overlap_depth=1.0, span=2)
    """
    rows, present = len(column.valid), int(column.valid.sum())
    if not present:
        return Profile(null_share=1.0 if rows else 0.0)
    codes = ranks(column.values[column.valid])
    counts = np.bincount(codes)
    depth = _overlap_depth(codes, file[column.valid])
    values = column.values[column.valid]
    span = int(values.max()) - int(values.min()) if kind.family == "integer" else None
    return Profile(len(counts), 1 - present / rows, float(counts.max()) / rows, depth, span)


def _overlap_depth(codes: Codes, file: npt.NDArray[np.int32]) -> float:
    order = np.argsort(file, kind="stable")
    starts = np.flatnonzero(np.diff(file[order], prepend=-1))
    low = np.sort(np.minimum.reduceat(codes[order], starts))
    high = np.sort(np.maximum.reduceat(codes[order], starts))
    return float((np.searchsorted(low, codes, "right") - np.searchsorted(high, codes, "left")).mean())
