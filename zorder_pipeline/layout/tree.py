"""A layout as a tree of cuts: each region of the table is divided by the column that helps its own queries most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.cut_tree import LEAF, CutTree
from zorder_pipeline.model.kernel import kernel
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec

from .encoding import Encoding, has_nan

__all__ = ["TreeDraft", "leaf_of", "tree_spec"]

INNER_BITS = 6
"""Low bits of a key that tell the cells inside one file apart."""
MAX_DEPTH = 50
"""Cuts above a file at most, so that a key fits 62 bits."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TreeDraft:
    """A candidate layout by cuts; like `zorder_pipeline.model.cut_tree.CutTree`, over fine codes and all encodings.

    Attributes:
        feature, cut, low, high: one entry per node, see `CutTree`.
        rank: depth of the node below the root, or below the file it lies in.
        inside: whether the node lies inside one file.
        leaves_are_files: files end at leaves and nowhere else, whatever their size.
        size: rows of a leaf's files in units of the target; None where files are of about equal size.
        hurried: whether time was up before all its cuts were looked for.
    """

    feature: Ints
    cut: Ints
    low: Ints
    high: Ints
    rank: Ints
    inside: npt.NDArray[np.bool_]
    leaves_are_files: bool = False
    size: npt.NDArray[np.float64] | None = None
    hurried: bool = False

    @property
    def keys(self) -> Ints:
        """Key of each leaf (0 at inner nodes): its path from the root, left-aligned, and its path inside the file.

        Which side of a cut comes first follows the Gray-code curve: below a side that comes second the other columns'
        sides change places, so that leaves that follow each other touch more often. The highest bit in which neighbours
        differ says how coarse the boundary between them is, and every boundary between files is coarser than one inside
        a file.
        """
        nodes = len(self.feature)
        top = int(self.rank[~self.inside].max())
        key, turned = np.zeros(nodes, dtype=np.int64), [0] * nodes
        for node in range(nodes):  # parents come first
            if self.feature[node] == LEAF:
                continue
            for child, side in ((self.low[node], 0), (self.high[node], 1)):
                bits, second = INNER_BITS if self.inside[child] else INNER_BITS + top, side ^ turned[node]
                key[child] = key[node] | second << (bits - int(self.rank[child]))
                turned[child] = turned[node] if self.feature[child] == self.feature[node] else second
        key[self.feature != LEAF] = 0
        return key


@kernel
def leaf_of(fine: Any, feature: Any, cut: Any, low: Any, high: Any) -> Any:  # pragma: no cover - compiled
    """Leaf node of every row; ``fine`` are its codes, shape (features, rows)."""
    rows = fine.shape[1]
    leaf = np.empty(rows, dtype=np.int64)
    for i in range(rows):
        node = 0
        while feature[node] >= 0:
            node = high[node] if fine[feature[node], i] >= cut[node] else low[node]
        leaf[i] = node
    return leaf


def tree_spec(draft: TreeDraft, encodings: tuple[Encoding, ...]) -> KeySpec:
    """The key of ``draft``: every cut becomes a breakpoint of its feature."""
    inner = draft.feature != LEAF
    used = list(dict.fromkeys(draft.feature[inner].tolist()))
    features: list[FeatureCodes] = []
    code_of_cut: dict[tuple[int, int], int] = {}
    for i in used:
        encoding = encodings[i]
        cuts = np.unique(draft.cut[draft.feature == i])
        begins = np.searchsorted(encoding.codes, cuts)  # a cut is a code that occurs: the values that begin there
        points = encoding.starts[begins]
        code_of_cut |= {(i, int(cut)): number + 1 for number, cut in enumerate(cuts)}
        features.append(
            FeatureCodes(
                column=encoding.column,
                type=encoding.type,
                breakpoints=tuple(points.tolist()[: len(points) - has_nan(points)]),
                codes=tuple(range(len(cuts) + 1 - has_nan(points))),
                bits=max(1, len(cuts).bit_length()),
                null_code=int(np.searchsorted(cuts, encoding.null_code, side="right")),
                high=encoding.high,
                nan_code=int(np.searchsorted(cuts, encoding.codes[-1], side="right"))
                if has_nan(encoding.starts)
                else None,
            )
        )
    asked = list(zip(draft.feature.tolist(), draft.cut.tolist(), strict=True))
    tree = CutTree(
        feature=tuple(used.index(feature) if feature != LEAF else LEAF for feature, _ in asked),
        cut=tuple(code_of_cut.get(pair, 0) for pair in asked),
        low=tuple(draft.low.tolist()),
        high=tuple(draft.high.tolist()),
        key=tuple(draft.keys.tolist()),
        size=() if draft.size is None else tuple(draft.size.tolist()),
    )
    return KeySpec(tuple(features), tuple(range(len(features))), "tree", tree=tree)
