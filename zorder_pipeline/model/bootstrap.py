"""How sure a mean over queries is: the bootstrap, by observation.

Queries that belong together, such as the repeats of one statement within an hour, are one thing that was seen. So
observations are drawn, each with all its queries (the cluster bootstrap; Davison and Hinkley 1997, "Bootstrap Methods
and their Application", 3.8); `zorder_pipeline.layout.blocks` tells what is one. Of very many, groups are drawn that
chance has made of them: their sums vary as much, and so many groups tell how much nearly as well.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

__all__ = ["RESAMPLES", "resampled_sums", "student_quantile", "widening"]

RESAMPLES = 2000
AT_ONCE = 1 << 21
"""Draws held in memory at a time."""
MOST = 10_000
"""Observations that are drawn one by one; the spread of the sum is known to about 1% by as many groups."""

Floats = npt.NDArray[np.float64]


def resampled_sums(values: Floats, rng: np.random.Generator) -> Floats:
    """Sums over as many observations as there are, drawn with replacement, shape (measures, `RESAMPLES`).

    Of more than `MOST` it is groups of observations that are drawn, each with all of them.

    Args:
        values: what all queries of each observation come to together, shape (measures, observations).

    >>> sums = resampled_sums(np.array([[1.0, 1.0, 1.0], [3.0, 0.0, 0.0]]), np.random.default_rng(0))
    >>> sums.shape, set(sums[0].tolist()), sorted(set(sums[1].tolist()))
    ((2, 2000), {3.0}, [0.0, 3.0, 6.0, 9.0])
    """
    if values.shape[1] <= MOST:
        return _drawn(values, rng)
    # what differs from the mean, as groups need not be of equal size
    own = values - values.mean(axis=1, keepdims=True)
    size = math.ceil(values.shape[1] / MOST)
    shuffled = own[:, rng.permutation(values.shape[1])]
    groups = np.add.reduceat(shuffled, np.arange(0, values.shape[1], size), axis=1)
    total: Floats = values.sum(axis=1, keepdims=True)
    return total + _drawn(groups, rng)


def _drawn(values: Floats, rng: np.random.Generator) -> Floats:
    """Sums over as many columns as there are, drawn with replacement, shape (measures, `RESAMPLES`)."""
    measures, observations = values.shape
    found = np.zeros((measures, RESAMPLES))
    step = max(1, AT_ONCE // max(1, observations))
    for begin in range(0, RESAMPLES if observations else 0, step):
        draws = rng.integers(observations, size=(min(step, RESAMPLES - begin), observations))
        for row, own in zip(found, values, strict=True):
            row[begin : begin + len(draws)] = own[draws].sum(axis=1)
    return found


def widening(observations: int, level: float) -> float:
    """By what factor the distance of a bootstrap percentile from the mean is to be multiplied.

    The spread of a few observations about their own mean is too small, and known too little: percentiles of resamples
    of five miss what is to be estimated three times as often as they say (Hesterberg 2015, "What Teachers Should Know
    About the Bootstrap"; the factor is that of Student's interval for normal observations).

    Of one observation nothing is known, and the factor is 1: who decides by it asks for several (the gate for five
    conditions).

    Args:
        level: of the percentile, above one half; the one as far below it has the same factor.

    >>> [round(widening(observations, 0.975), 2) for observations in (5, 20, 1000)]
    [1.58, 1.1, 1.0]
    """
    if observations < 2:
        return 1.0
    grown = math.sqrt(observations / (observations - 1))
    return grown * student_quantile(level, observations - 1) / NormalDist().inv_cdf(level)


def student_quantile(probability: float, freedom: float) -> float:
    """Quantile of Student's t (Cornish-Fisher; within 1% from four degrees of freedom on)."""
    z = NormalDist().inv_cdf(probability)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
