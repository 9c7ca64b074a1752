"""The nodes of a greedy tree: which one is cut next, by what, and what its children hold.

Compiled with numba, for `zorder_pipeline.layout.grow`. What a node is stands in columns of one array, see `FEATURE` and
those after it; what is asked travels as one `RowsAsked`, and how to grow as one `Growth`. A function is compiled once
more for every literal that it is called with: constants are passed as `numpy.int64` and `numpy.bool_`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zorder_pipeline.model.kernel import kernel

from .best_cut import best_cut
from .cut_places import positions, positions_in_partitions
from .partition_counts import counts_of, follows, numbered, typical_number, typical_rows
from .rows_asked import by_partition, hits_of, weight
from .tree import MAX_DEPTH

__all__ = ["CUT", "FEATURE", "FILES_CUT", "HIGH", "HURRIED", "LOW", "RANK", "STOP", "Growth", "grown"]

FEATURE, CUT, LOW, HIGH, RANK, BEGIN, END, FILES = range(8)
"""Rows of the array of nodes: as in `zorder_pipeline.layout.tree.TreeDraft`, then the range of the node's rows in the
permutation, and its files; 0 while that does not follow from its rows."""
LEAST_GAIN = 1e-4
"""Share of the rows read that a cut inside a file must save."""
TOO_LARGE = 1e12
"""So much more than anything saved counts that a leaf has more rows than any file should."""
STOP, FILES_CUT, HURRIED = range(3)
"""What the compiled part and who waits for it tell each other meanwhile, in an array of `numpy.int64`: that time is up,
how many files have been cut so far, and that some cuts were not looked for."""


class Growth(NamedTuple):
    """How a tree grows, as the compiled part takes it.

    Attributes:
        rows_per_file: rows that make a file.
        tolerance: by which share files may be too large or too small.
        quantiles, prior, inner: see `zorder_pipeline.layout.grow.GrowSettings`.
        literals, starts: further cuts of all features, and where those of each begin.
        least: rows that a leaf has at least, in the partition of a typical one; 0 where leaves are files of about equal
            size.
        largest: with it the node whose cut saves most per file is cut first, until there are as many files as wanted;
            nodes of more rows, in the partition of a typical one, before all others. 0 cuts every node as long as it
            can be.
        most_cuts: cuts above a leaf at most, with ``largest``.
    """

    rows_per_file: float
    tolerance: float
    quantiles: int
    prior: float
    inner: int
    literals: Any
    starts: Any
    least: int
    largest: float
    most_cuts: int


@kernel
def grown(fine: Any, asked: Any, how: Any, watch: Any) -> Any:  # pragma: no cover - compiled
    """Nodes, whether each lies inside one file, and how many rows each leaf has in the partition of a typical one.

    A node has as many files as the table partition of its typical row makes of it. Where columns have nothing to do
    with the partitions, every node has rows of all of them; a cut by a column that follows them leaves fewer.

    It grows level by level, and within files last, so that one that is stopped has looked for the cuts that matter
    most. What is left then is cut in the middle, see `_in_the_middle`: its leaves are files all the same.

    Args:
        fine: fine codes, shape (features, rows).
        asked: `RowsAsked`; what is read is counted by its partitions.
        how: `Growth`.
        watch: see `STOP`, shape (3,).
    """
    features, n = fine.shape
    perm, partition = np.arange(n), asked.partition
    rows_per_file = how.rows_per_file
    wanted = max(1, int(np.round(n / rows_per_file)))
    most = (4 * max(wanted, n // how.least if how.least > 0 and how.largest == 0 else 0) + 8) << how.inner
    nodes = np.zeros((8, most), dtype=np.int64)
    nodes[FEATURE] = -1
    inside = np.zeros(most, dtype=np.bool_)
    expected, typical = np.zeros((most, features)), np.ones(most)
    matching = [np.arange(len(asked.box_query))]
    nodes[END, 0], nodes[FILES, 0] = n, _files_of(perm, partition, rows_per_file)
    count: Any = np.int64(1)
    leaves = [0]
    if how.largest > 0:
        count = _best_first(fine, asked, how, nodes, expected, perm, matching, watch)
        leaves = [node for node in range(count) if nodes[FEATURE, node] < 0]
        nodes[FILES, :count] = 1
        nothing: Any = np.int64(0)
        how = _changed(how, how.tolerance, how.literals[:0], np.zeros_like(how.starts), nothing)
        for node in leaves if watch[HURRIED] else leaves[:0]:
            nodes[FILES, node] = _files_of(perm[nodes[BEGIN, node] : nodes[END, node]], partition, rows_per_file)
    first, above, within, done = count, leaves.copy(), [0][:0], 0
    while done < len(above) + len(within):
        node = above[done] if done < len(above) else within[done - len(above)]
        done += 1
        rows = perm[nodes[BEGIN, node] : nodes[END, node]].copy()
        files, typical[node] = nodes[FILES, node], typical_rows(counts_of(rows, partition))
        one_file = how.least == 0 and files <= 1
        depth = (nodes[RANK, node] if inside[node] else 0) if one_file else nodes[RANK, node]
        deep = depth >= (how.inner if one_file else MAX_DEPTH)
        if deep or len(rows) < 2 or count + 2 > most:
            continue
        best, _, _, feature, place, code = _look(
            fine, asked, how, rows, matching[node], files, one_file, expected[node], node == 0, watch
        )
        if watch[STOP]:
            watch[HURRIED] = 1
            best, feature, place, code = _in_the_middle(fine, asked, how, rows, files, one_file, expected[node])
        if feature < 0 or (one_file and best < LEAST_GAIN):
            continue
        _divide(fine, asked, nodes, expected, perm, matching, node, count, (feature, place, code), depth + 1)
        left = min(max(int(np.round(place * files / len(rows))), 1), max(1, files - 1))
        nodes[FILES, count] = 1 if one_file else left
        nodes[FILES, count + 1] = 1 if one_file else max(1, files - left)
        if not one_file and _follows(rows, fine[feature][rows] >= code, partition):
            for child in (count, count + 1):
                its = perm[nodes[BEGIN, child] : nodes[END, child]]
                nodes[FILES, child] = _files_of(its, partition, rows_per_file)
        inside[count : count + 2] = one_file
        watch[FILES_CUT] += not one_file
        for child in (count, count + 1):
            if how.least == 0 and nodes[FILES, child] <= 1:
                within.append(child)
            else:
                above.append(child)
        count += 2
    for node in range(count):
        if nodes[FEATURE, node] < 0:
            nodes[LOW, node], nodes[HIGH, node] = node, node
    return _depth_first(nodes[:, :count], inside[:count], typical[:count], first, leaves)


@kernel
def _depth_first(nodes: Any, inside: Any, typical: Any, first: int, leaves: Any) -> Any:  # pragma: no cover - compiled
    """The tree with its nodes from ``first`` on numbered from branch to branch below ``leaves``, not level by level."""
    order, stack = list(range(first)), leaves.copy()
    while len(stack) > 0:
        node = stack.pop()
        if nodes[FEATURE, node] >= 0:
            for child in (nodes[LOW, node], nodes[HIGH, node]):
                order.append(child)
                stack.append(child)
    every = np.array(order)
    number = np.empty_like(every)
    number[every] = np.arange(len(every))
    nodes = nodes[:, every]
    nodes[LOW], nodes[HIGH] = number[nodes[LOW]], number[nodes[HIGH]]
    return nodes, inside[every], typical[every]


@kernel
def _changed(how: Any, tolerance: float, literals: Any, starts: Any, least: int) -> Any:  # pragma: no cover - compiled
    """How to grow, with other bounds and further cuts."""
    return Growth(
        how.rows_per_file, tolerance, how.quantiles, how.prior, how.inner, literals, starts, least, how.largest,
        how.most_cuts,
    )  # fmt: skip


@kernel
def _files_of(rows: Any, partition: Any, rows_per_file: float) -> int:  # pragma: no cover - compiled
    """Files that the table partition of a typical one of ``rows`` makes of them."""
    return max(1, int(np.round(typical_rows(counts_of(rows, partition)) / rows_per_file)))


@kernel
def _follows(rows: Any, upwards: Any, partition: Any) -> bool:  # pragma: no cover - compiled
    """Whether those ``upwards`` are told from other ``rows`` by a column that follows the table partitions."""
    if partition[rows[0]] == partition[rows[-1]]:
        return False
    group = numbered(rows, partition)
    every, right = np.bincount(group), np.bincount(group[upwards], minlength=group[-1] + 1)
    return follows(every - right, right)


@kernel
def _best_first(
    fine: Any, asked: Any, how: Any, nodes: Any, expected: Any, perm: Any, matching: Any, watch: Any
) -> Any:  # pragma: no cover - compiled
    """Cuts the node that saves most per file until there are as many as wanted, or none; returns the nodes."""
    anywhere = _changed(how, np.inf, how.literals, how.starts, how.least)
    largest, wanted = how.largest, max(1, int(np.round(perm.size / how.rows_per_file)))
    most = 4 * wanted + 7
    saved, added = np.full(most, -1.0), np.zeros(most)
    found = np.zeros((3, most), dtype=np.int64)
    files, partition = _files(perm, asked.partition, largest), asked.partition
    inside: Any = np.bool_(False)
    count: Any = np.int64(1)
    seen = 0
    while files <= wanted - 0.5 and count + 2 <= most:
        for node in range(seen, count):
            rows = perm[nodes[BEGIN, node] : nodes[END, node]].copy()
            if len(rows) < 2 or nodes[RANK, node] >= how.most_cuts:
                continue
            gain, base, partitions, feature, place, code = _look(
                fine, asked, anywhere, rows, matching[node], how.quantiles + 1, inside, expected[node],
                node == 0, watch,
            )  # fmt: skip
            if watch[STOP]:
                watch[HURRIED] = 1
                return count
            if feature >= 0:
                upwards = fine[feature][rows] >= code
                added[node] = _files(rows[~upwards], partition, largest) + _files(rows[upwards], partition, largest)
                added[node] -= _files(rows, partition, largest)
                # where nothing is saved the larger one is cut
                too_large = typical_rows(counts_of(rows, partition)) > largest
                saved[node] = (max(gain, 0.0) * base + (TOO_LARGE if too_large else 1e-9) * len(rows)) / partitions
                found[0, node], found[1, node], found[2, node] = feature, place, code
        seen = count
        node = int(np.argmax(saved[:count]))
        if saved[node] < 0:
            break
        saved[node] = -1.0
        if files + added[node] / 2 > wanted:
            continue
        cut = found[0, node], found[1, node], found[2, node]
        _divide(fine, asked, nodes, expected, perm, matching, node, count, cut, nodes[RANK, node] + 1)
        files += added[node]
        watch[FILES_CUT] = int(files)
        count += 2
    return count


@kernel
def _files(rows: Any, partition: Any, largest: float) -> float:  # pragma: no cover - compiled
    """Files that a leaf of ``rows`` is at least, in all its table partitions."""
    counts = counts_of(rows, partition)
    return float(np.ceil(typical_rows(counts) / largest) * typical_number(counts))


@kernel
def _look(
    fine: Any, asked: Any, how: Any, rows: Any, matched: Any, files: int, one_file: bool, expected: Any, root: bool,
    watch: Any,
) -> Any:  # pragma: no cover - compiled  # fmt: skip
    """Gain, of what, in how many partitions, feature, place and code of the best cut of a node, feature -1 without one.

    ``expected``, the gains by feature of the node above, becomes those of this one. When time is up it ends, and what
    it found until then says nothing.
    """
    if watch[STOP]:
        return 0.0, 0.0, 1.0, -1, 0, 0
    quantiles, literals, starts = how.quantiles, how.literals, how.starts
    group, boxes = by_partition(rows, matched, asked)
    counts, base = counts_of(rows, asked.partition), 0.0
    matching = np.zeros(len(asked.box_query), dtype=np.bool_)
    own = np.zeros(len(boxes), dtype=np.float64)
    for g in range(len(boxes)):
        own[g] = weight(boxes[g], len(boxes[g]), asked) * counts[g]
        base += own[g]
        matching[boxes[g]] = True
    known = matching.sum()
    trust = known / max(known + how.prior, 1e-9)
    scratch = np.empty(len(asked.box_query), dtype=np.int64)
    best, best_feature, best_place, best_code = -np.inf, -1, 0, 0
    for f in range(len(fine)):
        if watch[STOP]:
            break
        codes = fine[f][rows]
        order = np.argsort(codes)
        codes = codes[order]
        if codes[0] == codes[-1]:
            expected[f] = 0.0
            continue
        here = literals[starts[f] : starts[f + 1]]
        here = here[np.searchsorted(here, codes[0], side="right") : np.searchsorted(here, codes[-1], side="right")]
        if len(boxes) == 1 or one_file:
            places = positions(codes, files, one_file, how.tolerance, quantiles, here, how.least)
        else:
            places = positions_in_partitions(
                codes, group[order], counts, how.rows_per_file, files, how.tolerance, quantiles, here, how.least
            )
        if len(places) == 0:
            continue
        gain, place = best_cut(rows[order], group[order], places, boxes, own, base, asked, scratch)
        expected[f] = gain if root else trust * gain + (1.0 - trust) * expected[f]
        if expected[f] > best:
            best, best_feature, best_place, best_code = expected[f], f, place, codes[place]
            if quantiles == 0:  # at the predicate's own literal, which may lie between two sampled values
                best_code = here[np.searchsorted(here, best_code, side="right") - 1]
    return best, base, typical_number(counts), best_feature, best_place, best_code


@kernel
def _in_the_middle(
    fine: Any, asked: Any, how: Any, rows: Any, files: int, one_file: bool, expected: Any
) -> Any:  # pragma: no cover - compiled
    """What is expected of a cut, feature, place and code of it, feature -1 without one; it asks no query.

    The column is the one that helped most above; each time that it is taken what it may help further is halved, as it
    is along a curve that has no more than one bit of a column to give at a time.
    """
    counts, group = counts_of(rows, asked.partition), numbered(rows, asked.partition)
    for f in np.argsort(-expected):
        codes = fine[f][rows]
        order = np.argsort(codes)
        codes = codes[order]
        if codes[0] == codes[-1]:
            continue
        nothing = how.literals[:0]
        if len(counts) == 1 or one_file:
            places = positions(codes, files, one_file, how.tolerance, how.quantiles, nothing, how.least)
        else:
            places = positions_in_partitions(
                codes, group[order], counts, how.rows_per_file, files, how.tolerance, how.quantiles, nothing, how.least
            )
        if len(places) > 0:
            place = places[len(places) // 2]
            gain = expected[f]
            expected[f] /= 2.0
            return gain, f, place, codes[place]
    return 0.0, -1, 0, 0


@kernel
def _divide(
    fine: Any, asked: Any, nodes: Any, expected: Any, perm: Any, matching: Any, node: int, child: int, cut: Any,
    rank: int,
) -> None:  # pragma: no cover - compiled  # fmt: skip
    """Cuts a node in two, the nodes ``child`` and the next one, with their rows and the boxes that still match them.

    Args:
        cut: its feature, place and code.
    """
    feature, place, code = cut
    begin, end = nodes[BEGIN, node], nodes[END, node]
    rows = perm[begin:end].copy()
    upwards = fine[feature][rows] >= code
    middle = begin + place
    perm[begin:middle] = rows[~upwards]
    perm[middle:end] = rows[upwards]
    nodes[FEATURE, node], nodes[CUT, node], nodes[LOW, node], nodes[HIGH, node] = feature, code, child, child + 1
    scratch = np.empty(len(matching[node]), dtype=np.int64)
    for side in range(2):
        new = child + side
        nodes[BEGIN, new] = begin if side == 0 else middle
        nodes[END, new] = middle if side == 0 else end
        nodes[RANK, new] = rank
        expected[new] = expected[node]
        its = perm[nodes[BEGIN, new] : nodes[END, new]]
        found = hits_of(its, matching[node], asked, scratch)
        matching.append(scratch[:found].copy())
