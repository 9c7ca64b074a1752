"""What readers skip inside files by Parquet's page index: as files lie, and as a layout would have them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from zorder_pipeline.layout.promise import whole_table_shares
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.layout.virtual_files import pieces
from zorder_pipeline.model.ranges import Boxes, Range
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.zone_map import PAGE_ROWS
from zorder_pipeline.pipeline.records import TableAnalysis
from zorder_pipeline.reading.page_zones import page_zones
from zorder_pipeline.relayout.snapshot import TableSnapshot

from .row_groups import StoredFiles, batches, places_asked

__all__ = ["as_stored", "page_estimator", "pages_of", "sampled_pages", "stored_pages", "with_bounds"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

PAGE_SAMPLE = 50
"""Sample rows that a page must have for its bounds to be told; else several pages are told as one."""
IN_THRESHOLD = 10
"""Spark's ``spark.sql.parquet.pushdown.inFilterThreshold``."""
MOST_ROWS, MOST_FILES = 10_000_000, 200
"""Rows of so many files are looked at for their pages, and so many files; the others are taken to be like them."""


def stored_pages(snapshot: TableSnapshot, stored: StoredFiles, by_any: Mask) -> Floats | None:
    """Share of the rows in the row groups that each query reads that lie in pages that it reads, shape (queries,).

    Told from files spread over those that are read, of `MOST_ROWS` rows or a single one, at most `MOST_FILES`. Of a
    query that reads none of them the mean of the others is taken.

    Args:
        stored: the files, and the queries.
        by_any: files of which any query reads a row group, shape (files,).

    Returns:
        None where files cannot be read.
    """
    files, boxes, open_ = snapshot.files(), stored.boxes, np.flatnonzero(by_any)
    if not len(open_):
        return np.ones(len(boxes))
    number = max(1, min(MOST_FILES, len(open_), int(MOST_ROWS / max(1.0, float(files.rows[open_].mean())))))
    chosen = open_[np.unique(np.linspace(0, len(open_) - 1, number).astype(np.int64))]
    skipped = {leaf.column.name for leaf in snapshot.leaves if _skipped_by(leaf.column)}
    columns = {name: place for name, place in places_asked(snapshot, boxes).items() if name in skipped}
    found = page_zones(snapshot.location, files.path[chosen].tolist(), columns, PAGE_ROWS)
    if found is None:
        return None
    (zones, file), asked = found, _asked(boxes)
    # deletion vectors: a file's pages hold the rows that it is without, too
    physical = np.bincount(file, weights=zones.rows, minlength=len(chosen))
    rows = zones.rows * (files.rows[chosen] / np.maximum(1.0, physical))[file]
    paged, whole = np.zeros((2, len(boxes)))
    for some in batches(len(boxes), max(len(files), len(file))):
        read = stored.shares(some, stored.hits(some))[:, chosen] * files.rows[chosen]
        matching = np.array([zones.matching(query) for query in asked[some]]).reshape(len(read), len(file))
        paged[some], whole[some] = (matching & (read > 0)[:, file]) @ rows, read.sum(axis=1)
    mean = min(1.0, float(paged.sum()) / max(1.0, float(whole.sum())))
    return np.where(whole > 0, np.minimum(1.0, paged / np.maximum(1.0, whole)), mean)


def sampled_pages(
    analysis: TableAnalysis,
    boxes: Sequence[Boxes],
    file: npt.NDArray[np.int64],
    within: npt.NDArray[np.int64],
    in_groups: Floats,
    indexed: Collection[str] | None = None,
) -> Floats:
    """Share of the bytes in the row groups that each query reads that it reads by Parquet's pages, shape (queries,).

    Pages are told from the sample (`pages_of`), and for what the few rows of a page make its bounds too narrow.

    Args:
        file: file of each sampled row.
        within: order of the rows of a file; of equal ones the first sampled comes first.
        in_groups: share of the rows in the files that each query reads that lie in the row groups that it reads.
        indexed: see `page_estimator`.
    """
    sample, files = analysis.sample, int(file.max()) + 1
    page = pages_of(analysis, file, within)
    if int(page.max()) + 1 == files:
        return np.ones(len(boxes))
    outer = Estimator.build(sample.arrays, analysis.snapshot.schema, boxes, sample.rows)
    opened = whole_table_shares(outer, file.astype(np.int32), files, sample.stands_for)
    in_pages = whole_table_shares(
        page_estimator(analysis, boxes, indexed), page, int(page.max()) + 1, sample.stands_for
    )
    return np.where(opened > 0, np.minimum(1.0, in_pages / np.maximum(opened * in_groups, 1e-12)), 1.0)


def as_stored(analysis: TableAnalysis) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """File of each sampled row now, and the order of the rows of a file: as they were sampled."""
    return analysis.sample.file.astype(np.int64), np.zeros(analysis.sample.rows, dtype=np.int64)


def pages_of(
    analysis: TableAnalysis, file: npt.NDArray[np.int64], within: npt.NDArray[np.int64]
) -> npt.NDArray[np.int32]:
    """Page of each sampled row, numbered through all files: parts of `PAGE_ROWS` rows of a file in their order.

    Args:
        file, within: as in `sampled_pages`.
    """
    sample, rows = analysis.sample, np.bincount(file)
    number = np.minimum(rows * sample.stands_for / PAGE_ROWS, rows / PAGE_SAMPLE).astype(np.int64)
    return pieces(file, np.lexsort((np.arange(len(file)), within, file)), np.maximum(1, number))


def page_estimator(
    analysis: TableAnalysis, boxes: Sequence[Boxes], indexed: Collection[str] | None = None
) -> Estimator:
    """What tells of pages of the sample whether Spark's Parquet reader skips them.

    Args:
        indexed: columns that have a page index in the files; all that may have one without it, as in files of ours.
    """

    def bounded(column: Column) -> bool:
        return _skipped_by(column) and (indexed is None or column.name in indexed)

    sample, schema = analysis.sample, with_bounds(analysis.snapshot.schema, bounded)
    return Estimator.build(sample.arrays, schema, _asked(boxes), sample.rows)


def with_bounds(schema: TableSchema, has: Callable[[Column], bool]) -> TableSchema:
    """The schema as if just the columns that ``has`` tells had exact bounds."""
    return TableSchema(tuple(replace(c, delta_stats=has(c)) for c in schema.columns))


def _asked(boxes: Sequence[Boxes]) -> list[Boxes]:
    """The boxes as Spark's Parquet reader tests them: a short list of values one by one, where Delta takes its hull."""

    def told(item: Range) -> Range:
        return replace(item, hull=False) if len(item.intervals) <= IN_THRESHOLD else item

    return [tuple(tuple(map(told, box)) for box in query) for query in boxes]


def _skipped_by(column: Column) -> bool:
    """Whether Spark hands conditions on such a column to its Parquet reader: it keeps those on timestamp_ntz."""
    return column.value_type.orderable and column.value_type.family != "timestamp_ntz"
