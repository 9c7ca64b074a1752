"""How long the workload analysis takes: 60 candidates, 2,000 queries, a sample of 200,000 rows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np

from zorder_pipeline.features.sample import Sample, SampleColumn
from zorder_pipeline.features.select import analyse
from zorder_pipeline.model.predicate import And, Comparison, Literal
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.workload import LoggedQuery

from .harness import OURS, Options, Outcome, Progress, Workload

__all__ = ["WORKLOAD"]

COLUMNS = 60
OPS = ("=", "<", ">", ">=", "between")


def run(options: Options, progress: Progress) -> Sequence[Outcome]:
    """Seconds of one analysis per seed; half of the columns are of few values, a third follow another one."""
    rows, queries = (50_000, 500) if options.quick else (200_000, 2000)
    return options.noted(o for seed in options.seeds for o in _seed(seed, rows, queries, progress))


def _seed(seed: int, rows: int, queries: int, progress: Progress) -> Iterator[Outcome]:
    rng = np.random.default_rng(seed)
    sample, schema = _sample(rng, rows)
    log = _log(rng, queries, [column.name for column in schema.columns])
    progress(f"seed {seed}: {COLUMNS} columns, {queries} queries, {rows} rows")
    started = time.perf_counter()
    found = analyse(log, schema, sample)
    seconds = time.perf_counter() - started
    figures = {"rows": rows, "queries": queries, "edges": len(found.edges), "primary": len(found.primary)}
    yield Outcome(
        OURS, f"{COLUMNS} columns, {queries:,} queries, {rows:,} rows", seed, {}, {"analysis": seconds}, figures
    )


def _sample(rng: np.random.Generator, rows: int) -> tuple[Sample, TableSchema]:
    columns: dict[str, SampleColumn] = {}
    schema, numbers = [], list[np.ndarray]()
    for i in range(COLUMNS):
        values = rng.integers(0, 10**6 if i % 2 else 50, rows)
        if i % 3 == 2:
            values = numbers[i - 2] * 2 + rng.integers(0, 2, rows)
        numbers.append(values)
        if i % 10 == 9:
            values = np.array([f"v{value:07d}" for value in values], dtype=object)
        columns[f"c{i}"] = SampleColumn(values, rng.random(rows) > (0.1 if i % 4 else 0.0))
        schema.append(Column(f"c{i}", "string" if i % 10 == 9 else "bigint"))
    file = np.sort(rng.integers(0, 500, rows)).astype(np.int32)
    return Sample(columns, file, rows, rows * 100), TableSchema(tuple(schema))


def _log(rng: np.random.Generator, queries: int, names: Sequence[str]) -> list[LoggedQuery]:
    found = []
    for i in range(queries):
        parts = []
        for name in rng.choice(names, rng.integers(1, 5), replace=False):
            text = int(name[1:]) % 10 == 9
            op = str(rng.choice(OPS))
            low = int(rng.integers(0, 10**6))
            kind = "string" if text else "number"
            values = [f"v{v:07d}" if text else str(v) for v in ([low, low + 100] if op == "between" else [low])]
            parts.append(Comparison(str(name), op, tuple(Literal(kind, value) for value in values)))
        found.append(LoggedQuery("t", And(tuple(parts)), timestamp=i * 1_000_000))
    return found


WORKLOAD = Workload("features", "the workload analysis of one table, seconds", run, scaled=False)
