"""Which columns follow each other: sorting index, contingency, and the graph over them (seed 004, 4.2.2 and 4.3)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from typing import Any, Literal, TypeAlias, TypeVar

import networkx as nx
import numpy as np
import numpy.typing as npt
import pandas as pd

from zorder_pipeline.model.kernel import kernel

from .sample import SampleColumn

__all__ = ["Codes", "Policy", "build_graph", "contingency", "order_shares", "ranks", "sorting_index", "traverse"]

Policy = Literal["frequency", "degree", "both"]
EPSILON = 0.1
"""How far from perfect a correlation may be that is an edge, of 1 (seed 004, algorithm 2)."""
Codes = npt.NDArray[np.int64]
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


def ranks(values: npt.NDArray[Any]) -> Codes:
    """Each value's rank among the distinct values, from 0, by the total order (NaN last).

    >>> ranks(np.array(["b", "a", "b"], dtype=object)).tolist()
    [1, 0, 1]
    """
    if values.dtype != object:
        return np.unique(values, return_inverse=True, equal_nan=values.dtype.kind == "f")[1].astype(np.int64).ravel()
    found, distinct = pd.factorize(values)
    place = np.empty(len(distinct), dtype=np.int64)
    place[sorted(range(len(distinct)), key=distinct.__getitem__)] = np.arange(len(distinct))
    return np.asarray(place[found], dtype=np.int64)


@kernel
def _inversions(values: Codes) -> int:
    """Pairs i < j with values[i] > values[j], by merging runs of doubling length."""
    n = len(values)
    source, target = values.copy(), np.empty_like(values)
    count, width = 0, 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(start + width, n), min(start + 2 * width, n)
            left, right = start, middle
            for out in range(start, end):
                if left < middle and (right >= end or source[left] <= source[right]):
                    target[out] = source[left]
                    left += 1
                else:
                    target[out] = source[right]
                    right += 1
                    count += middle - left
        source, target = target, source
        width *= 2
    return count


def _tied(codes: Codes) -> int:
    """Pairs of equal ranks."""
    counts = np.bincount(codes)
    return int((counts * (counts - 1) // 2).sum())


@kernel
def _tied_neighbours(values: Codes) -> int:
    """Pairs of equal values among sorted ones."""
    count = run = 0
    for i in range(1, len(values)):
        run = run + 1 if values[i] == values[i - 1] else 0
        count += run
    return count


def sorting_index(values: npt.NDArray[Any]) -> float:
    """How far an array is in ascending order: the share of its pairs whose later element is larger (seed 004, 4.2.2.1).

    1 is strictly ascending, 0 strictly descending. Equal elements are not larger, so a constant has 0 and a sorted
    boolean at most about 0.5; `order_shares` is the form that edges are drawn by, this one the seed's, for its vectors.
    Fewer than two elements have 1.

    >>> sorting_index(np.array([1, 3, 5, 2, 4]))
    0.7
    """
    n = len(values)
    pairs = n * (n - 1) // 2
    if not pairs:
        return 1.0
    codes = ranks(np.asarray(values))
    return float((pairs - _tied(codes) - int(_inversions(codes))) / pairs)


def order_shares(a: Codes, b: Codes) -> tuple[float, float]:
    """Shares of pairs of rows that two columns order the same way, and opposite ways.

    A pair tied in one column is ordered neither way; a pair tied in both says nothing and is not counted. The measure
    is symmetric: where the seed sorts by each column in turn and keeps edges found in both directions, this one
    number covers both.

    Args:
        a, b: ranks (see `ranks`), of equal length.

    >>> order_shares(np.array([0, 1, 2]), np.array([2, 1, 0]))
    (0.0, 1.0)
    """
    same, opposite, counted = _ordered(a, b)
    return (same / counted, opposite / counted) if counted else (0.0, 0.0)


def _ordered(a: Codes, b: Codes) -> tuple[int, int, int]:
    """Pairs of rows that two columns order the same way, and opposite ways, and those that are not tied in both."""
    n = len(a)
    pairs = n * (n - 1) // 2
    if not pairs:
        return 0, 0, 0
    size = int(b.max()) + 1
    both = np.sort(a * size + b)
    tied_both = int(_tied_neighbours(both))
    opposite = int(_inversions(both % size))  # sorted by a, then b: pairs tied in a are no inversions
    return pairs - opposite - _tied(a) - _tied(b) + tied_both, opposite, pairs - tied_both


def contingency(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> float:
    """Mean-square contingency of two categorical columns, divided by its largest possible value (0 to 1).

    1 says that a value of the column with more values determines the other's; it says nothing about order, and a key
    column determines every other (seed 004, 4.2.2 and table 4.3). Constants have 0.

    >>> contingency(np.array([1, 2, 3, 4]), np.array([0, 1, 1, 0]))
    1.0
    """
    if not len(a):
        return 0.0
    return _determined(ranks(np.asarray(a)), ranks(np.asarray(b)))


def _determined(left: Codes, right: Codes) -> float:
    """`contingency` of ranks, of which some may be missing."""
    size = int(right.max()) + 1
    marginal_a, marginal_b = np.bincount(left), np.bincount(right)
    fewer = min(np.count_nonzero(marginal_a), np.count_nonzero(marginal_b)) - 1
    if not fewer:
        return 0.0
    both = left * size + right
    if len(marginal_a) * size <= 4 * len(both):
        joint = np.bincount(both)
        cells = np.flatnonzero(joint)
        joint = joint[cells]
    else:
        cells, joint = np.unique(both, return_counts=True)
    # the sum of (nij - ni nj)^2 / (ni nj) over all cells is that of nij^2 / (ni nj) over the occupied ones, minus 1
    square = np.sum(joint.astype(np.float64) ** 2 / (marginal_a[cells // size] * marginal_b[cells % size])) - 1.0
    return float(min(1.0, max(0.0, round(square / fewer, 12))))


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
        strength = _determined(a.where(common), b.where(common)) * both / either
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
    same, opposite, counted = _ordered(left, right)
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
