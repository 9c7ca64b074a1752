"""Skipping-oriented partitioning: rows that satisfy the same predicates lie together (Sun 2014; seed 004, 1.2.6).

Every row has a bit vector, one bit per predicate. Rows of equal vectors form partitions, which are merged bottom-up
until each is as large as a file: at every step those two after which the rows that can be skipped stay the most. The
partitions are then ordered so that neighbours have similar vectors (4.1.2), as a file may hold several of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.file_stats import Feature

from .ordering import contingency

__all__ = [
    "MAX_BITS",
    "Sop",
    "Vectors",
    "chosen_bits",
    "file_zeros",
    "ordered",
    "partition",
    "vectors_of",
]

MAX_BITS = 32
"""Predicates of one partitioning: a vector is a number of Spark's type bigint, and each bit costs an evaluation."""
DENSE_BITS = 16
"""Of so many predicates Spark looks a vector up in a table of all vectors there can be."""
JOINED_AT_ONCE = 4096
MAX_VECTORS = 512
"""Distinct vectors that are merged pair by pair; rarer ones join the most similar of these first."""
SAME = 0.1
"""Two predicates whose mean-square contingency is so near 1 have the same bits: one of them is enough."""

Bits = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Vectors:
    """Distinct bit vectors and how many rows have each.

    Attributes:
        bits: which predicates are true, shape (n, m).
        rows: rows of each vector, shape (n,).
    """

    bits: Bits
    rows: Counts

    @staticmethod
    def of_codes(codes: Counts, rows: Counts, width: int) -> Vectors:
        """Vectors given as numbers whose bit j is predicate j."""
        return Vectors(_bits_of(codes, width), rows)

    @property
    def codes(self) -> Counts:
        """Each vector as a number whose bit j is predicate j, shape (n,)."""
        powers = np.int64(1) << np.arange(self.bits.shape[1], dtype=np.int64)
        return np.asarray(self.bits.astype(np.int64) @ powers, dtype=np.int64)


@dataclass(frozen=True)
class Sop:
    """A partitioning by predicates.

    Attributes:
        features: the predicates, one per bit.
        codes: vectors that were seen, as numbers, ascending.
        index: partition of each vector, in the order in which partitions should lie.
        vectors: the union of each partition's vectors, shape (partitions, predicates).
        rows: rows of each partition, of those that were counted.
    """

    features: tuple[Feature, ...]
    codes: tuple[int, ...]
    index: tuple[int, ...]
    vectors: Bits
    rows: Counts

    @staticmethod
    def learn(features: Sequence[Feature], vectors: Vectors, target_rows: float) -> Sop:
        """Partition counted vectors into pieces of about ``target_rows`` rows, and order them."""
        weights = np.array([feature.weight for feature in features], dtype=np.float64)
        member = partition(vectors, weights, target_rows)
        count = int(member.max()) + 1 if len(member) else 0
        union = np.zeros((count, vectors.bits.shape[1]), dtype=np.bool_)
        np.logical_or.at(union, member, vectors.bits)
        order = ordered(union)
        place = np.empty(count, dtype=np.int64)
        place[order] = np.arange(count)
        rows = np.bincount(member, vectors.rows, count).astype(np.int64)
        by_code = np.argsort(vectors.codes)
        codes, index = vectors.codes[by_code], place[member][by_code]
        return Sop(tuple(features), tuple(codes.tolist()), tuple(index.tolist()), union[order], rows[order])

    def index_of(self, codes: Counts) -> Counts:
        """Partition of rows by their vectors, shape like ``codes``.

        A vector that was never seen joins the partition to which it costs least. Such rows are few, but anywhere else
        a single one of them makes readers open its file.
        """
        if not self.codes:
            return np.zeros(len(codes), dtype=np.int64)
        known = np.array(self.codes, dtype=np.int64)
        at = np.minimum(np.searchsorted(known, codes), len(known) - 1)
        found = np.array(self.index, dtype=np.int64)[at]
        unseen = known[at] != codes
        found[unseen] = self._joined(codes[unseen])
        return found

    def _joined(self, codes: Counts) -> Counts:
        weights = np.array([feature.weight for feature in self.features], dtype=np.float64)
        added = (~self.vectors).T * self.rows  # [j, p]: rows that are read for predicate j from then on
        parts = []
        for start in range(0, len(codes), JOINED_AT_ONCE):
            bits = _bits_of(codes[start : start + JOINED_AT_ONCE], len(self.features))
            parts.append(np.argmin((bits * weights) @ added, axis=1))
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts])

    def sql(self) -> str:
        """A row's partition index as Spark computes it; what `index_of` says of its vector, if that has few bits."""
        width, vector = len(self.features), vector_sql(self.features)
        if width <= DENSE_BITS:  # a map is searched from its beginning for every row
            every = self.index_of(np.arange(1 << width, dtype=np.int64)).tolist()
            digits = len(str(max(every)))
            # as bytes: an array of numbers is thousands of objects that each task unpacks anew
            table = "".join(f"{index:0{digits}}" for index in every)
            place = f"CAST({vector} AS INT) * {digits} + 1"
            return f"CAST(CAST(substring(CAST('{table}' AS BINARY), {place}, {digits}) AS STRING) AS INT)"
        keys, values = (f"from_json('{list(items)}', 'array<bigint>')" for items in (self.codes, self.index))
        rest = int(self._joined(np.array([(1 << width) - 1], dtype=np.int64))[0])
        return f"CAST(coalesce(try_element_at(map_from_arrays({keys}, {values}), {vector}), {rest}L) AS INT)"

    def cost(self, weights: Floats) -> float:
        """Rows that can be skipped, summed over predicates by weight: C(P) of the seed."""
        return float(self.rows @ (~self.vectors @ weights))


def _bits_of(codes: Counts, width: int) -> Bits:
    return ((codes[:, None] >> np.arange(width)) & 1).astype(np.bool_)


def vector_sql(features: Sequence[Feature]) -> str:
    """A row's bit vector as a number; a predicate that is null is not true."""
    bits = [f"IF(coalesce({feature.sql}, false), {1 << j}L, 0L)" for j, feature in enumerate(features)]
    return "(" + " + ".join(bits) + ")" if bits else "0L"


def vectors_of(truth: Sequence[Bits]) -> Counts:
    """Vectors of sampled rows as numbers, from each predicate's truth per row."""
    codes = np.zeros(len(truth[0]) if truth else 0, dtype=np.int64)
    for j, bits in enumerate(truth):
        codes |= bits.astype(np.int64) << j
    return codes


def chosen_bits(features: Sequence[Feature], truth: Sequence[Bits], most: int = MAX_BITS) -> list[int]:
    """Indices of the predicates to partition by, those first that let the most be skipped (seed 004, P7 and P8).

    A predicate saves its queries all rows that do not satisfy it, but not those that a chosen weaker one already saves
    them. Of predicates that are true of the same rows one is taken; those true of no row or of all rows separate
    nothing.
    """
    useful = [j for j, bits in enumerate(truth) if bits.any() and not bits.all()]
    shares = {j: float(truth[j].mean()) for j in useful}
    left = dict.fromkeys(useful, 1.0)
    chosen: list[int] = []
    while left and len(chosen) < most:
        best = max(left, key=lambda j: (features[j].weight * (left[j] - shares[j]), -j))
        del left[best]
        chosen.append(best)
        for j in list(left):
            if contingency(truth[best].astype(np.int64), truth[j].astype(np.int64)) > 1 - SAME:
                del left[j]
            elif not (truth[j] & ~truth[best]).any():
                left[j] = min(left[j], shares[best])
    return chosen


def partition(vectors: Vectors, weights: Floats, target_rows: float) -> Counts:
    """Partition of each vector, shape (n,): merged bottom-up until every partition has ``target_rows`` rows.

    Merging a and b costs what each alone could skip and both together cannot: |a| w_j for every j that only a lacks,
    and the other way round. The pair that costs least is merged, of equal ones the smaller; a partition that is large
    enough only takes in smaller ones.

    >>> bits = np.array([[1, 0], [1, 1], [0, 1]], dtype=bool)
    >>> partition(Vectors(bits, np.array([10, 1, 10])), np.array([1.0, 5.0]), 10).tolist()
    [0, 1, 1]
    """
    count = len(vectors.rows)
    if not count:
        return np.zeros(0, dtype=np.int64)
    member = _rarer_joined(vectors, weights)
    groups, member = np.unique(member, return_inverse=True)
    bits = vectors.bits[groups].copy()
    rows = np.bincount(member, vectors.rows).astype(np.float64)
    np.logical_or.at(bits, member, vectors.bits)
    losses = _losses(bits, rows, weights)
    alive, owner = np.ones(len(groups), dtype=np.bool_), np.arange(len(groups))
    while alive.sum() > 1 and (small := alive & (rows < target_rows)).any():
        costs = np.where(small[:, None] & alive[None, :], losses + 1e-12 * (rows[:, None] + rows[None, :]), np.inf)
        np.fill_diagonal(costs, np.inf)
        a, b = np.unravel_index(int(np.argmin(costs)), costs.shape)
        bits[a] |= bits[b]
        rows[a] += rows[b]
        alive[b], owner[owner == b] = False, a
        losses[a] = _loss(bits[a], rows[a], bits, rows, weights)
        losses[:, a] = losses[a]
    return np.unique(owner[member], return_inverse=True)[1].astype(np.int64)


def _rarer_joined(vectors: Vectors, weights: Floats) -> Counts:
    """Vector that stands for each vector: itself, or of the most frequent ones the one that it costs least to join."""
    member = np.arange(len(vectors.rows))
    order = np.argsort(-vectors.rows, kind="stable")
    kept, rare = order[:MAX_VECTORS], order[MAX_VECTORS:]
    bits, rows = vectors.bits[kept], vectors.rows[kept].astype(np.float64)
    for i in rare:
        cost = _loss(vectors.bits[i], float(vectors.rows[i]), bits, rows, weights)
        member[i] = kept[int(np.argmin(cost))]
    return member


def _losses(bits: Bits, rows: Floats, weights: Floats) -> Floats:
    weighed = bits * weights
    alone = (~bits).astype(np.float64) @ weighed.T  # [a, b]: weight that b has and a has not
    return np.asarray(rows[:, None] * alone + rows[None, :] * alone.T)


def _loss(vector: Bits, size: float, bits: Bits, rows: Floats, weights: Floats) -> Floats:
    return np.asarray(size * ((bits & ~vector) @ weights) + rows * ((vector & ~bits) @ weights))


def ordered(vectors: Bits) -> npt.NDArray[np.int64]:
    """An order in which consecutive vectors differ in few bits: within twice the shortest (seed 004, 4.1.2).

    A minimum spanning tree over Hamming distances (Prim), in preorder, from the vector of fewest ones.

    >>> ordered(np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=bool)).tolist()
    [1, 2, 0]
    """
    count = len(vectors)
    if count < 3:
        return np.arange(count)
    ones = vectors.astype(np.int64)
    differing = ones @ (1 - ones).T
    distance = differing + differing.T
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_weighted_edges_from((i, j, int(distance[i, j])) for i in range(count) for j in range(i))
    tree = nx.minimum_spanning_tree(graph, algorithm="prim")
    start = int(np.argmin(ones.sum(axis=1)))
    return np.fromiter(nx.dfs_preorder_nodes(tree, start), dtype=np.int64, count=count)


def file_zeros(vectors: Bits, per_file: int) -> int:
    """Zeros in the files' vectors when so many consecutive partitions share a file: what can be skipped (figure 4.2).

    The seed's measure (004) of an order of partitions, for the tests of `ordered`.

    >>> file_zeros(np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=bool), 2)
    2
    """
    starts = np.arange(0, len(vectors), per_file)
    return int((~np.logical_or.reduceat(vectors, starts, axis=0)).sum()) if len(vectors) else 0
