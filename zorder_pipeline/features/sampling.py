"""Which data files a sample of a table reads, and how often it takes a row of each."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Chosen", "Files", "chosen_files", "row_shares"]

MAX_SCANNED = 4 << 30
"""Bytes of data files that a sample reads at most, unless `MIN_FILES` are more, and but for those of partitions that
would be missed."""
MISSED_SCANNED = 16 * MAX_SCANNED
"""Bytes of these, a file of each: columns are read, not whole files."""
MIN_FILES = 200
"""Files that a sample reads at least, where the table has them: rows of one file are alike."""

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


@dataclass(frozen=True)
class Chosen:
    """The files that a sample reads.

    Attributes:
        index: which of the table's files, ascending.
        weight: how many bytes of its partition a byte of each stands for, beside the others of it.
    """

    index: Ints
    weight: Floats


def chosen_files(files: Files, seed: int) -> Chosen:
    """The files to sample from: all, or as many at random as `MAX_SCANNED` bytes hold or `MIN_FILES` tell.

    A file is drawn with a probability in proportion to its size, and of each partition and of large and small files in
    proportion (systematic sampling): where one is read of a partition it is mostly one that holds most of its rows. A
    partition of which none was drawn has one, those that were written last first, as far as `MISSED_SCANNED` bytes go:
    they are asked for most. The choice depends on the list of files and the seed only, not on its order.
    """
    count, whole = len(files.path), int(files.bytes.sum())
    if count <= MIN_FILES or whole <= MAX_SCANNED:
        return Chosen(np.arange(count), np.ones(count))
    hashes = [blake2b(f"{seed}/{path}".encode(), digest_size=8).digest() for path in files.path]
    by_chance = np.empty(count, dtype=np.int64)
    by_chance[sorted(range(count), key=hashes.__getitem__)] = np.arange(count)
    part = np.asarray(files.partition_codes, dtype=np.int64)
    place = np.full(int(part.max()) + 1, count)
    np.minimum.at(place, part, by_chance)  # the codes of partitions may depend on the order of the list
    chance = _chances(files.bytes)
    order = np.lexsort((by_chance, np.log2(np.maximum(files.bytes, 1)).astype(int), place[part]))
    upto = np.cumsum(np.where(chance < 1, chance, 0.0)[order]) - np.random.default_rng(seed).random()
    drawn = chance >= 1
    drawn[order] |= np.diff(np.floor(upto), prepend=-1.0) > 0
    index = np.concatenate([np.flatnonzero(drawn), _of_missed(files, drawn, by_chance)])
    return Chosen(np.sort(index), 1 / chance[np.sort(index)])


def _chances(size: Ints) -> Floats:
    """How probably each file is drawn, more than 0 and at most 1, shape (files,): in proportion to its size."""
    size = np.maximum(size, 1)
    low, high = 1 / float(size.sum()), 1 / float(size.min())
    for _ in range(60):
        middle = np.sqrt(low * high)
        chance = np.minimum(1.0, middle * size)
        enough = chance.sum() >= MIN_FILES and (chance * size).sum() >= MAX_SCANNED
        low, high = (low, middle) if enough else (middle, high)
    return np.asarray(np.minimum(1.0, high * size))


def _of_missed(files: Files, drawn: npt.NDArray[np.bool_], by_chance: Ints) -> Ints:
    """A file of each partition that has none, as far as `MISSED_SCANNED` bytes go: its smallest, or, as far as what is
    left of them goes, one drawn as the others are."""
    part = np.asarray(files.partition_codes, dtype=np.int64)
    of_missed = np.flatnonzero(~np.isin(part, part[drawn]))
    written = np.zeros(int(part.max()) + 1, dtype=np.int64)
    np.maximum.at(written, part, files.modified)

    def one_of_each(among: Ints, first_by: Floats | Ints, most: int) -> Ints:
        order = among[np.lexsort((by_chance[among], first_by[among]))]
        found = order[np.unique(part[order], return_index=True)[1]]
        found = found[np.lexsort((by_chance[found], -written[part[found]]))]
        return found[np.cumsum(files.bytes[found]) <= most]

    smallest = one_of_each(of_missed, files.bytes, MISSED_SCANNED)
    late = -np.log((by_chance + 0.5) / len(part)) / np.maximum(files.bytes, 1)  # the least is drawn as others are
    found = one_of_each(of_missed, late, MISSED_SCANNED - int(files.bytes[smallest].sum()))
    return np.concatenate([found, smallest[~np.isin(part[smallest], part[found])]])


def row_shares(files: Files, chosen: Chosen, rows: int) -> Floats:
    """Share of its rows, at most 1, to take from each chosen file, so that about ``rows`` come from all; (chosen,).

    Each partition has its share of them, although more of the files of one are read than of another, but one of which
    none are read; and in a partition large and small files have theirs.
    """
    if len(chosen.index) == len(files.path):
        return np.full(len(chosen.index), min(1.0, rows / max(1, int(files.rows.sum()))))
    part = np.asarray(files.partition_codes, dtype=np.int64)
    whole = np.bincount(part, weights=files.rows)
    stood = np.bincount(part[chosen.index], weights=files.rows[chosen.index] * chosen.weight, minlength=len(whole))
    wanted = rows * whole / max(1.0, float(whole[stood > 0].sum()))
    share = np.divide(wanted, stood, out=np.zeros(len(whole)), where=stood > 0)
    return np.asarray(np.minimum(1.0, chosen.weight * share[part[chosen.index]]))
