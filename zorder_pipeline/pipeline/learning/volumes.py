"""What queries read of a table in bytes and files: now, from its footers, and under a plan, from virtual files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from zorder_pipeline.gate.benefit import ReadVolumes
from zorder_pipeline.gate.cost import ScanWork
from zorder_pipeline.layout.promise import in_proportion
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.layout.virtual_files import files_read, virtual_file_bytes
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.ranges import Boxes
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.records import TableAnalysis
from zorder_pipeline.reading.footers import file_column_bytes, page_indexed, read_footers
from zorder_pipeline.relayout.job import ROW_GROUP
from zorder_pipeline.relayout.snapshot import TableSnapshot

from .keeping import sample_files, sample_keys
from .paging import as_stored, sampled_pages, stored_pages, with_bounds
from .row_groups import batches, places_asked, sampled_groups, stored_files
from .sizes import columns_read, query_bytes, table_column_bytes

__all__ = ["FileVolumes", "present_volumes", "read_volumes", "with_sampled_pages"]

Floats = npt.NDArray[np.float64]

MOST_FOOTERS, SAMPLED_FOOTERS = 2_000, 200
"""Files whose footers are all read; of more, bytes and row groups are told as in so many of them."""


@dataclass(frozen=True)
class FileVolumes:
    """What each query reads; arrays of shape (queries,).

    Attributes:
        times: how often each was asked; once without it.
        bytes: of the columns it reads, in the row groups that it reads.
        files, rows: in the files that it opens.
        groups: share of the table's rows in the row groups that it reads.
        pages: bytes of its columns in the pages that it reads; None where nobody asked or that is not known.
        weighed: whether bytes and pages are known: footers of the files, or some of them, could be read. Else the share
            of the rows in opened files tells bytes, of what `query_bytes` tells.
        indexed: columns filtered by that have a page index in some file; None where that is not known.
    """

    bytes: Floats
    files: Floats
    rows: Floats
    groups: Floats
    pages: Floats | None = None
    weighed: bool = True
    times: Floats | None = None
    indexed: frozenset[str] | None = None

    @property
    def mean(self) -> ScanWork:
        """Bytes and files that a query reads on average."""
        return ScanWork(*(float(np.average(each, weights=self.times)) for each in (self.bytes, self.files)))


def present_volumes(
    snapshot: TableSnapshot, queries: Sequence[LoggedQuery], boxes: Sequence[Boxes], pages: bool = False
) -> FileVolumes:
    """What queries read of the table as it lies: exact, up to `MOST_FOOTERS` files whose footers can be read. Of more,
    bytes and what is read of opened files are told as in some of them.

    Args:
        pages: tell by Parquet's pages, too (`zorder_pipeline.pipeline.learning.paging.stored_pages`).
    """
    files = snapshot.files()
    names = {leaf.physical[0]: leaf.path[0] for leaf in snapshot.leaves}
    few = len(files) <= MOST_FOOTERS
    chosen = np.arange(0, len(files), 1 if few else len(files) // SAMPLED_FOOTERS + 1)
    footers = read_footers(snapshot.location, files.path[chosen].tolist())
    sizes = file_column_bytes(footers, names)
    whole = float(sum(part.sum() for part in sizes.values()))
    if not few or not footers.complete:
        sizes = {name: part.sum() / whole * files.bytes for name, part in sizes.items()} if whole else {}
    rows, read = np.asarray(files.rows, dtype=np.float64), columns_read(snapshot, queries)
    stored, by_any = stored_files(snapshot, footers, chosen, boxes), np.zeros(len(files), dtype=np.bool_)
    volume, opened, rows_opened, inside = np.zeros((4, len(boxes)))
    for some in stored.batches:
        hits = stored.hits(some)
        parts = stored.shares(some, hits)
        by_any |= parts.any(axis=0)
        volume[some], inside[some] = _bytes(parts, sizes, read[some]), parts @ rows / max(1.0, rows.sum())
        opened[some], rows_opened[some] = hits.sum(axis=1), hits.astype(np.float64) @ rows
    weighed = whole > 0 or not len(files)
    if not weighed:
        volume = rows_opened / max(1.0, rows.sum()) * query_bytes(snapshot, queries)
    share = stored_pages(snapshot, stored, by_any) if pages else None
    return FileVolumes(
        bytes=volume,
        files=opened,
        rows=rows_opened,
        groups=inside,
        pages=None if share is None else volume * share,
        weighed=weighed,
        indexed=page_indexed(footers, places_asked(snapshot, boxes)),
    )


def read_volumes(
    analysis: TableAnalysis,
    plan: Plan,
    chosen: Sequence[int],
    shares: Floats,
    kept: npt.NDArray[np.int32] | None = None,
    row_group_bytes: int | None = None,
    now: FileVolumes | None = None,
    before: Floats | None = None,
) -> ReadVolumes | None:
    """What some queries read now and under the plan, in bytes, files and row groups; None for a plan without a layout.

    Args:
        chosen: indices of the queries.
        shares: share of rows each of them is told to read under the plan: zone maps of a sample are too narrow, and
            bytes and files are corrected as rows were.
        kept: file of each sampled row, for a plan that leaves most files as they are: the present layout for what is
            new, or compaction.
        row_group_bytes: of the files to be written.
        now: `present_volumes` of the queries, where that is known already: it reads every file's footer. Pages are told
            as `with_sampled_pages` does, as those of the plan are.
        before: share of rows that each is told to read now, by the same means as ``shares``; None for what is exact.
    """
    if (plan.spec is None and kept is None) or not len(chosen):
        return None
    snapshot, sample = analysis.snapshot, analysis.sample
    queries, boxes = [analysis.queries[i] for i in chosen], [analysis.boxes[i] for i in chosen]
    now = present_volumes(snapshot, queries, boxes) if now is None else now
    now = with_sampled_pages(analysis, now, boxes) if now.pages is None else now
    session = str(snapshot.spark.conf.get("spark.sql.parquet.compression.codec", "snappy"))
    codec = snapshot.properties.get("delta.parquet.compression.codec", session)
    unordered = np.zeros(sample.rows, dtype=np.int64)
    if kept is None:
        assert plan.spec is not None
        file = sample_files(analysis, plan.spec, plan.target_file_rows)
        within = by_key = sample_keys(analysis, plan.spec)
    else:  # what the plan does not write lies by its key already; what is only compacted has none
        file, within, by_key = kept.astype(np.int64), unordered, unordered
        if plan.spec is not None and all(name in sample.arrays for name in plan.spec.columns):
            by_key = sample_keys(analysis, plan.spec)
    lies = now.rows / max(1, sample.total_rows)
    told = _virtual(analysis, queries, boxes, file, within, (shares, lies), now.files, row_group_bytes, codec)
    if not now.weighed:
        told = _by_rows(told, shares * query_bytes(snapshot, queries), shares)
    in_groups = told.groups_after / np.maximum(shares, 1e-12)
    indexed = None if kept is None else now.indexed  # what we write has an index, and most that stays what it has now
    pages = told.bytes_after * sampled_pages(analysis, boxes, file, by_key, in_groups, indexed)
    if kept is not None:  # most files stay as they are: only the change is told, from what is known exactly
        stored, _ = as_stored(analysis)
        by_now = lies if before is None else before
        ours = _virtual(analysis, queries, boxes, stored, within, (by_now, lies), now.files, row_group_bytes, codec)
        if plan.spec is None or not now.weighed:  # merging takes out nothing of what is read: bytes grow as rows do
            then = in_proportion(now.bytes, by_now, shares)
        else:
            then = now.bytes * told.bytes_after / np.maximum(ours.bytes_after, 1.0)
        pages = then * pages / np.maximum(told.bytes_after, 1.0)
        told = replace(
            told, bytes_after=then, files_after=now.files * told.files_after / np.maximum(ours.files_after, 1e-9)
        )
        if plan.spec is None:
            told = replace(told, groups_after=np.maximum(told.groups_after, now.groups))
            pages = np.maximum(pages, 0.0 if now.pages is None else now.pages)
    told = replace(told, pages_before=now.pages, pages_after=np.minimum(pages, told.bytes_after))
    return replace(told, bytes_before=now.bytes, files_before=now.files, groups_before=now.groups)


def with_sampled_pages(analysis: TableAnalysis, now: FileVolumes, boxes: Sequence[Boxes]) -> FileVolumes:
    """What queries read of the table as it lies, by pages too, which the sample tells."""
    sample = analysis.sample
    in_groups = now.groups * sample.total_rows / np.maximum(now.rows, 1.0)
    share = sampled_pages(analysis, boxes, *as_stored(analysis), in_groups, now.indexed)
    return replace(now, pages=now.bytes * share)


def _virtual(
    analysis: TableAnalysis,
    queries: Sequence[LoggedQuery],
    boxes: Sequence[Boxes],
    file: npt.NDArray[np.int64],
    within: npt.NDArray[np.int64],
    shares: tuple[Floats, Floats],
    opened_now: Floats,
    row_group_bytes: int | None,
    codec: str,
) -> ReadVolumes:
    """`ReadVolumes` of virtual files; what it says of before is to be replaced.

    Args:
        shares: of the rows that each query reads then, and now. Of one that no virtual file serves they tell all: what
            it reads then, or where that is nothing, as the sample lacks what it asks for, what it reads now.
        opened_now: files that each query opens now, for those that no virtual file serves.
    """
    snapshot, sample = analysis.snapshot, analysis.sample
    files, columns = int(file.max()) + 1, sample.arrays
    order = np.lexsort((np.arange(len(file)), within, file))
    scale = sample.stands_for
    read = columns_read(snapshot, queries)
    per_file = np.bincount(file, minlength=files).astype(np.float64)
    sizes = _sizes(analysis, frozenset().union(*read), file, order, files, scale, codec)
    estimator = Estimator.build(columns, snapshot.schema, boxes, sample.rows)
    hits = files_read(estimator, file.astype(np.int32), files)
    per_row = float(snapshot.files().bytes.sum()) / max(1, sample.total_rows)
    exact = with_bounds(snapshot.schema, lambda c: c.value_type.orderable)  # in footers, and for readers of ours
    inner = Estimator.build(columns, exact, boxes, sample.rows)
    inside = sampled_groups(inner, file, within, per_file * scale * per_row / (row_group_bytes or ROW_GROUP), scale)
    enriched = hits & files_read(inner, file.astype(np.int32), files) if exact != snapshot.schema else hits

    def told(some: slice) -> tuple[Floats, ...]:
        opened, then = hits[some], shares[0][some]
        served = np.asarray(opened.any(axis=1))[:, None]
        lacking = np.where(then > 0, then, shares[1][some])[:, None]
        files_of = np.where(served, opened, lacking)
        # more rows than were sampled make zone maps wider: bytes and files grow as the rows did
        wider = np.where(served[:, 0], then / np.maximum(files_of @ per_file / sample.rows, 1e-12), 1.0)
        wider = np.clip(wider, 0.0, files / np.maximum(1, opened.sum(axis=1)))
        parts_of = np.where(served, opened * inside[some, None], lacking)
        volume = _bytes(parts_of, sizes, read[some]) * wider
        helped = enriched[some] | ~served
        less = volume if enriched is hits else _bytes(parts_of * helped, sizes, read[some]) * wider
        # one that none serves opens a file at least, and as many as its rows take where these are smaller
        present, ratio = opened_now[some], np.minimum(1.0, lacking[:, 0] / np.maximum(shares[1][some], 1e-12))
        still: Floats = np.maximum.reduce([present * ratio, np.minimum(1.0, present), lacking[:, 0] * files])

        def number_of(opened: Floats) -> Floats:
            return np.where(served[:, 0], opened.sum(axis=1) * wider, np.minimum(still, files))

        fewer = number_of(files_of * helped)
        return volume, number_of(files_of), fewer, parts_of @ per_file / sample.rows * wider, less

    parts = zip(*(told(some) for some in batches(len(boxes), files)), strict=True)
    volume, opened, fewer, groups, less = (np.concatenate(each) for each in parts)
    useful, nothing = not (enriched == hits).all(), np.zeros(len(boxes))
    return ReadVolumes(
        nothing, volume, nothing, opened, nothing, np.clip(groups, 0, 1),
        np.minimum(less, volume) if useful else None, np.minimum(fewer, opened) if useful else None,
    )  # fmt: skip


def _by_rows(told: ReadVolumes, size: Floats, shares: Floats) -> ReadVolumes:
    """`ReadVolumes` with other bytes, as shares of the rows tell them, where footers tell nothing of the present ones.

    Args:
        size: bytes that each query reads.
        shares: of the rows.
    """
    less = None if told.enriched_bytes is None else in_proportion(size, told.bytes_after, told.enriched_bytes)
    return replace(told, bytes_after=size, groups_after=shares, enriched_bytes=less)


def _sizes(
    analysis: TableAnalysis,
    names: frozenset[str],
    file: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
    files: int,
    scale: float,
    codec: str,
) -> dict[str, Floats]:
    """Bytes of each column in each virtual file; a column that is not sampled keeps its bytes per row."""
    snapshot, sample = analysis.snapshot, analysis.sample
    types = {column.name: column.type for column in snapshot.schema.columns}
    rows = np.bincount(file, minlength=files) * scale
    result: dict[str, Floats] = {}
    unknown = [name for name in names if name not in sample.columns]
    if unknown:
        whole = table_column_bytes(snapshot)
        result = {name: whole.get(name, 0.0) * rows / max(1.0, rows.sum()) for name in unknown}
    for name in names - result.keys():
        values, valid = sample.arrays[name]
        result[name] = virtual_file_bytes(values, valid, types[name], file, order, files, scale, codec)
    return result


def _bytes(weighed: Floats, sizes: dict[str, Floats], read: Sequence[frozenset[str]]) -> Floats:
    """Bytes of each query's columns in the share of each file that it reads, shape (queries,)."""
    result = np.zeros(len(read))
    number = {columns: i for i, columns in enumerate(dict.fromkeys(read))}
    which = np.array([number[columns] for columns in read], dtype=np.int64)
    order = np.argsort(which, kind="stable")
    ends = np.searchsorted(which[order], np.arange(len(number) + 1))
    for columns, i in number.items():
        mine = order[ends[i] : ends[i + 1]]
        known = sorted(name for name in columns if name in sizes)  # in one order, or the last bit is by chance
        each = sum((sizes[name] for name in known), np.zeros(weighed.shape[1]))
        result[mine] = weighed[mine] @ each
    return result
