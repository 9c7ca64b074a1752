"""Which file each row of a sample lies in under a finished layout, or after one was applied to some files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.key_spec import KeySpec

from .cells import cell_sizes, cut_cells
from .extend import extended
from .interleave import keys

__all__ = ["files_after", "files_under"]


def files_under(
    spec: KeySpec,
    columns: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]],
    rows_per_file: float,
    partition: npt.NDArray[np.int32] | None = None,
) -> npt.NDArray[np.int64]:
    """File of each row, numbered from 0 in the order of the keys, shape (rows,).

    Args:
        columns: canonical values and validity of each column of the key.
        rows_per_file: rows of the sample that stand for a file.
        partition: table partition of each row, as a file has rows of one only; None for a single one.
    """
    key = keys(spec, columns)
    file = np.empty(len(key), dtype=np.int64)
    number = 0
    groups = [np.arange(len(key))]
    if partition is not None:
        order = np.argsort(partition, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(partition[order])) + 1)
    for rows in groups:
        cells, counts = np.unique(key[rows], return_counts=True)
        cuts = cut_cells(cells, counts, rows_per_file, sizes=cell_sizes(spec, cells))
        place = np.searchsorted(cuts.starts, key[rows], side="right")
        first = np.concatenate([[0], np.cumsum(cuts.pieces)])
        file[rows] = number + first[place] + _turns(place) % cuts.pieces[place]
        number += cuts.files
    return file


def _turns(place: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Number of each row among those of its range, from 0, shape like ``place``: rows come as they may.

    >>> _turns(np.array([4, 0, 4, 4, 0]))
    array([0, 0, 1, 2, 1])
    """
    order = np.argsort(place, kind="stable")
    begins = np.flatnonzero(np.diff(place[order], prepend=-1))
    turns = np.empty(len(place), dtype=np.int64)
    turns[order] = np.arange(len(place)) - np.repeat(begins, np.diff(begins, append=len(place)))
    return turns


def files_after(
    spec: KeySpec,
    columns: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]],
    stored: npt.NDArray[np.int32],
    rewritten: npt.NDArray[np.bool_],
    rows_per_file: float,
    stands_for: float,
    partition: npt.NDArray[np.int32] | None = None,
) -> npt.NDArray[np.int32]:
    """File of each row after only some files are rewritten, which is what an incremental relayout does, shape (rows,).

    Args:
        stored: present file of each row.
        rewritten: which rows lie in files that are rewritten; see `files_under` for the rest.
        stands_for: rows of the table that a row of the sample stands for.
    """
    file = np.unique(stored, return_inverse=True)[1].astype(np.int32)
    some = np.flatnonzero(rewritten)
    if len(some):
        part = {name: (values[some], valid[some]) for name, (values, valid) in columns.items()}
        here = None if partition is None else partition[some]
        longer = extended(spec, part, len(some) * stands_for)
        file[some] = int(file.max()) + 1 + files_under(longer, part, rows_per_file, here)
    return file
