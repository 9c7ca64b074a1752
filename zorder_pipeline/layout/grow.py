"""Growing a tree of cuts greedily: a qd-tree (Yang et al. 2020) that cuts at quantiles, judged by real zone maps.

At every node each column's cuts are tried, and the one after which the queries that still read the node read least is
made. Cuts lie at quantiles of the node's own rows, so correlated columns are not cut twice for the same thing, or also
where the queries' ranges begin and end. A node stands for a number of files, and cuts keep both sides at whole files,
so that the tree's leaves are the files; below them further cuts order the rows inside a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.ranges import Boxes

from .encoding import Encoding
from .skipping import Estimator
from .tree import INNER_BITS, MAX_DEPTH, TreeDraft

__all__ = ["GrowSettings", "grow_by_predicates", "grow_tree", "range_ends"]

INNER_ROWS = 8
"""Sample rows a cell inside a file has at least."""
TOLERANCE = 0.25
"""A file's sample rows may differ from the target by this share: less than what a cut of the whole table allows
(`zorder_pipeline.layout.cells.TOLERANCE`), so that the files found here are those cut there."""
LEAST_GAIN = 1e-4
"""Share of the rows read that a cut inside a file must save."""
MOST_LITERALS = 64
"""Literals tried per column and node at most, evenly chosen."""


@dataclass(frozen=True)
class GrowSettings:
    """How to grow.

    Attributes:
        quantiles: cuts tried per column and node, evenly spaced.
        prior: with so many queries left at a node their gains count half, and the gains of the node above the other
            half: what few queries say of a small region is mostly noise.
        inner: levels of cuts inside a file, for row groups; at most `INNER_BITS`.
    """

    quantiles: int = 7
    prior: float = 20.0
    inner: int = 3


def grow_tree(
    fine: npt.NDArray[np.int32],
    estimator: Estimator,
    weights: npt.NDArray[np.float64],
    rows_per_file: float,
    settings: GrowSettings | None = None,
) -> TreeDraft:
    """The greedy tree for the estimator's queries.

    Args:
        fine: fine codes of the estimator's sample, shape (features, rows).
        weights: weight of each query, shape (queries,).
        rows_per_file: sample rows that make a file.
    """
    chosen = settings or GrowSettings()
    return _grown(fine, estimator, weights, rows_per_file, chosen, [np.zeros(0, dtype=np.int64)] * len(fine), 0)


def grow_by_predicates(
    fine: npt.NDArray[np.int32],
    estimator: Estimator,
    weights: npt.NDArray[np.float64],
    rows_per_file: float,
    queries: Sequence[Boxes],
    encodings: Sequence[Encoding],
) -> TreeDraft:
    """The qd-tree as published: cuts only where the training queries' predicates begin and end, every leaf a file.

    A leaf has at least b rows; b is the smallest for which there are no more leaves than files of ``rows_per_file``.
    Cuts learn the training queries by heart, so unseen ones read more than under `grow_tree`.

    Args:
        queries: the estimator's queries as boxes.
        encodings: encodings of ``fine``.
    """
    literals = range_ends(queries, encodings)
    settings = GrowSettings(quantiles=0, prior=0.0, inner=0)
    files = max(1, round(fine.shape[1] / rows_per_file))
    low, high = max(1, int(rows_per_file / 4)), max(2, int(rows_per_file))
    best: TreeDraft | None = None
    while best is None or high - low > max(1, high // 16):
        least = high if best is None else (low + high) // 2
        tree = _grown(fine, estimator, weights, rows_per_file, settings, literals, least)
        if int((tree.feature < 0).sum()) <= files:
            best, high = tree, least
        elif best is None:
            high *= 2
        else:
            low = least
    return replace(best, leaves_are_files=True)


def _grown(
    fine: npt.NDArray[np.int32],
    estimator: Estimator,
    weights: npt.NDArray[np.float64],
    rows_per_file: float,
    settings: GrowSettings,
    literals: Sequence[npt.NDArray[np.int64]],
    least: int,
) -> TreeDraft:
    starts = np.concatenate([[0], np.cumsum([len(codes) for codes in literals])]).astype(np.int64)
    ends = np.searchsorted(estimator.owner, np.arange(len(estimator.box_query) + 1)).astype(np.int64)
    nodes = _grow(
        fine, estimator.low, estimator.high, ends, estimator.column, estimator.first, estimator.last,
        estimator.box_query, np.asarray(weights, dtype=np.float64), float(rows_per_file), TOLERANCE,
        settings.quantiles, settings.prior, min(settings.inner, INNER_BITS),
        np.concatenate([np.zeros(0, dtype=np.int64), *literals]), starts, least,
    )  # fmt: skip
    return TreeDraft(*nodes)


def range_ends(queries: Sequence[Boxes], encodings: Sequence[Encoding]) -> list[npt.NDArray[np.int64]]:
    """Codes at which the queries' ranges begin, and those after their ends, by feature: the cuts of a qd-tree."""
    found: list[npt.NDArray[np.int64]] = []
    for encoding in encodings:
        begins, after = set(), set()
        for item in (item for boxes in queries for box in boxes for item in box if item.column == encoding.column):
            for interval in item.tested:
                begins.add(interval.low)
                after.add(interval.high)
        places = [_places(encoding, begins - {None}, "left"), _places(encoding, after - {None}, "right")]
        inside = np.unique(np.concatenate(places))
        found.append(encoding.codes[inside[(inside > 0) & (inside < len(encoding.codes))]])
    return found


def _places(encoding: Encoding, values: set[Any], side: Any) -> npt.NDArray[np.int64]:
    points = np.empty(len(values), dtype=object)
    points[:] = list(values)
    if encoding.starts.dtype != object:  # a literal may lie outside 64 bits
        points = np.array([min(max(v, -(1 << 63)), (1 << 63) - 1) for v in points], dtype=encoding.starts.dtype)
    return np.searchsorted(encoding.starts, points, side).astype(np.int64)


@numba.njit(cache=True, nogil=True)
def _hits(
    lows: Any, highs: Any, boxes: Any, ends: Any, column: Any, first: Any, last: Any, found: Any
) -> int:  # pragma: no cover - compiled
    """Writes to ``found`` which of ``boxes`` a zone map matches; returns how many."""
    count = 0
    for j in range(len(boxes)):
        box, hit = boxes[j], True
        for i in range(ends[box], ends[box + 1]):
            if highs[column[i]] < first[i] or lows[column[i]] > last[i]:
                hit = False
                break
        if hit:
            found[count] = box
            count += 1
    return count


@numba.njit(cache=True, nogil=True)
def _weight(boxes: Any, count: int, box_query: Any, weights: Any) -> float:  # pragma: no cover - compiled
    """Weight of the queries of ``boxes[:count]``, each counted once."""
    total, previous = 0.0, -1
    for j in range(count):
        query = box_query[boxes[j]]
        if query != previous:
            total += weights[query]
            previous = query
    return total


@numba.njit(cache=True, nogil=True)
def _positions(
    codes: Any, files: int, inside: bool, tolerance: float, quantiles: int, literals: Any, least: int
) -> Any:  # pragma: no cover - compiled
    """Places where ascending ``codes`` may be cut: at a change of code, with whole files on both sides."""
    rows = len(codes)
    found = np.empty(quantiles + MOST_LITERALS + 1, dtype=np.int64)
    count = 0
    ideal = rows / max(1, files)
    step = max(1, (len(literals) + MOST_LITERALS - 1) // MOST_LITERALS)
    even = 1 if inside else min(quantiles, max(0, files - 1))
    for k in range(even + (len(literals) + step - 1) // step):
        if k < even:
            place = int(rows * (k + 1) / (even + 1))
            low = np.searchsorted(codes, codes[min(place, rows - 1)])
            high = np.searchsorted(codes, codes[min(place, rows - 1)], side="right")
            place = low if low > 0 and (place - low <= high - place or high >= rows) else high
        else:
            place = np.searchsorted(codes, literals[(k - even) * step])
        if place <= 0 or place >= rows:
            continue
        if inside or least > 0:
            if min(place, rows - place) < max(least, INNER_ROWS):
                continue
        else:
            left = min(max(int(np.round(place / ideal)), 1), files - 1)
            uneven = max(abs(place / left - ideal), abs((rows - place) / (files - left) - ideal))
            if uneven > tolerance * ideal:
                continue
        found[count] = place
        count += 1
    return np.unique(found[:count])


@numba.njit(cache=True, nogil=True)
def _best_cut(
    rows: Any, places: Any, low: Any, high: Any, boxes: Any, base: float,
    ends: Any, column: Any, first: Any, last: Any, box_query: Any, weights: Any, scratch: Any,
) -> Any:  # pragma: no cover - compiled  # fmt: skip
    """Share of ``base`` saved by the best of ``places`` in ``rows`` (in the order of their codes), and that place."""
    buckets, columns = len(places) + 1, low.shape[1]
    lows = np.full((buckets, columns), 2147483647, dtype=np.int32)
    highs = np.full((buckets, columns), -1, dtype=np.int32)
    bucket = 0
    for i in range(len(rows)):
        if bucket < len(places) and i >= places[bucket]:
            bucket += 1
        for c in range(columns):
            lows[bucket, c] = min(lows[bucket, c], low[rows[i], c])
            highs[bucket, c] = max(highs[bucket, c], high[rows[i], c])
    right = np.empty(len(places), dtype=np.float64)
    some_low, some_high = lows[buckets - 1].copy(), highs[buckets - 1].copy()
    for k in range(len(places) - 1, -1, -1):
        count = _hits(some_low, some_high, boxes, ends, column, first, last, scratch)
        right[k] = _weight(scratch, count, box_query, weights) * (len(rows) - places[k])
        some_low, some_high = np.minimum(some_low, lows[k]), np.maximum(some_high, highs[k])
    some_low, some_high = lows[0].copy(), highs[0].copy()
    best, best_place = -1.0, places[len(places) // 2]
    for k in range(len(places)):
        if k > 0:
            some_low, some_high = np.minimum(some_low, lows[k]), np.maximum(some_high, highs[k])
        count = _hits(some_low, some_high, boxes, ends, column, first, last, scratch)
        cost = _weight(scratch, count, box_query, weights) * places[k] + right[k]
        # of equal gains the cut nearest to the middle
        gain = (base - cost) / base - 1e-9 * abs(2.0 * places[k] / len(rows) - 1.0) if base > 0.0 else 0.0
        if gain > best:
            best, best_place = gain, places[k]
    return best, best_place


@numba.njit(cache=True, nogil=True)
def _grow(
    fine: Any, low: Any, high: Any, ends: Any, column: Any, first: Any, last: Any, box_query: Any, weights: Any,
    rows_per_file: float, tolerance: float, quantiles: int, prior: float, inner: int, literals: Any, starts: Any,
    least: int,
) -> Any:  # pragma: no cover - compiled  # fmt: skip
    features, n = fine.shape
    boxes, columns = len(box_query), low.shape[1]
    most = (4 * max(1, int(np.round(n / rows_per_file)), n // least if least > 0 else 0) + 8) << inner
    feature = np.full(most, -1, dtype=np.int64)
    zeros = np.zeros((7, most), dtype=np.int64)
    cut, lower, upper, rank, begin, end, files = zeros[0], zeros[1], zeros[2], zeros[3], zeros[4], zeros[5], zeros[6]
    inside = np.zeros(most, dtype=np.bool_)
    expected = np.zeros((most, features))
    perm = np.arange(n)
    scratch = np.empty(boxes, dtype=np.int64)
    matching = [np.arange(boxes)]
    end[0], files[0] = n, max(1, int(np.round(n / rows_per_file)))
    nodes, stack = 1, [0]
    while len(stack) > 0:
        node = stack.pop()
        rows = perm[begin[node] : end[node]].copy()
        hits = matching[node]
        one_file = least == 0 and files[node] <= 1
        depth = (rank[node] if inside[node] else 0) if one_file else rank[node]
        if (one_file and depth >= inner) or (not one_file and depth >= MAX_DEPTH) or len(rows) < 2:
            continue
        base = _weight(hits, len(hits), box_query, weights) * len(rows)
        trust = len(hits) / max(len(hits) + prior, 1e-9)
        best, best_feature, best_place, best_code = -np.inf, -1, 0, 0
        gains = expected[node].copy()
        for f in range(features):
            codes = fine[f][rows]
            order = np.argsort(codes)
            codes = codes[order]
            if codes[0] == codes[len(codes) - 1]:
                gains[f] = 0.0
                continue
            here = literals[starts[f] : starts[f + 1]]
            here = here[np.searchsorted(here, codes[0], side="right") : np.searchsorted(here, codes[-1], side="right")]
            places = _positions(codes, files[node], one_file, tolerance, quantiles, here, least)
            if len(places) == 0:
                continue
            gain, place = _best_cut(
                rows[order], places, low, high, hits, base,
                ends, column, first, last, box_query, weights, scratch,
            )  # fmt: skip
            gains[f] = trust * gain + (1.0 - trust) * expected[node, f] if node > 0 else gain
            if gains[f] > best:
                best, best_feature, best_place, best_code = gains[f], f, place, codes[place]
                if least > 0:  # at the predicate's own literal, which may lie between two sampled values
                    best_code = here[np.searchsorted(here, best_code, side="right") - 1]
        if best_feature < 0 or (one_file and best < LEAST_GAIN):
            continue
        upwards = fine[best_feature][rows] >= best_code
        perm[begin[node] : begin[node] + best_place] = rows[~upwards]
        perm[begin[node] + best_place : end[node]] = rows[upwards]
        feature[node], cut[node] = best_feature, best_code
        left = min(max(int(np.round(best_place * files[node] / len(rows))), 1), max(1, files[node] - 1))
        for side in range(2):
            child = nodes
            nodes += 1
            begin[child] = begin[node] if side == 0 else begin[node] + best_place
            end[child] = begin[node] + best_place if side == 0 else end[node]
            files[child] = 1 if one_file else (left if side == 0 else max(1, files[node] - left))
            inside[child] = one_file
            rank[child] = depth + 1
            expected[child] = gains
            some_low = np.full(columns, 2147483647, dtype=np.int32)
            some_high = np.full(columns, -1, dtype=np.int32)
            for i in perm[begin[child] : end[child]]:
                some_low, some_high = _widened(some_low, some_high, low[i], high[i])
            count = _hits(some_low, some_high, hits, ends, column, first, last, scratch)
            matching.append(scratch[:count].copy())
            if side == 0:
                lower[node] = child
            else:
                upper[node] = child
            stack.append(child)
    for node in range(nodes):
        if feature[node] < 0:
            lower[node], upper[node] = node, node
    return feature[:nodes], cut[:nodes], lower[:nodes], upper[:nodes], rank[:nodes], inside[:nodes]


@numba.njit(cache=True, nogil=True)
def _widened(lows: Any, highs: Any, low: Any, high: Any) -> Any:  # pragma: no cover - compiled
    for c in range(len(lows)):
        lows[c] = min(lows[c], low[c])
        highs[c] = max(highs[c], high[c])
    return lows, highs
