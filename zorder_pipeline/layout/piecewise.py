"""A piecewise space-filling curve in the manner of the BMTree (Li et al. 2023): a tree that learns the next bit.

Every node of the tree's upper levels takes the next bit of one column, the one after which the training queries read
least of the node's rows; below them the most frequent columns take turns, as on a Z-order curve. The BMTree looks
ahead with a tree search whose reward is this greedy choice's; here the greedy choice is made.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.cut_tree import LEAF

from .deadline import NEVER, Deadline
from .encoding import FINE_BITS
from .skipping import Estimator
from .tree import MAX_DEPTH, TreeDraft

__all__ = ["piecewise_curve"]

LEARNED = 7
"""Levels at which the bit is learned: 127 nodes."""
TURNS = 3
"""Columns that take turns below."""
CELLS = 8
"""Cells a file is cut from."""


def piecewise_curve(
    fine: npt.NDArray[np.int32],
    estimator: Estimator,
    weights: npt.NDArray[np.float64],
    rows_per_file: float,
    deadline: Deadline = NEVER,
) -> TreeDraft:
    """The curve as a tree of cuts; each cut is in the middle of the codes that the bits so far leave to its column.

    Args:
        fine: fine codes of the estimator's sample, the most frequent column first, shape (features, rows).
        weights: weight of each query, shape (queries,).
        rows_per_file: sample rows that make a file.
        deadline: when to stop; what is returned then is of no use.
    """
    features, rows = fine.shape
    feature, cut, low, high, rank = [LEAF], [0], [0], [0], [0]
    turns = min(TURNS, features)
    stack = [(0, np.arange(rows), (0,) * features, (0,) * features, 0)]
    while stack and not deadline.over:
        node, members, begins, used, turn = stack.pop()
        if len(members) * CELLS <= rows_per_file or rank[node] >= MAX_DEPTH:
            continue
        splits = {f: _upper_half(fine[f, members], begins[f], used[f]) for f in range(features) if used[f] < FINE_BITS}
        if rank[node] < LEARNED:
            chosen = _cheapest(splits, estimator.of_rows(members), weights)
        else:
            asked = [(turn + i) % turns for i in range(turns)]
            chosen = next((f for f in asked if f in splits), None)
        if chosen is None:
            continue
        upwards = splits[chosen]
        half = 1 << (FINE_BITS - 1 - used[chosen])
        deeper = _replaced(used, chosen, used[chosen] + 1)
        above = _replaced(begins, chosen, begins[chosen] + half)
        if not 0 < upwards.sum() < len(members):  # all rows on one side: the bit is taken, the node is not cut
            stack.append((node, members, above if upwards.all() else begins, deeper, chosen + 1))
            continue
        feature[node], cut[node] = chosen, begins[chosen] + half
        low[node], high[node] = len(feature), len(feature) + 1
        for child, (side, begin) in enumerate(((~upwards, begins), (upwards, above)), len(feature)):
            stack.append((child, members[side], begin, deeper, chosen + 1))
            feature.append(LEAF)
            cut.append(0)
            low.append(child)
            high.append(child)
            rank.append(rank[node] + 1)
    return TreeDraft(
        np.array(feature),
        np.array(cut),
        np.array(low),
        np.array(high),
        np.array(rank),
        np.zeros(len(feature), dtype=np.bool_),
    )


def _upper_half(codes: npt.NDArray[np.int32], begin: int, used: int) -> npt.NDArray[np.bool_]:
    return np.asarray(codes >= begin + (1 << (FINE_BITS - 1 - used)), dtype=np.bool_)


def _cheapest(
    splits: dict[int, npt.NDArray[np.bool_]], estimator: Estimator, weights: npt.NDArray[np.float64]
) -> int | None:
    """The column after whose next bit the queries read fewest rows of the node; None when no bit divides it."""
    costs = {
        f: float(estimator.rows_read(upwards.astype(np.int32), 2) @ weights)
        for f, upwards in splits.items()
        if 0 < upwards.sum() < len(upwards)
    }
    return min(costs, key=lambda f: costs[f], default=None)


def _replaced(items: Sequence[int], place: int, value: int) -> tuple[int, ...]:
    return (*items[:place], value, *items[place + 1 :])
