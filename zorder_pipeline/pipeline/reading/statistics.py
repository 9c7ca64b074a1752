"""Statistics of files in the state: what they are kept of, gathered after a relayout or on request."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zorder_pipeline.errors import TableError
from zorder_pipeline.features.expressions import expression_candidates
from zorder_pipeline.features.predicates import predicate_candidates
from zorder_pipeline.features.statistics import features_of
from zorder_pipeline.java import beside, reason_of
from zorder_pipeline.model.file_stats import BLOOM_FAMILIES, Feature
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.model.results import StatisticsResult
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.spark_sql import column_sql
from zorder_pipeline.model.values import Value
from zorder_pipeline.model.wording import counted
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.records import LogSource, TableAnalysis
from zorder_pipeline.pipeline.renames import queries_of
from zorder_pipeline.pipeline.table_log import none_stored, table_log
from zorder_pipeline.reading.file_numbers import numbers, same_files
from zorder_pipeline.reading.file_stats import FileStats
from zorder_pipeline.reading.gather import STATS, evaluable, gather
from zorder_pipeline.reading.gathered import Gathered
from zorder_pipeline.reading.session import session_of
from zorder_pipeline.relayout.file_list import FileList
from zorder_pipeline.relayout.session_conf import COMPILED, as_others_read, quick_reads
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table
from zorder_pipeline.state.session_conf import active, alone, session_zone, set_for_a_while

from .known_files import comparable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BY_PATH = {"spark.sql.codegen.aggregate.map.twolevel.enabled": "false"}
"""Spark's quick map of groups hashes a text byte by byte, which a file's path is too long for."""
ASKED_OFTEN = 0.05
"""Share of the queries from which on a column without statistics is worth a sentence."""
SOME_FILES, FILES_PER_ONE, SOME_ROWS = 16, 50, 100_000
"""By how much of the table columns of few values are told: a file in so many, at most so many, and so many rows."""

__all__ = ["gather_statistics", "statistics_features", "update_statistics"]
__all__ += ["without_statistics"]


def statistics_features(snapshot: TableSnapshot, queries: Sequence[LoggedQuery]) -> tuple[Feature, ...]:
    """What statistics of the table's files should be kept of, told from its queries, in the session's time zone."""
    weights = [1.0] * len(queries)
    schema = comparable(snapshot)
    expressions = expression_candidates(queries, weights, schema)
    predicates = predicate_candidates(queries, weights, schema, ())
    with alone(snapshot.spark) as own:
        zone = session_zone(own)
    return features_of(queries, weights, schema, snapshot.paths, expressions, predicates, zone)


def without_statistics(analysis: TableAnalysis) -> list[str]:
    """A sentence about columns that a layout cannot serve, as Delta keeps no statistics of them; none without any."""
    columns = [c for c in analysis.snapshot.schema.columns if c.value_type.delta_min_max and not c.partition]
    kept = {c.name: c.delta_stats for c in columns}
    asked = [c for c in analysis.features.candidates if c.column in kept]
    found = [c for c in asked if c.share >= ASKED_OFTEN and not kept[c.column]]
    if not found:
        return []
    wanted = ", ".join(column_sql(analysis.snapshot.paths[c.column]) for c in asked)
    names = ", ".join(f"{c.column} ({c.share:.0%} of the queries)" for c in found)
    why = "Delta keeps statistics of a table's first 32 columns, or of those that its properties name"
    way_out = (
        f"set delta.dataSkippingStatsColumns to all that are filtered by ({wanted}), as no others have any then, and "
        "learn again: the files that a relayout writes have them"
    )
    return [f"ordinary readers skip no file by {names}: {why}; {way_out}"]


def update_statistics(
    spark: SparkSession,
    table: str,
    state: str,
    logs: Sequence[LogSource | str] = (),
    *,
    aliases: Sequence[str] = (),
    features: Sequence[Feature] = (),
    days: float | None = None,
    progress: Progress = silent,
) -> StatisticsResult:
    """Gather what is missing of the statistics of all files of a table, and forget files that are gone.

    What to keep them of is told by logs and features; without either by the queries of the table in the state.

    Args:
        table: path or catalog name.
        state: folder of the state.
        logs: query logs that say what to keep statistics of.
        aliases: further names that the log, or the state, may call the table by.
        features: what else to keep them of, such as a plan's ``statistics``.
        days: only stored queries of so many days before the newest.

    Raises:
        TableError: there is nothing to keep statistics of, or no such table.
        LogError: a log cannot be read.
    """
    snapshot = open_table(spark, table)
    wanted, why = list(features), ""
    if logs or not features:
        stored = None if logs else state
        log = table_log(spark, table, snapshot, logs, state=stored, aliases=aliases, days=days)
        queries = queries_of(log, [snapshot.location], snapshot)
        wanted += statistics_features(snapshot, queries)
        progress(f"{len(queries)} queries ask for {len(wanted)} features that Delta keeps no statistics of")
        of = "log" if logs else "state"
        why = f"of all that the {of}'s {counted(len(queries), 'query')} of it filter by, Delta keeps them"
        if not queries and logs:
            why = f"none of the log's {counted(log.lines, 'statement')} reads it; {log.read}; "
            why += "if the log calls the table otherwise, name it with --alias"
        elif not queries:
            why = f"{none_stored(spark, state, table, snapshot, aliases, days)}, or a plan with --plan"
    if not wanted:
        raise TableError(f"there are no statistics of {snapshot.location} to gather: {why}")
    return gather_statistics(spark, snapshot, wanted, state, progress=progress)


def gather_statistics(
    spark: SparkSession,
    snapshot: TableSnapshot,
    features: Sequence[Feature],
    state: str,
    *,
    paths: Sequence[str] | None = None,
    progress: Progress = silent,
) -> StatisticsResult:
    """Gather statistics of files that have none yet, in one pass over them, and forget files that are gone.

    Args:
        features: what to keep statistics of.
        paths: files, as in their AddFile actions; all of the snapshot by default.

    Raises:
        TableError: what is known already cannot be read.
    """
    started = time.monotonic()
    store = FileStats(spark, state)
    with ThreadPoolExecutor(2) as pool:  # Delta looks up two tables' files, in jobs that leave most of a machine idle
        loading = pool.submit(beside(spark, store.load), snapshot.table_id, fresh=True)
        files = snapshot.files()
        bounds = pool.submit(_bounds, snapshot.schema, files, features)
        with alone(spark) as own:
            session, usable = session_of(own), evaluable(snapshot.in_session(own).read(), features)
        vectors = dict(zip((str(path) for path in files.path), files.vector, strict=True))
        asked = list(vectors if paths is None else paths)
        held = _readable(loading.result, store.path)
        complete = held.of(asked).under(snapshot.stored_as).complete(usable, session)
        missing = [path for path in asked if (path, vectors[path]) not in complete]
        found = STATS.empty_table()
        if missing and usable:
            progress(f"gathering statistics of {counted(len(usable), 'feature')} in {counted(len(missing), 'file')}")
            if held.outdated(vectors, snapshot.version):
                pool.submit(beside(spark, store.expect))  # what goes wrong there goes wrong below, too
            found = _found(snapshot.in_session(own), usable, missing, bounds.result())
    added, gone = store.update(snapshot.table_id, snapshot.version, session, found, vectors, snapshot.stored_as)
    return StatisticsResult(
        table=snapshot.location,
        version=snapshot.version,
        features=tuple(feature.name for feature in usable),
        files=len(missing) if usable else 0,
        rows_added=added,
        files_forgotten=gone,
        seconds=time.monotonic() - started,
    )


def _readable(load: Callable[[], Gathered], place: str) -> Gathered:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return load()
    except (Py4JError, PySparkException) as error:
        why = reason_of(error).rstrip(".")
        raise TableError(
            f"statistics in {place} cannot be read: {why}; if that folder is damaged, delete it, and zorder stats "
            "gathers them anew"
        ) from error


def _found(
    snapshot: TableSnapshot, features: Sequence[Feature], paths: Sequence[str], also: Mapping[str, Collection[Value]]
) -> pa.Table:
    """Statistics of some files, with their paths, of a snapshot in a session of its own; ``also`` see `gather`."""
    spark = snapshot.spark
    settings = COMPILED | BY_PATH | as_others_read(spark) | quick_reads(snapshot.location)
    with active(spark, spark._jsparkSession), set_for_a_while(spark, settings):
        rows = snapshot.read_files(paths)  # files of a whole version are listed by a job, each time it is read
        some = partial(_some, snapshot, paths)
        gathered = partial(gather, rows, features, snapshot.stored_as, some, also)
        numbered = _by_number(snapshot.files(), paths, gathered)
        return _by_uri(snapshot, paths, gathered) if numbered is None else numbered


def _by_number(files: FileList, paths: Sequence[str], gathered: Callable[..., pa.Table]) -> pa.Table | None:
    """Statistics with the files' paths, where sizes and times tell all files apart; None where they do not."""
    told = numbers(files.bytes, files.modified)
    if told is None:
        return None
    wanted = set(paths)
    found = gathered({n: str(p) for n, p in zip(told.tolist(), files.path, strict=True) if p in wanted})
    return None if found["file"].null_count else found


def _by_uri(snapshot: TableSnapshot, paths: Sequence[str], gathered: Callable[..., pa.Table]) -> pa.Table:
    """Statistics with the files' paths, of the files whose URIs tell them."""
    found = gathered()
    told = same_files(found["file"].to_pylist(), snapshot.location, paths)
    found = found.set_column(0, "file", pa.array(told, pa.string()))
    return found.filter(pc.is_valid(found["file"]))


def _some(snapshot: TableSnapshot, paths: Sequence[str]) -> DataFrame:
    """Rows of a few of the files, which lie in an order: of those that are spread evenly over it."""
    count = max(1, min(SOME_FILES, len(paths) // FILES_PER_ONE))
    chosen = list(paths[:: max(1, len(paths) // count)])[:count]
    files = snapshot.files()
    rows = int(files.rows[np.isin(files.path.astype(str), chosen)].sum())
    frame = snapshot.read_files(chosen)
    return frame.sample(SOME_ROWS / rows, seed=0) if rows > SOME_ROWS else frame


def _bounds(schema: TableSchema, files: FileList, features: Sequence[Feature]) -> dict[str, set[Value]]:
    """Lowest and highest values of the files: of a column that the layout divides, no few files show all values."""
    types = {column.name: column.value_type.family for column in schema.columns}
    asked = [f.name for f in features if f.kind == "column" and f.equality and types.get(f.name) in BLOOM_FAMILIES]
    zones = files.zones_of(asked) if asked else {}
    return {name: {*zone.low[zone.known].tolist(), *zone.high[zone.known].tolist()} for name, zone in zones.items()}
