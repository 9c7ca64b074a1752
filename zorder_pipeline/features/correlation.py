"""Which columns follow each other: the graph over them, and its traversal (seed 004, 4.2.2 and 4.3)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from typing import Literal, TypeAlias, TypeVar

import networkx as nx
import numpy as np
import numpy.typing as npt

from .ordering import Codes, determined, order_shares, ordered, ranks
from .sample import SampleColumn

__all__ = ["Policy", "build_graph", "traverse"]

Policy = Literal["frequency", "degree", "both"]
EPSILON = 0.1
"""How far from perfect a correlation may be that is an edge, of 1 (seed 004, algorithm 2)."""
Present: TypeAlias = npt.NDArray[np.bool_] | None
Vertex = TypeVar("Vertex", bound=Hashable)

MIN_DISTINCT = 3
"""Two values are in order whichever way they lie: a boolean is never order-correlated."""
MIN_ROWS = 30
"""Fewer rows in common say nothing about the table."""
FEW_ROWS = 1_000
"""Rows, drawn at random, by which pairs of columns are told apart that are far from an edge: most of them."""
DEVIATIONS = 5
"""Standard deviations that a strength among `FEW_ROWS` may lie below the true one."""


def build_graph(
    columns: Mapping[str, SampleColumn],
    *,
    rows: int = 20_000,
    seed: int = 0,
    categorical: Collection[str] = (),
) -> nx.Graph[str]:
    """The correlation graph (algorithm 2): an edge where two columns order the sample alike, or exactly opposite.

    Every edge has ``strength`` (0 to 1) and ``kind``: ``ascending`` or ``descending`` for order, ``contingency`` for
    two ``categorical`` columns of which one determines the other without being in its order. Rows where one of two
    columns is null weaken their strength by their share.

    Args:
        columns: the sample by column name.
        rows: at most so many rows of the sample are compared.
        seed: decides which rows.
        categorical: columns of which contingency is tested, too.
    """
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(columns)
    total = max((len(column.valid) for column in columns.values()), default=0)
    kept = np.arange(total)
    if total > rows:
        kept = np.sort(np.random.default_rng(seed).choice(total, rows, replace=False))
    few = np.sort(np.random.default_rng([seed, 1]).choice(len(kept), min(len(kept), FEW_ROWS), replace=False))
    ranked = {name: _Ranked.of(ranks(column.values[kept]), column.valid[kept], few) for name, column in columns.items()}
    for a, b in combinations(columns, 2):
        edge = _edge(ranked[a], ranked[b], a in categorical and b in categorical)
        if edge is not None:
            graph.add_edge(a, b, strength=edge[0], kind=edge[1])
    return graph


@dataclass(frozen=True)
class _Ranked:
    """A column's ranks, made ready to be held against those of many others.

    Attributes:
        codes: ranks by row; of nulls, any.
        present: rows that are not null; None where all are not.
        distinct: distinct values at most.
        few: the column at `FEW_ROWS` of the rows; None where that is most of them.
    """

    codes: Codes
    present: Present
    distinct: int
    few: _Ranked | None = None

    @classmethod
    def of(cls, codes: Codes, valid: npt.NDArray[np.bool_], few: npt.NDArray[np.int64] | None = None) -> _Ranked:
        present = None if valid.all() else valid
        less = None if few is None or len(codes) <= 2 * len(few) else cls.of(ranks(codes[few]), valid[few])
        return cls(codes, present, len(np.unique(codes if present is None else codes[present])), less)

    def where(self, rows: Present) -> Codes:
        return self.codes if rows is None else self.codes[rows]


def _edge(a: _Ranked, b: _Ranked, categorical: bool) -> tuple[float, str] | None:
    common = _common(a, b)
    both = either = len(a.codes)
    if common is not None:
        both = int(common.sum())
        either = len(common) if a.present is None or b.present is None else int((a.present | b.present).sum())
    if both < MIN_ROWS or both / either <= 1 - EPSILON:
        return None
    if min(a.distinct, b.distinct) >= MIN_DISTINCT and _within_reach(a.few, b.few, (1 - EPSILON) * either / both):
        left, right = a.where(common), b.where(common)
        if min(np.count_nonzero(np.bincount(left)), np.count_nonzero(np.bincount(right))) >= MIN_DISTINCT:
            same, opposite = order_shares(left, right)
            strength, kind = max((same, "ascending"), (opposite, "descending"))
            if strength * both / either > 1 - EPSILON:
                return strength * both / either, kind
    if categorical:
        strength = determined(a.where(common), b.where(common)) * both / either
        if strength > 1 - EPSILON:
            return strength, "contingency"
    return None


def _common(a: _Ranked, b: _Ranked) -> Present:
    if a.present is None or b.present is None:
        return b.present if a.present is None else a.present
    return a.present & b.present


def _within_reach(a: _Ranked | None, b: _Ranked | None, wanted: float) -> bool:
    """Whether two columns may be ordered alike, or opposite, by more than a share of the pairs, by what few rows say.

    The variance of a share p among n random rows is at most 4 p (1 - p) / (n c), c being the share of the pairs that
    are not tied in both: columns that are nearly constant are not told apart by few rows.
    """
    if a is None or b is None:
        return True
    common = _common(a, b)
    left, right = a.where(common), b.where(common)
    if len(left) < MIN_ROWS:
        return True
    same, opposite, counted = ordered(left, right)
    margin = DEVIATIONS * 2 * sqrt(EPSILON * (1 - EPSILON))
    return not counted or max(same, opposite) / counted + margin / sqrt(2 * counted / (len(left) - 1)) >= wanted


def traverse(
    graph: nx.Graph[Vertex], frequency: Mapping[Vertex, float], limit: int, policy: Policy = "frequency"
) -> tuple[tuple[Vertex, ...], tuple[Vertex, ...]]:
    """Split a correlation graph into primary and correlated features (algorithm 3).

    The best vertex by ``policy`` becomes primary; its edges and those among its neighbours are cut, and a neighbour
    left without any is correlated. One that has others stays: correlation is not transitive. Whatever is not primary
    when ``limit`` is reached counts as correlated.

    Args:
        frequency: weight of each vertex in the workload; an absent one has 0.
        policy: most frequent first, most edges first, or the product of frequency and edges (plus one); ties go to the
            other figure, then to the graph's order.

    Returns:
        (primary in order of choice, correlated in order of finding).

    >>> traverse(nx.Graph([(1, 2), (1, 3), (2, 3), (2, 4), (4, 5), (4, 6)]), {1: 9, 4: 8, 2: 7, 3: 3, 5: 2, 6: 1}, 6)
    ((1, 4), (3, 2, 5, 6))
    """
    rest = graph.copy()
    place = {vertex: i for i, vertex in enumerate(graph)}
    primary: list[Vertex] = []
    correlated: list[Vertex] = []
    active = list(graph)

    def rank(vertex: Vertex) -> tuple[float, float, int]:
        often, edges = float(frequency.get(vertex, 0.0)), float(rest.degree(vertex))
        figures = {"frequency": (often, edges), "degree": (edges, often), "both": (often * (1 + edges), often)}[policy]
        return -figures[0], -figures[1], place[vertex]

    while active and len(primary) < limit:
        current = min(active, key=rank)
        active.remove(current)
        primary.append(current)
        near: Sequence[Vertex] = sorted(rest.neighbors(current), key=place.__getitem__)
        rest.remove_edges_from([(current, other) for other in near])
        rest.remove_edges_from(list(combinations(near, 2)))
        for vertex in near:
            if not rest.degree(vertex):
                active.remove(vertex)
                correlated.append(vertex)
    return tuple(primary), (*correlated, *active)
