"""Do fewer rows become seconds? The same unseen drill-downs in Spark and DuckDB on lineitem as each contender lays it.

ZORDER and liquid get the number of columns (two to four) that reads fewest rows for the training log on a small copy,
and sorting inside files; ``--against`` names peers that are taken as they are. Tables that were made stay in the work
folder until the run is through: one that was cut off goes on there, with those that the same code made.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import zorder_pipeline

from .compare import refuse_other_results
from .data import copy_table, learn_and_apply, lineitem_table
from .engines import duckdb_times, measured, spark_times
from .foreign import PeerError
from .harness import OURS, Options, Outcome, Progress, Workload, bound
from .peers import NAMED, NOT_RUN, PEERS, Peer, asked_columns, peers_named
from .selective import SELECTIVE_TEMPLATES
from .workloads import two_logs, write_log, write_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["WORKLOAD"]

SCALE, QUICK_SCALE = 10.0, 0.3
SMALL_SCALE = 0.1
"""Where the peers' columns are chosen."""
FILES, MANY_FILES, MANY_FROM = 64, 128, 5.0
"""Files of a table, and of one of at least the scale `MANY_FROM`."""
QUERIES = 500
TIMED, QUICK_TIMED = 60, 12
ROUNDS = 3
TRIALS, QUICK_TRIALS = 600, 300
TABLE = "lineitem"
BEST = {"zorder": "Delta ZORDER, best of 2 to 4 columns", "liquid": "Delta liquid, best of 2 to 4 columns"}
"""Kinds of peers by the beginning of their names; ``--against`` replaces them."""


@dataclass(frozen=True)
class _Contender:
    """A table that was made: by what name and label, where, in how many seconds by step, and by which peer's means."""

    name: str
    label: str
    path: Path
    seconds: Mapping[str, float]
    means: str


def run(options: Options, progress: Progress) -> list[Outcome]:
    """See `Workload`; a seed is a pair of logs, and tables of its own.

    Raises:
        VerificationError: a statement's result differs after our relayout.
    """
    from zorder_pipeline.spark import session

    spark = session()
    scale = options.scale or (QUICK_SCALE if options.quick else SCALE)
    source = options.work / f"stored-{scale:g}" / TABLE
    named = None
    if options.against is not None:
        named = tuple(peer for peer in peers_named(options.against) if peer.name != "stored")
    able = tuple(peer for peer in PEERS if _kind(peer)) if named is None else named
    why = "not named by --against" if named is not None else "takes part only where --against names it"
    not_run = dict(NOT_RUN) | {peer.label: why for peer in PEERS if peer not in able and peer.name != "stored"}

    def store() -> dict[str, float]:
        progress(f"writing TPC-H lineitem at scale {scale:g} as {_files(scale)} files")
        lineitem_table(spark, source, scale, _files(scale))
        return {}

    _once(source, store)
    outcomes: list[Outcome] = []
    for seed in options.seeds:
        folder = options.work / f"seconds-{'quick' if options.quick else 'full'}-{scale:g}-{seed}"
        outcomes += options.noted(_one_seed(spark, options, scale, seed, source, folder, named, not_run, progress))
        shutil.rmtree(folder)
    shutil.rmtree(source.parent)
    return [outcome for outcome in outcomes if outcome.label not in not_run]


def _one_seed(
    spark: SparkSession,
    options: Options,
    scale: float,
    seed: int,
    source: Path,
    folder: Path,
    named: tuple[Peer, ...] | None,
    not_run: dict[str, str],
    progress: Progress,
) -> Iterator[Outcome]:
    from zorder_pipeline import pipeline

    records, later = two_logs(QUERIES, QUERIES, seed, SELECTIVE_TEMPLATES, scale=scale)
    train, unseen = write_logs(records, later, folder)
    asked = asked_columns(spark, source, records)
    made = [_Contender("stored", "as stored", source, {}, "")]

    def measure(path: str) -> float:
        read = pipeline.evaluate(spark, path, [train], aliases=[TABLE], count_matches=False)
        return float(read.rows_per_query.mean())

    def rewritten(peer: Peer, path: Path) -> dict[str, float]:
        used = peer.given(asked)
        return {"rewrite": peer.prepare(spark, str(source), str(path), used, _files(scale), measure)}

    if named is None:
        chosen = _strongest(spark, scale, seed, folder / "small", progress)
    else:
        chosen = [(peer.name, peer.label, peer) for peer in named if peer.label not in not_run]
    for name, label, peer in chosen:
        path = folder / peer.name / TABLE
        progress(f"seed {seed}: {peer.label}")
        try:
            made.append(_Contender(name, label, path, _once(path, partial(rewritten, peer, path)), peer.name))
        except PeerError as error:
            not_run[label] = str(error)
            progress(f"seed {seed}: {label} is left out: {error}")
    progress(f"seed {seed}: ours")
    path = folder / OURS / TABLE
    settings = pipeline.LearnSettings(
        trials=QUICK_TRIALS if options.quick else TRIALS,
        seed=seed,
        target_file_rows=max(1, spark.read.format("delta").load(str(source)).count() // _files(scale)),
    )

    def relayout() -> dict[str, float]:
        copy_table(spark, source, path)
        return learn_and_apply(spark, path, train, settings)

    made.append(_Contender(OURS, "ours", path, _once(path, relayout), ""))
    statements = [record["statement"] for record in later]
    count = QUICK_TIMED if options.quick else TIMED
    timed = statements[:: QUERIES // count][:count]
    refuse_other_results(spark, timed, source, path, name=TABLE)
    progress(f"seed {seed}: timing {count} queries in Spark and DuckDB")
    tables = {contender.name: contender.path for contender in made}
    in_spark = spark_times(spark, tables, timed, TABLE, ROUNDS, progress)
    in_duckdb = duckdb_times(tables, timed, TABLE, ROUNDS)
    for one in made:
        mine = one.name == OURS
        read = pipeline.evaluate(spark, str(one.path), [unseen], aliases=[TABLE], count_matches=mine)
        measures, figures = measured(one.path, read, in_spark[one.name], in_duckdb[one.name])
        figures |= {"means": one.means, **({"not_run": dict(not_run)} if mine else {})}
        yield Outcome(one.name, one.label, seed, measures, one.seconds, figures)
        if read.matched_per_query is not None:
            yield bound(read.matched_per_query, read.rows, _files(scale), seed)


def _strongest(
    spark: SparkSession, scale: float, seed: int, place: Path, progress: Progress
) -> list[tuple[str, str, Peer]]:
    """Of each kind, the peer that reads fewest rows for the training log, on a small table; with its name and label."""
    from zorder_pipeline import pipeline

    note = place.with_name("chosen.json")
    known = json.loads(note.read_text(encoding="utf-8")) if note.is_file() else {}
    if known.get("code") == _code():
        names: dict[str, str] = known["names"]
        return [(kind, BEST[kind], peer) for kind, name in names.items() for peer in peers_named([name])]
    shutil.rmtree(place, ignore_errors=True)
    small = min(SMALL_SCALE, scale)
    records, _ = two_logs(QUERIES, QUERIES, seed, SELECTIVE_TEMPLATES, scale=small)
    train = str(write_log(records, place / "train.jsonl"))
    lineitem_table(spark, place / TABLE, small, _files(scale))
    asked = asked_columns(spark, place / TABLE, records)
    found: list[tuple[str, str, Peer]] = []
    for kind, label in BEST.items():
        rows: dict[str, float] = {}
        candidates = {peer.name: peer for peer in PEERS if _kind(peer) == kind}
        for name, peer in candidates.items():
            path = str(place / name / TABLE)
            peer.prepare(spark, str(place / TABLE), path, peer.given(asked), _files(scale), None)
            read = pipeline.evaluate(spark, path, [train], aliases=[TABLE], count_matches=False)
            rows[name] = float(read.rows_per_query.mean())
        best = min(rows, key=lambda name: rows[name])
        progress(f"seed {seed}: {kind} at its best is {candidates[best].label}")
        found.append((kind, label, candidates[best]))
    shutil.rmtree(place)
    chosen = {"code": _code(), "names": {kind: peer.name for kind, _, peer in found}}
    note.write_text(json.dumps(chosen), encoding="utf-8")
    return found


def _kind(peer: Peer) -> str | None:
    return next((kind for kind in BEST if peer.name.startswith(kind)), None)


def _once(path: Path, make: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Make a table unless this code has made it; its seconds by step are kept beside it."""
    note = path.with_name("made.json")
    made = json.loads(note.read_text(encoding="utf-8")) if note.is_file() else {}
    if made.get("code") != _code():
        shutil.rmtree(path, ignore_errors=True)
        made = {"code": _code(), "seconds": make()}
        note.write_text(json.dumps(made), encoding="utf-8")
    done: dict[str, float] = made["seconds"]
    return done


@cache
def _code() -> str:
    """Tells apart versions of this package, also those between two releases."""
    digest = hashlib.blake2b(digest_size=8)
    for source in sorted(Path(zorder_pipeline.__file__).parent.rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _files(scale: float) -> int:
    return MANY_FILES if scale >= MANY_FROM else FILES


WORKLOAD = Workload("seconds", "TPC-H lineitem: do fewer rows become seconds, in Spark and DuckDB", run, peers=NAMED)
