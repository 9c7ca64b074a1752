"""Real Delta tables: ours against what Delta and its peers offer, measured as ``zorder evaluate`` does.

Every contender starts from the same stored table, is chosen or learned from the same training log only, has the same
number of files, and is measured by the same function on statements that the training log does not hold. The table is
TPC-H lineitem, or any of those of workload ``real`` that are named.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from zorder_pipeline.errors import ZorderError

from .cases import Case
from .compare import refuse_other_results
from .data import copy_table, delta_table, file_count, learn_and_apply, lineitem_table
from .foreign import PeerError
from .harness import OURS, Options, Outcome, Progress, Workload, bound
from .peers import NAMED, NOT_RUN, PEERS, QUICK, Peer, asked_columns, peers_named
from .real import CASES
from .workloads import Record, tpch_logs, write_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.model.results import Evaluation

__all__ = ["WORKLOAD", "run"]

SCALE = 0.1
FILES = 100
QUERIES = 500
TRIALS, QUICK_TRIALS = 600, 300
TABLE = "lineitem"


@dataclass(frozen=True)
class _Table:
    """A stored table and what is asked of it.

    Attributes:
        name: of the table in statements, and of its folder.
        source: where it lies.
        logs: a training log and a later one, of so many statements, of a seed.
    """

    name: str
    source: Path
    logs: Callable[[int, int, int], tuple[list[Record], list[Record]]]


def run(options: Options, progress: Progress) -> list[Outcome]:
    """See `Workload`; each table counts as much as any other in the ratios.

    Raises:
        VerificationError: a statement's result differs after our relayout.
        ZorderError: a real table is to be larger than it is.
    """
    if options.scale and options.scale > 1 and (real := [case for case in CASES if case.name in options.tables]):
        raise ZorderError(f"--scale is {options.scale:g}; {real[0].name} has no more rows than at 1, give 1 or less")
    from zorder_pipeline.spark import session

    spark = session()
    named = options.against
    if named is None:
        named = QUICK if options.quick else tuple(peer.name for peer in PEERS)
    chosen = peers_named(named)
    outcomes: list[Outcome] = []
    why = "not named by --against" if options.against is not None else "not part of --quick"
    not_run = dict(NOT_RUN) | {peer.label: why for peer in PEERS if peer not in chosen}
    for table in _tables(spark, options, progress):
        for seed in options.seeds:
            folder = options.work / f"seed-{seed}"
            able = tuple(peer for peer in chosen if peer.label not in not_run)
            outcomes += options.noted(_one_seed(spark, options, table, seed, folder, able, not_run, progress))
            shutil.rmtree(folder, ignore_errors=True)
    return [outcome for outcome in outcomes if outcome.label not in not_run]


def _tables(spark: SparkSession, options: Options, progress: Progress) -> Iterator[_Table]:
    """Those that are to be measured, each made when it is its turn."""
    scale = SCALE if options.scale is None else options.scale
    wanted = options.tables or (TABLE,)
    if TABLE in wanted:
        source = options.work / "stored" / TABLE
        progress(f"writing TPC-H lineitem at scale {scale} as {FILES} files")
        lineitem_table(spark, source, scale, FILES)
        yield _Table(TABLE, source, lambda train, unseen, seed: tpch_logs(train, unseen, seed, scale=scale))
    for case in CASES:
        if case.name in wanted:
            yield _real(spark, case, options, progress)


def _real(spark: SparkSession, case: Case, options: Options, progress: Progress) -> _Table:
    progress(f"writing {case.name} as {FILES} files")
    source, rows = options.work / "stored" / case.name, case.rows(options.work, options.scale or 1.0)
    delta_table(spark, source, rows, FILES)
    return _Table(case.name, source, lambda train, unseen, seed: case.logs(rows, train, unseen, seed, 1.0))


def _one_seed(
    spark: SparkSession,
    options: Options,
    table: _Table,
    seed: int,
    folder: Path,
    chosen: tuple[Peer, ...],
    not_run: dict[str, str],
    progress: Progress,
) -> Iterator[Outcome]:
    from zorder_pipeline import pipeline

    source, aliases = table.source, [table.name]
    records, later = table.logs(QUERIES, QUERIES, seed)
    train, unseen = write_logs(records, later, folder)
    asked = asked_columns(spark, source, records)

    def measure(path: str) -> float:
        return float(pipeline.evaluate(spark, path, [train], aliases=aliases).rows_per_query.mean())

    def outcome(name: str, label: str, path: Path, seconds: dict[str, float]) -> Outcome:
        read = pipeline.evaluate(spark, str(path), [unseen], aliases=aliases, count_matches=False)
        figures = read.to_json() | {"files": file_count(path)}
        return Outcome(name, label, seed, _per_query(read), seconds, figures, table.name)

    for peer in chosen:
        progress(f"{table.name}, seed {seed}: {peer.label}")
        path = folder / peer.name / table.name
        try:
            seconds = peer.prepare(spark, str(source), str(path), peer.given(asked), FILES, measure)
        except PeerError as error:
            not_run[peer.label] = str(error)
            progress(f"{table.name}, seed {seed}: {peer.label} is left out: {error}")
            continue
        yield outcome(peer.name, peer.label, path, {"rewrite": seconds})
        shutil.rmtree(path)

    progress(f"{table.name}, seed {seed}: learning from {QUERIES} statements")
    path = folder / OURS / table.name
    copy_table(spark, source, path)
    rows = pipeline.evaluate(spark, str(path), [train], aliases=aliases).rows
    settings = pipeline.LearnSettings(
        trials=QUICK_TRIALS if options.quick else TRIALS, seed=seed, target_file_rows=max(1, round(rows / FILES))
    )
    steps = learn_and_apply(spark, path, train, settings)
    read = pipeline.evaluate(spark, str(path), [unseen], aliases=aliases)
    figures = read.to_json() | {"files": file_count(path), "not_run": dict(not_run)}
    yield Outcome(OURS, "ours", seed, _per_query(read), steps, figures, table.name)
    assert read.matched_per_query is not None
    yield bound(read.matched_per_query, read.rows, FILES, seed, table.name)
    refuse_other_results(spark, [record["statement"] for record in later], source, path, name=table.name)


def _per_query(read: Evaluation) -> dict[str, npt.NDArray[np.float64]]:
    return {"rows": read.rows_per_query, "files": read.files_per_query, "bytes": read.bytes_per_query}


WORKLOAD = Workload(
    "demo",
    "real Delta tables in 100 files, queries nobody has seen",
    run,
    peers=NAMED,
    tables=(TABLE, *(case.name for case in CASES)),
)
