"""TPC-H lineitem as a real Delta table: ours against what Delta itself offers, measured as ``zorder evaluate`` does.

Every contender starts from the same stored table, is chosen or learned from the same training log only, has the same
number of files, and is measured by the same function on statements that the training log does not hold.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .compare import refuse_other_results
from .data import copy_table, file_count, learn_and_apply, lineitem_table
from .foreign import PeerError
from .harness import OURS, Options, Outcome, Progress, Workload, bound
from .peers import NAMED, NOT_RUN, PEERS, QUICK, Peer, asked_columns, peers_named
from .workloads import tpch_logs, write_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.model.results import Evaluation

__all__ = ["WORKLOAD", "run"]

SCALE = 0.1
FILES = 100
QUERIES = 500
TRIALS, QUICK_TRIALS = 600, 300
TABLE = "lineitem"


def run(options: Options, progress: Progress) -> list[Outcome]:
    """See `Workload`.

    Raises:
        VerificationError: a statement's result differs after our relayout.
    """
    from zorder_pipeline.spark import session

    spark = session()
    source = options.work / "stored" / TABLE
    scale = SCALE if options.scale is None else options.scale
    named = options.against
    if named is None:
        named = QUICK if options.quick else tuple(peer.name for peer in PEERS)
    chosen = peers_named(named)
    progress(f"writing TPC-H lineitem at scale {scale} as {FILES} files")
    lineitem_table(spark, source, scale, FILES)
    outcomes: list[Outcome] = []
    why = "not named by --against" if options.against is not None else "not part of --quick"
    not_run = dict(NOT_RUN) | {peer.label: why for peer in PEERS if peer not in chosen}
    for seed in options.seeds:
        folder = options.work / f"seed-{seed}"
        able = tuple(peer for peer in chosen if peer.label not in not_run)
        outcomes += _one_seed(spark, options, scale, seed, source, folder, able, not_run, progress)
        shutil.rmtree(folder, ignore_errors=True)
    return [outcome for outcome in outcomes if outcome.label not in not_run]


def _one_seed(
    spark: SparkSession,
    options: Options,
    scale: float,
    seed: int,
    source: Path,
    folder: Path,
    chosen: tuple[Peer, ...],
    not_run: dict[str, str],
    progress: Progress,
) -> Iterator[Outcome]:
    from zorder_pipeline import pipeline

    records, later = tpch_logs(QUERIES, QUERIES, seed, scale=scale)
    train, unseen = write_logs(records, later, folder)
    asked = asked_columns(spark, source, records)

    def measure(path: str) -> float:
        return float(pipeline.evaluate(spark, path, [train], aliases=[TABLE]).rows_per_query.mean())

    def outcome(name: str, label: str, path: Path, seconds: dict[str, float]) -> Outcome:
        read = pipeline.evaluate(spark, str(path), [unseen], aliases=[TABLE], count_matches=False)
        return Outcome(name, label, seed, _per_query(read), seconds, read.to_json() | {"files": file_count(path)})

    for peer in chosen:
        progress(f"seed {seed}: {peer.label}")
        path = folder / peer.name / TABLE
        try:
            seconds = peer.prepare(spark, str(source), str(path), peer.given(asked), FILES, measure)
        except PeerError as error:
            not_run[peer.label] = str(error)
            progress(f"seed {seed}: {peer.label} is left out: {error}")
            continue
        yield outcome(peer.name, peer.label, path, {"rewrite": seconds})
        shutil.rmtree(path)

    progress(f"seed {seed}: learning from {QUERIES} statements")
    path = folder / OURS / TABLE
    copy_table(spark, source, path)
    rows = pipeline.evaluate(spark, str(path), [train], aliases=[TABLE]).rows
    settings = pipeline.LearnSettings(
        trials=QUICK_TRIALS if options.quick else TRIALS, seed=seed, target_file_rows=max(1, round(rows / FILES))
    )
    steps = learn_and_apply(spark, path, train, settings)
    read = pipeline.evaluate(spark, str(path), [unseen], aliases=[TABLE])
    figures = read.to_json() | {"files": file_count(path), "not_run": dict(not_run)}
    yield Outcome(OURS, "ours", seed, _per_query(read), steps, figures)
    assert read.matched_per_query is not None
    yield bound(read.matched_per_query, read.rows, FILES, seed)
    refuse_other_results(spark, [record["statement"] for record in later], source, path, name=TABLE)


def _per_query(read: Evaluation) -> dict[str, npt.NDArray[np.float64]]:
    return {"rows": read.rows_per_query, "files": read.files_per_query, "bytes": read.bytes_per_query}


WORKLOAD = Workload("demo", "TPC-H lineitem in 100 files, queries nobody has seen", run, peers=NAMED)
