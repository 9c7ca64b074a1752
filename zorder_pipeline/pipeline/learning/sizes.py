"""How large files should be, and how many of a table's bytes lie in which column."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from zorder_pipeline.features.ordering import ranks
from zorder_pipeline.features.sample import Sample
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.records import LearnSettings
from zorder_pipeline.reading.footers import column_shares, read_footers
from zorder_pipeline.relayout.snapshot import TableSnapshot

__all__ = ["columns_read", "compact_rows", "most_files", "other_targets", "partitions_of", "query_bytes"]
__all__ += ["sampled_for_size", "sought_rows", "table_column_bytes", "target_rows"]

SMALLEST_FILE = 64 * 1024
LARGEST_FILE = 1 << 30
COMPACT_FILE = 128 << 20
SMALLER_FILE = 8 << 20
"""Files are not made smaller than this for what queries would save: each is an entry of Delta's log, and a footer."""
MOST_FILES, MOST_IN_PARTITIONS, EACH_PARTITION = 1_000, 4_000, 4
"""Nor are there to be more of them, as a sample has to show what each holds: so many of a table, or so many in each of
its partitions as far as that makes no more than the second number."""
MOST_SOUGHT = 5_000
"""Files that a layout is sought for at most, where the present ones are smaller than those of a compaction."""
MOST_COLUMNS, MOST_BYTES = 64, 128 << 20
"""Columns that are sampled for their sizes only, and compressed bytes that they take in a sample."""
MIN_FILES = 8
SHARE_FILES = 16
STEP = 8


def target_rows(snapshot: TableSnapshot, settings: LearnSettings) -> int:
    """Rows per file to aim for.

    What the settings ask for; else ``delta.targetFileSize``; else about the table's present file size, between 64 KiB
    and 1 GiB, and a table of few files is cut into eight where that leaves them 64 KiB.
    """
    files = snapshot.files()
    rows, size = int(files.rows.sum()), int(files.bytes.sum())
    if settings.target_file_rows is not None:
        return max(1, settings.target_file_rows)
    per_row = max(size / max(1, rows), 1e-9)
    present = min(max(size / max(MIN_FILES, len(files)), SMALLEST_FILE), LARGEST_FILE)
    wanted = settings.target_file_bytes or snapshot.target_file_bytes or present
    return max(1, round(wanted / per_row))


def sought_rows(snapshot: TableSnapshot, settings: LearnSettings) -> int:
    """Rows per file of the files that a layout is sought for; the gate weighs it in others, too.

    As `target_rows`, but where nobody asked for a size and no file lies by a layout of ours, files of `SMALLER_FILE`,
    or as many as `most_files`, if the present ones are at least twice as large: these hide most of what an order could
    skip. Ten can be told apart by three bits, and a partition that is a single file by none. Where some files lie by a
    layout of ours, files are at most as large as those, or as the smaller ones where these are larger. Where there
    would be more than `MOST_SOUGHT`, they are larger, up to `compact_rows`, unless half of the table is laid out: many
    tiny files are to be merged, and a sample would show nothing of each.
    """
    target, rows = target_rows(snapshot, settings), int(snapshot.files().rows.sum())
    if _asked(snapshot, settings) or not rows:
        return target
    sought, files = _sought_rows(snapshot, settings, target), snapshot.files()
    if 2 * int(files.rows[files.ours].sum()) >= rows:
        return sought
    return max(sought, min(math.ceil(rows / MOST_SOUGHT), compact_rows(snapshot, settings)))


def _sought_rows(snapshot: TableSnapshot, settings: LearnSettings, target: int) -> int:
    files = snapshot.files()
    rows, size, ours = int(files.rows.sum()), int(files.bytes.sum()), files.ours
    wanted = round(max(SMALLER_FILE, size / most_files(snapshot)) * rows / max(1, size))
    if ours.any():
        return min(target, max(1, wanted, round(float(files.rows[ours].mean()))))
    merging = str(snapshot.properties.get("delta.autoOptimize.autoCompact", "false")).lower() != "false"
    if merging or not settings.smaller_files or settings.enriched_share > 0:
        return target
    return wanted if 0 < 2 * wanted <= target else target


def most_files(snapshot: TableSnapshot) -> int:
    """Files that a layout is sought for at most, where nobody asked for a size."""
    partitions = int(snapshot.files().partition_codes.max(initial=0)) + 1
    return max(MOST_FILES, min(MOST_IN_PARTITIONS, EACH_PARTITION * partitions))


def _asked(snapshot: TableSnapshot, settings: LearnSettings) -> bool:
    """Whether somebody asked for a size of files."""
    return bool(settings.target_file_rows or settings.target_file_bytes or snapshot.target_file_bytes)


def compact_rows(snapshot: TableSnapshot, settings: LearnSettings) -> int:
    """Rows per file that a compaction aims for: as `target_rows`, but 128 MiB instead of the present size."""
    if _asked(snapshot, settings):
        return target_rows(snapshot, settings)
    return target_rows(snapshot, replace(settings, target_file_bytes=COMPACT_FILE))


def other_targets(snapshot: TableSnapshot, settings: LearnSettings, target: int) -> tuple[int, ...]:
    """Rows per file of other files than those of ``target`` rows that a layout might be written in, ascending.

    Larger ones where these are small: each about eight times the one before (`_in_whole_files`), at most those of
    `compact_rows` or of the largest partition, and at least eight files; none where the settings or the table ask for a
    size. And files of the present size, in the place of those of about as many rows, where a layout was sought for
    smaller ones.
    """
    files = snapshot.files()
    partitions = np.bincount(files.partition_codes, weights=files.rows).astype(np.float64)
    largest = int(partitions.max(initial=0))
    most = min(compact_rows(snapshot, settings), int(files.rows.sum()) // MIN_FILES, largest)
    found: list[int] = []
    while (found or [target])[-1] * STEP <= most:
        found.append(_in_whole_files((found or [target])[-1] * STEP, partitions))
    most = _in_whole_files(most, partitions)
    if most >= 2 * (found or [target])[-1]:
        found.append(most)
    present = target_rows(snapshot, settings)
    if present < 2 * target:
        return tuple(found)
    return tuple(sorted([present, *(rows for rows in found if 2 * rows <= present or rows >= 2 * present)]))


def _in_whole_files(target: int, partitions: npt.NDArray[np.float64]) -> int:
    """Rows of a file, ``target`` or a little less, so that the usual partition is a whole number of files.

    Days of twelve equal files would be one and a half of eight times their size: chance then decides which of them are
    cut in two, and otherwise in the sample than in the table, so that promises are broken.

    Args:
        partitions: rows of each; the usual one is that in which the middle row lies.

    >>> _in_whole_files(8_000, np.full(14, 12_000.0)), _in_whole_files(8_000, np.full(1, 84_000.0))
    (6000, 8000)
    """
    if len(partitions) < 2 or target < 1:  # of a table of fewer rows than files
        return target
    ascending = np.sort(partitions)
    usual = float(ascending[np.searchsorted(np.cumsum(ascending), ascending.sum() / 2)])
    return target if usual <= target else math.ceil(usual / math.ceil(usual / target))


def query_bytes(snapshot: TableSnapshot, queries: Sequence[LoggedQuery]) -> npt.NDArray[np.float64]:
    """Bytes of the whole table in the columns that each query reads (`columns_read`), shape (queries,)."""
    size, whole = table_column_bytes(snapshot), float(snapshot.files().bytes.sum())
    if not size:
        return np.full(len(queries), whole)
    found = columns_read(snapshot, queries)
    # a sum of floats in the order of a set differs from process to process, and no study that is stored would go on
    of_some = {read: math.fsum(size.get(name, 0.0) for name in read) for read in set(found)}
    return np.array([of_some[read] for read in found], dtype=np.float64)


def columns_read(snapshot: TableSnapshot, queries: Sequence[LoggedQuery]) -> list[frozenset[str]]:
    """Top-level columns that each query reads, in the table's own case; all of them where that is not known.

    Partition columns are none: what is read of them stands in no file.
    """
    names: dict[str, str] = {}
    for leaf in snapshot.leaves:
        for depth in range(1, len(leaf.path) + 1):
            names.setdefault(".".join(leaf.path[:depth]).lower(), leaf.path[0])
    partition = frozenset(snapshot.partition_columns)
    everything = frozenset(names.values()) - partition
    found = [frozenset(_top_level(name, names) for name in query.columns) - {""} for query in queries]
    return [read - partition if read else everything for read in found]


def sampled_for_size(snapshot: TableSnapshot, queries: Sequence[LoggedQuery], rows: int) -> list[str]:
    """Columns to sample because queries read them: plain ones, at most `MOST_COLUMNS`, the most read first.

    One that would make the sample too large for the driver, such as long texts, is left out.

    Args:
        rows: to be sampled.
    """
    counts: dict[str, int] = {}
    for read in columns_read(snapshot, queries):
        for name in read:
            counts[name] = counts.get(name, 0) + 1
    plain = {c.name for c in snapshot.schema.columns if c.value_type.orderable}
    wanted = sorted((name for name in counts if name in plain), key=lambda name: (-counts[name], name))[:MOST_COLUMNS]
    share = rows / max(1, int(snapshot.files().rows.sum()))
    size = {name: share * part for name, part in table_column_bytes(snapshot).items()} if wanted else {}
    found, room = list[str](), float(MOST_BYTES)
    for name in wanted:
        if size.get(name, 0.0) <= room:
            room -= size.get(name, 0.0)
            found.append(name)
    return found


def _top_level(name: str, names: Mapping[str, str]) -> str:
    """The column that holds what is called so, a part of a struct or not; "" where the table has none.

    >>> _top_level("Net.Amount", {"net.amount": "net.amount"}), _top_level("a.b.c", {"a": "A"}), _top_level("x", {})
    ('net.amount', 'A', '')
    """
    name = name.lower()
    while name not in names and "." in name:
        name = name.rpartition(".")[0]
    return names.get(name, "")


def table_column_bytes(snapshot: TableSnapshot) -> dict[str, float]:
    """Bytes of the table by top-level column, from the footers of some of its files."""
    files = snapshot.files()
    some = files.path[:: max(1, len(files) // SHARE_FILES)][:SHARE_FILES]
    names = {leaf.physical[0]: leaf.path[0] for leaf in snapshot.leaves}
    shares = column_shares(read_footers(snapshot.location, some.tolist()), names)
    return {name: share * float(files.bytes.sum()) for name, share in shares.items()}


def partitions_of(sample: Sample, names: Sequence[str]) -> npt.NDArray[np.int32] | None:
    """Number of the partition that each sampled row lies in; None for a table without partitions."""
    found: npt.NDArray[np.int64] | None = None
    for name in names:
        column = sample.columns.get(name)
        if column is None:
            continue
        codes = np.where(column.valid, ranks(column.values) + 1, 0)
        found = codes if found is None else found * (int(codes.max()) + 1) + codes
        found = np.unique(found, return_inverse=True)[1].ravel().astype(np.int64)
    return None if found is None else found.astype(np.int32)
