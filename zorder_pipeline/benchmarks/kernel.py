"""What an evaluated layout costs, in units of ``numpy.argsort`` of the sample's keys, and what a search adds to it.

The bar: 600 layouts over a sample of 100,000 rows, asked 500 queries, take at most twice as long as 600 sorts of that
sample's 64-bit keys, sampler and storage together at most as much again, all on one thread; and evaluation is linear in
rows and in queries.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from zorder_pipeline.layout.baselines import warm_starts
from zorder_pipeline.layout.draft import Draft, SampledTable
from zorder_pipeline.layout.search import SearchSettings, search
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.ranges import Boxes
from zorder_pipeline.model.schema import TableSchema

from .cases import Arrays, Case, as_stored, load
from .harness import OURS, Options, Outcome, Progress, Workload
from .lookups import table_logs
from .tables import skewed

__all__ = ["WORKLOAD", "exponent", "straight_line"]

LAYOUTS, ROWS, QUERIES, FILES = 600, 100_000, 500, 500
KEY_BITS = 63
ROUNDS = 20
"""The two sides take turns so often, so that a busy machine slows both."""
GRID = (0.25, 0.5, 1, 2)
"""Shares of the rows, and then of the queries, at which an evaluation is timed."""
GRID_LAYOUTS = 5
SAMPLERS: tuple[Literal["moves", "cma-es", "tpe"], ...] = ("moves", "cma-es", "tpe")
LABELS = {
    OURS: "layouts evaluated",
    "argsort": "numpy.argsort of the keys",
    "moves": "search: annealed moves (default)",
    "cma-es": "search: half CMA-ES",
    "tpe": "search: half TPE",
    "journal": "storage: journal file",
    "sqlite": "storage: SQLite",
}


def run(options: Options, progress: Progress) -> Sequence[Outcome]:
    """Seconds of each part for 600 layouts; the ratio, the grid of seconds and its exponents are among the figures."""
    return options.noted(outcome for seed in options.seeds for outcome in _seed(seed, options, progress))


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The power of the size with which time grows, by least squares on logarithms: 1 is linear.

    >>> round(exponent([100, 200, 400], [0.1, 0.2, 0.4]), 6)
    1.0
    """
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def straight_line(seconds: Mapping[int, float]) -> dict[str, float]:
    """Least-squares line through seconds by size: milliseconds fixed and per thousand, and R² (1: exactly linear).

    >>> {name: round(value, 6) for name, value in straight_line({1000: 0.003, 2000: 0.005, 4000: 0.009}).items()}
    {'fixed_ms': 1.0, 'ms_per_thousand': 2.0, 'r2': 1.0}
    """
    sizes, milliseconds = np.array(list(seconds)) / 1000, np.array(list(seconds.values())) * 1000
    slope, fixed = np.polyfit(sizes, milliseconds, 1)
    r2 = np.corrcoef(sizes, milliseconds)[0, 1] ** 2
    return {"fixed_ms": float(fixed), "ms_per_thousand": float(slope), "r2": float(r2)}


def _seed(seed: int, options: Options, progress: Progress) -> Iterator[Outcome]:
    share = options.scale or (0.1 if options.quick else 1.0)
    rows, queries, files = int(ROWS * share), max(20, int(QUERIES * share)), max(8, int(FILES * share))
    progress(f"seed {seed}: a sample of {2 * rows:,} rows and {2 * queries:,} queries")
    case = Case(
        "skewed",
        lambda _, scale: skewed(int(scale), 7),
        lambda table, train, unseen, seed, _: table_logs(table, "skewed", train, unseen, seed),
    )
    loaded = load(case, skewed(2 * rows, 7), 2 * queries, 1, seed)
    sample = _Sample(loaded.columns, loaded.schema, loaded.train_boxes, seed)
    table, estimator = sample.part(rows, queries, files)
    drafts, searched = _searched(table, estimator, seed, options.work / f"kernel-{seed}")
    layouts, sorts = _against_argsort(table, estimator, drafts)
    by_rows, by_queries = _grid(sample, drafts, rows, queries, files)
    figures: dict[str, Any] = {
        "rows": rows,
        "queries": queries,
        "files": files,
        "features": len(table.encodings),
        "layouts_to_argsort": layouts / sorts,
        "sampler_and_storage_to_argsort": (searched["moves"] + searched["journal"]) / sorts,
        "milliseconds_by_rows": {str(n): 1000 * s for n, s in by_rows.items()},
        "milliseconds_by_queries": {str(n): 1000 * s for n, s in by_queries.items()},
        "exponent_of_rows": exponent(list(by_rows), list(by_rows.values())),
        "exponent_of_queries": exponent(list(by_queries), list(by_queries.values())),
        "straight_line_of_rows": straight_line(by_rows),
        "straight_line_of_queries": straight_line(by_queries),
    }
    progress(
        f"seed {seed}: {LAYOUTS} layouts take {layouts / sorts:.2f} times as long as {LAYOUTS} sorts (bar 2), sampler "
        f"and storage {figures['sampler_and_storage_to_argsort']:.2f} times (bar 2)"
    )
    for name, cells in (("rows", by_rows), ("queries", by_queries)):
        told = ", ".join(f"{n:,}: {1000 * s:.2f}" for n, s in cells.items())
        line = figures[f"straight_line_of_{name}"]
        progress(
            f"seed {seed}: ms by {name}: {told}; exponent {figures[f'exponent_of_{name}']:.2f}, straight line "
            f"{line['fixed_ms']:.2f} + {line['ms_per_thousand']:.4f} per 1,000 (R² {line['r2']:.3f})"
        )
    for name, seconds in ({OURS: layouts, "argsort": sorts} | searched).items():
        kept = figures if name == OURS else {"to_argsort": seconds / sorts}
        yield Outcome(name, LABELS[name], seed, {}, {f"{LAYOUTS} trials": seconds}, kept)


class _Sample:
    """Rows and queries, of which any part can be had as a table to be laid out."""

    def __init__(self, columns: Arrays, schema: TableSchema, boxes: Sequence[Boxes], seed: int) -> None:
        self._columns, self._schema, self._boxes = columns, schema, boxes
        rows = len(next(iter(columns.values()))[0])
        self._order = np.random.default_rng(seed).permutation(rows)
        self._features = [c.name for c in schema.columns if c.name in columns and c.delta_stats]

    def part(self, rows: int, queries: int, files: int) -> tuple[SampledTable, Estimator]:
        chosen = np.sort(self._order[:rows])
        columns = {name: (values[chosen], valid[chosen]) for name, (values, valid) in self._columns.items()}
        types = {column.name: column.type for column in self._schema.columns}
        stored = as_stored(rows, files)
        table = SampledTable.build(columns, types, self._features, stored, files)
        return table, Estimator.build(columns, self._schema, self._boxes[:queries], rows)


def _searched(table: SampledTable, estimator: Estimator, seed: int, work: Path) -> tuple[list[Draft], dict[str, float]]:
    """Layouts as a search tries them, and seconds that sampler or storage add to as many trials."""
    work.mkdir(parents=True, exist_ok=True)
    weights, warm = np.ones(estimator.queries), warm_starts(table)
    added: dict[str, float] = {}
    drafts: list[Draft] = []
    search(table, estimator, weights, warm, SearchSettings(40, seed))  # compiles
    for sampler in SAMPLERS:
        found = search(table, estimator, weights, warm, SearchSettings(LAYOUTS, seed, sampler=sampler))
        count = len(found.history)
        added[sampler] = (found.seconds - found.evaluation_seconds) * LAYOUTS / count
        drafts += [Draft(tuple(trial.user_attrs["order"])) for trial in found.study.get_trials(deepcopy=False)]
    for name, storage in (("journal", str(work / "study.log")), ("sqlite", f"sqlite:///{work / 'study.db'}")):
        fresh = f"{time.time_ns()}"
        settings = SearchSettings(LAYOUTS, seed, storage=storage, study=fresh)
        found = search(table, estimator, weights, warm, settings)
        added[name] = found.storage_seconds * LAYOUTS / len(found.history)
    return [drafts[i * len(drafts) // LAYOUTS] for i in range(LAYOUTS)], added


def _against_argsort(table: SampledTable, estimator: Estimator, drafts: Sequence[Draft]) -> tuple[float, float]:
    """Seconds for all layouts, and for as many sorts of 64-bit keys, measured in turns."""
    features = len(table.encodings)
    keys = table.keys(Draft(tuple(i % features for i in range(KEY_BITS))))
    layouts = sorts = 0.0
    for turn in range(ROUNDS):
        mine = drafts[turn::ROUNDS]
        layouts += _seconds_of(table, estimator, mine)
        started = time.perf_counter()
        for _ in mine:
            np.argsort(keys)
        sorts += time.perf_counter() - started
    return layouts, sorts


def _grid(
    sample: _Sample, drafts: Sequence[Draft], rows: int, queries: int, files: int
) -> tuple[dict[int, float], dict[int, float]]:
    """Seconds per layout by rows and by queries, the least of several turns through the whole grid."""
    cells: dict[tuple[str, int], tuple[SampledTable, Estimator]] = {}
    for part in GRID:
        cells["rows", int(rows * part)] = sample.part(int(rows * part), queries, files)
        cells["queries", int(queries * part)] = sample.part(rows, int(queries * part), files)
    some = [drafts[i] for i in np.linspace(0, len(drafts) - 1, GRID_LAYOUTS).astype(int)]
    least = dict.fromkeys(cells, float("inf"))
    for _ in range(ROUNDS):
        for cell, (table, estimator) in cells.items():
            least[cell] = min(least[cell], _seconds_of(table, estimator, some) / len(some))
    by_rows = {n: seconds for (kind, n), seconds in least.items() if kind == "rows"}
    return by_rows, {n: seconds for (kind, n), seconds in least.items() if kind == "queries"}


def _seconds_of(table: SampledTable, estimator: Estimator, drafts: Sequence[Draft]) -> float:
    started = time.perf_counter()
    for draft in drafts:
        table.rows_read(draft, estimator)
    return time.perf_counter() - started


WORKLOAD = Workload("kernel", "seconds per evaluated layout, beside sorting the sample's keys", run)
