"""Where a node of the tree may be cut: at quantiles and literals, so that files on both sides have rows enough.

Compiled with numba, for `zorder_pipeline.layout.grow`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zorder_pipeline.model.kernel import kernel

from .partition_counts import follows, typical_rows

__all__ = ["positions", "positions_in_partitions"]

INNER_ROWS = 8
"""Sample rows a cell inside a file has at least."""
MOST_LITERALS = 64
"""Literals tried per column and node at most, evenly chosen."""


@kernel
def positions(
    codes: Any, files: int, inside: bool, tolerance: float, quantiles: int, literals: Any, least: int
) -> Any:  # pragma: no cover - compiled
    """Places where ascending ``codes`` may be cut: at a change of code, with rows enough on both sides.

    Those are `INNER_ROWS` inside a file, ``least`` where files differ in size, and else about whole files.
    """
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
            if min(place, rows - place) < (INNER_ROWS if inside else least):
                continue
        else:
            left = min(max(int(np.round(place / ideal)), 1), files - 1)
            uneven = max(abs(place / left - ideal), abs((rows - place) / (files - left) - ideal))
            if uneven > tolerance * ideal:
                continue
        found[count] = place
        count += 1
    return np.unique(found[:count])


@kernel
def positions_in_partitions(
    codes: Any, group: Any, counts: Any, rows_per_file: float, files: int, tolerance: float, quantiles: int,
    literals: Any, least: int,
) -> Any:  # pragma: no cover - compiled  # fmt: skip
    """As `positions`, of rows of several table partitions, each of which has files of its own.

    Where a column follows the partitions, a place divides few of them and the others not at all: then it need not
    leave whole files of all, and may lie where a partition begins.

    Args:
        codes: ascending, shape (rows,).
        group: number of the table partition of each, shape (rows,).
        counts: rows of each partition, shape (groups,).
        files: that the partition of a typical row makes.
    """
    inside: Any = np.bool_(False)  # a literal would have `positions` compiled once more
    found = positions(codes, files, inside, tolerance, quantiles, literals, least)
    places = found
    if least == 0:
        every: Any = np.int64(0)
        for count in counts:
            every += max(1, int(np.round(count / rows_per_file)))
        further = positions(codes, every, inside, np.inf, quantiles, literals, least)
        borders = _borders(codes, group, len(counts))
        if len(borders) > 0:
            near = np.searchsorted(borders, further)
            before, after = borders[np.maximum(near - 1, 0)], borders[np.minimum(near, len(borders) - 1)]
            further = np.concatenate((further, before, after))
        places = np.unique(np.concatenate((found, further)))
    kept = np.zeros(len(places), dtype=np.bool_)
    kept[np.searchsorted(places, found)] = True
    left, i = np.zeros(len(counts), dtype=np.int64), 0
    for k in range(len(places)):
        while i < places[k]:
            left[group[i]] += 1
            i += 1
        right = counts - left
        if least > 0:
            kept[k] = min(typical_rows(left), typical_rows(right)) >= least
        elif follows(left, right):
            kept[k] = _off(left, right, rows_per_file) <= tolerance
    return places[kept]


@kernel
def _borders(codes: Any, group: Any, groups: int) -> Any:  # pragma: no cover - compiled
    """Places where the first row of a partition is, before which all rows are of lower codes."""
    known = np.zeros(groups, dtype=np.bool_)
    found, count = np.empty(groups, dtype=np.int64), 0
    begin = 0
    for i in range(len(codes)):
        if i > 0 and codes[i] != codes[i - 1]:
            begin = i
        if not known[group[i]]:
            known[group[i]] = True
            if begin > 0 and (count == 0 or found[count - 1] != begin):
                found[count] = begin
                count += 1
    return found[:count]


@kernel
def _off(left: Any, right: Any, rows_per_file: float) -> float:  # pragma: no cover - compiled
    """By which share files of the rows on both sides are too large or too small, on average over all rows."""
    off, total = 0.0, 0.0
    for g in range(len(left)):
        rows = float(left[g] + right[g])
        total += rows
        if left[g] > 0 and right[g] > 0:
            files = max(2, int(np.round(rows / rows_per_file)))
            ideal = rows / files
            k = min(max(int(np.round(left[g] / ideal)), 1), files - 1)
            off += rows * min(1.0, max(abs(left[g] / k - ideal), abs(right[g] / (files - k) - ideal)) / ideal)
    return off / total
