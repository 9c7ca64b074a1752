"""The layouts that ours is compared with, as plug-ins in one ordered tuple.

Each makes a new table at ``dest`` from the rows of ``source``, with about ``files`` files, and returns the seconds that
its own rewrite took; making the copy it starts from does not count. Delta's OPTIMIZE commands run at their best: files
of the size that gives the wanted count, and rows sorted inside the files by the curve, which is off by default.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import sqlglot
from sqlglot import exp

from .data import copy_table, live_bytes, session_conf, started
from .hudi import hudi
from .iceberg import NOT_INTERLEAVED, iceberg_sort, iceberg_zorder
from .workloads import LITERAL, Record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "NAMED",
    "NOT_RUN",
    "PEERS",
    "Measure",
    "Peer",
    "Prepare",
    "asked_columns",
    "frequent_columns",
    "liquid",
    "optimize_conf",
    "peers_named",
    "sort",
    "stored",
    "zorder",
]

Measure = Callable[[str], float]
"""Mean rows that the training queries read on the table at a path."""
MAX_SORT_CANDIDATES = 3


class Prepare(Protocol):
    """Makes a peer's layout; returns the seconds of the rewrite."""

    def __call__(
        self, spark: SparkSession, source: str, dest: str, columns: Sequence[str], files: int, measure: Measure | None
    ) -> float: ...


@dataclass(frozen=True)
class Peer:
    """A layout to compare with.

    Attributes:
        name: of the contender; `NAMED` says by which names it is asked for.
        prepare: see `Prepare`.
        columns: how many of the most frequent columns it is given.
        label: for tables that people read.
        refused: beginnings of the names of the types it does not take; it is given the next columns instead.
    """

    name: str
    prepare: Prepare
    columns: int
    label: str
    refused: tuple[str, ...] = ()

    def given(self, asked: Mapping[str, str]) -> list[str]:
        """Of the columns that are asked by, as `asked_columns` tells them, those that it is to lay the table by.

        >>> peers_named(["iceberg-zorder2"])[0].given(
        ...     {"price": "decimal(15,2)", "day": "date", "part": "int", "store": "int"}
        ... )
        ['day', 'part']
        """
        usable = [column for column, type_name in asked.items() if not type_name.startswith(self.refused)]
        return usable[: self.columns]


def stored(
    spark: SparkSession, source: str, dest: str, columns: Sequence[str] = (), files: int = 0, measure: object = None
) -> float:
    """The rows as they arrived: a plain copy without a shuffle; its seconds are the unit of the other rewrites."""
    del columns, files, measure
    start = started()
    copy_table(spark, source, dest)
    return time.perf_counter() - start


def sort(
    spark: SparkSession, source: str, dest: str, columns: Sequence[str], files: int, measure: Measure | None = None
) -> float:
    """The best sort by one of the first three columns: each is tried, the training queries' rows decide.

    More are not, as each is a rewrite of the table. Without ``measure`` the first column is taken. The seconds are
    those of the one winning rewrite.
    """
    times: dict[str, float] = {}
    rows: dict[str, float] = {}
    candidates = columns[: MAX_SORT_CANDIDATES if measure else 1]
    for column in candidates:
        path = f"{dest}-by-{column}/{Path(dest).name}"
        times[column] = _sorted_copy(spark, source, path, column, files)
        rows[column] = measure(path) if measure else 0.0
    best = min(candidates, key=lambda column: rows[column])
    shutil.rmtree(dest, ignore_errors=True)
    Path(dest).parent.mkdir(parents=True, exist_ok=True)
    shutil.move(f"{dest}-by-{best}/{Path(dest).name}", dest)
    for column in candidates:
        shutil.rmtree(f"{dest}-by-{column}", ignore_errors=True)
    return times[best]


def zorder(
    spark: SparkSession, source: str, dest: str, columns: Sequence[str], files: int, measure: object = None
) -> float:
    """Delta's OPTIMIZE ZORDER BY ``columns`` on a copy."""
    del measure
    copy_table(spark, source, dest)
    by = ", ".join(_quoted(column) for column in columns)
    with session_conf(spark, optimize_conf(dest, files)):
        start = started()
        spark.sql(f"OPTIMIZE delta.{_quoted(dest)} ZORDER BY ({by})")
        return time.perf_counter() - start


def liquid(
    spark: SparkSession, source: str, dest: str, columns: Sequence[str], files: int, measure: object = None
) -> float:
    """Delta's liquid clustering: CLUSTER BY ``columns`` (four at most) on a copy, then OPTIMIZE FULL."""
    del measure
    copy_table(spark, source, dest)
    by = ", ".join(_quoted(column) for column in columns)
    spark.sql(f"ALTER TABLE delta.{_quoted(dest)} CLUSTER BY ({by})")
    with session_conf(spark, optimize_conf(dest, files)):
        start = started()
        spark.sql(f"OPTIMIZE delta.{_quoted(dest)} FULL")
        return time.perf_counter() - start


PEERS: tuple[Peer, ...] = (
    Peer("stored", stored, 0, "as stored"),
    Peer("sort", sort, MAX_SORT_CANDIDATES, f"best sort by one of the {MAX_SORT_CANDIDATES} most frequent columns"),
    Peer("zorder2", zorder, 2, "Delta ZORDER, 2 columns"),
    Peer("zorder", zorder, 3, "Delta ZORDER, 3 columns"),
    Peer("zorder4", zorder, 4, "Delta ZORDER, 4 columns"),
    Peer("liquid2", liquid, 2, "Delta liquid, 2 columns"),
    Peer("liquid", liquid, 3, "Delta liquid, 3 columns"),
    Peer("liquid4", liquid, 4, "Delta liquid, 4 columns"),
    Peer("iceberg-sort", iceberg_sort, 2, "Iceberg sort, 2 columns"),
    Peer("iceberg-zorder2", iceberg_zorder, 2, "Iceberg zorder, 2 columns", NOT_INTERLEAVED),
    Peer("iceberg-zorder", iceberg_zorder, 3, "Iceberg zorder, 3 columns", NOT_INTERLEAVED),
    Peer("iceberg-zorder4", iceberg_zorder, 4, "Iceberg zorder, 4 columns", NOT_INTERLEAVED),
    Peer("hudi-zorder2", hudi("z-order"), 2, "Hudi z-order, 2 columns"),
    Peer("hudi-zorder", hudi("z-order"), 3, "Hudi z-order, 3 columns"),
    Peer("hudi-hilbert2", hudi("hilbert"), 2, "Hudi Hilbert, 2 columns"),
    Peer("hudi-hilbert", hudi("hilbert"), 3, "Hudi Hilbert, 3 columns"),
)
NAMED: dict[str, tuple[str, ...]] = {
    "default": ("stored",),
    **{peer.name: (peer.name,) for peer in PEERS if peer.name[-1].isdigit() or peer.name.endswith("sort")},
    **{f"{kind}3": (kind,) for kind in ("zorder", "liquid", "iceberg-zorder", "hudi-zorder", "hudi-hilbert")},
    **{kind: (kind,) for kind in ("zorder", "liquid")},
    **{kind: tuple(peer.name for peer in PEERS if peer.name.startswith(kind)) for kind in ("iceberg", "hudi")},
}
"""The peers by the names of ``--against``; those that say no number of columns are given three."""
NOT_RUN: tuple[tuple[str, str], ...] = (
    ("Qbeast", "its runtime for Spark cannot be fetched from Maven Central here"),
    (
        "learned bit allocation (Gao et al.), qd-tree, a BMTree-style piecewise curve",
        "no shipped system has them; see workload layout",
    ),
    ("Databricks' predictive optimization", "a paid service, not in open-source Delta"),
)
"""What the issue asks for and the benchmark does not run, each with the reason; the report names them."""
MOST_ASKED = 8
ANYWHERE = ("'%", "'_")
"""How the literal of a pattern that may match anywhere in a value begins."""
QUICK = ("stored", "sort", "zorder", "liquid")


def peers_named(names: Sequence[str]) -> tuple[Peer, ...]:
    """The peers called ``names``, in the order of `PEERS`."""
    return tuple(peer for peer in PEERS if peer.name in names)


def asked_columns(spark: SparkSession, source: Path, log: Sequence[Record]) -> dict[str, str]:
    """Types of the columns that a log asks a table by, the most frequent first; a peer takes the first it can use."""
    types = dict(spark.read.format("delta").load(str(source)).dtypes)
    columns = frequent_columns([record["statement"] for record in log], MOST_ASKED)
    return {column: types.get(column, "") for column in columns}


def frequent_columns(statements: Sequence[str], k: int = 3, dialect: str = "spark") -> list[str]:
    """The ``k`` columns that most statements compare with a constant, as a person would choose them from the log.

    A column counts once per statement; ties go by name. ``LIKE '%x%'``, by which no order of a column skips, and
    statements that sqlglot cannot parse do not count.

    >>> frequent_columns(["SELECT 1 FROM t WHERE a = 1 AND b > c", "SELECT 1 FROM t WHERE a IN (1, 2) OR d > 2"], 2)
    ['a', 'd']
    """
    forms: Counter[str] = Counter()
    example: dict[str, str] = {}
    for statement in statements:  # one parse per form: literals do not matter here
        form = LITERAL.sub(lambda found: "?%" if found[0].startswith(ANYWHERE) else "?", statement)
        forms[form] += 1
        example.setdefault(form, statement)
    counts: Counter[str] = Counter()
    for form, times in forms.items():
        for column in _compared(example[form], dialect):
            counts[column] += times
    return [column for column, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:k]]


def _compared(statement: str, dialect: str) -> set[str]:
    try:
        tree = sqlglot.parse_one(statement, read=dialect)
    except sqlglot.errors.SqlglotError:
        return set()
    found = set()
    for where in tree.find_all(exp.Where):
        for node in where.find_all(exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Is, exp.Like):
            column, *others = [node.this, *(node.args.get(key) for key in ("expression", "low", "high", "query"))]
            constant = not any(isinstance(x, exp.Expression) and x.find(exp.Column, exp.Select) for x in others)
            pattern = node.expression if isinstance(node, exp.Like) else None
            if isinstance(pattern, exp.Literal) and pattern.name.startswith(("%", "_")):
                continue
            if isinstance(column, exp.Column) and constant:
                found.add(column.name)
    return found


def _sorted_copy(spark: SparkSession, source: str, path: str, column: str, files: int) -> float:
    from pyspark.sql import functions as F

    shutil.rmtree(path, ignore_errors=True)
    start = started()
    rows = spark.read.format("delta").load(source)
    # the noise spreads a frequent value over several files, as Delta's own ZORDER does
    noise = F.xxhash64(*rows.columns)
    ranged = rows.repartitionByRange(files, F.col(_quoted(column)), noise)
    ranged.sortWithinPartitions(F.col(_quoted(column))).write.format("delta").save(path)
    return time.perf_counter() - start


def optimize_conf(path: str, files: int) -> dict[str, str]:
    """Session settings under which OPTIMIZE makes about so many files and sorts the rows inside them."""
    # OPTIMIZE range-partitions into (bytes of the input // maxFileSize) files
    size = max(1, live_bytes(path) // files)
    return {
        "spark.databricks.delta.optimize.maxFileSize": str(size),
        "spark.databricks.delta.optimize.minFileSize": str(size),
        "spark.databricks.io.skipping.mdc.sortWithinFiles": "true",
        "spark.databricks.delta.optimize.zorder.fastInterleaveBits.enabled": "true",
    }


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
