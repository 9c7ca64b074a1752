"""Where files end: cutting the sequence of key cells into files of about the target size, at cell prefixes.

Files that end where a high bit of the key changes hold whole cells of a coarser grid, so their zone maps overlap less:
up to a fifth fewer rows read than with equal counts (design section 5).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.kernel import kernel
from zorder_pipeline.model.key_spec import KeySpec

__all__ = ["TOLERANCE", "Cuts", "cell_sizes", "cut_cells", "file_count"]

TOLERANCE = 0.35
"""A file's rows may differ from the target by this share when that lets it end at a coarser cell."""


HEAVY = 1.5
"""A range of more than so many files' rows is dealt out over several files."""


@dataclass(frozen=True)
class Cuts:
    """Where the files of one partition begin.

    Attributes:
        starts: keys, strictly ascending; a row belongs to range ``number of starts <= key``, so there is one range more
            than starts.
        pieces: files per range, shape (len(starts) + 1,): 1, or more for a range that holds more rows than a file
            should (a heavy hitter), whose rows are then dealt out evenly.
        sizes: rows that a file of each range should have, in units of the target, shape (len(starts) + 1,).
    """

    starts: npt.NDArray[np.int64]
    pieces: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.float64] = field(repr=False)

    @property
    def files(self) -> int:
        """Files in all."""
        return int(self.pieces.sum())


def file_count(rows: int, target_rows: int) -> int:
    """Files of about ``target_rows`` that ``rows`` make; at least 1.

    >>> file_count(1000, 300), file_count(10, 300)
    (3, 1)
    """
    return max(1, round(rows / max(1, target_rows)))


def cut_cells(
    cells: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    target_rows: float,
    tolerance: float = TOLERANCE,
    sizes: npt.NDArray[np.float64] | None = None,
) -> Cuts:
    """Cut a histogram of keys into files.

    Args:
        cells: keys that occur, strictly ascending, shape (n,).
        counts: rows per key, shape (n,).
        target_rows: rows a file should have.
        tolerance: see `TOLERANCE`; 0 gives equal counts as far as cells allow.
        sizes: rows of the files of each cell in units of the target, shape (n,), see `cell_sizes`; None for 1.

    >>> cut_cells(np.arange(8), np.full(8, 10), 20)
    Cuts(starts=array([2, 4, 6]), pieces=array([1, 1, 1, 1]))
    >>> cut_cells(np.arange(3), np.array([5, 90, 5]), 10).pieces  # a heavy hitter is dealt out evenly
    array([1, 9, 1])
    >>> cut_cells(np.arange(8), np.full(8, 10), 20, sizes=np.repeat([0.5, 2.0], 4))
    Cuts(starts=array([1, 2, 3, 4]), pieces=array([1, 1, 1, 1, 1]))
    """
    if not len(cells):
        return Cuts(np.zeros(0, dtype=np.int64), np.ones(1, dtype=np.int64), np.ones(1))
    counts = np.ascontiguousarray(counts, dtype=np.int64)
    wanted = counts.astype(np.float64) if sizes is None else counts / sizes
    first, pieces = cut_positions(np.ascontiguousarray(cells, dtype=np.int64), wanted, float(target_rows), tolerance)
    of_range = np.ones(len(first)) if sizes is None else np.add.reduceat(counts, first) / np.add.reduceat(wanted, first)
    return Cuts(cells[first[1:]], pieces, of_range)


def cell_sizes(spec: KeySpec, cells: npt.NDArray[np.int64]) -> npt.NDArray[np.float64] | None:
    """Rows of the files of each cell under a layout, in units of the target, shape of ``cells``; None if about equal.

    Cells of an epoch, whose values came after the layout was learned, are as those they repeat.
    """
    if spec.tree is None or not spec.tree.size:
        return None
    leaf = np.searchsorted(spec.tree.leaf_keys, cells & ((1 << spec.bits) - 1))
    return np.array(spec.tree.leaf_sizes)[leaf]


@kernel
def _level(a: np.int64, b: np.int64) -> int:  # pragma: no cover - compiled
    """Position of the highest bit in which two keys differ: the coarser the boundary between them, the higher."""
    difference = a ^ b
    level = 0
    while difference > 0:
        difference >>= 1
        level += 1
    return level


@kernel
def cut_positions(
    cells: npt.NDArray[np.int64], counts: npt.NDArray[np.float64], target_rows: float, tolerance: float
) -> tuple[Any, Any]:  # pragma: no cover - compiled
    """Index of the first cell of each range (the first is 0), and its pieces; see `cut_cells`."""
    n = len(cells)
    total = 0.0
    for i in range(n):
        total += counts[i]
    first = np.empty(n, dtype=np.int64)
    pieces = np.empty(n, dtype=np.int64)
    ranges = 0
    i = 0
    left = total
    files_left = max(1, int(np.round(total / target_rows)))
    target = total / files_left
    while i < n:
        ideal = left / files_left
        # files that ended early leave more for the rest: past a quarter over the target none may end early any more
        low = max(ideal * (1.0 - tolerance), 0.5 * target) if ideal < 1.25 * target else ideal
        high = ideal * (1.0 + tolerance) if ideal > 0.8 * target else ideal
        size = counts[i]
        end, end_size = i + 1, size
        if files_left == 1:
            end, end_size = n, left
        elif size <= ideal * HEAVY:  # a cell of more than that is dealt out on its own
            best_level, best_distance, found = -1, np.inf, False
            for j in range(i + 1, n + 1):
                if j == n:
                    if not found:
                        end, end_size = n, size
                    break
                if counts[j] > ideal * HEAVY and not found and size >= ideal * 0.5:
                    end, end_size = j, size
                    break
                if size >= low and (size <= high or not found):
                    level = _level(cells[j - 1], cells[j])
                    distance = abs(size - ideal)
                    if level > best_level or (level == best_level and distance < best_distance):
                        end, end_size, best_level, best_distance, found = j, size, level, distance, True
                if size > high:
                    break
                size += counts[j]
        first[ranges] = i
        pieces[ranges] = max(1, int(np.round(end_size / ideal))) if end_size > ideal * HEAVY else 1
        if end_size > 2.0 * target * pieces[ranges]:  # where little is left for many files, ideal is no measure
            pieces[ranges] = int(np.ceil(end_size / (2.0 * target)))
        files_left = max(1, files_left - pieces[ranges])
        left -= end_size
        ranges += 1
        i = end
    return first[:ranges], pieces[:ranges]
