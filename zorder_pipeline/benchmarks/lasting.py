"""Are promises kept where queries follow the newest data? Relayouts measured by what is asked up to a month later.

A table of sixty days, by days or in one piece, and a log of a fortnight: queries that look for a customer in one of the
last three days, on a day of any age, half of each, or on the same days by all. A night lays the table out, and queries
of the same kind are asked for thirty days more. Its promise is held against what they read of both versions, told as
the gate told it, and as if the logged queries were asked until the horizon ends.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zorder_pipeline.errors import ZorderError

from .harness import OURS, Options, Outcome, Progress, Workload
from .workloads import Record, write_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["WORKLOAD"]

DAYS, LOGGED, LATER = 60, 14, 30
A_DAY, QUICK_A_DAY = 30_000, 12_000
"""Rows."""
FILES = 8
"""Of a day."""
CUSTOMERS = 5_000
ASKED = 60
"""Queries a day."""
MEASURED = (1, 3, 7, 14, 30)
"""Days after the log."""
FLOOR = 1e-3
"""Of what was promised: less is measured as that."""


@dataclass(frozen=True)
class Case:
    """A table and what is asked of it.

    Attributes:
        by: the table's partition columns: `DAY`, or `PARTS`; without any it lies in one piece, by its moments.
        kinds: of the queries, as many of each: `NEWEST`, `ANY_AGE` or `SAME`.
    """

    by: tuple[str, ...]
    kinds: tuple[str, ...]


NEWEST, ANY_AGE, SAME = "one of the last three days", "a day of any age, the newer the likelier", "the same days by all"
DAY, PARTS, NAMES = ("day",), ("year", "month", "dd"), ("year", "month", "day")
CASES = {
    "last three days, by days": Case(DAY, (NEWEST,)),
    "last three days, by year, month and day": Case(PARTS, (NEWEST,)),
    "any age, by days": Case(DAY, (ANY_AGE,)),
    "any age, in one piece": Case((), (ANY_AGE,)),
    "half of them stay, in one piece": Case((), (NEWEST, SAME)),
    "all stay, by days": Case(DAY, (SAME,)),
}
SELECTED = {NEWEST: "*", ANY_AGE: "*", SAME: "id, price"}


def run(options: Options, progress: Progress) -> list[Outcome]:
    """See `Workload`; a figure of a contender is one moment at which a promise is measured."""
    from zorder_pipeline.spark import session

    spark = session()
    outcomes: list[Outcome] = []
    for name, case in CASES.items():
        for seed in options.seeds:
            found = _one(spark, case, options.work / "lasting", seed, QUICK_A_DAY if options.quick else A_DAY)
            told = ", ".join(f"{kept:.2f}" for kept in found[OURS])
            progress(f"{name}: kept to {told} after {', '.join(map(str, MEASURED))} days")
            outcomes += options.noted(_outcome(contender, kept, seed, name) for contender, kept in found.items())
    return outcomes


def _one(spark: SparkSession, case: Case, folder: Path, seed: int, rows: int) -> dict[str, list[float]]:
    """What each contender's promise was kept to, at each of `MEASURED`."""
    from zorder_pipeline import pipeline
    from zorder_pipeline.gate.settings import GateSettings
    from zorder_pipeline.pipeline.logs import ingest
    from zorder_pipeline.relayout.snapshot import open_table
    from zorder_pipeline.state.ledger import Ledger

    shutil.rmtree(folder, ignore_errors=True)
    path, state, rng = str(folder / "t"), str(folder / "state"), np.random.default_rng(seed)
    today = datetime.now(UTC).date() - timedelta(days=LATER)  # nobody can have asked in the future
    _write(spark, path, case, today, rows)
    log = _log(case, today, (-LOGGED, 0), rng, folder / "log.jsonl")
    settings = pipeline.LearnSettings(trials=100, seed=seed)
    gate = GateSettings(queries_per_day=1e6, min_new_data_bytes=0.0)
    snapshot = open_table(spark, path)
    found = ingest([log], {snapshot.location: (snapshot, ("t",))})
    analysis = pipeline.analyse(spark, snapshot, found, [snapshot.location], settings)
    plan, _ = pipeline.learn_tonight(spark, analysis, state, settings, gate=gate)
    done = pipeline.apply(spark, path, plan, gate=gate, state=state)
    if done.decision != "applied":
        raise ZorderError(f"workload lasting: nothing was laid out, so nothing can be kept: {done.reasons[0]}")
    kept: dict[str, list[float]] = {OURS: [], "as logged": []}
    later = _log(case, today, (0, LATER), rng, folder / "later.jsonl")
    asked = ingest([later], {snapshot.location: (snapshot, ("t",))}).of_table([snapshot.location])
    for days in MEASURED:
        (check,) = pipeline.check_promises(spark, state, path, asked[: days * ASKED])
        (entry,) = Ledger(spark, state).entries(snapshot.table_id)
        share = max(FLOOR, check.kept or 0.0)
        kept[OURS].append(share)
        kept["as logged"].append(max(FLOOR, share * entry.credited_over(float(days)) / max(entry.credited, FLOOR)))
    return kept


def _write(spark: SparkSession, path: str, case: Case, today: date, rows: int) -> None:
    first = today - timedelta(days=DAYS)
    day = f"date_add(DATE'{first}', CAST(id DIV {rows} AS INT))"
    moment = f"timestamp_seconds(unix_timestamp(timestamp({day})) + pmod(id, {rows}) * 86400 DIV {rows})"
    forms = {
        DAY: [f"{day} AS day"],
        PARTS: [f"{name}({day}) AS {part}" for name, part in zip(NAMES, PARTS, strict=True)],
    }
    frame = spark.range(DAYS * rows).selectExpr(
        "id", f"pmod(hash(id), {CUSTOMERS}) AS customer", "pmod(hash(id, 7), 1000) AS price",
        *forms.get(case.by, [f"{moment} AS moment"]),
    )  # fmt: skip
    if case.by:
        parts = frame.repartitionByRange(DAYS * FILES, *case.by, "price")
        parts.write.format("delta").partitionBy(*case.by).save(path)
    else:
        frame.repartitionByRange(DAYS * FILES, "moment").write.format("delta").save(path)


def _log(case: Case, today: date, days: tuple[int, int], rng: np.random.Generator, path: Path) -> str:
    records: list[Record] = []
    for after in range(*days):
        for number in range(ASKED):
            kind = case.kinds[number % len(case.kinds)]
            day = today + timedelta(after - _ago(kind, rng, after))
            where = f"customer = {int(rng.integers(CUSTOMERS))} AND "
            if case.by == DAY:
                where += f"day = DATE'{day}'"
            elif case.by == PARTS:
                where += " AND ".join(f"{part} = {getattr(day, name)}" for name, part in zip(NAMES, PARTS, strict=True))
            else:
                start, end = (f"TIMESTAMP'{each} 00:00:00'" for each in (day, day + timedelta(1)))
                where += f"moment >= {start} AND moment < {end}"
            moment = datetime.combine(today, datetime.min.time(), UTC) + timedelta(after + number / ASKED)
            statement = f"SELECT {SELECTED[kind]} FROM t WHERE {where}"
            records.append({"statement": statement, "timestamp": moment.isoformat()})
    return str(write_log(records, path))


def _ago(kind: str, rng: np.random.Generator, after: int) -> int:
    """Of which day a query asks, in days before its own, by how many days after the log it is asked."""
    if kind == SAME:
        return after + int(rng.integers(1, DAYS))
    return 1 + int(rng.exponential(6)) if kind == ANY_AGE else int(rng.integers(1, 4))


def _outcome(contender: str, kept: list[float], seed: int, case: str) -> Outcome:
    label = "as queries move on" if contender == OURS else "as the logged queries save"
    off = np.maximum(kept, 1 / np.array(kept))
    figures: dict[str, Any] = {"days": list(MEASURED), "kept": kept}
    return Outcome(contender, label, seed, {"off": off}, figures=figures, case=case)


WORKLOAD = Workload(
    "lasting",
    "promises where queries follow the newest data, against what is asked up to a month later",
    run,
    scaled=False,
)
