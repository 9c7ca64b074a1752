"""Seed 001: share of the Parquet pages that a point query skips, lexical order against Z-order and ours, in one file.

Its cases: a table like TPC-DS ``store_sales`` asked by customer and by demographics, and uniform random integers asked
by each of two and of four sorting columns. Z-order is the seed's own, of all bits of the raw values; ours is learned
from the queries that the seed asks: of the sales each column by itself, and all of a demographic's sales; of the
integers each column by itself. What sorting costs is told by the seconds that writing the file took,
beside those of a plain copy of the same rows; ours has in them what a relayout does besides sorting.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .data import copy_table, delta_table, plan_for, session_conf
from .harness import OURS, Options, Outcome, Progress, Workload
from .page_index import PageIndex
from .workloads import write_log

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

__all__ = ["WORKLOAD"]

Floats: TypeAlias = npt.NDArray[np.float64]
ROWS, QUICK_ROWS = 2_880_000, 400_000
"""TPC-DS ``store_sales`` at scale 1 has as many."""
PAGES = 144
"""Pages of a column: those of `ROWS` rows at 20,000 rows a page, the limit of parquet-hadoop and the seed's advice."""
VALUES = 20
"""Values asked for, per column."""
TRAIN = 240
TICKET = 12
CUSTOMERS, DEMOGRAPHICS = 100_000, 1_920_800
LABELS = {
    "stored": "as stored: a plain copy",
    "lexical": "lexical order",
    "zorder": "Z-order of the raw bits, as Impala has it",
    OURS: "ours",
}


@dataclass(frozen=True)
class _Table:
    """A case: rows as they arrive, the columns that are sorted by, and the queries: what is read, by which column."""

    name: str
    rows: pa.Table
    columns: tuple[str, ...]
    queries: tuple[tuple[str, str], ...]


def run(options: Options, progress: Progress) -> list[Outcome]:
    """See `Workload`; a case is a column of a table, a seed its values and a round of the sort times."""
    from zorder_pipeline.spark import session

    spark = session()
    count = int(ROWS * options.scale) if options.scale else QUICK_ROWS if options.quick else ROWS
    outcomes: list[Outcome] = []
    for seed in options.seeds:
        rng = np.random.default_rng(seed)
        for case in (_store_sales(count, rng), _uniform(count, 2, rng), _uniform(count, 4, rng)):
            outcomes += options.noted(_one(spark, case, seed, options, progress))
    return outcomes


def _store_sales(rows: int, rng: np.random.Generator) -> _Table:
    """A ticket of about twelve lines has one customer and one demographic; a few of either are missing."""
    ticket = np.sort(rng.integers(0, rows // TICKET, rows))
    customer = rng.integers(1, CUSTOMERS + 1, rows // TICKET).astype(np.int32)[ticket]
    demographics = rng.integers(1, DEMOGRAPHICS + 1, rows // TICKET).astype(np.int32)[ticket]
    columns: dict[str, pa.Array] = {
        "ss_sold_date_sk": pa.array((2_450_816 + ticket * 1_800 // max(1, rows // TICKET)).astype(np.int32)),
        "ss_sold_time_sk": pa.array(rng.integers(28_800, 75_600, rows // TICKET).astype(np.int32)[ticket]),
        "ss_item_sk": pa.array(rng.integers(1, 18_001, rows)),
        "ss_customer_sk": pa.array(customer, mask=(rng.random(rows // TICKET) < 0.045)[ticket]),
        "ss_cdemo_sk": pa.array(demographics, mask=(rng.random(rows // TICKET) < 0.045)[ticket]),
        "ss_store_sk": pa.array(rng.integers(1, 13, rows // TICKET).astype(np.int32)[ticket]),
        "ss_ticket_number": pa.array(ticket + 1),
        "ss_quantity": pa.array(rng.integers(1, 101, rows).astype(np.int32)),
    }
    prices = ("wholesale_cost", "list_price", "sales_price", "ext_discount_amt", "net_paid", "net_profit")
    for name in prices:
        cents = pa.array(rng.integers(100, 2_000_000, rows))
        columns[f"ss_{name}"] = cents.cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2))
    keys = ("ss_customer_sk", "ss_cdemo_sk")
    return _Table("store_sales", pa.table(columns), keys, (*((key, key) for key in keys), ("*", "ss_cdemo_sk")))


def _uniform(rows: int, columns: int, rng: np.random.Generator) -> _Table:
    names = tuple("abcd"[:columns])
    values = {name: pa.array(rng.integers(0, 2**31, rows).astype(np.int32)) for name in (*names, "payload")}
    return _Table(f"uniform_{columns}", pa.table(values), names, tuple((name, name) for name in names))


def _one(spark: SparkSession, case: _Table, seed: int, options: Options, progress: Progress) -> Iterator[Outcome]:
    folder = options.work / "pages" / f"{case.name}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    source = folder / "source" / case.name
    delta_table(spark, source, case.rows, 1)
    rng = np.random.default_rng(seed)
    asked = {name: _values(case.rows[name], VALUES, rng) for name in case.columns}
    train = str(write_log(_log(case, asked, rng), folder / "train.jsonl"))
    page_rows = len(case.rows) // PAGES
    makers = _makers(spark, case, source, train, seed)
    makers = {name: make for name, make in makers.items() if options.wants(name)}
    seconds: dict[str, float] = {}
    for warm in (True, False):
        for place in rng.permutation(len(makers)):
            name, make = list(makers.items())[place]
            with session_conf(spark, {"parquet.page.row.count.limit": str(page_rows)}):
                seconds[name] = make(folder / name / case.name)
            if warm:
                shutil.rmtree(folder / name)
    for name in makers:
        index = PageIndex(spark, _live(folder / name / case.name))
        times, figures = {"write": seconds[name]}, {"pages_in_all": index.pages}
        for column in case.columns:
            share = np.array([index.filtered(column, value) for value in asked[column]])
            progress(f"{case.name}, seed {seed}: {name} filters {share.mean():.1%} of the pages by {column}")
            yield Outcome(name, LABELS[name], seed, {"pages": share}, times, figures, f"{case.name}.{column}")
    shutil.rmtree(folder)


def _makers(
    spark: SparkSession, case: _Table, source: Path, train: str, seed: int
) -> dict[str, Callable[[Path], float]]:
    """What writes each contender's single file; returns its seconds."""
    from zorder_pipeline import pipeline

    settings = pipeline.LearnSettings(target_file_rows=len(case.rows) // PAGES, seed=seed, trials=200)
    learned = pipeline.learn(spark, str(source), [train], aliases=[case.name], settings=settings)

    def copy(path: Path) -> float:
        start = time.perf_counter()
        copy_table(spark, source, path)
        return time.perf_counter() - start

    def ordered(*keys: str | Column) -> Callable[[Path], float]:
        def make(path: Path) -> float:
            start = time.perf_counter()
            rows = spark.read.format("delta").load(str(source)).coalesce(1)
            rows.sortWithinPartitions(*keys).write.format("delta").save(str(path))
            return time.perf_counter() - start

        return make

    def ours(path: Path) -> float:
        copy_table(spark, source, path)
        own = replace(plan_for(spark, learned, path), target_file_rows=len(case.rows))
        start = time.perf_counter()
        pipeline.apply(spark, str(path), own, force=True)
        return time.perf_counter() - start

    z_order = _interleaved(spark, case.columns)
    return {"stored": copy, "lexical": ordered(*case.columns), "zorder": ordered(z_order), OURS: ours}


def _interleaved(spark: SparkSession, columns: Sequence[str]) -> Column:
    """All bits of 32-bit integers that are not negative, interleaved, a null as 0: Delta's own expression."""
    from pyspark.sql import functions as F
    from pyspark.sql.classic.column import Column

    jvm: Any = spark._jvm
    values = jvm.PythonUtils.toSeq([F.col(name)._jc for name in columns])
    return Column(jvm.org.apache.spark.sql.delta.skipping.MultiDimClusteringFunctions.interleave_bits(values))


def _log(case: _Table, asked: Mapping[str, Sequence[int]], rng: np.random.Generator) -> list[dict[str, object]]:
    """The case's point queries, equally often, for other values than those ``asked`` later."""
    statements = [
        f"SELECT {read} FROM {case.name} WHERE {column} = {value}"
        for read, column in case.queries
        for value in _values(case.rows[column], TRAIN // len(case.queries), rng)
        if value not in asked[column]
    ]
    order = rng.permutation(len(statements))
    return [
        {"statement": statements[i], "timestamp": f"2026-01-05T{n // 60 % 24:02d}:{n % 60:02d}:00Z"}
        for n, i in enumerate(order)
    ]


def _values(column: pa.ChunkedArray, count: int, rng: np.random.Generator) -> Sequence[int]:
    """Values of rows from the middle half of the column's range: outliers are too easy to skip."""
    values = np.sort(column.drop_null().to_numpy())
    middle = values[len(values) // 4 : len(values) * 3 // 4]
    return [int(value) for value in rng.choice(middle, count)]


def _live(path: Path) -> list[Path]:
    from deltalake import DeltaTable

    return [Path(uri) for uri in DeltaTable(str(path)).file_uris()]


WORKLOAD = Workload(
    "pages",
    "Parquet pages that point queries skip, and what sorting costs",
    run,
    peers={"default": ("stored",), "sort": ("lexical",), "lexicographic": ("lexical",), "zorder": ("zorder",)},
)
