"""What scans through ``reading/`` and the recorder cost a session: milliseconds per call, warm."""

from __future__ import annotations

import json
import statistics
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from .harness import Progress, ratio

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.model.predicate import Predicate
    from zorder_pipeline.pipeline.reading.recording import Recording
    from zorder_pipeline.relayout.snapshot import TableSnapshot

__all__ = ["pruning", "recorder"]

PRUNED_FILES = 10_000
FIFTH = "k % 10 > 8"
REPEATS = 15
PAIRS, QUICK_PAIRS, BLOCK = 30, 3, 5
"""Pairs of blocks, with and without a recording, and queries in each block."""
APPENDED, QUICK_APPENDED = 500, 20
"""Executions of the append that is timed."""


def pruning(spark: SparkSession, folder: Path, progress: Progress) -> dict[str, float]:
    """Milliseconds to select among `PRUNED_FILES` files, warm: the table and the state are real, its files are not.

    ``select`` is testing every file by a condition that has been read off Spark's plan, which ``understand`` does;
    ``scan`` is a whole call of ``zorder_pipeline.scan``, which also asks Delta for the newest version, where no file is
    left, and ``scan a fifth`` one where every fifth is.
    """
    from zorder_pipeline import pipeline
    from zorder_pipeline.pipeline.reading.choosing import conditions_of
    from zorder_pipeline.pipeline.reading.known_files import known_files
    from zorder_pipeline.reading.relations import analysed, relations

    progress(f"pruning {PRUNED_FILES:,} files")
    table, state = folder / uuid.uuid4().hex[:8], str(folder / f"state-{uuid.uuid4().hex[:8]}")
    spark.range(0).selectExpr("id", "CAST(id AS INT) AS k", "CAST(id AS STRING) AS c").write.format("delta").save(
        str(table)
    )
    known = known_files(spark, _pretend(spark, table, state), state)
    condition = "c LIKE '%x%' AND (k % 10 = 3 OR k IN (5, 17, 80)) AND id < 9000"

    def understand() -> Sequence[Predicate]:
        plan = analysed(known.snapshot.read().where(condition))
        (relation,) = relations(plan)
        found = conditions_of(spark, plan, {relation.number: (relation, known)})[relation.number]
        assert not isinstance(found, str), found
        return found

    (asked,) = understand()

    def select() -> object:
        return known.tests.matching(known.boxes(asked))

    def scan() -> object:
        return pipeline.scan(spark, str(table), condition, state=state)

    def plain() -> object:  # what analysing and planning an ordinary read costs, files selected
        return spark.read.format("delta").load(str(table)).where(condition)._jdf.queryExecution().executedPlan()

    def scan_fifth() -> object:
        return pipeline.scan(spark, str(table), FIFTH, state=state)

    calls = {"select": select, "understand": understand, "scan": scan, "plain plan": plain, "scan a fifth": scan_fifth}
    times = {name: _milliseconds(call) for name, call in calls.items()}
    read = {"files read": condition, "files read of a fifth": FIFTH}
    times |= {
        name: float(pipeline.explain(spark, str(table), text, state=state).files_read or 0)
        for name, text in read.items()
    }
    progress(f"pruning: {json.dumps(times)}")
    return times


def _pretend(spark: SparkSession, table: Path, state: str) -> TableSnapshot:
    """Enter `PRUNED_FILES` files that do not exist, in the log of a table and in the statistics of a state."""
    from zorder_pipeline.reading.file_stats import FileStats
    from zorder_pipeline.reading.gather import STATS
    from zorder_pipeline.reading.session import session_of
    from zorder_pipeline.relayout.snapshot import open_table

    names = [f"part-{i:05d}.parquet" for i in range(PRUNED_FILES)]
    lines = [
        {"add": {"path": name, "partitionValues": {}, "size": 1000, "modificationTime": 0, "dataChange": True,
                 "stats": json.dumps({"numRecords": 100, "minValues": {"id": i, "k": i % 90, "c": "a"},
                                      "maxValues": {"id": i + 9, "k": i % 90 + 9, "c": "z"},
                                      "nullCount": {"id": 0, "k": 0, "c": 0}})}}
        for i, name in enumerate(names)
    ]  # fmt: skip
    entry = "\n".join(json.dumps(line) for line in lines)
    (table / "_delta_log" / f"{1:020d}.json").write_text(entry + "\n", encoding="utf-8")
    snapshot = open_table(spark, str(table))
    places = [np.array([i % 500, 700 + i % 90], dtype="<u2").tobytes() for i in range(PRUNED_FILES)]
    blank = {field.name: pa.nulls(PRUNED_FILES, field.type) for field in STATS}
    tables, numbers = [], range(PRUNED_FILES)
    looked_at = {"predicate": "c", "expression": "k", "column": "k"}
    columns_of = {kind: json.dumps({name: snapshot.stored_as[name]}) for kind, name in looked_at.items()}
    for feature, kind, low, high, bloom in (
        ("c LIKE '%x%'", "predicate", [0] * PRUNED_FILES, [int(i % 50 == 0) for i in numbers], False),
        ("k % 10", "expression", [i % 10 for i in numbers], [i % 10 + 1 for i in numbers], True),
        ("k", "column", [i % 90 for i in numbers], [i % 90 + 9 for i in numbers], True),
    ):
        type_name = "boolean" if kind == "predicate" else "int"
        columns = blank | {
            "file": pa.array(names), "rows": pa.array([100] * PRUNED_FILES, pa.int64()),
            "feature": pa.array([feature] * PRUNED_FILES), "kind": pa.array([kind] * PRUNED_FILES),
            "type": pa.array([type_name] * PRUNED_FILES), "sql": pa.array([feature] * PRUNED_FILES),
            "columns": pa.array([columns_of[kind]] * PRUNED_FILES),
            "nulls": pa.array([0] * PRUNED_FILES, pa.int64()),
            "low_whole": pa.array(low, pa.int64()), "high_whole": pa.array(high, pa.int64()),
        } | ({"places": pa.array(places, pa.binary())} if bloom else {})  # fmt: skip
        tables.append(pa.table(columns).select(STATS.names))
    files, gathered = dict.fromkeys(names, ""), pa.concat_tables(tables)
    FileStats(spark, state).update(
        snapshot.table_id, snapshot.version, session_of(spark), gathered, files, snapshot.stored_as
    )
    return snapshot


def _milliseconds(call: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times[3:])


def recorder(spark: SparkSession, source: Path, work: Path, quick: bool, progress: Progress) -> dict[str, float | None]:
    """What ``zorder_pipeline.record`` adds to a query, with its interval; and apart from that, what an append takes.

    Blocks of queries are asked in pairs, with and without a recording of the table, in turns which of them comes first;
    a recording ends behind its block, with an append. A block ends when Spark has told its listeners of all executions,
    as writing these down takes a core from the queries. Then as many executions as `APPENDED` says are appended at
    once: that takes its seconds from the session's queries each time, and is told as a share of the time between two
    appends, in which so many executions are to be asked then.
    """
    import zorder_pipeline
    from zorder_pipeline.pipeline.reading.recording import EVERY

    progress("timing queries with and without a recording")
    frame = spark.read.format("delta").load(str(source))
    state, spool = str(work / f"recorded-{uuid.uuid4().hex[:8]}"), str(work / f"spool-{uuid.uuid4().hex[:8]}")
    literals = count()

    def recording(every: float | None = EVERY) -> Recording:
        return zorder_pipeline.record(spark, state=state, tables={source.name: str(source)}, spool=spool, every=every)

    def ask(times: int) -> None:
        for literal in islice(literals, times):
            asked = frame.where(f"l_orderkey > {literal} AND l_comment LIKE '%bold%'")
            asked.selectExpr("sum(l_quantity)").collect()

    def block() -> float:
        start = time.perf_counter()
        ask(BLOCK)
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        return (time.perf_counter() - start) / BLOCK

    times: dict[bool, list[float]] = {True: [], False: []}
    for pair in range(1 + (QUICK_PAIRS if quick else PAIRS)):
        for recorded in (True, False) if pair % 2 else (False, True):
            with recording() if recorded else nullcontext():
                times[recorded].append(block())
    seconds = {recorded: np.array(items[1:]) for recorded, items in times.items()}  # the first pair warms up
    compared = ratio([seconds[True]], [seconds[False]])
    executions = QUICK_APPENDED if quick else APPENDED
    with recording(every=None) as last:
        ask(executions)
        start = time.perf_counter()
        last.flush()
        append = time.perf_counter() - start
    result: dict[str, float | None] = {
        "milliseconds with": 1000 * float(seconds[True].mean()),
        "milliseconds without": 1000 * float(seconds[False].mean()),
        "ratio": compared.mean,
        "ratio low": compared.low,
        "ratio high": compared.high,
        "append executions": float(executions),
        "append seconds": append,
        "append share": append / EVERY,
    }
    progress(f"recorder: {json.dumps(result)}")
    return result
