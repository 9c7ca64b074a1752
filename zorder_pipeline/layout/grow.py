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

from .best_cut import best_cut, hits, positions, weight, widened
from .encoding import Encoding
from .skipping import Estimator
from .tree import INNER_BITS, MAX_DEPTH, TreeDraft

__all__ = ["GrowSettings", "grow_by_predicates", "grow_tree", "range_ends"]

TOLERANCE = 0.25
"""A file's sample rows may differ from the target by this share: less than what a cut of the whole table allows
(`zorder_pipeline.layout.cells.TOLERANCE`), so that the files found here are those cut there."""
LEAST_GAIN = 1e-4
"""Share of the rows read that a cut inside a file must save."""


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
        matched = matching[node]
        one_file = least == 0 and files[node] <= 1
        depth = (rank[node] if inside[node] else 0) if one_file else rank[node]
        if (one_file and depth >= inner) or (not one_file and depth >= MAX_DEPTH) or len(rows) < 2:
            continue
        base = weight(matched, len(matched), box_query, weights) * len(rows)
        trust = len(matched) / max(len(matched) + prior, 1e-9)
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
            places = positions(codes, files[node], one_file, tolerance, quantiles, here, least)
            if len(places) == 0:
                continue
            gain, place = best_cut(
                rows[order], places, low, high, matched, base,
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
                some_low, some_high = widened(some_low, some_high, low[i], high[i])
            count = hits(some_low, some_high, matched, ends, column, first, last, scratch)
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
