"""A promise proved on all rows: the zone maps that the files of a layout will have, instead of a sample's."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.layout.cells import cell_sizes, cut_cells
from zorder_pipeline.layout.extend import extended
from zorder_pipeline.layout.interleave import hilbert_table
from zorder_pipeline.layout.skipping import stored_bounds
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.ranges import Boxes, columns_asked
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.zone_map import ColumnZones, ZoneMap
from zorder_pipeline.relayout.cell_zones import CellZones, zones_by_cell
from zorder_pipeline.relayout.clustering import extended_for
from zorder_pipeline.relayout.select import select_files
from zorder_pipeline.relayout.snapshot import TableSnapshot

__all__ = ["MOST_CELL_BITS", "Shares", "confirmed", "confirmed_in", "file_zones", "merged_shares"]

MOST_CELL_BITS = 18
"""Keys of more bits have too many cells to bring their zone maps to the driver; a tree has as many as it has leaves."""

Floats = npt.NDArray[np.float64]
Shares = tuple[Floats, Floats]
"""Of the rows that each query reads now and afterwards."""


def confirmed(
    snapshot: TableSnapshot, spec: KeySpec | None, target_rows: int, queries: Sequence[Boxes]
) -> Shares | None:
    """Share of the table's rows that each query reads now and after a relayout, shape (queries,) each.

    Both sides follow from zone maps over all rows, by Delta's own rules: the present files' from the log, the new ones'
    from one scan of the columns that the queries and the key use, which is extended for values beyond its range as the
    rewrite extends it. What is told is what `zorder evaluate` will find, but for writers in between.

    Args:
        spec: None leaves the files as they are.

    Returns:
        None where the key has too many cells.
    """
    return confirmed_in(snapshot, spec, (target_rows,), queries).get(target_rows)


def confirmed_in(
    snapshot: TableSnapshot, spec: KeySpec | None, targets: Sequence[int], queries: Sequence[Boxes]
) -> dict[int, Shares]:
    """`confirmed` for files of several sizes, in rows, by the one scan that the first of them takes.

    Returns:
        Those that are known, by size: none where the key has too many cells, and not those for which other files than
        for the first size would be rewritten.
    """
    if spec is not None and spec.tree is None and spec.bits > MOST_CELL_BITS:
        return {}
    files = snapshot.files()
    now = files.zone_map()
    total = max(1, int(files.rows.sum()))
    present = now.shares_read(queries, total)
    if spec is None or not queries:
        return dict.fromkeys(targets, (present, present))
    chosen = {
        target: select_files(snapshot, spec.layout_id, target, smallest=spec.smallest_file).rewrite
        for target in targets
    }
    rewritten = chosen[targets[0]]
    alike = [target for target in targets if np.array_equal(chosen[target], rewritten)]
    if not len(rewritten):
        return dict.fromkeys(alike, (present, present))
    names = columns_asked(queries)
    partitions = set(snapshot.schema.partition_columns)
    columns = sorted(name for name in names if name in now.columns and name not in partitions)
    table = hilbert_table(spec) if spec.curve == "hilbert" else None
    paths = files.path[rewritten].tolist()
    with snapshot.reading():
        spec = extended_for(spec, extended, snapshot, files, rewritten, snapshot.read_files(paths))
    if spec.tree is None and spec.highest.bit_length() > MOST_CELL_BITS:
        return {}
    cells = zones_by_cell(snapshot, spec, columns, paths, table)
    kept = np.ones(len(files), dtype=np.bool_)
    kept[rewritten] = False
    left = _part(now, kept).shares_read(queries, total)
    news = ((target, file_zones(cells, spec, target, snapshot.schema)) for target in alike)
    return {target: (present, new.shares_read(queries, total) + left) for target, new in news}


def merged_shares(snapshot: TableSnapshot, became: npt.NDArray[np.int64], queries: Sequence[Boxes]) -> Shares:
    """Share of the table's rows that each query reads now and once files are merged, shape (queries,) each.

    Both follow from the files' own statistics: those of a merged file cover what those of its files cover together.

    Args:
        became: the file that each file becomes, shape (files,).
    """
    now = snapshot.files().zone_map()
    then = _united(now, became, columns_asked(queries))
    return now.shares_read(queries), then.shares_read(queries)


def file_zones(cells: CellZones, spec: KeySpec, target_rows: int, schema: TableSchema) -> ZoneMap:
    """Zone maps, as Delta will store them, of the files that cells are cut into.

    The pieces of a cell that is dealt out over several files count as one: each has nearly the zone map of the whole.
    """
    columns = {column.name: column for column in schema.columns}
    order = np.lexsort((cells.keys, cells.partition))
    starts = np.flatnonzero(np.diff(cells.partition[order], prepend=-1))
    begins: list[npt.NDArray[np.int64]] = []
    for place, members in zip(starts, np.split(order, starts[1:]), strict=True):
        keys = cells.keys[members]
        cuts = cut_cells(keys, cells.rows[members], target_rows, sizes=cell_sizes(spec, keys))
        begins.append(place + np.append(0, np.searchsorted(keys, cuts.starts)))
    first = np.concatenate(begins)
    rows = np.add.reduceat(cells.rows[order], first)
    zones: dict[str, ColumnZones] = {}
    for name, counted in cells.nulls.items():
        nulls = np.add.reduceat(counted[order], first)
        kind, exact = columns[name].value_type, columns[name].partition
        if name not in cells.bounds:
            blank = np.zeros(len(rows), dtype=kind.numpy_dtype)
            zones[name] = ColumnZones(blank, blank, np.zeros(len(rows), dtype=np.bool_), nulls)
            continue
        lows, highs, some = cells.bounds[name]
        low, high, known = _extremes(lows[order], highs[order], some[order], first)
        if not exact:
            low, high = stored_bounds(low, kind)[0], stored_bounds(high, kind)[1]
        zones[name] = ColumnZones(low, high, known, nulls, exact)
    return ZoneMap(rows, np.zeros(len(rows), dtype=np.int64), zones, all_or_none=True)


def _extremes(
    low: npt.NDArray[Any], high: npt.NDArray[Any], known: npt.NDArray[np.bool_], first: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Smallest and largest over the known cells of each file; NaN, the largest value, wins as in Spark."""
    some = np.logical_or.reduceat(known, first)
    file = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(known))))[known]
    if not len(file):  # what stands there is no bound, but of the column's type
        return low[first], high[first], some
    low, high = low[known], high[known]
    begin = np.flatnonzero(np.diff(file, prepend=-1))
    smallest = np.fmin.reduceat(low, begin) if low.dtype.kind == "f" else np.minimum.reduceat(low, begin)
    largest = np.maximum.reduceat(high, begin)
    lows, highs = (np.full(len(first), values[0], dtype=values.dtype) for values in (smallest, largest))
    lows[some], highs[some] = smallest, largest
    return lows, highs, some


def _united(zone_map: ZoneMap, became: npt.NDArray[np.int64], names: Collection[str]) -> ZoneMap:
    """Zone map of the blocks that blocks become together, by the columns of these names.

    Where one of them lacks a statistic that it could have, the whole has none either.
    """
    order = np.argsort(became, kind="stable")
    first = np.flatnonzero(np.diff(became[order], prepend=-1))
    columns: dict[str, ColumnZones] = {}
    for name in sorted(names & zone_map.columns.keys()):
        zones = zone_map.columns[name]
        low, high, some = _extremes(zones.low[order], zones.high[order], zones.known[order], first)
        lacking = ~zones.known & ~zones.all_null(zone_map.statistics_rows)
        nulls = np.add.reduceat(zones.null_count[order], first)
        nulls[np.logical_or.reduceat(zones.null_count[order] < 0, first)] = -1
        columns[name] = ColumnZones(
            low, high, some & ~np.logical_or.reduceat(lacking[order], first), nulls, zones.exact
        )
    rows, size, of = (
        np.add.reduceat(each[order], first) for each in (zone_map.rows, zone_map.bytes, zone_map.statistics_rows)
    )
    uncounted = None if zone_map.uncounted is None else np.logical_or.reduceat(zone_map.uncounted[order], first)
    return ZoneMap(rows, size, columns, of, zone_map.all_or_none, uncounted)


def _part(zone_map: ZoneMap, kept: npt.NDArray[np.bool_]) -> ZoneMap:
    """Some of a zone map's blocks."""
    columns = {
        name: ColumnZones(z.low[kept], z.high[kept], z.known[kept], z.null_count[kept], z.exact)
        for name, z in zone_map.columns.items()
    }
    physical = None if zone_map.physical_rows is None else zone_map.physical_rows[kept]
    uncounted = None if zone_map.uncounted is None else zone_map.uncounted[kept]
    return ZoneMap(zone_map.rows[kept], zone_map.bytes[kept], columns, physical, zone_map.all_or_none, uncounted)
