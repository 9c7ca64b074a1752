"""The choice between layouts, on queries that none of them was learned from: what is not surely better is not taken."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.bootstrap import resampled_sums, widening

from .evidence import BlockQueries

__all__ = ["LEARNED", "MIN_GAIN", "OWN", "STORED", "TREE", "UNEVEN", "choose", "surely"]

MIN_GAIN = 0.05
"""A layout must read this share less than the present one on the select queries, or the table stays: what a search
finds beyond that from night to night is noise, and not worth a rewrite."""
SURE = 0.9
"""Share of bootstrap resamples in which a gain must show."""
STORED = "stored"
LEARNED, TREE, UNEVEN = OWN = ("learned", "tree", "uneven-tree")
"""The layouts that are ours: an order of bits, a tree of cuts, and one whose files differ in size."""

Floats = npt.NDArray[np.float64]


def choose(shares: Mapping[str, Floats], standing: Floats, select: BlockQueries, rng: np.random.Generator) -> str:
    """The best one of `OWN` on the select block, unless a baseline is surely better, or none is: then `STORED`.

    The searched layouts already include the baselines on the training block, so a baseline that looks better here by
    the luck of a few queries is no reason to drop them; and the table stays as it is unless the winner surely reads
    `MIN_GAIN` less than it does.

    Args:
        shares: of the rows that each statement of ``select`` reads, shape (statements,), by layout.
        standing: the same of the layout that is to be beaten.
    """
    own = [name for name in shares if name in OWN]
    if not own or not len(select.weights):
        return STORED
    name = min(own, key=lambda name: float(select.weights @ shares[name]))
    best = min(shares, key=lambda name: float(select.weights @ shares[name]))
    # the best of many is often so by luck: the more there are, the surer it must be (Bonferroni)
    if best not in own and surely(select.observed(shares[name] - shares[best]), rng, len(shares) - len(own)):
        name = best
    return name if surely(select.observed(standing * (1 - MIN_GAIN) - shares[name]), rng) else STORED


def surely(gain: Floats, rng: np.random.Generator, among: int = 1) -> bool:
    """Whether the gain is positive in nearly all bootstrap resamples of what each observation gains."""
    allowed, total = (1 - SURE) / among, float(gain.sum())
    resampled = total + widening(len(gain), 1 - allowed) * (resampled_sums(gain[None], rng)[0] - total)
    return float(np.mean(resampled <= 0)) <= allowed
