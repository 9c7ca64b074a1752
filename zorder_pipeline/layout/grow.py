"""Growing a tree of cuts greedily: a qd-tree (Yang et al. 2020) that cuts at quantiles, judged by real zone maps.

At every node each column's cuts are tried, and the one after which the queries that still read the node read least is
made. Cuts lie at quantiles of the node's own rows, so correlated columns are not cut twice for the same thing, or also
where the queries' ranges begin and end. A node stands for a number of files, and cuts keep both sides at whole files,
so that the tree's leaves are the files; below them further cuts order the rows inside a file.

Or files may differ in size: then the leaf is cut whose cut saves most, until there are as many as files. Where queries
look often, or tell rows apart well, files become small, and those that few ask for large. Real tables, whose rows lie
unevenly, are read up to a third less so; of even ones nothing is gained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.cut_tree import LEAF
from zorder_pipeline.model.ranges import Boxes

from .encoding import Encoding
from .grow_kernel import CUT, FEATURE, HIGH, LOW, RANK, grown
from .skipping import Estimator
from .tree import INNER_BITS, TreeDraft

__all__ = ["SIZES", "GrowSettings", "Grower", "grow_by_predicates", "grow_tree", "range_ends", "uneven"]

TOLERANCE = 0.25
"""A file's sample rows may differ from the target by this share: less than what a cut of the whole table allows
(`zorder_pipeline.layout.cells.TOLERANCE`), so that the files found here are those cut there."""
SIZES = (0.25, 3.0)
"""Rows of the smallest and of the largest file where files differ in size, in units of the target: what a wider span
saves is next to nothing."""
UNEVEN_PRIOR = 10.0
MOST_CUTS = 24
"""Cuts above a file of such a tree: more only take literals off a range one by one, and each row walks them all."""

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class GrowSettings:
    """How to grow.

    Attributes:
        quantiles: cuts tried per column and node, evenly spaced.
        prior: with so many queries left at a node their gains count half, and the gains of the node above the other
            half: what few queries say of a small region is mostly noise.
        inner: levels of cuts inside a file, for row groups; at most `INNER_BITS`.
        sizes: rows of the smallest and of the largest file, in units of the target, where files differ in size; None
            for files of about equal size.
        literals: further cuts tried, by feature, see `range_ends`; () for none.
    """

    quantiles: int = 7
    prior: float = 20.0
    inner: int = 3
    sizes: tuple[float, float] | None = None
    literals: tuple[Codes, ...] = ()


def uneven(queries: Sequence[Boxes], encodings: Sequence[Encoding]) -> GrowSettings:
    """How to grow a tree whose files differ in size; ``queries`` are those that it is grown for."""
    return GrowSettings(prior=UNEVEN_PRIOR, sizes=SIZES, literals=tuple(range_ends(queries, encodings)))


@dataclass(frozen=True, eq=False)
class Grower:
    """Grows one kind of tree, as deep inside its files as it is asked to.

    Attributes:
        fine: fine codes of the estimator's sample, shape (features, rows).
        estimator: of the queries that it is grown for.
        weights: weight of each query, shape (queries,).
        rows_per_file: sample rows that make a file.
    """

    fine: npt.NDArray[np.int32]
    estimator: Estimator
    weights: npt.NDArray[np.float64]
    rows_per_file: float
    settings: GrowSettings

    def tree(self, inner: int | None = None) -> TreeDraft:
        """The tree, with so many levels of cuts inside a file instead of the settings'."""
        settings = self.settings if inner is None else replace(self.settings, inner=inner)
        return grow_tree(self.fine, self.estimator, self.weights, self.rows_per_file, settings)


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
    least, largest = (max(1, int(chosen.sizes[0] * rows_per_file)), chosen.sizes[1]) if chosen.sizes else (0, 0.0)
    return _grown(fine, estimator, weights, rows_per_file, chosen, least, largest)


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
    settings = GrowSettings(quantiles=0, prior=0.0, inner=0, literals=tuple(range_ends(queries, encodings)))
    files = max(1, round(fine.shape[1] / rows_per_file))
    low, high = max(1, int(rows_per_file / 4)), max(2, int(rows_per_file))
    best: TreeDraft | None = None
    while best is None or high - low > max(1, high // 16):
        least = high if best is None else (low + high) // 2
        tree = _grown(fine, estimator, weights, rows_per_file, settings, least)
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
    least: int,
    largest: float = 0.0,
) -> TreeDraft:
    nothing = np.zeros(0, dtype=np.int64)
    literals = settings.literals or (nothing,) * len(fine)
    starts = np.concatenate([[0], np.cumsum([len(codes) for codes in literals])]).astype(np.int64)
    ranges = (estimator.box_starts, estimator.column, estimator.first, estimator.last, estimator.box_query)
    nodes, inside, rows = grown(
        fine, (estimator.low, estimator.high, *ranges, np.asarray(weights, dtype=np.float64)), float(rows_per_file),
        TOLERANCE, settings.quantiles, settings.prior, min(settings.inner, INNER_BITS),
        np.concatenate([nothing, *literals]), starts, least, largest * rows_per_file, MOST_CUTS,
    )  # fmt: skip
    feature, cut, low, high, rank = (nodes[row] for row in (FEATURE, CUT, LOW, HIGH, RANK))
    draft = TreeDraft(feature, cut, low, high, rank, inside)
    return replace(draft, size=_file_sizes(draft, rows / rows_per_file, largest)) if largest else draft


def _file_sizes(draft: TreeDraft, size: npt.NDArray[np.float64], largest: float) -> npt.NDArray[np.float64]:
    """Rows of the file that each leaf lies in, in units of the target, from those of each node; 1 at inner nodes."""
    size = np.round(size / np.ceil(size / largest), 3)
    for node in np.flatnonzero(draft.feature != LEAF):  # parents come first
        for child in (draft.low[node], draft.high[node]):
            if draft.inside[child]:
                size[child] = size[node]
    return np.where(draft.feature == LEAF, size, 1.0)


def range_ends(queries: Sequence[Boxes], encodings: Sequence[Encoding]) -> list[Codes]:
    """Codes at which the queries' ranges begin, and those after their ends, by feature: the cuts of a qd-tree."""
    found: list[Codes] = []
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
