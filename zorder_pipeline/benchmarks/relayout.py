"""What a relayout costs: TPC-H lineitem rewritten by ours, ZORDER and liquid, in units of a plain copy of the table.

Every round copies the table, then runs each contender, in an order that changes from round to round, in one warm JVM
with a driver heap of 2 GB; all make the same number of files. Then a twentieth of new rows is appended and relaid
incrementally, and unseen queries are measured against a full relayout of the same rows; so they are after 200 nights
of new days. At last a table ten times as large is copied and relaid.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .appends import after_appends
from .data import copy_table, file_count, lineitem_table, plan_for, started
from .harness import OURS, Options, Outcome, Progress, Workload
from .peers import frequent_columns, liquid, sort, zorder
from .workloads import tpch_logs, write_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.model.plan import Plan
    from zorder_pipeline.pipeline import LearnSettings

__all__ = ["WORKLOAD"]

SCALE, QUICK_SCALE = 1.0, 0.1
FILES = 64
TABLE = "lineitem"
WARM = 2
"""Untimed rewrites by each contender first: after one alone, ours still takes a fifth longer than after two."""
TIMES = 10
NIGHTS, QUICK_NIGHTS = 200, 20
HEAP = "2g"
NEW = 0.05
COLUMNS = 3
PEERS = {
    "default": ("stored",),
    "sort": ("sort",),
    "zorder": ("zorder",),
    "zorder3": ("zorder",),
    "liquid": ("liquid",),
    "liquid3": ("liquid",),
    "ours-hash": ("ours-hash",),
    "appends": ("appends",),
    "larger": ("larger",),
}

Contender = tuple[str, str, Callable[[Path], float]]
"""Name, label, and what rewrites a table at a new path; returns its seconds without what it started from."""


def run(options: Options, progress: Progress) -> list[Outcome]:
    """See `Workload`; a seed is a round. The plain copy, in which all is told, runs whatever ``against`` names."""
    from zorder_pipeline.spark import session

    spark = session({"spark.driver.memory": HEAP})
    scale = options.scale or (QUICK_SCALE if options.quick else SCALE)
    base = _prepare(spark, options.work, scale, progress)
    contenders = [one for one in _contenders(spark, base) if options.wants(one[0])]
    for name, _, make in contenders * WARM:  # code is compiled, files are in the cache
        progress(f"warming up: {name}")
        _timed(options.work / "warm" / TABLE, make)
    outcomes: list[Outcome] = []
    for seed in options.seeds:
        outcomes += options.noted(_round(spark, base.source, options.work / "round", contenders, seed, progress))
    progress(f"appending {NEW:.0%} new rows")
    extra = _incremental(spark, options.work / "incremental" / TABLE, base)
    if options.wants("appends"):
        nights = QUICK_NIGHTS if options.quick else NIGHTS
        extra |= after_appends(spark, base.source, options.work / "appends", base.logs, base.settings, nights, progress)
    if options.wants("larger"):
        seconds = {name: _mean_seconds(outcomes, name) for name in ("stored", OURS)}
        extra |= _larger(spark, options.work / "larger", scale * TIMES, seconds, progress)
    return [_with(outcome, extra) if outcome.contender == OURS else outcome for outcome in outcomes]


@dataclass(frozen=True)
class _Base:
    """A table as it arrived, a layout learned for it, the columns that its queries name most, and their logs."""

    source: Path
    plan: Plan
    columns: list[str]
    logs: tuple[str, str]
    settings: LearnSettings


def _prepare(spark: SparkSession, work: Path, scale: float, progress: Progress) -> _Base:
    from zorder_pipeline import pipeline

    source = work / "stored" / TABLE
    progress(f"writing TPC-H lineitem at scale {scale:g} as {FILES} files")
    lineitem_table(spark, source, scale, FILES)
    records, later = tpch_logs(300, 300, 0, scale=scale)
    logs = write_logs(records, later, work)
    rows = spark.read.format("delta").load(str(source)).count()
    settings = pipeline.LearnSettings(trials=300, target_file_rows=max(1, rows // FILES))
    progress("learning a layout, which is not timed here")
    plan = pipeline.learn(spark, str(source), [logs[0]], aliases=[TABLE], settings=settings)
    columns = frequent_columns([record["statement"] for record in records], COLUMNS)
    return _Base(source, plan, columns, logs, settings)


def _contenders(spark: SparkSession, base: _Base) -> tuple[Contender, ...]:
    from zorder_pipeline import pipeline

    source, columns = base.source, base.columns

    def ours(verify: str) -> Callable[[Path], float]:
        def make(path: Path) -> float:
            copy_table(spark, source, path)
            start = started()
            pipeline.apply(spark, str(path), plan_for(spark, base.plan, path), force=True, verify=verify)
            return time.perf_counter() - start

        return make

    return (
        (OURS, "ours, verify: counts", ours("counts")),
        ("ours-hash", "ours, verify: hash", ours("hash")),
        (
            "sort",
            "sorted by one column",
            lambda path: sort(spark, str(source), str(path), columns, FILES),
        ),
        (
            "zorder",
            f"Delta ZORDER, {COLUMNS} columns",
            lambda path: zorder(spark, str(source), str(path), columns, FILES),
        ),
        (
            "liquid",
            f"Delta liquid, {COLUMNS} columns",
            lambda path: liquid(spark, str(source), str(path), columns, FILES),
        ),
    )


def _round(
    spark: SparkSession, source: Path, folder: Path, contenders: Sequence[Contender], seed: int, progress: Progress
) -> list[Outcome]:
    def copy(path: Path) -> float:
        start = started()
        copy_table(spark, source, path)
        return time.perf_counter() - start

    everyone = [("stored", "plain copy", copy), *contenders]
    order = np.random.default_rng(seed).permutation(len(everyone))
    seconds: dict[str, tuple[float, int]] = {}
    for place in order:
        name, _, make = everyone[place]
        seconds[name] = _timed(folder / name / TABLE, make)
        progress(f"round {seed}: {name} took {seconds[name][0]:.1f} s")
    unit = seconds["stored"][0]
    return [
        Outcome(
            name,
            label,
            seed,
            {"copies": np.array([seconds[name][0] / unit])},
            {"rewrite": seconds[name][0]},
            {"files": seconds[name][1]},
        )
        for name, label, _ in everyone
    ]


def _timed(path: Path, make: Callable[[Path], float]) -> tuple[float, int]:
    """Seconds, and files of the table that was made; it is deleted."""
    seconds = make(path)
    files = file_count(path)
    shutil.rmtree(path.parent)
    return seconds, files


def _incremental(spark: SparkSession, path: Path, base: _Base) -> dict[str, Any]:
    """What a relayout rewrites after an append of `NEW` rows, and how its table reads beside one relaid in full."""
    from zorder_pipeline import pipeline

    unseen = base.logs[1]
    everything = spark.read.format("delta").load(str(base.source))
    first, new = everything.where("l_orderkey % 20 <> 7"), everything.where("l_orderkey % 20 = 7")
    shutil.rmtree(path, ignore_errors=True)
    first.write.format("delta").save(str(path))
    own = plan_for(spark, base.plan, path)
    pipeline.apply(spark, str(path), own, force=True)
    new.coalesce(4).write.format("delta").mode("append").save(str(path))
    bytes_before = pipeline.inspect(spark, str(path))["bytes"]
    done = pipeline.apply(spark, str(path), own, force=True)
    read = pipeline.evaluate(spark, str(path), [unseen], aliases=[TABLE], count_matches=False)
    pipeline.apply(spark, str(path), own, force=True, full=True)
    full = pipeline.evaluate(spark, str(path), [unseen], aliases=[TABLE], count_matches=False)
    shutil.rmtree(path)
    return {
        "bytes_rewritten_share": done.bytes_rewritten / bytes_before,
        "rows_read_to_full": read.rows_read_fraction / full.rows_read_fraction,
    }


def _larger(
    spark: SparkSession, folder: Path, scale: float, small: Mapping[str, float], progress: Progress
) -> dict[str, Any]:
    """How many times the seconds ``small`` a plain copy and a rewrite of a table at ``scale`` take, once each."""
    from zorder_pipeline import pipeline

    base = _prepare(spark, folder, scale, progress)
    path = folder / "round" / TABLE
    start = started()
    copy_table(spark, base.source, path)
    copy = time.perf_counter() - start
    plan, start = plan_for(spark, base.plan, path), started()
    pipeline.apply(spark, str(path), plan, force=True, verify="counts")
    ours = time.perf_counter() - start
    progress(f"at scale {scale:g} the plain copy took {copy:.1f} s, ours {ours:.1f} s")
    shutil.rmtree(folder)
    return {
        "larger_scale": scale,
        "rewrite_seconds_at_larger_scale": ours,
        "copies_at_larger_scale": ours / copy,
        "growth_of_rewrite_seconds": ours / small[OURS],
        "growth_of_plain_copy_seconds": copy / small["stored"],
    }


def _mean_seconds(outcomes: Sequence[Outcome], name: str) -> float:
    return float(np.mean([outcome.seconds["rewrite"] for outcome in outcomes if outcome.contender == name]))


def _with(outcome: Outcome, figures: dict[str, Any]) -> Outcome:
    return replace(outcome, figures={**outcome.figures, **figures})


WORKLOAD = Workload("relayout", "TPC-H lineitem rewritten, in plain copies of the table", run, peers=PEERS)
