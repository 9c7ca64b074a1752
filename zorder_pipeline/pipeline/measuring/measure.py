"""What a table's queries read and how it lies, exactly: from its own statistics and Parquet footers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.errors import TableError
from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.partition_conditions import untold
from zorder_pipeline.model.predicate import Comparison, Opaque
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.model.ranges import Boxes, to_boxes
from zorder_pipeline.model.results import Evaluation
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.values import sort_unique
from zorder_pipeline.model.wording import counted
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.model.zone_map import ColumnZones, ZoneMap
from zorder_pipeline.pipeline.learning.nothing_asked import why_nothing
from zorder_pipeline.pipeline.learning.row_groups import batches, places_asked
from zorder_pipeline.pipeline.partition_conditions import boxes_on, told_on
from zorder_pipeline.pipeline.records import LogSource
from zorder_pipeline.pipeline.renames import queries_of
from zorder_pipeline.pipeline.table_log import asked_log
from zorder_pipeline.query_log.statements.sums import sums_in
from zorder_pipeline.reading.footers import read_footers, row_groups
from zorder_pipeline.reading.matching import matching_rows
from zorder_pipeline.relayout.file_list import FileList
from zorder_pipeline.relayout.session_conf import COMPILED
from zorder_pipeline.relayout.snapshot import AUTO, TableSnapshot, open_table
from zorder_pipeline.state.session_conf import alone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["evaluate", "inspect", "overlap_depth"]

Floats = npt.NDArray[np.float64]


def evaluate(
    spark: SparkSession,
    table: str,
    logs: Sequence[LogSource | str] = (),
    *,
    state: str | None = None,
    aliases: Sequence[str] = (),
    days: float | None = None,
    count_matches: bool = True,
    progress: Progress | None = None,
) -> Evaluation:
    """What the queries of a log read of the table as it lies now: exact, from its own statistics and Parquet footers.

    Args:
        table: path or catalog name.
        logs: query logs.
        state: folder of the state, whose stored queries count, too; those that the logs hold as well count once.
        aliases: further names that the log may call the table by.
        days: only stored queries of so many days before the newest.
        count_matches: also count the rows that match each query, which scans the filtered columns.

    Raises:
        TableError: neither log nor state holds a query of this table.
        LogError: a log does not exist or is of no known format.
        ZorderError: neither a log nor a state is named.
    """
    say = progress or silent
    snapshot = open_table(spark, table)
    log = asked_log(spark, table, snapshot, logs, state=state, aliases=aliases, days=days)
    queries = queries_of(log, [snapshot.location], snapshot)
    if not queries:
        raise TableError(f"none of the {log.lines} statements reads {snapshot.location}: {why_nothing(log, queries)}")
    asked = Asked.alike([query.condition for query in queries])  # each condition is told once
    conditions = asked.each(queries)
    told = told_on(snapshot, queries)
    boxes = boxes_on(snapshot, conditions, told=told)
    files = snapshot.files()
    zone_map = files.zone_map()
    groups = _row_groups(snapshot, boxes)
    opened, read, size, fraction = np.zeros((4, len(boxes)))
    for some in batches(len(boxes), len(files)):
        hits = np.stack([zone_map.matching(query) for query in boxes[some]])
        weighed = hits.astype(np.float64)
        opened[some], read[some], size[some] = weighed.sum(axis=1), weighed @ files.rows, weighed @ files.bytes
        if groups is not None:
            fraction[some] = _row_group_fractions(*groups, boxes[some], hits)
    say(f"tested {counted(len(queries), 'query')} against {counted(len(files), 'file')}")
    total = int(files.rows.sum())
    matched = None
    if count_matches:
        # what the statistics do not see through, such as a year or a sum, tells the rows that match all the same
        solved = boxes_on(
            snapshot, conditions, solved=True, told=_told_of_sums(conditions, snapshot.schema) | dict(told)
        )
        with alone(spark, COMPILED) as session, (mine := snapshot.in_session(session)).reading():
            matched = matching_rows(mine.read(), solved, snapshot.paths, total, read, say)[asked.which]
    return Evaluation(
        queries=len(queries),
        files=len(files),
        rows=total,
        files_per_query=opened[asked.which],
        rows_per_query=read[asked.which],
        bytes_per_query=size[asked.which],
        matched_per_query=matched,
        row_groups_read_fraction=None if groups is None else float(np.average(fraction, weights=asked.times)),
        unusable=sum(log.quarantined.values()),
        version=snapshot.version,
        partitions_unknown=untold(queries, snapshot.schema, told),
    )


def _told_of_sums(queries: Sequence[LoggedQuery], schema: TableSchema) -> dict[tuple[Comparison | Opaque, str], Boxes]:
    """Where conditions on sums and products of a column hold."""
    return {
        (leaf, query.zone): to_boxes(ranges, schema, query.zone)
        for query in queries
        for leaf, ranges in sums_in(query.predicate, schema)
    }


def _row_groups(snapshot: TableSnapshot, boxes: Sequence[Boxes]) -> tuple[ZoneMap, npt.NDArray[np.int64]] | None:
    """All row groups of a table, and the file of each; None when some footer cannot be read from here."""
    footers = read_footers(snapshot.location, snapshot.files().path.tolist())
    return row_groups(footers, places_asked(snapshot, boxes)) if footers.complete else None


def _row_group_fractions(
    zones: ZoneMap, file: npt.NDArray[np.int64], boxes: Sequence[Boxes], hits: npt.NDArray[np.bool_]
) -> Floats:
    """Share of the table's row groups that each query reads, shape (queries,).

    Args:
        zones, file: see `_row_groups`.
        hits: files that each query opens, shape (queries, files).
    """
    if not len(file):  # of an empty table nothing is read, as of its rows
        return np.zeros(len(boxes))
    found = (np.mean(zones.matching(query) & hit[file]) for query, hit in zip(boxes, hits, strict=True))
    return np.fromiter(found, np.float64, len(boxes))


def inspect(spark: SparkSession, table: str, *, committer: str = AUTO) -> dict[str, Any]:
    """Files, layouts and overlap of a table, as ``zorder inspect --json`` prints them.

    Args:
        table: path or catalog name.
        committer: how the table is opened, see `zorder_pipeline.relayout.snapshot.COMMITTERS`.

    Raises:
        TableError: there is no such Delta table.
    """
    snapshot = open_table(spark, table, committer=committer)
    files = snapshot.files()
    zones = files.zone_map()
    rows = int(files.rows.sum())
    ours = sum(int(count) for name, count in zip(files.layout, files.rows, strict=True) if name)
    counts = Counter(name for name in files.layout if name)
    depth = {
        column.name: overlap_depth(
            zones.columns[column.name], zones.statistics_rows if column.value_type.delta_min_max else None
        )
        for column in snapshot.schema.columns
        if column.name in zones.columns and not column.partition
    }
    return {
        "table": snapshot.location,
        "version": snapshot.version,
        "files": len(files),
        "rows": rows,
        "bytes": int(files.bytes.sum()),
        "partition_columns": list(snapshot.schema.partition_columns),
        "clustered_fraction": ours / rows if rows else 0.0,
        "layouts": dict(counts),
        "generations": _generations(files),
        "key_overlap": _key_overlap(files),
        "deletion_vector_rows": int(files.deleted.sum()),
        "overlap_depth": depth,
        "unsupported": snapshot.unsupported(),
    }


def _generations(files: FileList) -> int:
    """Generations of our files that overlap at most: the largest number in one partition."""
    found: dict[tuple[str | None, ...], set[int]] = {}
    for partition, generation, layout in zip(files.partitions, files.generation.tolist(), files.layout, strict=True):
        if layout:
            found.setdefault(partition, set()).add(generation)
    return max(map(len, found.values()), default=0)


def _key_overlap(files: FileList) -> float | None:
    """Files of ours that hold a key of their layout, on average over their ranges of keys; 1 is a perfect order.

    None when no file has a range. Keys beyond the range that a layout was learned from are extended anew by each
    generation, so that for them the figure is an upper bound.
    """
    groups: dict[tuple[str, int], list[int]] = {}
    for i in np.flatnonzero(files.key_low >= 0):
        groups.setdefault((files.layout[i], int(files.partition_codes[i])), []).append(int(i))
    total = 0.0
    for group in groups.values():
        every = np.ones(len(group), dtype=np.bool_)
        zones = ColumnZones(files.key_low[group], files.key_high[group], every, np.zeros(len(group), dtype=np.int64))
        total += overlap_depth(zones) * len(group)
    return total / sum(map(len, groups.values())) if groups else None


def overlap_depth(zones: ColumnZones, rows: npt.NDArray[np.int64] | None = None) -> float:
    """Mean number of files that a look-up of one value reads: files whose range holds the middle of each file's.

    Middles stand for values, so the figure needs nothing but the statistics; those of texts are by rank among all
    bounds. Files without bounds count everywhere, but for those that hold nothing but nulls.

    Args:
        rows: per file, of which the statistics tell; None where Delta reads files of nulls alone, too.

    >>> low, high = np.array([0, 5, 20]), np.array([10, 14, 30])
    >>> overlap_depth(ColumnZones(low, high, np.ones(3, dtype=bool), np.zeros(3, dtype=np.int64)))
    1.6666666666666667
    """
    known = zones.known
    everywhere = ~known if rows is None else ~known & ~zones.all_null(rows)
    if not known.any():
        return float(everywhere.sum())
    low, high = zones.low[known], zones.high[known]
    if low.dtype == object:
        bounds = sort_unique(np.concatenate([low, high]))
        low, high = np.searchsorted(bounds, low), np.searchsorted(bounds, high)
    # a bound of its own is at the edge of most others: of files that all cover the same, half would not hold it
    if low.dtype.kind == "f":
        middle = low / 2 + high / 2
        middle = np.where(np.isfinite(middle), middle, low)
    else:
        middle = (low & high) + ((low ^ high) >> 1)  # low + high may be too large
    starts, ends = np.searchsorted(np.sort(low), middle, "right"), np.searchsorted(np.sort(high), middle, "left")
    return float(np.mean(starts - ends)) + float(everywhere.sum())
