"""How sure a mean over queries is: the bootstrap, by observation.

Queries that belong together, such as the repeats of one statement within an hour, are one thing that was seen. So
observations are drawn, each with all its queries (the cluster bootstrap; Davison and Hinkley 1997, "Bootstrap Methods
and their Application", 3.8); `zorder_pipeline.layout.blocks` tells what is one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["RESAMPLES", "resampled_sums"]

RESAMPLES = 2000
AT_ONCE = 1 << 21
"""Draws held in memory at a time."""

Floats = npt.NDArray[np.float64]


def resampled_sums(values: Floats, rng: np.random.Generator) -> Floats:
    """Sums over as many observations as there are, drawn with replacement, shape (measures, `RESAMPLES`).

    Args:
        values: what all queries of each observation come to together, shape (measures, observations).

    >>> sums = resampled_sums(np.array([[1.0, 1.0, 1.0], [3.0, 0.0, 0.0]]), np.random.default_rng(0))
    >>> sums.shape, set(sums[0].tolist()), sorted(set(sums[1].tolist()))
    ((2, 2000), {3.0}, [0.0, 3.0, 6.0, 9.0])
    """
    measures, observations = values.shape
    found = np.zeros((measures, RESAMPLES))
    step = max(1, AT_ONCE // max(1, observations))
    for begin in range(0, RESAMPLES if observations else 0, step):
        draws = rng.integers(observations, size=(min(step, RESAMPLES - begin), observations))
        for row, own in zip(found, values, strict=True):
            row[begin : begin + len(draws)] = own[draws].sum(axis=1)
    return found
