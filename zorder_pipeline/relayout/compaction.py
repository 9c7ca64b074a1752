"""Compaction alone: small files and files with many deleted rows become files of the target size; order and tags stay.

Rows are not sorted anew: the files of a group are laid end to end, each in its own order. A group is what may be mixed:
files of one partition and, of our own files, of one layout and generation, there only neighbours in the key's order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zorder_pipeline.errors import TableError, UnsupportedTableError
from zorder_pipeline.model.places import ROOT, real_path
from zorder_pipeline.model.schema import TableSchema

from .committer import Committer
from .file_list import GENERATION_TAG, KEY_HIGH_TAG, KEY_LOW_TAG, LAYOUT_TAG, SIZE_TAG, FileList
from .history import COMPACTED
from .job import Arranged, by_partition
from .key_column import FILE
from .select import SMALL_SHARE, in_partitions, much_deleted
from .snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Compaction", "Group", "groups_of"]

LARGEST = 1.5
"""Files are not merged beyond so many times the target."""
_SOURCE, _PLACE, _ROW = (f"__zorder_{name}" for name in ("source", "place", "row"))

Indices = npt.NDArray[np.int64]
Rows = npt.NDArray[np.float64]


Group = tuple[int, ...]
"""Files, in their order, that become one."""


@dataclass(frozen=True)
class Compaction:
    """The `zorder_pipeline.relayout.job.Job` that only merges files.

    Attributes:
        target_rows: rows a file should have.
        keep_ours: whether files of ours keep to their layout's present size instead, see `groups_of`.
    """

    target_rows: int
    keep_ours: bool = True

    @property
    def label(self) -> str:
        """Whose commit it is, for the table's history."""
        return COMPACTED

    @property
    def layout_id(self) -> str:
        """None: files keep theirs, and their generation."""
        return ""

    @property
    def columns(self) -> tuple[str, ...]:
        """None: the rows get no new order."""
        return ()

    def refuse_unless_fits(self, schema: TableSchema, *, changed: bool) -> None:
        """It fits any table."""

    def select(self, snapshot: TableSnapshot, where: str | None) -> Indices:
        """The files of `groups_of`.

        Raises:
            UnsupportedTableError: only whole partitions of the table can be replaced.
        """
        if snapshot.whole_partitions:
            raise UnsupportedTableError(
                f"merging files of {snapshot.location} needs Delta's own transaction, which a Spark Connect session or "
                "committer: public does not have; use a classic session and committer: transaction, or Delta's OPTIMIZE"
            )
        files = snapshot.files()
        groups = groups_of(files, in_partitions(snapshot, files, where), self.target_rows, self.keep_ours)
        return np.array(sorted(i for group in groups for i in group), dtype=np.int64)

    def expected_files(self, snapshot: TableSnapshot, chosen: Indices) -> int:
        """Exactly the files that they become."""
        return len(self._groups(snapshot.files(), chosen))

    def arrange(self, committer: Committer, files: FileList, chosen: Indices, rows: DataFrame) -> Arranged:
        """Send each file's rows to its group's new file."""
        from pyspark.sql import functions as F

        location, groups = committer.current.location, self._groups(files, chosen)
        sources = [(real_path(files.path[i], location), number) for number, group in enumerate(groups) for i in group]
        paths, targets = zip(*sources, strict=True)
        if len(set(paths)) < len(paths):
            raise TableError(f"{location} has two files of one path in its log and cannot be compacted; relay it out")
        columns = {_SOURCE: pa.array(paths), _PLACE: pa.array(range(len(paths)), pa.int32())}
        small = pa.table(columns | {FILE: pa.array(targets, pa.int32())})
        path = F.regexp_replace(rows.metadataColumn("_metadata").getField("file_path"), ROOT, "")
        path = F.url_decode(F.replace(path, F.lit("+"), F.lit("%2B")))
        # a scan hands out a file's pieces in their order, so this id rises with the row's place in its file
        placed = rows.withColumns({_SOURCE: path, _ROW: F.monotonically_increasing_id()})
        # by Arrow: executors need no Python
        placed = placed.join(F.broadcast(rows.sparkSession.createDataFrame(small)), _SOURCE)
        by = (*by_partition(rows, committer.current.partition_columns), _PLACE, _ROW)
        return Arranged(placed, len(groups), by, [_tags(files, group) for group in groups])

    def _groups(self, files: FileList, chosen: Indices) -> list[Group]:
        """The groups that files were chosen for; a bin has all the groups of its partitions."""
        partitions = {files.partitions[i] for i in chosen}
        where = np.array([partition in partitions for partition in files.partitions], dtype=np.bool_)
        return groups_of(files, where, self.target_rows, self.keep_ours)


def groups_of(files: FileList, where: npt.NDArray[np.bool_], target_rows: int, keep_ours: bool) -> list[Group]:
    """Which files a compaction makes into one; a second one finds none.

    Files of fewer than half of the target's rows, or of what their layout meant them to have, are merged until they
    reach it: our own with their neighbours in the key's order, others in the order in which they were written. A file
    with many deleted rows is rewritten in any case, and none is divided.

    Args:
        where: which files may be touched, shape (files,).
        keep_ours: take for a layout's files, instead of ``target_rows``, the size that half of its rows' files reach.
    """
    members: dict[tuple[str, int, tuple[str | None, ...]], list[int]] = {}
    for i in np.flatnonzero(where):
        members.setdefault((files.layout[i], int(files.generation[i]), files.partitions[i]), []).append(int(i))
    present = _present_sizes(files) if keep_ours else {}
    deleted = much_deleted(files)
    result: list[Group] = []
    even_rows = files.even_rows()
    for (layout, _, _), group in members.items():
        target = present.get(layout, target_rows)
        for run in _runs(files, even_rows, group, deleted, SMALL_SHARE * target, neighbours=bool(layout)):
            result += _filled(even_rows, run, deleted, target)
    return result


def _present_sizes(files: FileList) -> dict[str, int]:
    """Per layout of ours the rows per file that files with half of its rows reach."""
    sizes: dict[str, list[float]] = {}
    for layout, rows in zip(files.layout, files.even_rows().tolist(), strict=True):
        if layout:
            sizes.setdefault(layout, []).append(rows)
    result = {}
    for layout, rows in sizes.items():
        descending = np.sort(rows)[::-1]
        total = np.cumsum(descending)
        result[layout] = max(1, int(descending[np.searchsorted(total, total[-1] / 2)]))
    return result


def _runs(
    files: FileList, even_rows: Rows, group: list[int], deleted: npt.NDArray[np.bool_], small: float, neighbours: bool
) -> Iterator[list[int]]:
    """Files of a group that may be merged, in their order; of ``neighbours`` only those with no other in between."""
    if not neighbours:
        group = sorted(group, key=lambda i: (files.modified[i], files.path[i]))
        yield [i for i in group if even_rows[i] < small]
        yield from ([i] for i in group if even_rows[i] >= small and deleted[i])
        return
    run: list[int] = []
    for i in sorted(group, key=lambda i: (files.key_low[i], files.key_high[i], files.path[i])):
        if even_rows[i] < small or deleted[i]:
            run.append(i)
        elif run:
            yield run
            run = []
    yield run


def _filled(even_rows: Rows, run: list[int], deleted: npt.NDArray[np.bool_], target: int) -> Iterator[Group]:
    """A run cut where a new file is full; one file alone is worth it only for its deleted rows."""
    members: list[int] = []
    rows = 0.0
    for i in [*run, -1]:
        more = float(even_rows[i])
        if members and (i < 0 or rows >= target or rows + more > LARGEST * target):
            if len(members) > 1 or deleted[members[0]]:
                yield tuple(members)
            members, rows = [], 0.0
        members.append(i)
        rows += more


def _tags(files: FileList, group: Group) -> dict[str, str]:
    """What a group's new file is tagged with: the layout that its members lie by, if any, and their range of keys."""
    chosen = list(group)
    if not (layout := files.layout[chosen[0]]):
        return {}
    tags = {LAYOUT_TAG: layout, GENERATION_TAG: str(files.generation[chosen[0]])}
    if (files.key_low[chosen] < 0).any():
        return tags
    low, high = files.key_low[chosen].min(), files.key_high[chosen].max()
    tags |= {KEY_LOW_TAG: str(low), KEY_HIGH_TAG: str(high)}
    if files.size is None or not files.size[chosen].all():
        return tags
    return tags | {SIZE_TAG: f"{files.rows[chosen].sum() / max(1.0, files.even_rows()[chosen].sum()):.4g}"}
