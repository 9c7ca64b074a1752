"""Parquet's pages as zone maps: what a reader skips inside files by the page index, as Spark does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zorder_pipeline.model.zone_map import PAGE_ROWS, ZoneMap

from .footers import ARROW_TYPES, Bounds, Place, opener, out_of_reach, places_of, zones_of

__all__ = ["page_zones"]

THREADS = 4

Found = tuple[list[int], dict[str, list[Bounds]]]


def page_zones(
    location: str, paths: Sequence[str], columns: Mapping[str, Place], page_rows: int = PAGE_ROWS
) -> tuple[ZoneMap, npt.NDArray[np.int64]] | None:
    """Zone maps of all pages of some files, and the file each belongs to; None where a file cannot be read.

    No library that reads Parquet from Python hands out its column index, so the columns themselves are read, and cut
    where Spark's writer cuts them: into so many rows from the beginning of each row group. (It begins a page after
    1 MB, too, so that pages of long strings are smaller than told.) Columns without an index have no bounds.

    Args:
        location: URI of the table's folder.
        paths: as in AddFile actions.
        columns: by column name, its physical path in the files and its Spark type.
    """
    if out_of_reach(location):
        return None
    try:
        there = opener(location)
    except OSError:
        return None

    def one(path: str) -> Found | None:
        try:
            with there(path) as file:  # the unit that Spark's INT96 needs: a nanosecond's range ends in 2262
                return _pages(pq.ParquetFile(file, coerce_int96_timestamp_unit="us"), columns, page_rows)
        except (OSError, pa.ArrowException, ValueError, OverflowError):  # or a value that Python cannot hold
            return None

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(one, paths))
    rows, file, bounds = list[int](), list[int](), {name: list[Bounds]() for name in columns}
    for number, pages in enumerate(found):
        if pages is None:
            return None
        rows += pages[0]
        file += [number] * len(pages[0])
        for name, told in pages[1].items():
            bounds[name] += told
    zones = {name: zones_of(bounds[name], columns[name][1]) for name in columns}
    count = np.array(rows, dtype=np.int64)
    return ZoneMap(count, np.zeros_like(count), zones), np.array(file, dtype=np.int64)


def _pages(file: pq.ParquetFile, columns: Mapping[str, Place], page_rows: int) -> Found:
    rows, bounds = list[int](), {name: list[Bounds]() for name in columns}
    places = places_of(file.metadata, columns)
    for group in range(file.metadata.num_row_groups):
        total = file.metadata.row_group(group).num_rows
        sizes = [min(page_rows, total - at) for at in range(0, total, page_rows)]
        rows += sizes
        for name, (path, type_name) in columns.items():
            # Spark asks nothing of a column that was added after the file; timestamps as INT96 have no index
            if (place := places[name]) is None or not file.metadata.row_group(group).column(place).has_column_index:
                bounds[name] += [(None, None, -1)] * len(sizes)
                continue
            values = _leaf(file.read_row_group(group, columns=[".".join(path)], use_threads=False), path)
            bounds[name] += _bounds(values, type_name, page_rows)
    return rows, bounds


def _leaf(table: pa.Table, path: Sequence[str]) -> pa.Array:
    values = table.column(path[0]).combine_chunks()
    for name in path[1:]:
        values = pc.struct_field(values, name)
    return values


def _bounds(values: pa.Array, type_name: str, page_rows: int) -> Iterator[Bounds]:
    if type_name.startswith("timestamp"):
        values = values.cast(ARROW_TYPES[type_name], safe=False)
    for at in range(0, len(values), page_rows):
        page = values.slice(at, page_rows)
        told = pc.min_max(page)
        yield told["min"].as_py(), told["max"].as_py(), page.null_count
