"""Which tables are worth a layout: a read-only look at many tables, with advice where we may not rewrite."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from zorder_pipeline.errors import TableError, ZorderError
from zorder_pipeline.layout.cells import TOLERANCE
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.partition_conditions import partition_conditions
from zorder_pipeline.model.places import is_same_place, known_as, without_password
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.model.spark_sql import column_sql
from zorder_pipeline.model.triage import TableTriage
from zorder_pipeline.model.values import DAY
from zorder_pipeline.model.wording import counted
from zorder_pipeline.model.workload import LoggedQuery, QueryLog
from zorder_pipeline.pipeline.learning.analysing import analyse
from zorder_pipeline.pipeline.learning.learn import learn_layout_for
from zorder_pipeline.pipeline.learning.sizes import query_bytes, sought_rows, target_rows
from zorder_pipeline.pipeline.logs import ingest, names_and_schemas, names_of, places_in_state, stored_log
from zorder_pipeline.pipeline.partition_conditions import boxes_on, partitions_untold, told_on
from zorder_pipeline.pipeline.reading.statistics import without_statistics
from zorder_pipeline.pipeline.records import LearnSettings, LogSource, TableAnalysis
from zorder_pipeline.pipeline.renames import queries_of
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table
from zorder_pipeline.state.delta_tables import is_path, sql_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["advise", "triage"]

T = TypeVar("T")
QUICK = LearnSettings(trials=100, sample_rows=20_000, confirm=False)
AT_ONCE = 3
MEGABYTE = 1 << 20
SMALL_FILE = 32 * MEGABYTE
SMALL_PARTITION = 128 * MEGABYTE
LARGE_PARTITION = 256 << 30
WORTH = 0.8
"""A layout that reads more than this share of what is read now is not worth a word."""


def triage(
    spark: SparkSession,
    sources: Sequence[LogSource | str] = (),
    tables: Sequence[str] = (),
    *,
    state: str | None = None,
    settings: LearnSettings = QUICK,
    days: float | None = None,
    progress: Progress = silent,
) -> tuple[TableTriage, ...]:
    """Look at tables without writing anything; the one with most to gain first.

    Args:
        sources: query logs.
        tables: paths or catalog names; without any, every table that the log names and that can be opened.
        state: folder of the state, whose stored queries count, too.
        days: only stored queries of so many days before the newest.

    Raises:
        LogError: a log cannot be read.
        ZorderError: there is no log at all.
    """
    if not sources and state is None:
        raise ZorderError("nothing to look at: name a query log with --log, or a state with --state")
    found = ingest(sources)
    stored = stored_log(spark, state, days=days) if state is not None else QueryLog((), 0, 0)
    everything = QueryLog.merged([found, stored])
    places = places_in_state(spark, state) if state is not None else {}
    named = [name for name, _ in Counter(q.table for q in everything.queries).most_common()]
    names = list(tables) or list(dict.fromkeys(places.get(name, name) for name in named))
    opened: dict[str, TableSnapshot] = {}
    called: dict[str, list[str]] = {}  # what the log calls a table besides
    failed: list[TableTriage] = []
    for name, result in zip(names, _parallel(lambda name: _open(spark, name), names), strict=True):
        if isinstance(result, TableSnapshot):
            first = next((each for each, other in opened.items() if other.location == result.location), name)
            opened.setdefault(first, result)
            called.setdefault(first, []).append(name)
        else:
            scans = len(everything.of_table([name, *(each for each, place in places.items() if place == name)]))
            failed.append(TableTriage(name, queries=scans, problem=result))
    progress(f"opened {len(opened)} of {len(opened) + len(failed)} tables")
    configured: dict[str, list[str]] = {}
    for given, place in places.items():
        configured.setdefault(known_as(place), []).append(given)
    for name, snapshot in opened.items():
        called[name] += configured.get(known_as(snapshot.location), [])
    known = {name: (snapshot, names_of(name, snapshot, called[name])) for name, snapshot in opened.items()}
    fresh = ingest(sources, known) if known else everything
    typed = QueryLog.merged([fresh, _renamed(stored, known, places).besides(fresh)]) if known else everything

    def look(name: str) -> TableTriage:
        progress(f"looking at {name}")
        try:
            return _one(spark, name, opened[name], typed, settings, _log_words(sources, state))
        except ZorderError as error:
            return replace(_facts(name, opened[name], typed.of_table([name])), problem=str(error))

    looked = list(_parallel(look, list(opened)))
    return tuple(sorted([*looked, *failed], key=lambda t: (t.problem is not None, -t.saved_bytes_per_day, -t.queries)))


def advise(spark: SparkSession, table: str, snapshot: TableSnapshot, log: QueryLog, name: str) -> TableTriage:
    """What to do with a table that we may not rewrite: the first look at it, by queries that are read already.

    Args:
        table: path or catalog name, for statements.
        name: what the log calls the table.

    Raises:
        NothingToLearnError: see `analyse`.
    """
    queries = tuple(replace(query, table=table) for query in log.of_table([name]))
    return _one(spark, table, snapshot, replace(log, queries=queries), QUICK, _log_words([]))


def _parallel(function: Callable[[str], T], items: Sequence[str]) -> Iterator[T]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(function, items)


def _open(spark: SparkSession, name: str) -> TableSnapshot | str:
    try:
        return open_table(spark, name)
    except TableError as error:
        return str(error)


def _renamed(
    log: QueryLog, known: Mapping[str, tuple[TableSnapshot, Sequence[str]]], places: Mapping[str, str]
) -> QueryLog:
    """Stored queries under the names that the tables go by here.

    Args:
        places: where the tables lie by whose names they are stored; the folder of another may be called so, too.
    """
    of = names_and_schemas(known)[0] | {name.lower(): name for name in known}
    stored = {name.lower(): place for name, place in places.items()}
    lying = {name: known[table][0].location for name, table in of.items()}
    of = {name: table for name, table in of.items() if is_same_place(stored.get(name, lying[name]), lying[name])}
    queries = (replace(q, table=of[q.table.lower()]) for q in log.queries if q.table.lower() in of)
    return replace(log, queries=tuple(queries))


def _log_words(sources: Sequence[LogSource | str], state: str | None = None) -> str:
    """What names the logs to ``zorder learn``, and says how to read them; and the state.

    >>> _log_words([LogSource("my log.sql", dialect="trino")])
    "--log 'my log.sql' --dialect trino"
    >>> _log_words([], "/data/state")
    '--state /data/state'
    """
    stored = [] if state is None else [f"--state {shlex.quote(without_password(state))}"]
    if stored and not sources:
        return stored[0]
    logs = [LogSource(source) if isinstance(source, str) else source for source in sources] or [LogSource("QUERY_LOG")]
    words = [f"--log {shlex.quote(without_password(str(log.path)))}" for log in logs]
    usual, first = LogSource(""), logs[0]
    options = {"--log-format": "log_format", "--dialect": "dialect", "--time-zone": "zone"}
    for option, name in options.items():
        if (value := getattr(first, name)) != getattr(usual, name):
            words.append(f"{option} {value}")
    return " ".join([*words, *stored])


def _one(
    spark: SparkSession, name: str, snapshot: TableSnapshot, log: QueryLog, settings: LearnSettings, log_words: str
) -> TableTriage:
    queries = queries_of(log, [name], snapshot)
    facts = _facts(name, snapshot, queries)
    if not facts.queries or not facts.rows:
        lost = counted(sum(log.quarantined.values()), "line") + " cannot be used (zorder ingest says why)"
        unasked = "no query of it in the log" + (f", of which {lost}" if log.quarantined else "")
        return replace(facts, problem=unasked if facts.rows else "the table is empty")
    analysis = analyse(spark, snapshot, log, [name], settings, read_only=True)
    plan, learned = learn_layout_for(analysis, settings)
    others = {key: share for key, share in plan.baselines.items() if key != "stored"}
    baseline = min(others, key=others.__getitem__) if others else None
    now = 1.0 if facts.read_now is None else facts.read_now
    bound = min(_bound(analysis, settings), now)  # today's files may be smaller than those that are sought
    before = plan.baselines.get("stored", facts.read_now or 1.0)
    kept = min(1.0, learned.select / before) if before else 1.0
    chosen = tuple(name for name in analysis.features.primary)
    told = replace(
        facts,
        bound=bound,
        learned=(facts.read_now or 0.0) * kept,
        baseline=baseline,
        baseline_read=(facts.read_now or 0.0) * min(1.0, others[baseline] / before) if baseline and before else None,
        columns=chosen,
        saved_bytes_per_day=_bytes_per_day(snapshot, queries, log.until) * (facts.read_now or 0.0) * (1 - kept),
    )
    size = _smaller_bytes(snapshot, settings)
    advice = (*_advice(told, analysis, log_words, size), *without_statistics(analysis))
    advice += tuple(partitions_untold(snapshot, analysis.queries, analysis.told))
    return replace(told, advice=advice, statements=tuple(_statements(name, snapshot, told, size)))


def _smaller_bytes(snapshot: TableSnapshot, settings: LearnSettings) -> int | None:
    """Size of the files that a layout was sought for, where these are smaller than the present ones."""
    files, sought = snapshot.files(), sought_rows(snapshot, settings)
    if 2 * sought > target_rows(snapshot, settings):
        return None
    return round(sought * float(files.bytes.sum()) / max(1, int(files.rows.sum())))


def _facts(name: str, snapshot: TableSnapshot, queries: Sequence[LoggedQuery]) -> TableTriage:
    """What the table's own statistics say."""
    files = snapshot.files()
    rows = int(files.rows.sum())
    zone_map, read = files.zone_map(), None
    if queries and rows:
        asked = Asked.alike([query.condition for query in queries])  # each condition is told once
        boxes = boxes_on(snapshot, asked.each(queries), told=told_on(snapshot, queries))
        found = [int(files.rows[zone_map.matching(each)].sum()) for each in boxes]
        read = float(np.average(found, weights=asked.times)) / rows
    return TableTriage(
        table=name,
        location=snapshot.location,
        queries=len(queries),
        filtered=sum(query.usable for query in queries),
        files=len(files),
        rows=rows,
        bytes=int(files.bytes.sum()),
        read_now=read,
    )


def _bound(analysis: TableAnalysis, settings: LearnSettings) -> float:
    """Matching rows of the sample, at least the smallest file's: what no layout can beat."""
    sample = analysis.sample
    columns = sample.arrays
    estimator = Estimator.build(columns, analysis.snapshot.schema, analysis.boxes, sample.rows)
    matching = estimator.rows_read(np.arange(sample.rows, dtype=np.int32), sample.rows)
    file = (1 - TOLERANCE) * sought_rows(analysis.snapshot, settings) * sample.rows / max(1, sample.total_rows)
    return float(np.mean(np.clip(matching, np.where(matching > 0, min(file, sample.rows), 0), None)) / sample.rows)


def _bytes_per_day(snapshot: TableSnapshot, queries: Sequence[LoggedQuery], until: int | None) -> float:
    """Bytes that a day's queries would read if nothing were skipped; those of a log without times are of one day."""
    times = [query.timestamp for query in queries if query.timestamp is not None]
    days = max((max(*times, until or 0) - min(times)) / DAY, 1.0) if times else 1.0
    return float(query_bytes(snapshot, queries).sum()) / days


def _advice(found: TableTriage, analysis: TableAnalysis, log_words: str, smaller: int | None) -> Iterator[str]:
    snapshot, files = analysis.snapshot, analysis.snapshot.files()
    how = f": zorder learn --table {shlex.quote(found.table)} {log_words} --out plan.json"
    if (reason := snapshot.unsupported()) is not None:
        yield reason
        how = ""  # which refuses it, too
    if found.learned is not None and found.read_now and found.learned < WORTH * found.read_now:
        sized = "" if smaller is None else f" in files of about {smaller / MEGABYTE:,.0f} MB"
        yield (
            f"queries read {found.read_now:.0%} of the rows; a learned layout would read about {found.learned:.0%}"
            f"{sized}{how}"
        )
    elif found.read_now is not None:
        yield f"the present layout is good enough: queries read {found.read_now:.0%} of the rows"
    yield from _partition_advice(analysis)
    small = int((~files.ours & (files.bytes < SMALL_FILE)).sum())  # the size of ours was weighed
    if smaller is None and len(files) > 8 and small > len(files) / 2 and found.bytes > 8 * SMALL_FILE:
        yield f"{small} of {len(files)} files are smaller than {SMALL_FILE // MEGABYTE} MB: compact them with OPTIMIZE"


def _partition_advice(analysis: TableAnalysis) -> Iterator[str]:
    snapshot, files = analysis.snapshot, analysis.snapshot.files()
    columns = snapshot.schema.partition_columns
    if not columns or not len(files):
        return
    sizes: Counter[tuple[str | None, ...]] = Counter()
    for values, size in zip(files.partitions, files.bytes, strict=True):
        sizes[values] += int(size)
    mean = sum(sizes.values()) / len(sizes)
    names = ", ".join(columns)
    chosen = any(item.column in columns for boxes in analysis.boxes for box in boxes for item in box)
    # one that is true of all partitions, or of none, has left no range of theirs
    asked = (partition_conditions(query.predicate, snapshot.schema, query.zone) for query in analysis.queries)
    if not chosen and not any(True for found in asked for _ in found):
        yield f"partitioned by {names}, by which no query filters: the partitions only make the files smaller"
    if len(sizes) > 16 and mean < SMALL_PARTITION:
        yield (
            f"partitioned too finely: {len(sizes)} partitions by {names} of {mean / MEGABYTE:,.1f} MB on average; "
            "partition more coarsely, and cluster by the column instead"
        )
    if max(sizes.values()) > LARGE_PARTITION:
        yield f"partitioned coarsely: a partition by {names} has {max(sizes.values()) / (1 << 30):,.0f} GB"


def _statements(name: str, snapshot: TableSnapshot, found: TableTriage, smaller: int | None) -> Iterator[str]:
    """SQL for platforms on which we may not rewrite."""
    chosen = [column_sql(snapshot.paths[column]) for column in found.columns[:4]]
    if not chosen or found.learned is None or found.read_now is None or found.learned >= WORTH * found.read_now:
        return
    target = sql_name(snapshot.location if is_path(name) else name)
    if smaller is not None:
        yield f"ALTER TABLE {target} SET TBLPROPERTIES ('delta.targetFileSize' = '{smaller}')"
    if not snapshot.schema.partition_columns:
        yield f"ALTER TABLE {target} CLUSTER BY ({', '.join(chosen)})"
    if "clustering" not in snapshot.features:
        yield f"OPTIMIZE {target} ZORDER BY ({', '.join(chosen[:3])})"
