"""How well scan volume is foretold: bytes and rows that queries read after a relayout, against what was promised.

Real Delta tables, real relayouts, real footers. First five workloads with learned layouts (what the promise said of its
own queries, which had no part in learning), then the grid of seed 004's table 5.1: a layout by 0 to 3 Z features and 0
to 12 predicates as one-bit features on TPC-H lineitem. The error is the seed's: the larger of estimate and measurement
divided by the smaller, so 1 is perfect.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.layout.blocks import blocks_of
from zorder_pipeline.layout.encoding import rank_encoding
from zorder_pipeline.layout.interleave import round_robin
from zorder_pipeline.layout.placement import files_under
from zorder_pipeline.layout.promise import whole_table_shares
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.key_spec import KeySpec

from .cases import CASES, Case
from .data import delta_table
from .harness import OURS, Options, Outcome, Progress, Workload
from .workloads import write_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.model.plan import Plan
    from zorder_pipeline.pipeline import TableAnalysis

__all__ = ["WORKLOAD"]

WORKLOADS = ("lineitem", "orders_lineitem", "skewed", "flights", "taxi")
QUERIES, FILES, TRIALS = 300, 64, 200
SCALE, QUICK_SCALE = 0.5, 0.1
SAMPLE = 50_000
Z, SOP = (0, 1, 2, 3), (0, 4, 8, 12)
Z_COLUMNS = ("l_partkey", "l_shipdate", "l_suppkey")
PREDICATES = (
    *("l_extendedprice", "l_quantity", "l_discount", "l_orderkey", "l_receiptdate", "l_tax"),
    *("l_commitdate", "l_shipmode", "l_returnflag", "l_linenumber", "l_shipinstruct", "l_comment"),
)
MORE_BITS = 3
"""Bits of a key beyond those that number the files."""

Floats = npt.NDArray[np.float64]


def run(options: Options, progress: Progress) -> list[Outcome]:
    """See `Workload`; each workload and each cell of the grid is a line, ours is the worst of them."""
    from zorder_pipeline.spark import session

    spark = session()
    scale = options.scale or (QUICK_SCALE if options.quick else SCALE)
    outcomes: list[Outcome] = []
    for seed in options.seeds:
        found = []
        for case in CASES:
            if case.name in WORKLOADS:
                found += list(_workload(spark, case, scale, seed, options.work, progress))
        worst = {measure: np.array([max(f.per_query[measure][0] for f in found)]) for measure in found[0].per_query}
        outcomes += options.noted([Outcome(OURS, "worst of all", seed, worst), *found])
    return outcomes


def _workload(
    spark: SparkSession, case: Case, scale: float, seed: int, work: Path, progress: Progress
) -> Iterator[Outcome]:
    from zorder_pipeline import pipeline
    from zorder_pipeline.relayout.snapshot import open_table

    path, log = work / "volumes" / case.name, work / f"{case.name}.jsonl"
    rows = case.rows(work, scale)
    delta_table(spark, path, rows, FILES)
    write_log(case.logs(rows, QUERIES, 1, seed, scale)[0], log)
    snapshot = open_table(spark, str(path))
    settings = pipeline.LearnSettings(
        trials=TRIALS, seed=seed, sample_rows=SAMPLE, target_file_rows=max(1, rows.num_rows // FILES)
    )
    ingested = pipeline.ingest([str(log)], {snapshot.location: (snapshot, (case.name,))})
    analysis = pipeline.analyse(spark, snapshot, ingested, [snapshot.location], settings)
    chosen = blocks_of(analysis.queries).promise.queries.tolist()
    if case.name == "lineitem":
        yield from _grid(spark, analysis, chosen, seed, progress)
        delta_table(spark, path, rows, FILES)
        snapshot = open_table(spark, str(path))
        analysis = pipeline.analyse(spark, snapshot, ingested, [snapshot.location], settings)
    plan, _ = pipeline.learn_layout_for(analysis, settings)
    told = plan.promise
    estimate = (told.bytes_before - told.bytes_saved_per_query, told.after * rows.num_rows)
    outcome = _measured(spark, analysis, plan, chosen, estimate, case.name, seed)
    progress(f"{case.name}: bytes off by {outcome.per_query['error_bytes'][0]:.3f}, rows by "
             f"{outcome.per_query['error_rows'][0]:.3f}")  # fmt: skip
    shutil.rmtree(path)
    yield outcome


def _grid(
    spark: SparkSession, analysis: TableAnalysis, chosen: Sequence[int], seed: int, progress: Progress
) -> Iterator[Outcome]:
    """The cells of the seed's table, each a full relayout of the same table by a key made by hand."""
    from zorder_pipeline.features.sample import take_sample
    from zorder_pipeline.model.plan import Plan
    from zorder_pipeline.pipeline.learning.volumes import present_volumes, read_volumes

    snapshot, total = analysis.snapshot, analysis.sample.total_rows
    names = [column.name for column in snapshot.schema.columns]
    sample = take_sample(snapshot, names, rows=SAMPLE, seed=seed, total_rows=total)
    analysis = replace(analysis, sample=sample)
    rows = sample.total_rows // FILES
    boxes = [analysis.boxes[i] for i in chosen]
    estimator = Estimator.build(sample.arrays, snapshot.schema, boxes, sample.rows)
    empty = Plan(snapshot.location, snapshot.table_id, snapshot.schema.fingerprint, 0, None, "manual", rows)
    stored = present_volumes(snapshot, [analysis.queries[i] for i in chosen], boxes)
    for z in Z:
        for sop in SOP:
            name = f"Z {z}, SOP {sop}"
            if z == sop == 0:
                shares = whole_table_shares(estimator, sample.file, int(sample.file.max()) + 1, sample.stands_for)
                told = float(shares.mean()) * sample.total_rows
                errors = {"error_bytes": np.array([1.0]), "error_rows": np.array([_off(told, stored.rows.mean())])}
                yield Outcome(name, "as stored", seed, errors)
                continue
            plan = replace(empty, spec=_key(analysis, z, sop))
            assert plan.spec is not None
            file = files_under(plan.spec, sample.arrays, sample.rows / FILES).astype(np.int32)
            shares = whole_table_shares(estimator, file, int(file.max()) + 1, sample.stands_for)
            volumes = read_volumes(analysis, plan, chosen, shares, now=stored)
            assert volumes is not None
            estimate = (float(volumes.bytes_after.mean()), float(shares.mean()) * sample.total_rows)
            outcome = _measured(spark, analysis, plan, chosen, estimate, name, seed)
            progress(f"{name}: bytes off by {outcome.per_query['error_bytes'][0]:.3f}, rows by "
                     f"{outcome.per_query['error_rows'][0]:.3f}")  # fmt: skip
            yield outcome


def _key(analysis: TableAnalysis, z: int, sop: int) -> KeySpec:
    """Predicates as single bits (a column's values split at its median), before the interleaved bits of Z features."""
    sample = analysis.sample
    types = {column.name: column.type for column in analysis.snapshot.schema.columns}
    usable = [name for name in PREDICATES if name in sample.columns and name not in Z_COLUMNS[:z]]
    encodings = [rank_encoding(name, types[name], *sample.arrays[name]) for name in usable[:sop]]
    bits = [1] * len(encodings)
    total = max(1, int(np.ceil(np.log2(FILES))) + MORE_BITS)
    encodings += [rank_encoding(name, types[name], *sample.arrays[name]) for name in Z_COLUMNS[:z]]
    bits += [max(1, total // max(1, z))] * z
    features = tuple(encoding.feature(count) for encoding, count in zip(encodings, bits, strict=True))
    interleaved = [len(bits) - z + i for i in round_robin(bits[len(bits) - z :])] if z else []
    return KeySpec(features, (*range(len(bits) - z), *interleaved))


def _measured(
    spark: SparkSession,
    analysis: TableAnalysis,
    plan: Plan,
    chosen: Sequence[int],
    estimate: tuple[float, float],
    name: str,
    seed: int,
) -> Outcome:
    """Lay the table out and read its own statistics and footers."""
    from zorder_pipeline import pipeline
    from zorder_pipeline.pipeline.learning.volumes import present_volumes
    from zorder_pipeline.relayout.snapshot import open_table

    if plan.spec is not None:
        pipeline.apply(spark, plan.table, plan, force=True, full=True)
    after = open_table(spark, plan.table)
    read = present_volumes(after, [analysis.queries[i] for i in chosen], [analysis.boxes[i] for i in chosen])
    measured = (float(read.bytes.mean()), float(read.rows.mean()))
    errors = [_off(told, found) for told, found in zip(estimate, measured, strict=True)]
    figures: dict[str, Any] = {"estimated": estimate, "measured": measured}
    return Outcome(
        name, name, seed, {"error_bytes": np.array(errors[:1]), "error_rows": np.array(errors[1:])}, figures=figures
    )


def _off(told: float, found: float) -> float:
    return max(told, found) / max(1e-9, min(told, found))


WORKLOAD = Workload("volumes", "scan volume foretold against measured, as a factor (1 is perfect)", run)
