"""What queries ask of a table's partitions by conditions that are no ranges, told on the partitions that there are.

Delta evaluates such a condition on each partition's values. Whatever tells which files queries read, before a relayout
or after it, on a sample or on all files, has to know of it: else a saving in partitions that no query reads counts.
"""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.partition_conditions import (
    PartitionCondition,
    PartitionValues,
    partition_conditions,
    untold,
    untold_in_words,
)
from zorder_pipeline.model.predicate import Comparison, Opaque
from zorder_pipeline.model.ranges import NOTHING_TOLD, Boxes, Told
from zorder_pipeline.model.workload import LoggedQuery, boxes_of
from zorder_pipeline.reading.halving import failures
from zorder_pipeline.reading.partition_truths import partition_truths
from zorder_pipeline.relayout.partition_values import typed_partitions
from zorder_pipeline.relayout.snapshot import TableSnapshot
from zorder_pipeline.state.session_conf import ZONE, alone, set_for_a_while

__all__ = ["boxes_on", "partitions_untold", "told_on"]

MOST_CONDITIONS, MOST_EVALUATED = 2_000, 5_000_000
"""Conditions that are told at most, those that are asked most often, and evaluations of one on a partition, in all."""
NULL_WHERE_CAST_FAILS = {"spark.sql.ansi.enabled": "false"}
"""A text among a partition column's that is no date would end all that compare it as one; Delta reads no such partition
in a session without ANSI mode, and in one with it the query has failed."""


def boxes_on(
    snapshot: TableSnapshot, queries: Sequence[LoggedQuery], *, solved: bool = False, told: Told | None = None
) -> tuple[Boxes, ...]:
    """The ranges that each query asks for (`boxes_of`), with what its conditions say of the partitions that there are.

    Args:
        told: as `told_on` says, if that is known already.
    """
    known = told_on(snapshot, queries) if told is None else told
    return boxes_of(queries, snapshot.schema, solved=solved, told=known)


def partitions_untold(snapshot: TableSnapshot, queries: Sequence[LoggedQuery], told: Told) -> list[str]:
    """`untold_in_words` of some queries."""
    return untold_in_words(untold(queries, snapshot.schema, told))


def told_on(snapshot: TableSnapshot, queries: Sequence[LoggedQuery]) -> Told:
    """What conditions on partition columns alone that are no ranges say of the partitions of a version.

    Each is evaluated on the values that there are, in the query's time zone. Not told are those that cannot be rebuilt
    in Spark SQL, or fail on some value, or are beyond `MOST_CONDITIONS` or `MOST_EVALUATED`.
    """
    schema = snapshot.schema
    if not schema.partition_columns or not len(snapshot.files()):
        return NOTHING_TOLD
    asked = Asked.alike([query.condition for query in queries])
    often: Counter[tuple[str, PartitionCondition]] = Counter()
    for query, times in zip(asked.each(queries), asked.times.tolist(), strict=True):
        for found in partition_conditions(query.predicate, schema, query.zone):
            if found.sql:
                often[query.zone, found] += times
    together: dict[tuple[str, tuple[str, ...]], list[PartitionCondition]] = defaultdict(list)
    for (zone, found), _ in often.most_common(MOST_CONDITIONS):
        together[zone, found.columns].append(found)
    if not together:
        return NOTHING_TOLD
    told: dict[tuple[Comparison | Opaque, str], Boxes] = {}
    left, files = MOST_EVALUATED, {columns: _first_files(snapshot, columns) for columns in {c for _, c in together}}
    with alone(snapshot.spark, NULL_WHERE_CAST_FAILS) as spark:
        for (zone, columns), conditions in together.items():
            first = files[columns]
            few = list(dict.fromkeys(each.sql for each in conditions))[: left // len(first)]
            left -= len(few) * len(first)
            said = dict(_told(snapshot.in_session(spark), columns, zone, few, first))
            told |= {(each.condition, zone): said[each.sql] for each in conditions if each.sql in said}
    return told


def _first_files(snapshot: TableSnapshot, names: tuple[str, ...]) -> npt.NDArray[np.int64]:
    """A file of each combination of some partition columns' values, by its place."""
    at = _places(snapshot, names)
    first: dict[tuple[str | None, ...], int] = {}
    for i, values in enumerate(snapshot.files().partitions):
        first.setdefault(tuple(values[j] for j in at), i)
    return np.fromiter(first.values(), np.int64, len(first))


def _places(snapshot: TableSnapshot, names: tuple[str, ...]) -> list[int]:
    return [place for place, leaf in enumerate(snapshot.partition_leaves) if leaf.column.name in names]


def _told(
    snapshot: TableSnapshot,
    names: tuple[str, ...],
    zone: str,
    conditions: Sequence[str],
    sample: npt.NDArray[np.int64],
) -> Iterator[tuple[str, Boxes]]:
    """The conditions on some columns, in SQL and one time zone, that can be told, and what they say.

    Args:
        snapshot: in a session that is `alone`.
        sample: see `_first_files`.
    """
    if not conditions:
        return
    files, place = snapshot.files(), f"__place_{uuid.uuid4().hex}"
    at = _places(snapshot, names)
    columns = [snapshot.partition_leaves[j].column for j in at]
    zones = [files.zones[column.name] for column in columns]
    nulls = [np.array([files.partitions[i][j] is None for i in sample]) for j in at]
    if not all((each.known[sample] | null).all() for each, null in zip(zones, nulls, strict=True)):
        return  # what no reader is sure of is read
    there = PartitionValues.of(columns, [(z.low[sample], null) for z, null in zip(zones, nulls, strict=True)])
    try:
        with set_for_a_while(snapshot.spark, {ZONE: zone}):
            rows = typed_partitions(snapshot, [files.partitions[i] for i in sample], place)
            truths = partition_truths(rows, place, conditions)
    except failures():  # the log's time zone is none
        return
    for text, mask in truths.items():
        if (boxes := there.boxes_where(mask)) is not None:
            yield text, boxes
