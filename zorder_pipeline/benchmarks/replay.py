"""Seed 004 chapter 6: inserts mixed with scans, replayed four times: without any optimisation, with one manual ZORDER
halfway, with a nightly ZORDER, and with ours, whose gate decides by itself when to rewrite.

Every contender has its own table; a night's batch is inserted into each, then each is maintained in its own way, then
each day's scans run on all of them in turn. Ours learns each night from the statements so far, and from nothing else,
as the nightly job does it: with its state, and its gate's own assumptions.

In the seed scans take some 175 times as long as inserts: by its 3.5 and 3.2 times with inserts five times as long. So
a day has many scans; those that are timed are drawn from them at random, and the others are taken to last as long.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .data import session_conf, write_lineitem
from .harness import OURS, Options, Outcome, Progress, Workload
from .peers import frequent_columns, optimize_conf
from .selective import SELECTIVE_TEMPLATES
from .workloads import Record, tpch_statements, write_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


__all__ = ["WORKLOAD"]

SCALE, QUICK_SCALE = 1.0, 0.1
NIGHTS, QUICK_NIGHTS = 10, 5
SCANS, QUICK_SCANS = 1000, 100
"""Scans a day, all of them in the log."""
TIMED, QUICK_TIMED = 30, 12
"""Scans a day that are timed, drawn at random."""
FILES = 8
"""Files a night brings, and has after a relayout."""
COLUMNS = 3
TRIALS = 200
TABLE = "lineitem"
STEPS = ("scan", "insert", "optimize", "analysis", "estimation")


@dataclass
class _Contender:
    """A table and what happened to it; ``seconds`` by step, the others by scan."""

    name: str
    label: str
    path: Path
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STEPS, 0.0))
    scans: list[float] = field(default_factory=list)
    rows: list[float] = field(default_factory=list)
    bytes: list[float] = field(default_factory=list)
    decisions: list[str] = field(default_factory=list)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Adds the seconds of the block to a step."""
        start = time.perf_counter()
        yield
        self.seconds[step] += time.perf_counter() - start


def run(options: Options, progress: Progress) -> list[Outcome]:
    """See `Workload`; a seed is a replay with scans of its own."""
    from zorder_pipeline.spark import session

    spark = session()
    scale = options.scale or (QUICK_SCALE if options.quick else SCALE)
    nights, scans = (QUICK_NIGHTS, QUICK_SCANS) if options.quick else (NIGHTS, SCANS)
    timed = QUICK_TIMED if options.quick else TIMED
    batches = options.work / "batches"
    progress(f"writing TPC-H lineitem at scale {scale:g} as {nights} batches")
    parts = [str(path) for path in write_lineitem(batches, scale, nights)]
    outcomes: list[Outcome] = []
    for seed in options.seeds:
        log = tpch_statements(nights * scans, seed, scale=scale, per_day=scans, templates=SELECTIVE_TEMPLATES)
        days = [log[scans * night : scans * (night + 1)] for night in range(nights)]
        folder = options.work / f"replay-{seed}"
        shutil.rmtree(folder, ignore_errors=True)
        contenders = [
            _Contender(name, label, folder / name / TABLE)
            for name, label in (
                ("none", "no optimisation"),
                ("manual", f"one manual ZORDER halfway, {COLUMNS} columns"),
                ("nightly", f"nightly ZORDER, {COLUMNS} columns"),
                (OURS, "ours"),
            )
            if options.wants(name)
        ]
        _replay(spark, parts, days, timed, contenders, seed, folder, progress)
        outcomes += options.noted(_outcome(contender, seed) for contender in contenders)
        shutil.rmtree(folder)
    shutil.rmtree(batches)
    return outcomes


def _replay(
    spark: SparkSession,
    parts: Sequence[str],
    days: Sequence[Sequence[Record]],
    timed: int,
    contenders: Sequence[_Contender],
    seed: int,
    folder: Path,
    progress: Progress,
) -> None:
    rng = np.random.default_rng(seed)
    asked: list[Record] = []
    for night, (part, day) in enumerate(zip(parts, days, strict=True)):
        for place in rng.permutation(len(contenders)):
            contender = contenders[place]
            with contender.timed("insert"):
                batch = spark.read.parquet(part).repartitionByRange(FILES, "l_orderkey")  # as it arrives
                batch.write.format("delta").mode("append").save(str(contender.path))
            _maintain(spark, contender, asked, night, len(parts), folder)
        some = [day[place] for place in sorted(rng.choice(len(day), timed, replace=False))]
        _scan(spark, contenders, some, folder / "day.jsonl", rng, warm=night == 0)
        for contender in contenders:
            contender.seconds["scan"] = sum(contender.scans) * len(day) / timed
        asked += day
        told = ", ".join(f"{c.name} {c.seconds['scan']:.0f} s" for c in contenders)
        progress(f"seed {seed}, day {night + 1} of {len(days)}: {told}; ours: {contenders[-1].decisions[-1]}")


def _maintain(
    spark: SparkSession, contender: _Contender, asked: Sequence[Record], night: int, nights: int, folder: Path
) -> None:
    files = FILES * (night + 1)
    if contender.name == OURS:
        contender.decisions.append(_ours(spark, contender, asked, files, folder))
    elif asked and (contender.name == "nightly" or (contender.name == "manual" and night == nights // 2)):
        columns = ", ".join(frequent_columns([record["statement"] for record in asked], COLUMNS))
        with contender.timed("optimize"), session_conf(spark, optimize_conf(str(contender.path), files)):
            spark.sql(f"OPTIMIZE delta.`{contender.path}` ZORDER BY ({columns})")


def _ours(spark: SparkSession, contender: _Contender, asked: Sequence[Record], files: int, folder: Path) -> str:
    """A night as the pipeline has it: analyse, estimate, let the gate decide; returns the decision and its reason."""
    from zorder_pipeline import pipeline
    from zorder_pipeline.gate.settings import GateSettings
    from zorder_pipeline.relayout.snapshot import open_table

    if not asked:
        return "no queries yet"
    path, state, gate = str(contender.path), str(folder / "state"), GateSettings()
    with contender.timed("analysis"):
        snapshot = open_table(spark, path)
        names = pipeline.names_of(path, snapshot, [TABLE])
        log = pipeline.ingest([str(write_log(asked, folder / "log.jsonl"))], {snapshot.location: (snapshot, names)})
        rows = int(snapshot.files().rows.sum())
        settings = pipeline.LearnSettings(trials=TRIALS, target_file_rows=max(1, rows // files))
        known = pipeline.layouts_in_use(spark, snapshot, state)
        analysis = pipeline.analyse(spark, snapshot, log, [snapshot.location], settings, layouts=known)
    with contender.timed("estimation"):
        plan, _ = pipeline.learn_tonight(spark, analysis, state, settings, gate=gate)
    with contender.timed("optimize"):
        done = pipeline.apply(spark, path, plan, gate=gate, state=state)
    sought = "not sought" if plan.unsought else plan.origin
    return f"{done.decision} ({sought}, {done.files_removed} files): {done.reasons[0]}"


def _scan(
    spark: SparkSession,
    contenders: Sequence[_Contender],
    day: Sequence[Record],
    log: Path,
    rng: np.random.Generator,
    warm: bool,
) -> None:
    from zorder_pipeline import pipeline

    path = str(write_log(day, log))
    for contender in contenders:
        spark.read.format("delta").load(str(contender.path)).createOrReplaceTempView(f"{TABLE}__{contender.name}")
        read = pipeline.evaluate(spark, str(contender.path), [path], aliases=[TABLE], count_matches=False)
        contender.rows += read.rows_per_query.tolist()
        contender.bytes += read.bytes_per_query.tolist()
    for untimed in (True, False) if warm else (False,):
        for record in day:
            for place in rng.permutation(len(contenders)):
                contender = contenders[place]
                statement = record["statement"].replace(f"FROM {TABLE} ", f"FROM {TABLE}__{contender.name} ")
                start = time.perf_counter()
                spark.sql(statement).collect()
                if not untimed:
                    contender.scans.append(time.perf_counter() - start)


def _outcome(contender: _Contender, seed: int) -> Outcome:
    total = sum(contender.seconds.values())
    per_query = {
        "rows": np.array(contender.rows),
        "bytes": np.array(contender.bytes),
        "spark_s": np.array(contender.scans),
        "total_s": np.array([total]),
    }
    return Outcome(
        contender.name, contender.label, seed, per_query, contender.seconds, {"decisions": contender.decisions}
    )


WORKLOAD = Workload(
    "replay",
    "chapter 6 of Tufă's thesis: inserts and scans replayed, with and without maintenance",
    run,
    peers={
        "default": ("none",),
        "manual": ("manual",),
        "nightly": ("nightly",),
        "zorder": ("manual", "nightly"),
        "zorder3": ("manual", "nightly"),
    },
)
