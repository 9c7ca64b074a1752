"""Seed 000's table 1: 500 queries that keep at most 1% of the rows each, row groups as many as the seed's, one thread.

The seed's row groups have 4 MB. A table of fewer than 512 such ones gets smaller ones: what a layout can skip follows
from their number. All tables here are so small; the report says how large their row groups are.

Default, Range, Equal-weight Z-order and ours, and the seed's own method: each orders the same rows, which pyarrow then
writes into the same number of row groups. Rows read follow from the row groups' own statistics, for every unseen query;
seconds are those of Spark and of DuckDB on these files, for some of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from zorder_pipeline.layout.baselines import Z_ORDER, Training, equal_bits, seed_method
from zorder_pipeline.layout.draft import AnyDraft, Draft, SampledTable
from zorder_pipeline.layout.encoding import FINE_BITS
from zorder_pipeline.layout.interleave import keys
from zorder_pipeline.layout.learn import Learned
from zorder_pipeline.layout.placement import files_under
from zorder_pipeline.layout.search import SearchSettings
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.ranges import Boxes
from zorder_pipeline.reading.footers import read_footers, row_groups

from .cases import CASES, Arrays, Case, Loaded, cases_named, load, made
from .engines import duckdb_times, per_query, spark_times
from .harness import OURS, Options, Outcome, Progress, Workload, bound
from .layout import QUERIES, TRIALS, learn
from .sop import satisfied
from .vocabulary import NAMES

__all__ = ["WORKLOAD"]

SCALE, QUICK_SCALE = 5.0, 0.5
ROW_GROUP = 4 << 20
"""Bytes of a row group as Parquet counts them: encoded, before compression."""
LEAST_GROUPS = 512
"""The seed's tables, 15 to 175 million rows of 9 to 21 columns, have some four hundred row groups to well over a
thousand; a table here that would have fewer gets smaller ones."""
GROUPS_PER_FILE = 16
MOST, TRIED = 0.01, 50_000
"""Share of the rows that a statement of either log may keep, and the rows that tell it."""
DRAWN = 2
"""So many times the statements that are wanted are drawn: on some tables a fifth keep more than that."""
TIMED, QUICK_TIMED = 24, 8
"""Unseen queries that are also run in the engines."""
ROUNDS = 3
LABELS = {
    "default": "Default order",
    "range": "Range: sorted by the most selective column",
    "equal": "Equal-weight Z-order, 3 columns",
    "seed": NAMES["seed"].meaning,
    OURS: "ours",
}
PEERS = {"default": ("default",), "sort": ("range",), "equal": ("equal",), "zorder": ("equal",), "zorder3": ("equal",)}
PEERS |= {"seed": ("seed",)}

Floats: TypeAlias = npt.NDArray[np.float64]
Order: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Rows in their new order, and how many each row group has."""


def run(options: Options, progress: Progress) -> list[Outcome]:
    """See `Workload`; a case is a table."""
    from zorder_pipeline.spark import session

    session({"spark.master": "local[1]"})
    scale = options.scale or (QUICK_SCALE if options.quick else SCALE)
    outcomes: list[Outcome] = []
    for case, rows, seed in made(cases_named(options.tables, CASES), options.work, scale, options.seeds, progress):
        outcomes += options.noted(_one(case, rows, seed, scale, options, progress))
    return outcomes


def _one(
    case: Case, rows: pa.Table, seed: int, scale: float, options: Options, progress: Progress
) -> Iterator[Outcome]:
    from zorder_pipeline.spark import session

    loaded, statements = drawn(case, rows, QUERIES, seed, scale)
    groups = options.files or max(LEAST_GROUPS, round(len(rows) / _rows_per_group(rows)))
    learned, sampled, chosen = learn(loaded, groups, seed)
    orders = _orders(loaded, learned, sampled, chosen, groups, seed)
    orders = {name: order for name, order in orders.items() if options.wants(name)}
    folder = options.work / f"{case.name}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    measured: dict[str, tuple[dict[str, Floats], dict[str, float]]] = {}
    tables = {name: folder / name / case.name for name in orders}
    for name, order in orders.items():
        _write(rows, order, tables[name])
        measured[name] = _read(loaded, tables[name])
    count = QUICK_TIMED if options.quick else TIMED
    statements = statements[:: max(1, len(statements) // count)][:count]
    spark = spark_times(session(), tables, statements, case.name, ROUNDS)
    duckdb = duckdb_times(tables, statements, case.name, ROUNDS)
    shutil.rmtree(folder)
    ours = measured[OURS][0]["rows"].mean()
    told = ", ".join(f"{name} {found['rows'].mean() / ours:.2f}" for name, (found, _) in measured.items())
    progress(f"{case.name}, seed {seed}: {groups} row groups; rows as multiples of ours: {told}")
    figures = {"selectivity": float((matched := _matched(loaded)).mean() / len(rows)), "layout": learned.name}
    for name, (found, facts) in measured.items():
        times = per_query(spark[name], "spark") | per_query(duckdb[name], "duckdb")
        seconds = {"learn": learned.seconds} if name == OURS else {}
        extra = facts | {"spark_spread": spark[name].spread, "duckdb_spread": duckdb[name].spread}
        yield Outcome(name, LABELS[name], seed, found | times, seconds, extra | figures, case.name)
    yield bound(matched, len(rows), groups, seed, case.name)


def drawn(case: Case, rows: pa.Table, queries: int, seed: int, scale: float) -> tuple[Loaded, list[str]]:
    """A case with logs of at most so many queries, which keep at most `MOST` of the rows each; the unseen as texts."""
    loaded = load(case, rows, DRAWN * queries, DRAWN * queries, seed, scale)
    _, later = case.logs(rows, DRAWN * queries, DRAWN * queries, seed, scale)
    if len(later) != len(loaded.unseen):
        raise ValueError(f"statements of case {case.name} scan its table more than once")
    columns = loaded.part(np.unique(np.linspace(0, loaded.rows - 1, TRIED).astype(np.int64)))
    train, unseen = (_selective(columns, boxes)[:queries] for boxes in (loaded.train_boxes, loaded.unseen_boxes))
    loaded = replace(
        loaded,
        train=tuple(loaded.train[i] for i in train),
        unseen=tuple(loaded.unseen[i] for i in unseen),
        train_boxes=tuple(loaded.train_boxes[i] for i in train),
        unseen_boxes=tuple(loaded.unseen_boxes[i] for i in unseen),
    )
    return loaded, [later[i]["statement"] for i in unseen]


def _selective(columns: Arrays, queries: Sequence[Boxes]) -> list[int]:
    """Indices of the queries that keep at most `MOST` of the rows."""
    shares = (np.any([satisfied(box, columns) for box in boxes], axis=0).mean() for boxes in queries)
    return [i for i, share in enumerate(shares) if share <= MOST]


def _rows_per_group(rows: pa.Table) -> float:
    """Rows of the table in arrival order that fill a row group, tried on some of them."""
    some = rows.slice(len(rows) // 2, 100_000)
    sink = pa.BufferOutputStream()
    pq.write_table(some, sink)
    metadata = pq.read_metadata(pa.BufferReader(sink.getvalue()))
    written = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    return float(ROW_GROUP / (written / len(some)))


def _orders(
    loaded: Loaded, learned: Learned, sampled: SampledTable, chosen: npt.NDArray[np.int64], groups: int, seed: int
) -> dict[str, Order]:
    training = Training(
        sampled,
        Estimator.build(loaded.part(chosen), loaded.schema, loaded.train_boxes, sampled.rows),
        loaded.train_boxes,
        np.ones(len(loaded.train)),
        SearchSettings(TRIALS, seed),
    )
    drafts: dict[str, AnyDraft | None] = {
        "default": None,
        "range": Draft((_most_selective(loaded, sampled, chosen),) * FINE_BITS, Z_ORDER, aligned=False),
        "equal": equal_bits(min(3, len(sampled.encodings)))(training),
        "seed": seed_method(training),
    }
    whole = loaded.whole(sampled, groups)
    even = np.diff(np.arange(groups + 1) * loaded.rows // groups)
    orders: dict[str, Order] = {}
    for name, draft in drafts.items():
        order = np.arange(loaded.rows) if draft is None else np.argsort(whole.keys(draft), kind="stable")
        orders[name] = order, even
    orders[OURS] = orders["default"]
    if learned.spec is not None:
        file = files_under(learned.spec, loaded.columns, loaded.rows / groups)
        orders[OURS] = np.lexsort((keys(learned.spec, loaded.columns), file)), np.bincount(file)
    return orders


def _most_selective(loaded: Loaded, sampled: SampledTable, chosen: npt.NDArray[np.int64]) -> int:
    """The feature whose filters keep, on average over the training queries, the smallest share of the rows."""
    columns = loaded.part(chosen[:: max(1, len(chosen) // 10_000)])
    count = len(next(iter(columns.values()))[0])
    shares: list[float] = []
    for encoding in sampled.encodings:
        asked: list[Boxes] = []
        for query in loaded.train_boxes:
            only = tuple(tuple(item for item in box if item.column == encoding.column) for box in query)
            if all(only):
                asked.append(only)
        estimator = Estimator.build(columns, loaded.schema, asked, count)
        shares.append(float(_rows_matched(estimator, count).mean()) / count if asked else 1.0)
    return int(np.argmin(shares))


def _matched(loaded: Loaded) -> Floats:
    return _rows_matched(loaded.estimator(loaded.unseen_boxes), loaded.rows)


def _rows_matched(estimator: Estimator, rows: int) -> Floats:
    """Rows that a reader of min/max statistics cannot skip even when each is a block of its own, shape (queries,)."""
    return estimator.rows_read(np.arange(rows, dtype=np.int32), rows)


def _write(rows: pa.Table, order: Order, folder: Path) -> None:
    """Parquet files of `GROUPS_PER_FILE` row groups each."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    place, sizes = order
    ends = np.cumsum(sizes)
    for first in range(0, len(sizes), GROUPS_PER_FILE):
        path = folder / f"part-{first // GROUPS_PER_FILE:05d}.parquet"
        with pq.ParquetWriter(path, rows.schema, write_page_index=True) as writer:
            for end, size in list(zip(ends, sizes, strict=True))[first : first + GROUPS_PER_FILE]:
                writer.write_table(rows.take(pa.array(place[end - size : end])), row_group_size=int(size))


def _read(loaded: Loaded, folder: Path) -> tuple[dict[str, Floats], dict[str, float]]:
    """What the unseen queries read, from the row groups' own statistics, and facts of the files."""
    paths = sorted(str(path) for path in folder.glob("*.parquet"))
    footers = read_footers(str(folder), [Path(path).name for path in paths])
    types: Mapping[str, str] = {column.name: column.type for column in loaded.schema.columns}
    zones, file = row_groups(footers, {name: ((name,), types[name]) for name in loaded.columns})
    hits = np.stack([zones.matching(query) for query in loaded.unseen_boxes]).astype(np.float64)
    files = np.stack([np.bincount(file, weights=hit, minlength=len(paths)) > 0 for hit in hits])
    found = {
        "files": files.sum(axis=1).astype(np.float64),
        "row_groups": hits.sum(axis=1),
        "rows": hits @ zones.rows,
        "bytes": hits @ zones.bytes,
    }
    size = float(sum(Path(path).stat().st_size for path in paths))
    facts = {"files": len(paths), "row_groups": len(zones), "row_group_bytes": float(zones.bytes.mean())}
    return found, facts | {"file_bytes": size}


WORKLOAD = Workload(
    "protocol",
    "table 1 of Gao et al.: 512 row groups (more where they would exceed 4 MB), queries of at most 1%, one thread",
    run,
    peers=PEERS,
    tables=tuple(case.name for case in CASES),
    sized=True,
)
