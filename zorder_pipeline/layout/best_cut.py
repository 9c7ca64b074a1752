"""The best cut of a node of the tree: what the queries that still read it save by each place where it may be cut.

Compiled with numba, for `zorder_pipeline.layout.grow`; zone maps are pairs of lowest and highest code per column.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zorder_pipeline.model.kernel import kernel

from .partition_counts import follows
from .rows_asked import hit, widened

__all__ = ["best_cut"]


@kernel
def best_cut(
    rows: Any, group: Any, places: Any, boxes: Any, own: Any, base: float, asked: Any, scratch: Any
) -> Any:  # pragma: no cover - compiled
    """Share of ``base`` saved by the best of ``places`` in ``rows`` (in the order of their codes), and that place.

    Where the cut follows the partitions, and so makes more files of a few of them, it is the share of what is read in
    these alone that is saved.

    Args:
        group: of each row the table partition, numbered from 0 in this node: no file has rows of two.
        boxes: of each such partition the boxes that its rows in this node match.
        own: what is read in each of them.
        base: what is read in all of them.
        asked: `RowsAsked`.
        scratch: room for all boxes.
    """
    low, high, ends, column, first, last, box_query, weights, _ = asked
    buckets, columns, groups = len(places) + 1, low.shape[1], len(boxes)
    lows = np.full((groups, buckets, columns), 2147483647, dtype=np.int32)
    highs = np.full((groups, buckets, columns), -1, dtype=np.int32)
    filled = np.zeros((groups, buckets), dtype=np.int64)
    bucket = 0
    for i in range(len(rows)):
        if bucket < len(places) and i >= places[bucket]:
            bucket += 1
        g = group[i]
        filled[g, bucket] += 1
        for c in range(columns):
            lows[g, bucket, c] = min(lows[g, bucket, c], low[rows[i], c])
            highs[g, bucket, c] = max(highs[g, bucket, c], high[rows[i], c])
    cost = np.zeros(len(places), dtype=np.float64)
    counted = np.full(len(weights), -1, dtype=np.int64)
    for g in range(groups):
        for side in range(2):
            waiting, total, some = len(boxes[g]), 0.0, 0
            scratch[:waiting] = boxes[g]
            some_low, some_high = np.full(columns, 2147483647, dtype=np.int32), np.full(columns, -1, dtype=np.int32)
            for k in range(len(places)):
                place = k if side == 0 else len(places) - 1 - k
                new = k if side == 0 else buckets - 1 - k
                if filled[g, new] > 0:  # a box that matched a part of the side matches all of it
                    some += filled[g, new]
                    some_low, some_high = widened(some_low, some_high, lows[g, new], highs[g, new])
                    still = 0
                    for j in range(waiting):
                        box = scratch[j]
                        if not hit(some_low, some_high, box, ends, column, first, last):
                            scratch[still] = box
                            still += 1
                        elif counted[box_query[box]] != 2 * g + side:
                            counted[box_query[box]] = 2 * g + side
                            total += weights[box_query[box]]
                    waiting = still
                cost[place] += total * some
    best, best_place = -1.0, places[len(places) // 2]
    for k in range(len(places)):
        read = _read_in_divided(filled, k + 1, own, base) if groups > 1 else base
        saved = (base - cost[k]) / read if read > 0.0 else 0.0
        # of equal gains the cut nearest to the middle
        gain = saved - 1e-9 * abs(2.0 * places[k] / len(rows) - 1.0)
        if gain > best:
            best, best_place = gain, places[k]
    return best, best_place


@kernel
def _read_in_divided(filled: Any, bucket: int, own: Any, base: float) -> float:  # pragma: no cover - compiled
    """What is read in the partitions that a cut before ``bucket`` divides; in all of them if it follows none.

    Args:
        filled: rows by partition and bucket, shape (groups, buckets).
        own: what is read in each partition.
        base: what is read in all of them.
    """
    left, right = np.zeros(len(own), dtype=np.int64), np.zeros(len(own), dtype=np.int64)
    for g in range(len(own)):  # numpy's sum along an axis would take two seconds to compile
        left[g], right[g] = filled[g, :bucket].sum(), filled[g, bucket:].sum()
    if not follows(left, right):
        return base
    read = 0.0
    for g in range(len(own)):
        if left[g] > 0 and right[g] > 0:
            read += own[g]
    return read
