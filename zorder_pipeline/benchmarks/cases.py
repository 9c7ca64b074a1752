"""The tables and seeded query logs of the layout benchmark, as arrays: no Spark, every row, exact zone maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from zorder_pipeline.layout.draft import SampledTable
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.ranges import Boxes, to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import ValueType, canonical_array
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.query_log.intake.ingest import Interpreter
from zorder_pipeline.query_log.intake.records import LogLine
from zorder_pipeline.query_log.statements.catalog import Catalog

from . import tables
from .data import orders_lineitem, write_lineitem
from .lookups import Filter, Shape, table_logs
from .selective import SELECTIVE_TEMPLATES
from .workloads import Record, two_logs

__all__ = ["CASES", "Case", "Loaded", "as_stored", "drill_downs", "drilled", "load", "made"]

STATISTICS = 32
"""Leading columns for which Delta keeps statistics."""
ASKED, TEMPLATES = 8, 8
SELECTIVITY = (1e-4, 8e-3)
"""Share of the rows that a drill-down keeps, if its columns were independent."""
HABITS, HABIT, KEPT = 2, 0.4, (0.5, 0.95)
"""Columns filtered out of habit, the share of query kinds that filter by each, and the share of the rows it keeps."""
POINT = 0.25
"""How often a column of many values is asked for one of them."""
ENOUGH = 5_000

Arrays = dict[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]]
Logs = tuple[list[Record], list[Record]]


@dataclass(frozen=True)
class Case:
    """A table and what is asked of it.

    Attributes:
        name: also the table's name in the statements.
        rows: makes the table in a scratch folder, at a scale (1.0 is the benchmark's own size).
        logs: a training log and a later one, from the table, their lengths and a seed.
    """

    name: str
    rows: Callable[[Path, float], pa.Table]
    logs: Callable[[pa.Table, int, int, int, float], Logs]


@dataclass(frozen=True)
class Loaded:
    """A case with one seed's logs, taken apart.

    Attributes:
        columns: canonical values and validity of every filtered column, shape (rows,) each.
        train, unseen: the logged queries; ``train_boxes`` and ``unseen_boxes`` what they ask for.
    """

    schema: TableSchema
    columns: Arrays
    rows: int
    train: tuple[LoggedQuery, ...]
    unseen: tuple[LoggedQuery, ...]
    train_boxes: tuple[Boxes, ...]
    unseen_boxes: tuple[Boxes, ...]

    def part(self, rows: npt.NDArray[np.int64]) -> Arrays:
        """Some rows of the columns."""
        return {name: (values[rows], valid[rows]) for name, (values, valid) in self.columns.items()}

    def estimator(self, queries: Sequence[Boxes]) -> Estimator:
        """Exact zone maps: over all rows."""
        return Estimator.build(self.columns, self.schema, queries, self.rows)

    def whole(self, sampled: SampledTable, files: int) -> SampledTable:
        """All rows in the codes that were learned from a sample."""
        fine = np.stack([encoding.fine(*self.columns[encoding.column]) for encoding in sampled.encodings])
        return SampledTable(sampled.encodings, fine, self.rows / files, as_stored(self.rows, files), files)


def as_stored(rows: int, files: int) -> npt.NDArray[np.int32]:
    """The file of each row, shape (rows,), where files hold the rows as they come."""
    return (np.arange(rows) * files // rows).astype(np.int32)


def cases_named(names: Sequence[str], cases: Sequence[Case]) -> list[Case]:
    """Those of ``cases`` with these names; all of them where none are given."""
    return [case for case in cases if not names or case.name in names]


def made(
    cases: Sequence[Case], work: Path, scale: float, seeds: Sequence[int], progress: Callable[[str], None]
) -> Iterator[tuple[Case, pa.Table, int]]:
    """Each case with each seed, its table made once in the scratch folder ``work``."""
    for case in cases:
        progress(f"{case.name}: making the table")
        rows = case.rows(work, scale)
        for seed in seeds:
            yield case, rows, seed


def drill_downs(rows: pa.Table, seed: int) -> tuple[Shape, ...]:
    """Random kinds of queries by one to three of eight random columns each.

    Were columns independent, a query would keep at most about 1% of the rows; by columns that follow each other some
    keep ten times as much.

    Popular columns are asked more often, as in any log; and, as in any log of dashboards, many queries also carry
    filters that keep most rows, out of habit, on one of two further columns. What is asked follows from the seed, not
    from what any layout is good at.
    """
    rng = np.random.default_rng(seed)
    distinct = {
        name: len(rows.column(name).slice(0, 50_000).unique())
        for i, name in enumerate(rows.column_names)
        if i < STATISTICS and _min_max(rows.schema.field(i).type) and rows.column(name).null_count < 0.8 * len(rows)
    }
    usable = [name for name, count in distinct.items() if count >= 8]
    asked = [str(name) for name in rng.choice(usable, min(ASKED, len(usable) - HABITS), replace=False)]
    habits = [str(name) for name in rng.choice([n for n in usable if n not in asked], HABITS, replace=False)]
    popularity = 1 / np.arange(1, len(asked) + 1) ** 0.7
    popularity /= popularity.sum()
    shapes: list[Shape] = []
    while len(shapes) < TEMPLATES:
        count = min(len(asked), int(rng.choice([1, 2, 3], p=[0.3, 0.45, 0.25])))
        chosen = rng.choice(asked, count, replace=False, p=popularity).tolist()
        low, high = np.log(SELECTIVITY)
        shares = np.exp(rng.uniform(low, high) * rng.dirichlet(np.full(count, 3.0))).tolist()
        pairs = list(zip(chosen, shares, strict=True))
        points = [1 / distinct[name] > 0.3 * share or rng.random() < POINT for name, share in pairs]
        variety = np.prod([distinct[name] if point else ENOUGH for name, point in zip(chosen, points, strict=True)])
        if variety >= ENOUGH:  # two logs without a common statement are to be drawn
            found = [Filter(n, "point" if p else "range", share) for (n, share), p in zip(pairs, points, strict=True)]
            found += [Filter(name, "above", float(rng.uniform(*KEPT))) for name in habits if rng.random() < HABIT]
            shapes.append(Shape(f"drill_down_{len(shapes)}", float(rng.uniform(0.5, 2)), tuple(found)))
    return tuple(shapes)


def load(case: Case, rows: pa.Table, train: int, unseen: int, seed: int, scale: float = 1.0) -> Loaded:
    """Logs of ``seed`` on the table ``rows``, taken apart as ``zorder ingest`` does it."""
    names = [(field.name, spark_type(field.type)) for field in rows.schema]
    schema = TableSchema(
        tuple(
            Column(name, kind, delta_stats=i < STATISTICS and ValueType.parse(kind).delta_min_max)
            for i, (name, kind) in enumerate(names)
        )
    )
    interpreter = Interpreter(Catalog.of({case.name: case.name}, {case.name: schema}, {}, "spark"))
    first, later = (_queries(interpreter, log) for log in case.logs(rows, train, unseen, seed, scale))
    boxes = [tuple(to_boxes(query.predicate, schema, query.zone) for query in log) for log in (first, later)]
    used = sorted({item.column for log in boxes for query in log for box in query for item in box})
    columns = {name: canonical_array(rows.column(name), ValueType.parse(dict(names)[name])) for name in used}
    return Loaded(schema, columns, len(rows), first, later, boxes[0], boxes[1])


def _queries(interpreter: Interpreter, log: Sequence[Record]) -> tuple[LoggedQuery, ...]:
    found: list[LoggedQuery] = []
    for number, record in enumerate(log):
        moment = int(datetime.fromisoformat(record["timestamp"]).timestamp() * 1e6)
        scans = interpreter.one(LogLine("log", number, record["statement"], timestamp=moment))
        if not isinstance(scans, list):
            raise ValueError(f"statement {record['statement']!r} of the benchmark's own log is {scans.reason}")
        found += scans
    return tuple(found)


def _drilled(rows: pa.Table, name: str, train: int, unseen: int, seed: int) -> Logs:
    return table_logs(rows, name, train, unseen, seed, drill_downs(rows, seed))


def drilled(name: str, rows: Callable[[Path, float], pa.Table]) -> Case:
    """A table of which random drill-downs are asked."""
    return Case(name, rows, lambda table, train, unseen, seed, _: _drilled(table, name, train, unseen, seed))


def _lineitem(folder: Path, scale: float) -> pa.Table:
    rows = pq.read_table(write_lineitem(folder, 0.1 * scale)[0])
    plain = [pa.field(f.name, pa.string()) if pa.types.is_string_view(f.type) else f for f in rows.schema]
    return rows.cast(pa.schema(plain))  # views cannot be taken from everywhere yet


def _orders_lineitem(folder: Path, scale: float) -> pa.Table:
    return pq.read_table(orders_lineitem(folder, 0.1 * scale))


CASES: tuple[Case, ...] = (
    Case(
        "lineitem",
        _lineitem,
        lambda _, train, unseen, seed, scale: two_logs(train, unseen, seed, SELECTIVE_TEMPLATES, scale=0.1 * scale),
    ),
    drilled("orders_lineitem", _orders_lineitem),
    drilled("skewed", lambda _, scale: tables.skewed(int(400_000 * scale), 7)),
    drilled("wide", lambda _, scale: tables.wide(int(300_000 * scale), 7)),
    drilled("flights", lambda _, scale: tables.flights(int(336_000 * scale), 7)),
    drilled("taxi", lambda _, scale: tables.taxi(int(400_000 * scale), 7)),
)
"""TPC-H lineitem with drill-downs in the manner of its own queries; random drill-downs on the other tables."""

_TYPES: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_int32, "int"),
    (pa.types.is_int64, "bigint"),
    (pa.types.is_float64, "double"),
    (pa.types.is_date, "date"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_string_view, "string"),
)


def spark_type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    return next(name for fits, name in _TYPES if fits(kind))


def _min_max(kind: pa.DataType) -> bool:
    return ValueType.parse(spark_type(kind)).delta_min_max
