"""A tree of cuts as data: a key whose regions are each divided in their own way (a qd-tree, a k-d tree)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from zorder_pipeline.errors import PlanError

from .plain import MALFORMED, checked, what_is_wrong

__all__ = ["LEAF", "CutTree"]

LEAF = -1
NAMES = ("feature", "cut", "low", "high", "key")
MAX_KEY = 1 << 62
SMALLEST, LARGEST = 0.001, 1000.0
"""Sizes of files, in units of the average, beyond which a plan is not taken seriously."""


@dataclass(frozen=True)
class CutTree:
    """A binary tree over codes; one entry per node, node 0 is the root, children come after their parent.

    Attributes:
        feature: index of the feature that an inner node asks about, `LEAF` at a leaf.
        cut: rows whose code is at least ``cut`` go to ``high``, the others to ``low``; 0 at a leaf.
        low, high: indices of the children; the node itself at a leaf.
        key: key of a leaf's rows, another one for each leaf; 0 at an inner node.
        size: rows of a leaf's files, in units of what files have on average; 1 at an inner node. Empty where files are
            of about equal size.

    >>> CutTree((0, LEAF, LEAF), (5, 0, 0), (1, 1, 2), (2, 1, 2), (0, 0, 1)).depth
    1
    """

    feature: tuple[int, ...]
    cut: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    key: tuple[int, ...]
    size: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        nodes = len(self.feature)
        if not nodes or {len(self.cut), len(self.low), len(self.high), len(self.key)} != {nodes}:
            raise PlanError("the plan's tree of cuts is malformed: its lists differ in length")
        for i, feature in enumerate(self.feature):
            children = (self.low[i], self.high[i])
            if (feature == LEAF) != (children == (i, i)):
                raise PlanError(f"the plan's tree of cuts is malformed at node {i}")
            if feature != LEAF and not all(i < child < nodes for child in children):
                raise PlanError(f"the plan's tree of cuts is malformed: node {i} has children {children}")
        if self.size and (len(self.size) != nodes or not all(SMALLEST <= size <= LARGEST for size in self.size)):
            raise PlanError(
                f"the plan's tree of cuts is malformed: a file's size is not from {SMALLEST} to {LARGEST:,.0f}"
            )
        inner = [i for i, feature in enumerate(self.feature) if feature != LEAF]
        if sorted([*(self.low[i] for i in inner), *(self.high[i] for i in inner)]) != list(range(1, nodes)):
            raise PlanError("the plan's tree of cuts is malformed: a node has no parent, or two")
        keys = self.leaf_keys
        if not all(a < b for a, b in pairwise(keys)) or keys[0] < 0 or keys[-1] >= MAX_KEY:
            raise PlanError(
                "the plan's tree of cuts is malformed: two of its leaves have one key, or one is out of range"
            )

    @cached_property
    def leaf_keys(self) -> tuple[int, ...]:
        """Keys of the leaves, ascending."""
        return tuple(self.key[leaf] for leaf in self._leaves)

    @cached_property
    def leaf_sizes(self) -> tuple[float, ...]:
        """Rows of each leaf's files in units of the average, in the order of `leaf_keys`; empty if about equal."""
        return tuple(self.size[leaf] for leaf in self._leaves) if self.size else ()

    @cached_property
    def _leaves(self) -> list[int]:
        leaves = (node for node, feature in enumerate(self.feature) if feature == LEAF)
        return sorted(leaves, key=self.key.__getitem__)

    @cached_property
    def depth(self) -> int:
        """Cuts between the root and the farthest leaf."""
        depths = [0] * len(self.feature)
        for node, feature in enumerate(self.feature):
            if feature != LEAF:
                depths[self.low[node]] = depths[self.high[node]] = depths[node] + 1
        return max(depths)

    def to_json(self) -> dict[str, Any]:
        """JSON-ready form; `from_json` is its inverse."""
        return {name: list(getattr(self, name)) for name in NAMES} | ({"size": list(self.size)} if self.size else {})

    @staticmethod
    def from_json(data: dict[str, Any]) -> CutTree:
        """The tree that `to_json` wrote.

        Raises:
            PlanError: the data is malformed.
        """
        try:
            feature, cut, low, high, key = (tuple(data[name]) for name in NAMES)
            return checked(CutTree(feature, cut, low, high, key, tuple(data.get("size", ()))))
        except MALFORMED as error:
            raise PlanError(f"the plan's tree of cuts is malformed: {what_is_wrong(error)}; learn it again") from error
