"""A layout while it is being searched for: a bit order over the features of one sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.kernel import kernel
from zorder_pipeline.model.key_spec import KeySpec

from .cells import TOLERANCE, cut_positions
from .encoding import FINE_BITS, Encoding, rank_encoding
from .interleave import hilbert_index
from .skipping import Estimator
from .tree import TreeDraft, leaf_of, tree_spec

__all__ = ["AnyDraft", "Draft", "SampledTable", "useful"]

DENSE_BITS = 17
"""Keys of up to so many bits are counted per cell instead of sorted."""


@dataclass(frozen=True)
class Draft:
    """A candidate layout.

    Attributes:
        order: feature index per bit, most significant first; more than `FINE_BITS` bits of one feature are not used.
        curve: as in `KeySpec`.
        aligned: whether files end at coarse cells (ours) or at equal counts (what other systems do).
        numbered: a column of few values has them numbered from 0, as Delta does it, instead of spread over all codes;
            its high bits then say nothing. Only for the Hilbert curve.
    """

    order: tuple[int, ...]
    curve: str = "gray"
    aligned: bool = True
    numbered: bool = False


AnyDraft = Draft | TreeDraft
"""A candidate layout of either kind."""


def useful(order: Sequence[int], limits: Sequence[int]) -> tuple[int, ...]:
    """``order`` without the bits of a feature beyond its limit, such as those that tell none of its values apart.

    >>> useful((0, 0, 0, 1, 1), (1, 2))
    (0, 1, 1)
    """
    return tuple(i for place, i in enumerate(order) if order[:place].count(i) < limits[i])


@dataclass(frozen=True)
class SampledTable:
    """A sample in fine codes, and the files it is to be cut into.

    Attributes:
        encodings: one per feature.
        fine: fine codes, int32, shape (features, rows).
        rows_per_file: sample rows in a file of the target size.
        stored: file in which each sample row lies now, int32, shape (rows,).
        stored_files: number of such files.
        partition: table partition of each sample row, int32 from 0, shape (rows,): a file has rows of one only. None
            when the table has one partition.
    """

    encodings: tuple[Encoding, ...]
    fine: npt.NDArray[np.int32]
    rows_per_file: float
    stored: npt.NDArray[np.int32]
    stored_files: int
    partition: npt.NDArray[np.int32] | None = None

    @staticmethod
    def build(
        columns: Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]],
        types: Mapping[str, str],
        features: Sequence[str],
        stored: npt.NDArray[np.int32],
        files: int,
        partition: npt.NDArray[np.int32] | None = None,
    ) -> SampledTable:
        """Encode ``features`` of a sample that stands for a table of ``files`` files; constants are left out.

        Args:
            columns: canonical values and validity by column name.
            types: Spark type by column name.
            stored: present file of each row.
            partition: table partition of each row.
        """
        encodings = [rank_encoding(name, types[name], *columns[name]) for name in features]
        kept = [encoding for encoding in encodings if encoding.useful_bits > 0]
        rows = len(stored)
        fine = np.empty((len(kept), rows), dtype=np.int32)
        for i, encoding in enumerate(kept):
            fine[i] = encoding.fine(*columns[encoding.column])
        present = int(stored.max()) + 1 if rows else 0
        several = partition if partition is not None and len(np.unique(partition)) > 1 else None
        return SampledTable(tuple(kept), fine, rows / max(1, files), stored, present, several)

    @property
    def rows(self) -> int:
        """Rows of the sample."""
        return len(self.stored)

    @property
    def files(self) -> int:
        """Files a layout is cut into, as far as partitions do not make them more."""
        return max(1, round(self.rows / self.rows_per_file))

    @cached_property
    def _ones(self) -> npt.NDArray[np.float64]:
        return np.ones(self.rows)

    @cached_property
    def _members(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Rows by partition, and where each partition begins."""
        assert self.partition is not None
        order = np.argsort(self.partition, kind="stable").astype(np.int64)
        starts = np.flatnonzero(np.diff(self.partition[order], prepend=-1)).astype(np.int64)
        return order, np.append(starts, self.rows)

    def keys(self, draft: AnyDraft) -> npt.NDArray[np.int64]:
        """Key of every sample row under ``draft``, shape (rows,)."""
        if isinstance(draft, TreeDraft):
            return np.asarray(draft.keys[self._leaves(draft)])
        if draft.curve == "hilbert":
            counts = Counter(draft.order)
            widest = max(counts.values())
            axes = [self.fine[i].astype(np.int64) >> (FINE_BITS - widest) for i in counts]
            for place, i in enumerate(counts):
                codes = self.encodings[i].levels
                if draft.numbered and len(codes) < 1 << widest:
                    axes[place] = np.searchsorted(codes, self.fine[i])
            return hilbert_index(np.stack(axes), widest)
        return np.asarray(_keys(self.fine, np.asarray(draft.order, dtype=np.int64), draft.curve == "gray"))

    def blocks(self, draft: AnyDraft | None) -> tuple[npt.NDArray[np.int32], int]:
        """File of every sample row under ``draft`` (None: as stored), shape (rows,), and their number."""
        if draft is None:
            return self.stored, self.stored_files
        if isinstance(draft, TreeDraft):
            return self._blocks_of_tree(draft)
        keys, tolerance = self.keys(draft), TOLERANCE if draft.aligned else 0.0
        if self.partition is not None:
            return self._blocks_of_cells(keys, self._ones, tolerance)
        if draft.curve != "hilbert" and len(draft.order) <= DENSE_BITS:
            block, number = _dense_blocks(keys, 1 << len(draft.order), self.rows_per_file, tolerance)
            return block, int(number)
        if not tolerance:  # equal counts, ties as they come: how systems with a total order cut files
            block = np.empty(self.rows, dtype=np.int32)
            block[np.argsort(keys, kind="stable")] = np.arange(self.rows, dtype=np.int64) * self.files // self.rows
            return block, self.files
        return self._blocks_of_cells(keys, self._ones, tolerance)

    def _blocks_of_tree(self, draft: TreeDraft) -> tuple[npt.NDArray[np.int32], int]:
        leaf = self._leaves(draft)
        keys = draft.keys[leaf]
        if draft.leaves_are_files:
            own = keys if self.partition is None else np.stack([self.partition, keys])
            leaves, leaf_number = np.unique(own, axis=-1, return_inverse=True)
            return np.asarray(leaf_number, dtype=np.int32), leaves.shape[-1]
        counted = self._ones if draft.size is None else 1 / draft.size[leaf]
        return self._blocks_of_cells(keys, counted, TOLERANCE)

    def _leaves(self, draft: TreeDraft) -> npt.NDArray[np.int64]:
        return np.asarray(leaf_of(self.fine, draft.feature, draft.cut, draft.low, draft.high))

    def _blocks_of_cells(
        self, keys: npt.NDArray[np.int64], counted: npt.NDArray[Any], tolerance: float
    ) -> tuple[npt.NDArray[np.int32], int]:
        """Files by key, in each partition, where each row counts for so many."""
        if self.partition is not None:
            block, number = _blocks_by_partition(keys, counted, *self._members, self.rows_per_file, tolerance)
            return block, int(number)
        cells, cell_of_row = np.unique(keys, return_inverse=True)
        counts = np.asarray(np.bincount(cell_of_row, weights=counted), dtype=np.float64)
        first, _ = cut_positions(cells, counts, self.rows_per_file, tolerance)
        begins = np.zeros(len(cells), dtype=np.int32)
        begins[first[1:]] = 1
        return np.cumsum(begins, dtype=np.int32)[cell_of_row], len(first)

    def rows_read(self, draft: AnyDraft | None, estimator: Estimator) -> npt.NDArray[np.float64]:
        """Share of rows each of the estimator's queries reads under ``draft`` (None: as stored), shape (queries,)."""
        return estimator.rows_read(*self.blocks(draft)) / max(1, self.rows)

    def spec(self, draft: AnyDraft) -> KeySpec:
        """The key of ``draft``, ready to be applied to the whole table."""
        if isinstance(draft, TreeDraft):
            return tree_spec(draft, self.encodings)
        counts = Counter(draft.order)
        used = list(dict.fromkeys(draft.order))
        if draft.curve == "hilbert":
            widest = max(counts.values())
            counts = Counter(dict.fromkeys(used, widest))
            order = tuple(range(len(used))) * widest
        else:
            order = tuple(used.index(i) for i in draft.order)
        features = tuple(self.encodings[i].feature(counts[i]) for i in used)
        return KeySpec(features, order, draft.curve)  # sorted by the key alone: Spark then sorts by radix


@kernel
def _keys(fine: Any, order: Any, gray: bool) -> Any:  # pragma: no cover - compiled
    features, rows = fine.shape
    key = np.zeros(rows, dtype=np.int64)
    last, turned = np.zeros((2, rows), dtype=np.int64)
    taken = np.zeros(features, dtype=np.int64)
    for place in range(len(order)):
        f = order[place]
        taken[f] += 1
        shift = FINE_BITS - taken[f]
        weight = len(order) - 1 - place
        if shift >= 0 and gray:  # see `gray_rank`: a column's turn is taken backwards after an odd place
            another = place > 0 and order[place - 1] != f
            for i in range(rows):
                if another:
                    turned[i] = last[i]
                last[i] = (np.int64(fine[f, i] >> shift) & 1) ^ turned[i]
                key[i] |= last[i] << weight
        elif shift >= 0:
            for i in range(rows):
                key[i] |= np.int64((fine[f, i] >> shift) & 1) << weight
    return key


@kernel
def _blocks_by_partition(
    keys: Any, counted: Any, members: Any, starts: Any, rows_per_file: float, tolerance: float
) -> Any:  # pragma: no cover - compiled
    block = np.empty(len(keys), dtype=np.int32)
    number = 0
    for p in range(len(starts) - 1):
        rows = members[starts[p] : starts[p + 1]]
        order = rows[np.argsort(keys[rows])]
        cells = np.empty(len(order), dtype=np.int64)
        counts = np.zeros(len(order), dtype=np.float64)
        found = 0
        for i in order:
            if found == 0 or cells[found - 1] != keys[i]:
                cells[found] = keys[i]
                found += 1
            counts[found - 1] += counted[i]
        first, _ = cut_positions(cells[:found], counts[:found], rows_per_file, tolerance)
        cell, file = -1, -1
        for i in order:
            if cell < 0 or cells[cell] != keys[i]:
                cell += 1
                if file + 1 < len(first) and first[file + 1] == cell:
                    file += 1
            block[i] = number + file
        number += len(first)
    return block, number


@kernel
def _dense_blocks(keys: Any, cells: int, rows_per_file: float, tolerance: float) -> Any:  # pragma: no cover - compiled
    histogram = np.zeros(cells, dtype=np.float64)  # as the counts that `cut_positions` is compiled for
    for i in range(len(keys)):
        histogram[keys[i]] += 1.0
    occurring = np.nonzero(histogram)[0]
    first, _ = cut_positions(occurring, histogram[occurring], rows_per_file, tolerance)
    block_of_cell = np.zeros(cells, dtype=np.int32)
    for b in range(len(first)):
        end = first[b + 1] if b + 1 < len(first) else len(occurring)
        for j in range(first[b], end):
            block_of_cell[occurring[j]] = b
    block = np.empty(len(keys), dtype=np.int32)
    for i in range(len(keys)):
        block[i] = block_of_cell[keys[i]]
    return block, len(first)
