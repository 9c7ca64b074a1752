"""Which data files a sample of a table reads, and how often it takes a row of each."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Files", "chosen_files", "row_shares"]

MAX_SCANNED = 4 << 30
"""Bytes of data files that a sample reads at most, but for those of partitions that would be missed."""
MISSED_SCANNED = 16 * MAX_SCANNED
"""Bytes of these, a file of each: columns are read, not whole files."""
MIN_FILES = 200
"""Files that a sample reads at least, where the table has them: rows of one file are alike."""
STEEPEST = 4.0
"""A row of a file is taken at most so many times as often as one is on average: the driver gets as many of all files
before it leaves out what is too much of the others."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Files(Protocol):
    """The live files of a table version, one array entry per file."""

    @property
    def path(self) -> npt.NDArray[Any]:
        """Paths, as `zorder_pipeline.features.sample.Snapshot.read_files` takes them."""

    @property
    def bytes(self) -> Ints:
        """Sizes."""

    @property
    def rows(self) -> Ints:
        """Live rows."""

    @property
    def modified(self) -> Ints:
        """When each was written."""

    @property
    def partition_codes(self) -> npt.NDArray[Any]:
        """Number of each file's partition, from 0."""


def chosen_files(files: Files, seed: int) -> Ints:
    """Indices of the files to sample from, ascending: all, or as many at random as `MAX_SCANNED` bytes hold.

    Of each partition in proportion, and about `MIN_FILES` at least. Those whose part is less than a file have one, the
    partitions that were written last first, as far as `MISSED_SCANNED` bytes go: they are asked for most. The choice
    depends on the list of files and the seed only, not on its order.
    """
    count, whole = len(files.path), int(files.bytes.sum())
    if count <= MIN_FILES or whole <= MAX_SCANNED:
        return np.arange(count)
    hashes = [blake2b(f"{seed}/{path}".encode(), digest_size=8).digest() for path in files.path]
    order = np.array(sorted(range(count), key=hashes.__getitem__), dtype=np.int64)
    drawn = np.argsort(order)
    part = np.asarray(files.partition_codes, dtype=np.int64)
    order = order[np.argsort(part[order], kind="stable")]  # by partition, in each as drawn
    mine = part[order]
    held, size = np.bincount(part), np.bincount(part, weights=files.bytes)
    begin = np.concatenate([[0], np.cumsum(held)[:-1]])
    read = np.cumsum(files.bytes[order], dtype=np.float64)
    read -= (read - files.bytes[order])[begin[mine]]
    fits = read <= MAX_SCANNED / whole * size[mine]
    fits |= np.arange(count) - begin[mine] < np.floor(MIN_FILES / count * held[mine] + 0.5)
    missed = np.flatnonzero(np.bincount(mine[fits], minlength=len(held)) == 0)
    first = order[begin[missed]]
    written = np.zeros(len(held), dtype=np.int64)
    np.maximum.at(written, part, files.modified)
    first = first[np.lexsort((drawn[first], -written[missed]))]
    lacking = max(0, MIN_FILES - int(fits.sum()))
    first = first[(np.cumsum(files.bytes[first]) <= MISSED_SCANNED) | (np.arange(len(first)) < lacking)]
    return np.sort(np.concatenate([order[fits], first]))


def row_shares(files: Files, chosen: Ints, rows: int) -> Floats:
    """Share of its rows to take from each chosen file, so that about ``rows`` come from all, shape (chosen,).

    Each partition has its share of them, although more of the files of one are read than of another; but of a partition
    of which only a few rows are read no more than `STEEPEST` times the mean, and none of one of which none are.

    Args:
        chosen: from `chosen_files`.
    """
    mean = rows / max(1, int(files.rows[chosen].sum()))
    if len(chosen) == len(files.path):
        return np.full(len(chosen), min(1.0, mean))
    part = np.asarray(files.partition_codes, dtype=np.int64)
    whole = np.bincount(part, weights=files.rows)
    read = np.bincount(part[chosen], weights=files.rows[chosen], minlength=len(whole))
    wanted = rows * whole / max(1.0, float(whole[read > 0].sum()))
    share = np.minimum(1.0, np.minimum(STEEPEST * mean, wanted / np.maximum(1.0, read)))
    return np.where(read > 0, share, 0.0)[part[chosen]]
