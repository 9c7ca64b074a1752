"""Is the cost of a relayout foretold? ``zorder calibrate``, then twenty relayouts of other sizes by other columns.

Each run rewrites a fresh copy of some of the table's files; its cost is foretold before, by the calibrated model and,
for comparison, by the assumptions alone. Nothing of the runs goes into the fit. Costs are wall-clock seconds times
cores, so run it on a quiet machine: what else runs there is in the measurement.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .data import lineitem_table
from .harness import OURS, Options, Outcome, Progress, Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.gate.regression import Estimate
    from zorder_pipeline.model.plan import Plan

__all__ = ["WORKLOAD"]

SCALE, QUICK_SCALE, FILES = 0.6, 0.1, 48
RUNS, QUICK_RUNS = 20, 5
KEYS = (
    ("l_shipdate",),
    ("l_partkey", "l_shipdate"),
    ("l_suppkey", "l_extendedprice", "l_receiptdate"),
    ("l_shipmode", "l_quantity", "l_partkey", "l_commitdate"),
    ("l_extendedprice", "l_shipdate", "l_discount", "l_suppkey", "l_orderkey"),
)
BITS = 12


def run(options: Options, progress: Progress) -> list[Outcome]:
    """See `Workload`; a seed is a calibration and its runs."""
    from zorder_pipeline import pipeline
    from zorder_pipeline.spark import session

    spark = session()
    source = options.work / "costs" / "lineitem"
    scale = options.scale or (QUICK_SCALE if options.quick else SCALE)
    lineitem_table(spark, source, scale, FILES)
    plans = [pipeline.layout_by_hand(spark, str(source), dict.fromkeys(key, max(1, BITS // len(key)))) for key in KEYS]
    outcomes: list[Outcome] = []
    for seed in options.seeds:
        outcomes += options.noted(_one(spark, source, plans, seed, QUICK_RUNS if options.quick else RUNS, progress))
    return outcomes


def _one(
    spark: SparkSession, source: Path, plans: list[Plan], seed: int, runs: int, progress: Progress
) -> list[Outcome]:
    from zorder_pipeline import pipeline
    from zorder_pipeline.gate.cost import CostModel
    from zorder_pipeline.pipeline.costs import relayout_work
    from zorder_pipeline.relayout.snapshot import open_table

    state, path = source.parent / f"state{seed}", source.parent / "copy"
    shutil.rmtree(state, ignore_errors=True)
    model, timings = pipeline.calibrate(spark, str(source), str(state), progress=progress)
    snapshot = open_table(spark, str(source))
    rng, cores = np.random.default_rng(seed), spark.sparkContext.defaultParallelism
    told: dict[str, list[Estimate]] = {OURS: [], "assumed": []}
    measured: list[float] = []
    for number in range(runs):
        files = snapshot.files().path
        some = rng.choice(len(files), int(rng.integers(len(files) // 8, len(files) + 1)), replace=False)
        shutil.rmtree(path, ignore_errors=True)
        snapshot.read_files(files[np.sort(some)].tolist()).write.format("delta").save(str(path))
        copy = open_table(spark, str(path))
        plan = replace(plans[int(rng.integers(len(plans)))], table=copy.location, table_id=copy.table_id)
        plan = replace(plan, target_file_rows=max(1, round(plan.target_file_rows * float(rng.uniform(0.4, 1.5)))))
        preview = pipeline.apply(spark, str(path), plan, force=True, dry_run=True)
        work = relayout_work(copy, plan, preview)
        told[OURS].append(model.relayout(work, snapshot.table_id))
        told["assumed"].append(CostModel().relayout(work, snapshot.table_id))
        done = pipeline.apply(spark, str(path), plan, force=True)
        measured.append(done.seconds * cores)
        mine = told[OURS][-1]
        progress(
            f"run {number + 1} of {runs}: {work.bytes / 1e6:.1f} MB by {work.features} columns took {measured[-1]:.1f} "
            f"core-seconds, foretold {mine.expected:.1f} ({mine.low:.1f} to {mine.high:.1f})"
        )
    shutil.rmtree(path, ignore_errors=True)
    shutil.rmtree(state, ignore_errors=True)
    fit = model.to_json() | {"noise": model.relayout_fit.noise, "timings": len(timings)}
    labels = {OURS: "calibrated", "assumed": "assumptions alone"}
    return [_outcome(name, labels[name], seed, told[name], measured, fit if name == OURS else {}) for name in told]


def _outcome(
    name: str, label: str, seed: int, told: list[Estimate], measured: list[float], fit: dict[str, float | int]
) -> Outcome:
    cost = np.array(measured)
    low, expected, high = (np.array([getattr(item, end) for item in told]) for end in ("low", "expected", "high"))
    inside, half = (low <= cost) & (cost <= high), (high - low) / 2 / expected
    figures = {**fit, "inside": int(inside.sum()), "runs": len(cost), "median_half_width": float(np.median(half))}
    figures |= {"measured": cost.tolist(), "expected": expected.tolist(), "low": low.tolist(), "high": high.tolist()}
    off = np.maximum(cost, expected) / np.minimum(cost, expected)
    return Outcome(name, label, seed, {"inside": inside.astype(float), "half_width": half, "off": off}, figures=figures)


WORKLOAD = Workload("costs", "what relayouts cost, foretold after a calibration against measured", run)
