"""Workloads that move: what scans and rewrites cost together, against those who know the future and who never change.

A log of 30,000 queries is replayed. Each policy pays for every query the share of the table that it
reads under the layout in force (a full scan of all columns costs 1), and for every change of layout what the gate's
cost model says of rewriting all of the table. All begin with the table as it was written. Assumed is that a rewrite is
done at once between two queries, that queries read all columns, and that no data comes in; the prices times 0.1 and 10
stand for cheaper and dearer rewrites, or for queries that read more or fewer columns. Ours does what a night does: it
learns from the last 200 queries with the code of `zorder_pipeline.layout`, and decides by `zorder_pipeline.gate.drift`,
four times in as many queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zorder_pipeline.gate.cost import GIGABYTE, CostModel, RelayoutWork, ScanWork
from zorder_pipeline.gate.drift import Drift, remembered

from .cases import CASES
from .drift_world import KINDS, World, draw_log
from .harness import OURS, Options, Outcome, Progress, Workload

__all__ = ["PRICES", "WORKLOAD", "hindsight", "offline_optimum", "price_of", "replay"]

Floats = npt.NDArray[np.float64]

QUERIES = 30_000
WINDOW = 200
LOOK = 50
"""Queries between two looks at the regret."""
LONG, LONG_QUERIES, LONG_EVERY = 4_000, 400, 4
"""Half-life, in queries, of the memory that every fourth window a layout for the longer run is learned from, and how
many of its queries are drawn for that."""
REGRET_LEFT = 0.5 ** (LOOK / 4_000)
"""Regret that is left after a look."""
REMEMBERED = 12
"""Rivals remembered besides the layouts in force."""
PRICES = (0.1, 0.3, 1.0, 3.0, 10.0)
TABLE_BYTES = 100 * GIGABYTE
SCALE, QUICK_SCALE = 0.25, 0.15
TABLES, QUICK_TABLES = ("flights", "taxi", "skewed", "wide"), ("flights", "taxi")
QUICK_KINDS = ("segments", "alternating")
LABELS = {
    OURS: "ours",
    "static": "best layout in hindsight, never changed",
    "first": "the first layout learned, never changed",
    "stored": "as stored, never changed",
    "greedy": "each segment's own layout, changed at once",
    "optimum": "offline optimum in hindsight (bound)",
}


def run(options: Options, progress: Progress) -> list[Outcome]:
    """See `Workload`; a case is a kind of log at a price, over all tables and seeds."""
    scale = options.scale or (QUICK_SCALE if options.quick else SCALE)
    outcomes: list[Outcome] = []
    tables = QUICK_TABLES if options.quick else TABLES
    for case in (case for case in CASES if case.name in tables):
        rows = case.rows(options.work, scale)
        for seed in options.seeds:
            for kind in QUICK_KINDS if options.quick else KINDS:
                found = _one(rows, kind, case.name, seed, progress)
                outcomes += options.noted(outcome for outcome in found if options.wants(outcome.contender))
    return outcomes


def _one(rows: pa.Table, kind: str, table: str, seed: int, progress: Progress) -> Iterator[Outcome]:
    log = draw_log(rows, kind, QUERIES, seed)
    world = World.build(rows, log, seed)
    for price in PRICES:
        found = {OURS: replay(world, price)}
        found["static"], found["stored"], found["first"] = hindsight(world, price)
        found["greedy"] = greedy(world, price)
        found["optimum"] = offline_optimum(world, price)
        totals = {name: float(costs.sum()) for name, (costs, _) in found.items()}
        progress(
            f"{table}, {kind}, price x{price:g}: ours {totals[OURS]:,.0f} with {found[OURS][1]} changes, static "
            f"{totals['static']:,.0f}, optimum {totals['optimum']:,.0f}"
        )
        for name, (costs, changes) in found.items():
            yield Outcome(
                name,
                LABELS[name],
                seed,
                {"scans": costs},
                figures={"changes": changes, "layouts": len(world.specs)},
                case=f"{kind}, price x{price:g}",
                table=table,
            )


def price_of(world: World, price: float) -> Floats:
    """What going over to each layout costs, in full scans of the table, shape (layouts,)."""
    costs = CostModel()
    scan = costs.scans(ScanWork(TABLE_BYTES)).expected
    counts = [world.features(i) for i in range(len(world.specs))]
    each = {count: costs.relayout(RelayoutWork(TABLE_BYTES, count)).expected for count in set(counts)}
    return np.array([price * each[count] / scan for count in counts])


def replay(world: World, price: float) -> tuple[Floats, int]:
    """What ours pays in each window, and how many changes it makes.

    At every look the regret of the present layout decides. At the end of a window, and at each look of the first one, a
    layout is learned from the first three quarters of the last window and judged by the others; every fourth window one
    is learned from a longer memory.
    """
    paid: list[float] = []
    drift, known = Drift.begin(""), [0]
    for start in range(0, QUERIES, LOOK):
        end = start + LOOK
        fresh, part = [], {}
        if end < WINDOW or end % WINDOW == 0:
            window = np.arange(max(0, end - WINDOW), end)
            recent = world.learn(window, np.ones(len(window)))
            fresh.append(recent)
            unseen = window[len(window) * 3 // 4 :]
            scale = len(window) / len(unseen)
            part = {_name(recent): {_name(i): float(world.costs[i][unseen].sum()) * scale for i in (*known, recent)}}
        if end % (LONG_EVERY * WINDOW) == 0:
            fresh.append(_long_run(world, end))
        fresh = [layout for layout in dict.fromkeys(fresh) if layout not in known]
        prices = price_of(world, price)
        read = {_name(layout): float(world.costs[layout][start:end].sum()) for layout in known}
        paid.append(read[drift.real.present])
        costs = {_name(i): float(prices[i]) for i in (*known, *fresh) if i}
        drift = drift.after(read, costs, part, REGRET_LEFT)
        if (to := drift.due(costs)) is not None:
            paid[-1] += costs[to]
            drift = drift.changed(to, costs[to])
        names = remembered(drift, [_name(layout) for layout in (*known, *fresh)], list(map(_name, fresh)), REMEMBERED)
        known = sorted({0, *(int(name or 0) for name in names)})
    return np.array(paid).reshape(-1, WINDOW // LOOK).sum(axis=1), drift.real.changes


def hindsight(world: World, price: float) -> tuple[tuple[Floats, int], ...]:
    """What is paid for one layout throughout: the best of all for the whole log, the table's as stored, and the one
    learned from the first window.
    """
    everything = np.sort(np.random.default_rng(0).choice(len(world.log.boxes), 600, replace=False))
    world.learn(everything, np.ones(len(everything)))
    prices = price_of(world, price)
    prices[0] = 0.0
    costs = _by_window(world)
    first = world.learn(np.arange(WINDOW), np.ones(WINDOW))
    later = costs[first].copy()
    later[0] = costs[0][0] + prices[first]
    best = int(np.argmin(costs.sum(axis=1) + prices))
    chosen = costs[best].copy()
    chosen[0] += prices[best]
    return (chosen, int(best != 0)), (costs[0], 0), (later, 1)


def greedy(world: World, price: float) -> tuple[Floats, int]:
    """What is paid by who knows when a segment begins, and goes over at once to the layout best for it."""
    costs, prices = _by_window(world), price_of(world, price)
    edges = [*sorted({min(start // WINDOW, costs.shape[1] - 1) for start in world.log.starts}), costs.shape[1]]
    paid, present, changes = np.zeros(costs.shape[1]), 0, 0
    for begin, end in pairwise(edges):
        best = int(np.argmin(costs[:, begin:end].sum(axis=1)))
        paid[begin:end] = costs[best, begin:end]
        if best != present:
            paid[begin] += prices[best]
            present, changes = best, changes + 1
    return paid, changes


def offline_optimum(world: World, price: float) -> tuple[Floats, int]:
    """The least that can be paid with all layouts known from the start, by dynamic programming over windows."""
    costs, prices = _by_window(world), price_of(world, price)
    best = prices.copy()
    best[0] = 0.0
    came = np.zeros(costs.shape, dtype=np.int64)
    for window in range(costs.shape[1]):
        if window:
            cheapest = int(np.argmin(best))
            came[:, window] = np.where(best[cheapest] + prices < best, cheapest, np.arange(len(best)))
            best = np.minimum(best, best[cheapest] + prices)
        best = best + costs[:, window]
    layout, paid, changes = int(np.argmin(best)), np.zeros(costs.shape[1]), 0
    for window in range(costs.shape[1] - 1, -1, -1):
        paid[window] = costs[layout, window]
        before = int(came[layout, window]) if window else 0
        if before != layout:
            paid[window] += prices[layout]
            changes += 1
        layout = before
    return paid, changes


def _by_window(world: World) -> Floats:
    return np.stack([costs.reshape(-1, WINDOW).sum(axis=1) for costs in world.costs])


def _name(layout: int) -> str:
    return str(layout) if layout else ""


def _long_run(world: World, end: int) -> int:
    """The layout for the longer run, from queries of the past, older ones less likely."""
    odds = 0.5 ** ((end - 1 - np.arange(end)) / LONG)
    rng = np.random.default_rng(end)
    chosen = np.sort(rng.choice(end, min(LONG_QUERIES, end), replace=False, p=odds / odds.sum()))
    return world.learn(chosen, np.ones(len(chosen)))


WORKLOAD = Workload(
    "drift",
    "scans and rewrites together, in full scans per window of 200 queries",
    run,
    peers={"default": ("stored",), **{name: (name,) for name in LABELS if name not in (OURS, "stored")}},
)
