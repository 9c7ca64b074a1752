"""The whole chain as plain functions: ingest -> analyse -> learn -> judge -> apply, and evaluate afterwards.

The command line and the Dagster assets are shells over these; used as a library they need neither.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline import __version__
from zorder_pipeline.errors import TableError, UnsupportedTableError
from zorder_pipeline.features.sample import Sample, take_sample
from zorder_pipeline.features.select import Analysis, AnalysisSettings
from zorder_pipeline.features.select import analyse as analyse_features
from zorder_pipeline.gate.benefit import observed_rate, promise
from zorder_pipeline.gate.decision import GateSettings
from zorder_pipeline.gate.decision import judge as decide
from zorder_pipeline.layout.blocks import split_log
from zorder_pipeline.layout.cells import Cuts, cut_cells
from zorder_pipeline.layout.draft import SampledTable
from zorder_pipeline.layout.encoding import rank_encoding, raw_encoding
from zorder_pipeline.layout.explain import explain
from zorder_pipeline.layout.interleave import hilbert_table, round_robin
from zorder_pipeline.layout.learn import Learned, learn_layout
from zorder_pipeline.layout.search import SearchSettings
from zorder_pipeline.model.decision import Decision
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.ranges import Boxes, to_boxes
from zorder_pipeline.model.results import ApplyResult, Evaluation
from zorder_pipeline.model.workload import LoggedQuery, QueryLog
from zorder_pipeline.model.zone_map import ColumnZones
from zorder_pipeline.query_log.ingest import ingest as ingest_logs
from zorder_pipeline.reading.footers import column_shares, read_footers, row_groups
from zorder_pipeline.reading.matching import matching_rows
from zorder_pipeline.relayout.rewrite import apply_layout
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "LearnSettings",
    "LogSource",
    "TableAnalysis",
    "analyse",
    "apply",
    "evaluate",
    "ingest",
    "judge",
    "layout_by_hand",
    "learn",
    "learn_layout_for",
]

Progress = Callable[[str], None]
SMALLEST_FILE = 64 * 1024
LARGEST_FILE = 1 << 30
MIN_FILES = 8
SHARE_FILES = 16


@dataclass(frozen=True)
class LogSource:
    """A query log to read: ``log_format`` is auto, sql, query-history or spark-events; ``zone`` its session's zone."""

    path: str
    log_format: str = "auto"
    dialect: str = "spark"
    zone: str = "UTC"


@dataclass(frozen=True)
class LearnSettings:
    """How to learn; see `SearchSettings`.

    Attributes:
        sample_rows: rows sampled, raised if need be so that a file is not represented by too few.
        target_file_rows, target_file_bytes: size to aim for; at most one of them. Without either the table keeps about
            its present file size.
        max_features: columns the search may use, the most useful ones.
    """

    trials: int = 600
    seed: int = 0
    seconds: float | None = None
    sample_rows: int = 100_000
    target_file_rows: int | None = None
    target_file_bytes: int | None = None
    max_features: int = 16
    queries_per_day: float | None = None


@dataclass(frozen=True)
class TableAnalysis:
    """A table's queries and sample, and what the workload analysis found in them."""

    snapshot: TableSnapshot
    queries: tuple[LoggedQuery, ...]
    sample: Sample
    features: Analysis
    zone: str = "UTC"
    unusable: int = 0
    boxes: tuple[Boxes, ...] = field(default=(), repr=False)


def _silent(text: str) -> None:
    """Progress that nobody wants to see."""


def names_of(table: str, snapshot: TableSnapshot, aliases: Sequence[str] = ()) -> tuple[str, ...]:
    """What a statement may call the table: its aliases, its catalog name (whole and last part), its folder's name."""
    folder = snapshot.location.rstrip("/").rsplit("/", 1)[-1]
    given = table.rstrip("/").rsplit("/", 1)[-1]
    catalog = [] if "/" in table else [table, table.rsplit(".", 1)[-1]]
    return tuple(dict.fromkeys([*aliases, *catalog, given, folder, f"delta.{snapshot.location}"]))


def ingest(
    sources: Sequence[LogSource | str],
    tables: Mapping[str, tuple[TableSnapshot, Sequence[str]]] | None = None,
) -> QueryLog:
    """Read query logs.

    Args:
        tables: by table name, its snapshot and the names statements call it by. Without any, tables go by the names
            found in the statements.

    Raises:
        LogError: a log does not exist or is of no known format.
    """
    known = tables or {}
    aliases = {alias: name for name, (_, names) in known.items() for alias in names}
    schemas = {name: snapshot.schema for name, (snapshot, _) in known.items()}
    logs = [LogSource(source) if isinstance(source, str) else source for source in sources]
    parts = [
        ingest_logs([s.path], log_format=s.log_format, schemas=schemas, aliases=aliases, dialect=s.dialect, zone=s.zone)
        for s in logs
    ]
    return QueryLog.merged(parts)


def analyse(
    spark: SparkSession,
    snapshot: TableSnapshot,
    log: QueryLog,
    names: Sequence[str],
    settings: LearnSettings | None = None,
    zone: str = "UTC",
) -> TableAnalysis:
    """Sample the table and find candidates and correlations among what its queries filter by.

    Args:
        names: what the log calls the table.

    Raises:
        TableError: the log holds no usable query of this table, or the table is empty.
        UnsupportedTableError: the table has a feature under which it may not be rewritten.
    """
    settings = settings or LearnSettings()
    if (reason := snapshot.unsupported()) is not None:
        raise UnsupportedTableError(reason)
    queries = log.of_table(names)
    usable = [query for query in queries if query.usable]
    if not usable:
        seen = ", ".join(sorted({query.table for query in log.queries})[:5]) or "no table at all"
        raise TableError(
            f"no usable query of {snapshot.location} among {log.lines} statements (they read {seen}); "
            f"if the log calls the table otherwise, name it with --alias"
        )
    files = snapshot.files()
    rows = int(files.rows.sum())
    if not rows:
        raise TableError(f"table {snapshot.location} is empty; there is nothing to lay out")
    boxes = tuple(to_boxes(query.predicate, snapshot.schema, zone) for query in queries)
    filtered = {item.column for query in boxes for box in query for item in box}
    columns = [column.name for column in snapshot.schema.columns if column.name in filtered]
    if not columns:
        raise TableError(f"no query of {snapshot.location} filters by a column that the table has")
    target = target_rows(snapshot, settings)
    wanted = min(rows, max(settings.sample_rows, 100 * math.ceil(rows / target)))
    sample = take_sample(spark, snapshot, columns, rows=wanted, seed=settings.seed, total_rows=rows)
    features = analyse_features(queries, snapshot.schema, sample, AnalysisSettings(max_features=settings.max_features))
    unusable = sum(log.quarantined.values())
    return TableAnalysis(snapshot, queries, sample, features, zone, unusable, boxes)


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


def learn_layout_for(
    analysis: TableAnalysis,
    settings: LearnSettings | None = None,
    progress: Callable[[int, int, float], None] | None = None,
) -> tuple[Plan, Learned]:
    """Search for a layout on the analysed sample, and promise what it saves on queries that chose nothing."""
    settings = settings or LearnSettings()
    snapshot, sample = analysis.snapshot, analysis.sample
    columns = {name: (column.values, column.valid) for name, column in sample.columns.items()}
    types = {column.name: column.type for column in snapshot.schema.columns}
    target = target_rows(snapshot, settings)
    files = max(1, round(sample.total_rows / target))
    features = [name for name in analysis.features.ranked if name in columns][: settings.max_features]
    table = SampledTable.build(columns, types, features, sample.file, files)
    blocks = split_log([q.fingerprint for q in analysis.queries], [q.timestamp for q in analysis.queries])
    weights = np.ones(len(analysis.queries))
    search = SearchSettings(settings.trials, settings.seed, settings.seconds)
    learned = learn_layout(table, columns, snapshot.schema, analysis.boxes, weights, blocks, search, progress=progress)
    rate = (
        observed_rate([query.timestamp for query in analysis.queries], len(analysis.queries))
        if settings.queries_per_day is None
        else (settings.queries_per_day, "configured")
    )
    held_out = blocks.promise if blocks else np.zeros(0, dtype=np.int64)
    times = [query.timestamp for query in analysis.queries if query.timestamp is not None]
    notes = []
    if blocks is None:
        notes.append("too few distinct queries to prove a layout on unseen ones: the gate will decline it")
    if table.rows_per_file < 50:
        notes.append(f"a file is represented by only {table.rows_per_file:.0f} sample rows: raise --sample-rows")
    plan = Plan(
        table=snapshot.location,
        table_id=snapshot.table_id,
        schema_hash=snapshot.schema.fingerprint,
        delta_version=snapshot.version,
        spec=learned.spec,
        origin="learned",
        target_file_rows=target,
        promise=promise(learned.before, learned.after, _query_bytes(analysis, held_out), rate, settings.seed),
        predicted={"train_fraction": learned.train, "validation_fraction": learned.select},
        baselines=learned.baselines,
        trials=len(learned.history),
        seconds=learned.seconds,
        log_watermark=max(times, default=None),
        code_version=__version__,
        notes=tuple(notes),
    )
    return plan, learned


def _query_bytes(analysis: TableAnalysis, index: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Bytes of the whole table in the columns that each of these queries reads."""
    total = float(analysis.snapshot.files().bytes.sum())
    share = {name.lower(): part for name, part in _column_shares(analysis.snapshot).items()}
    result = np.full(len(index), total)
    for place, number in enumerate(index):
        read = {name.lower().split(".")[0] for name in analysis.queries[number].columns}
        if read & share.keys():
            result[place] = total * sum(share.get(name, 0.0) for name in read)
    return result


def learn(
    spark: SparkSession,
    table: str,
    logs: Sequence[LogSource | str],
    *,
    aliases: Sequence[str] = (),
    settings: LearnSettings | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Learn a layout for one table from query logs: the chain up to, but without, the gate.

    Args:
        table: path or catalog name.
        aliases: further names that the log may call the table by.

    Raises:
        TableError, LogError: see `analyse` and `ingest`.
    """
    say = progress or _silent
    snapshot = open_table(spark, table)
    names = names_of(table, snapshot, aliases)
    log = ingest(logs, {snapshot.location: (snapshot, names)})
    say(f"read {log.lines} statements, {len(log.of_table([snapshot.location]))} of them scan the table")
    analysis = analyse(spark, snapshot, log, [snapshot.location], settings, _zone(logs))
    say(
        f"sampled {analysis.sample.rows} of {analysis.sample.total_rows} rows in {len(analysis.sample.columns)} columns"
    )
    plan, _ = learn_layout_for(analysis, settings, lambda i, n, cost: say(f"trial {i} of {n}: {cost:.4f} of the rows"))
    return plan


def _zone(logs: Sequence[LogSource | str]) -> str:
    return next((source.zone for source in logs if isinstance(source, LogSource)), "UTC")


def layout_by_hand(
    spark: SparkSession,
    table: str,
    bits: Mapping[str, int],
    *,
    encoding: str = "rank",
    curve: str = "interleave",
    settings: LearnSettings | None = None,
) -> Plan:
    """A plan for bits given by hand; the most significant column first.

    Args:
        bits: bits per column.
        encoding: ``rank`` (breakpoints from a sample) or ``bits`` (the raw value's most significant bits).
        curve: ``interleave`` (seed 000's round robin), ``hilbert``, or ``sequence`` (one column after the other).

    Raises:
        TableError: a column is unknown, a partition column, or of a type without an order.
    """
    settings = settings or LearnSettings()
    snapshot = open_table(spark, table)
    if (reason := snapshot.unsupported()) is not None:
        raise UnsupportedTableError(reason)
    columns = []
    for name in bits:
        column = snapshot.schema.find(name)
        if column is None:
            known = ", ".join(c.name for c in snapshot.schema.columns if c.value_type.orderable and not c.partition)
            raise TableError(f"column {name} is not in {snapshot.location}; it has {known}")
        if column.partition or not column.value_type.orderable:
            why = "the table is partitioned by it" if column.partition else f"type {column.type} has no order"
            raise TableError(f"column {name} cannot be part of a layout: {why}")
        columns.append(column)
    counts = list(bits.values())
    if encoding == "bits":
        features = [raw_encoding(c.name, c.type, count) for c, count in zip(columns, counts, strict=True)]
    else:
        rows = int(snapshot.files().rows.sum())
        wanted = min(rows, settings.sample_rows)
        names = [column.name for column in columns]
        sample = take_sample(spark, snapshot, names, rows=wanted, seed=settings.seed, total_rows=rows)
        features = [
            rank_encoding(c.name, c.type, sample.columns[c.name].values, sample.columns[c.name].valid).feature(count)
            for c, count in zip(columns, counts, strict=True)
        ]
    order = (
        tuple(i for i, count in enumerate(counts) for _ in range(count)) if curve == "sequence" else round_robin(counts)
    )
    spec = KeySpec(
        tuple(features), order, "hilbert" if curve == "hilbert" else "interleave", tuple(c.name for c in columns)
    )
    return Plan(
        table=snapshot.location,
        table_id=snapshot.table_id,
        schema_hash=snapshot.schema.fingerprint,
        delta_version=snapshot.version,
        spec=spec,
        origin="manual",
        target_file_rows=target_rows(snapshot, settings),
        code_version=__version__,
    )


def judge(plan: Plan, rewrite_bytes: float, table_bytes: float, settings: GateSettings | None = None) -> Decision:
    """The gate's decision about rewriting ``rewrite_bytes`` of a table of ``table_bytes`` by ``plan``.

    A relayout of part of the table is credited with that part of the saving.
    """
    part = rewrite_bytes / table_bytes if table_bytes else 1.0
    share = replace(plan.promise, bytes_saved_per_query=plan.promise.bytes_saved_per_query * part)
    return decide(replace(plan, promise=share), rewrite_bytes, settings)


def apply(
    spark: SparkSession,
    table: str,
    plan: Plan,
    *,
    where: str | None = None,
    full: bool = False,
    dry_run: bool = False,
    force: bool = False,
    gate: GateSettings | None = None,
    verify: str = "counts",
    progress: Progress | None = None,
) -> ApplyResult:
    """Rewrite the files that ``plan`` wants elsewhere, in one transaction, when the gate approves.

    Args:
        where: condition on partition columns; only those partitions are touched.
        full: rewrite files that already lie by this layout, too.
        dry_run: decide and say what would be done.
        force: do not ask the gate.
        verify: ``counts`` or ``hash``, see `zorder_pipeline.relayout.rewrite.apply_layout`.

    Raises:
        PlanError: the plan does not fit the table.
        LostRaceError: another writer changed the files meanwhile; nothing was committed.
    """
    snapshot = open_table(spark, table)
    plan.refuse_unless_fits(snapshot.table_id, snapshot.schema)
    if (reason := snapshot.unsupported()) is not None:
        raise UnsupportedTableError(reason)
    if plan.spec is None:
        why = "the plan says the table should stay as it is: no layout beat the present one on the select queries"
        return ApplyResult(snapshot.version, "nothing_to_do", (why,), skipped_files=len(snapshot.files()))
    spec = plan.spec

    def run(dry: bool) -> Any:
        return apply_layout(
            spark,
            snapshot,
            spec,
            cutter=_cutter(plan.target_file_rows),
            target_rows=plan.target_file_rows,
            hilbert_table=hilbert_table(spec) if spec.curve == "hilbert" else None,
            where=where,
            full=full,
            dry_run=dry,
            verify=verify,
            progress=progress,
        )

    preview = run(True)
    if not preview.files_removed:
        why = "every file already lies by this layout" + (" in the chosen partitions" if where else "")
        return ApplyResult(snapshot.version, "nothing_to_do", (why,), skipped_files=preview.skipped_files)
    decision = judge(plan, preview.bytes_rewritten, float(snapshot.files().bytes.sum()), gate)
    approved = force or decision.approved
    reasons = ("applied without asking the gate (--force)",) if force else decision.reasons
    done = preview if dry_run or not approved else run(False)
    return ApplyResult(
        version=done.version,
        decision="applied" if approved else "declined",
        reasons=reasons,
        files_removed=done.files_removed if approved else 0,
        files_added=done.files_added if approved else 0,
        bytes_rewritten=done.bytes_rewritten if approved else 0,
        rows=done.rows if approved else 0,
        skipped_files=done.skipped_files if approved else len(snapshot.files()),
        seconds=done.seconds,
        dry_run=dry_run,
        gate=decision.to_json(),
    )


def _cutter(target: int) -> Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64]], Cuts]:
    def cut(cells: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> Cuts:
        return cut_cells(cells, counts, target)

    return cut


def evaluate(
    spark: SparkSession,
    table: str,
    logs: Sequence[LogSource | str],
    *,
    aliases: Sequence[str] = (),
    count_matches: bool = True,
    progress: Progress | None = None,
) -> Evaluation:
    """What the queries of a log read of the table as it lies now: exact, from its own statistics and Parquet footers.

    Args:
        count_matches: also count the rows that match each query, which scans the filtered columns.

    Raises:
        TableError: the log holds no query of this table.
    """
    say = progress or _silent
    snapshot = open_table(spark, table)
    log = ingest(logs, {snapshot.location: (snapshot, names_of(table, snapshot, aliases))})
    queries = log.of_table([snapshot.location])
    if not queries:
        raise TableError(
            f"none of the {log.lines} statements reads {snapshot.location}; "
            "if the log calls the table otherwise, name it with --alias"
        )
    zone = _zone(logs)
    boxes = [to_boxes(query.predicate, snapshot.schema, zone) for query in queries]
    files = snapshot.files()
    zone_map = files.zone_map()
    hits = np.stack([zone_map.matching(query) for query in boxes]).astype(np.float64)
    say(f"tested {len(boxes)} queries against {len(files)} files")
    groups = _row_group_fraction(snapshot, boxes, hits > 0)
    total = int(files.rows.sum())
    matched = matching_rows(snapshot.read(), boxes, snapshot.paths, total, say) if count_matches else None
    return Evaluation(
        queries=len(queries),
        files=len(files),
        rows=total,
        files_per_query=hits.sum(axis=1),
        rows_per_query=hits @ files.rows,
        bytes_per_query=hits @ files.bytes,
        matched_per_query=matched,
        row_groups_read_fraction=groups,
        unusable=sum(log.quarantined.values()),
        version=snapshot.version,
    )


def _row_group_fraction(snapshot: TableSnapshot, boxes: Sequence[Boxes], hits: npt.NDArray[np.bool_]) -> float | None:
    """Mean share of the table's row groups a query reads; None when some footer cannot be read from here."""
    footers = read_footers(snapshot.location, snapshot.files().path.tolist())
    if not footers.complete or not len(hits):
        return None
    used = {item.column for query in boxes for box in query for item in box}
    columns = {
        leaf.column.name: (leaf.physical, leaf.column.type)
        for leaf in snapshot.leaves
        if leaf.column.name in used and not leaf.column.partition
    }
    zones, file = row_groups(footers, columns)
    return float(np.mean([np.mean(zones.matching(query) & hit[file]) for query, hit in zip(boxes, hits, strict=True)]))


def _column_shares(snapshot: TableSnapshot) -> dict[str, float]:
    """Share of the table's bytes by column, from the footers of some of its files."""
    paths = snapshot.files().path
    some = paths[:: max(1, len(paths) // SHARE_FILES)][:SHARE_FILES]
    names = {leaf.physical[0]: leaf.path[0] for leaf in snapshot.leaves}
    return column_shares(read_footers(snapshot.location, some.tolist()), names)


def inspect(spark: SparkSession, table: str) -> dict[str, Any]:
    """Files, layouts and overlap of a table, as ``zorder inspect --json`` prints them."""
    snapshot = open_table(spark, table)
    files = snapshot.files()
    layouts = files.layouts()  # layout id per file, "" where the file is none of ours
    zones = files.zone_map()
    rows = int(files.rows.sum())
    ours = sum(int(count) for name, count in zip(layouts, files.rows, strict=True) if name)
    counts = Counter(name for name in layouts if name)
    depth = {
        column.name: overlap_depth(zones.columns[column.name])
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
        "deletion_vector_rows": int(files.deleted.sum()),
        "overlap_depth": depth,
        "unsupported": snapshot.unsupported(),
    }


def overlap_depth(zones: ColumnZones) -> float:
    """Mean number of files that a look-up of one value reads: files whose range holds the middle of each file's range.

    Bounds stand for values, so the figure needs nothing but the statistics; files without any count everywhere.
    """
    known = zones.known
    if not known.any():
        return float(len(known))
    low, high = np.sort(zones.low[known]), np.sort(zones.high[known])
    starts, ends = np.searchsorted(low, zones.low[known], "right"), np.searchsorted(high, zones.low[known], "left")
    return float(np.mean(starts - ends)) + float((~known & (zones.null_count != 0)).sum())


def describe(plan: Plan) -> dict[str, Any]:
    """The object ``zorder learn --json`` and ``zorder layout --json`` print."""
    spec = plan.spec
    layout: dict[str, Any] = {"columns": [], "bits": {}, "order": [], "layout_id": None, "curve": None}
    if spec is not None:
        layout = {
            "columns": list(spec.columns),
            "bits": spec.allocation(),
            "order": [spec.features[i].column for i in spec.order],
            "layout_id": spec.layout_id,
            "curve": spec.curve,
        }
    return {
        "layout": layout,
        "predicted": dict(plan.predicted),
        "promise": vars(plan.promise),
        "baselines": dict(plan.baselines),
        "trials": plan.trials,
        "seconds": round(plan.seconds, 3),
        "target_file_rows": plan.target_file_rows,
        "notes": list(plan.notes),
    }


def in_words(plan: Plan) -> tuple[str, ...]:
    """The plan in plain sentences."""
    if plan.spec is None:
        return ("the table should stay as it lies: no layout beat it on the select queries", *plan.notes)
    return (*explain(plan.spec), *plan.notes)
