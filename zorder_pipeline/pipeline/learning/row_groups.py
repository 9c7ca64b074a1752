"""What queries open of files and read of them by row groups: of the present ones, and as a layout would have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.layout.virtual_files import pieces
from zorder_pipeline.model.ranges import Boxes, columns_asked
from zorder_pipeline.model.zone_map import ZoneMap
from zorder_pipeline.reading.footers import Footers, Place, row_groups
from zorder_pipeline.relayout.snapshot import TableSnapshot

__all__ = ["StoredFiles", "batches", "places_asked", "sampled_groups", "stored_files"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

AT_ONCE = 1 << 22
"""Pairs of a statement and a file that are reckoned with together; which are read is a byte for each pair."""
GROUP_SAMPLE = 8
"""Sample rows that a row group must have for its bounds to be told; else several row groups are told as one."""
ORDERS = 4
"""Random orders that an order of the rows is compared with."""


def batches(statements: int, files: int) -> list[slice]:
    """Some statements after the other, so that what is told of each and each file stays small; at least one batch.

    >>> batches(3, AT_ONCE // 2), batches(0, 10)
    ([slice(0, 2, None), slice(2, 4, None)], [slice(0, 419430, None)])
    """
    step = max(1, AT_ONCE // max(1, files))
    return [slice(begin, begin + step) for begin in range(0, max(1, statements), step)]


@dataclass(frozen=True)
class StoredFiles:
    """The files of a table, and what some statements read of them; build one with `stored_files`.

    Attributes:
        boxes: of each statement.
        zones: of the files.
        groups: zones of the row groups of those files whose footers are known; None where each has one.
        file: the file of each row group.
        known: files whose row groups these are, shape (files,).
        others: share of the rows of the other files that each statement reads where it opens them, shape (statements,).
    """

    boxes: Sequence[Boxes]
    zones: ZoneMap
    groups: ZoneMap | None
    file: Ints
    known: Mask
    others: Floats

    @property
    def batches(self) -> list[slice]:
        """Some statements after the other (`batches`)."""
        return batches(len(self.boxes), len(self.zones))

    def hits(self, some: slice) -> Mask:
        """Files that some of the statements open, shape (statements, files)."""
        mine = self.boxes[some]
        found = np.array([self.zones.matching(query) for query in mine], dtype=np.bool_)
        return found.reshape(len(mine), len(self.zones))

    def shares(self, some: slice, hits: Mask) -> Floats:
        """Share of each file's rows in the row groups that some of the statements read, shape (statements, files).

        A file without any row group has a share of 0.

        Args:
            hits: the files that they open.
        """
        if self.groups is None:
            return hits.astype(np.float64)
        rows, files, result = self.groups.rows, len(self.zones), np.empty(hits.shape)
        for i, (query, other) in enumerate(zip(self.boxes[some], self.others[some].tolist(), strict=True)):
            # one by one: statements by row groups, as numbers, are hundreds of megabytes
            read = self.groups.matching(query)
            inside = np.bincount(self.file[read], weights=rows[read], minlength=files) / self._all_rows
            result[i] = np.where(self.known, inside, other) * hits[i]
        return result

    @cached_property
    def _all_rows(self) -> Floats:
        """Rows of each file by its row groups, at least 1."""
        assert self.groups is not None
        return np.maximum(1.0, np.bincount(self.file, weights=self.groups.rows, minlength=len(self.zones)))


def stored_files(snapshot: TableSnapshot, footers: Footers, chosen: Ints, boxes: Sequence[Boxes]) -> StoredFiles:
    """The files of a table as some statements read them.

    Of files whose footers are not known, each statement is taken to read as large a part as of those that it opens and
    whose are known, or where it opens none of these, as all statements together do of theirs.

    Args:
        chosen: the files that the footers are of.
        boxes: of each statement.
    """
    zones = snapshot.files().zone_map()
    known = np.zeros(len(zones), dtype=np.bool_)
    found = StoredFiles(boxes, zones, None, np.zeros(0, dtype=np.int64), known, np.ones(len(boxes)))
    if not any(item.num_row_groups > 1 for item in footers.metadata if item is not None):
        return found
    known[[i for i, item in zip(chosen.tolist(), footers.metadata, strict=True) if item is not None]] = True
    groups, file = row_groups(footers, places_asked(snapshot, boxes))
    found = replace(found, groups=groups, file=chosen[file])
    return found if known.all() else replace(found, others=_of_others(found))


def places_asked(snapshot: TableSnapshot, boxes: Sequence[Boxes]) -> dict[str, Place]:
    """Where the columns that queries filter by stand in files, by their names; partition columns stand in none."""
    used = columns_asked(boxes)
    leaves = (leaf for leaf in snapshot.leaves if leaf.column.name in used and not leaf.column.partition)
    return {leaf.column.name: (leaf.physical, leaf.column.type) for leaf in leaves}


def _of_others(found: StoredFiles) -> Floats:
    """See `StoredFiles`."""
    rows, (opened, read) = (found.zones.rows * found.known).astype(np.float64), np.zeros((2, len(found.boxes)))
    for some in found.batches:
        hits = found.hits(some)
        opened[some], read[some] = hits @ rows, found.shares(some, hits) @ rows
    mean = read.sum() / opened.sum() if opened.any() else 1.0
    return np.where(opened > 0, read / np.maximum(1.0, opened), mean)


def sampled_groups(estimator: Estimator, file: Ints, within: Ints, groups: Floats, stands_for: float) -> Floats:
    """Share of the rows of opened files that lie in row groups which queries read, by a sample, shape (queries,).

    Of the few sampled rows of a row group the bounds are too narrow: by them a query by a column that the order has
    nothing to do with skips most row groups, all of which it reads in the table. So it is told how many fewer pieces of
    files are read than if the rows of each file lay in a random order. What is skipped of these, too, is skipped for
    want of rows: in the table only as far as its row groups have no more of them.

    Args:
        estimator: of the sample, by bounds as footers have them.
        file: file of each sampled row.
        within: order of the rows of a file; of equal ones the first sampled comes first.
        groups: row groups of each file, shape (files,).
        stands_for: rows of the table that a sampled row stands for.
    """
    rows = np.bincount(file)
    number, as_large = (
        np.maximum(1, np.minimum(count, most).astype(np.int64))
        for count, most in ((np.round(groups), rows / GROUP_SAMPLE), (groups / stands_for, rows))
    )
    if number.max(initial=1) == 1:
        return np.ones(estimator.queries)

    def read(within: Ints, number: Ints) -> Floats:
        piece = pieces(file, np.lexsort((np.arange(len(file)), within, file)), number)
        return estimator.rows_read(piece, int(piece.max()) + 1)

    drawn = np.random.default_rng(0)
    orders = [drawn.permutation(len(file)) for _ in range(ORDERS)]
    by_chance, all_the_same = (np.mean([read(order, of) for order in orders], axis=0) for of in (number, as_large))
    opened = read(within, np.ones_like(number))
    share = read(within, number) * all_the_same / np.maximum(by_chance * opened, 1e-12)
    least = 1 / float(np.average(np.maximum(1.0, groups), weights=rows))  # of a file that is opened one is read
    return np.where(by_chance > 0, np.clip(share, least, 1.0), 1.0)
