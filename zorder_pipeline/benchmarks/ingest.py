"""How fast logs are read: statements of known and of ever new templates, event logs, and the way into the state."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlglot
from sqlglot.optimizer.qualify import qualify

from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.query_log.intake.files import list_logs
from zorder_pipeline.query_log.intake.ingest import Interpreter
from zorder_pipeline.query_log.statements.catalog import Catalog

from .harness import OURS, Options, Outcome, Progress, Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["WORKLOAD"]

TEMPLATES = 1000
COLUMNS = {f"k{i}": "bigint" for i in range(30)} | {f"d{i}": "date" for i in range(10)}
COLUMNS |= {f"c{i}": "string" for i in range(20)} | {f"p{i}": "decimal(12,2)" for i in range(10)}
SCHEMA = TableSchema(tuple(Column(name, kind) for name, kind in COLUMNS.items()))
CATALOG = Catalog({"sales": "sales", "customers": "customers"}, {"sales": SCHEMA, "customers": SCHEMA})
NOISE = {"Event": "SparkListenerTaskEnd", "Task Metrics": {f"metric {i}": i * 1000 for i in range(60)}}


def run(options: Options, progress: Progress) -> Sequence[Outcome]:
    """Statements (or MB) per second: ours, ours without a template twice, and sqlglot's parse and qualify alone."""
    from zorder_pipeline.spark import session

    count = 10_000 if options.quick else 100_000
    spark = session({"spark.sql.shuffle.partitions": "2"}, "zorder bench")
    outcomes: list[Outcome] = []
    for seed in options.seeds:
        progress(f"seed {seed}: {count} statements")
        outcomes += options.noted(_seed(seed, count, options.work / str(seed), spark))
    return outcomes


def _seed(seed: int, count: int, work: Path, spark: SparkSession) -> Iterator[Outcome]:
    work.mkdir(parents=True, exist_ok=True)
    draw = random.Random(seed)
    shapes = [_shape(draw) for _ in range(TEMPLATES)]
    known, fresh = work / "known.jsonl", work / "fresh.jsonl"
    _write(known, (_filled(draw, draw.choice(shapes)) for _ in range(count)))
    _write(fresh, (_filled(draw, _shape(draw)) for _ in range(count // 10)))
    events = work / "local-1"
    _write_events(events, draw, count // 20)
    yield _outcome(OURS, f"JSON Lines, {TEMPLATES:,} templates", seed, _interpreted(known, "sql"))
    yield _outcome("fresh", "JSON Lines, every statement new", seed, _interpreted(fresh, "sql"))
    yield _outcome("events", "Spark event log, executions", seed, _interpreted(events, "spark-events"))
    yield _outcome("state", f"into the state on Spark, {TEMPLATES:,} templates", seed, _stored(known, work, spark))
    yield _outcome("sqlglot", "sqlglot parse and qualify, no predicates", seed, _plain(known, min(count, 5000)))


def _outcome(name: str, label: str, seed: int, measured: tuple[int, float, int]) -> Outcome:
    lines, seconds, size = measured
    rates = {"lines_per_second": np.array([lines / seconds]), "mb_per_second": np.array([size / 1e6 / seconds])}
    return Outcome(name, label, seed, rates, figures={"lines": lines, "seconds": seconds, "bytes": size})


def _interpreted(path: Path, log_format: str) -> tuple[int, float, int]:
    interpreter, started = Interpreter(CATALOG), time.perf_counter()
    lines = sum(1 for log in list_logs(str(path), log_format) for _ in interpreter.log(log))
    return lines, time.perf_counter() - started, path.stat().st_size


def _stored(path: Path, work: Path, spark: SparkSession) -> tuple[int, float, int]:
    from zorder_pipeline.query_log.intake.store import LogStore

    state = work / f"state-{time.time_ns()}"
    started = time.perf_counter()
    lines = LogStore(spark, str(state)).ingest(str(path), CATALOG).log.lines
    return lines, time.perf_counter() - started, path.stat().st_size


def _plain(path: Path, count: int) -> tuple[int, float, int]:
    tables: dict[str, object] = {name: dict(COLUMNS) for name in ("sales", "customers")}
    texts = [json.loads(line)["statement"] for line, _ in zip(path.open(), range(count), strict=False)]
    started = time.perf_counter()
    for text in texts:
        qualify(sqlglot.parse_one(text, read="spark"), schema=tables, dialect="spark")
    return len(texts), time.perf_counter() - started, sum(map(len, texts))


def _shape(draw: random.Random) -> str:
    """A statement with ``{n}``, ``{d}`` and ``{s}`` where its literals go; joins and subqueries among them."""

    def condition(alias: str) -> str:
        number, day = f"{alias}k{draw.randrange(30)}", f"{alias}d{draw.randrange(10)}"
        text, price = f"{alias}c{draw.randrange(20)}", f"{alias}p{draw.randrange(10)}"
        return draw.choice(
            [
                f"{number} = {{n}}",
                f"{number} BETWEEN {{n}} AND {{n}}",
                f"{number} IN ({{n}}, {{n}}, {{n}})",
                f"{day} >= DATE '{{d}}' AND {day} < DATE '{{d}}' + INTERVAL 1 MONTH",
                f"{text} = '{{s}}'",
                f"{text} LIKE '{{s}}%'",
                f"{price} > {{n}}.5",
                f"({number} < {{n}} OR {text} <> '{{s}}')",
            ]
        )

    wheres = [condition("s.") for _ in range(draw.randint(1, 4))]
    columns = ", ".join(f"s.k{draw.randrange(30)}" for _ in range(draw.randint(1, 6)))
    shape = draw.random()
    if shape < 0.5:
        return f"SELECT {columns} FROM sales s WHERE {' AND '.join(wheres)}"
    if shape < 0.75:
        joined = f"JOIN customers c ON s.k1 = c.k1 WHERE {' AND '.join([*wheres, condition('c.')])}"
        return f"SELECT {columns}, count(*) AS n FROM sales s {joined} GROUP BY {columns} ORDER BY n DESC LIMIT 100"
    inner = f"SELECT c.k1 FROM customers c WHERE {condition('c.')}"
    return f"WITH w AS (SELECT * FROM sales s WHERE {wheres[0]}) SELECT {columns} FROM w s WHERE s.k1 IN ({inner})"


def _filled(draw: random.Random, shape: str) -> str:
    text = shape
    while "{" in text:
        text = text.replace("{n}", str(draw.randrange(1_000_000)), 1)
        text = text.replace("{d}", f"2025-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}", 1)
        text = text.replace("{s}", f"v{draw.randrange(10_000)}", 1)
    return text


def _write(path: Path, statements: Iterator[str]) -> None:
    with path.open("w", encoding="utf-8") as stream:
        for i, statement in enumerate(statements):
            stream.write(json.dumps({"statement": statement, "timestamp": 1_760_000_000_000 + i * 1000}) + "\n")


def _write_events(path: Path, draw: random.Random, count: int) -> None:
    """An event log as a busy application writes it: most lines are about tasks."""
    noise = json.dumps(NOISE)
    schema = "struct<" + ",".join(f"{name}:{kind}" for name, kind in list(COLUMNS.items())[:12]) + ">"
    with path.open("w", encoding="utf-8") as stream:
        for i in range(count):
            name = f"k{draw.randrange(12)}"
            filters = f"[isnotnull({name}#{i}L), ({name}#{i}L >= {draw.randrange(1000)}), ({name}#{i}L < {10**6})]"
            scan: dict[str, Any] = {
                "nodeName": "Scan parquet spark_catalog.default.sales",
                "simpleString": "FileScan parquet spark_catalog.default.sales" * 8,
                "children": [],
                "metadata": {
                    "Location": "PreparedDeltaFileIndex(1 paths)[file:/lake/sales]",
                    "ReadSchema": schema,
                    "DataFilters": filters,
                    "PartitionFilters": "[]",
                    "PushedFilters": "[]",
                },
                "metrics": [{"name": f"metric {j}", "accumulatorId": j, "metricType": "sum"} for j in range(20)],
            }
            plan: dict[str, Any] = scan
            for node in (
                "ColumnarToRow",
                "Filter",
                "Project",
                "WholeStageCodegen (1)",
                "Exchange",
                "AdaptiveSparkPlan",
            ):
                plan = {"nodeName": node, "simpleString": node * 20, "children": [plan], "metadata": {}, "metrics": []}
            kind = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"
            start = {"Event": kind + "Start", "executionId": i, "description": "q", "details": "x" * 2000}
            start |= {"physicalPlanDescription": "y" * 4000, "sparkPlanInfo": plan, "time": 1_760_000_000_000 + i}
            end = {"Event": kind + "End", "executionId": i, "time": 1_760_000_000_100 + i}
            stream.write("\n".join([json.dumps(start), *[noise] * 12, json.dumps(end)]) + "\n")


WORKLOAD = Workload("ingest", "reading query logs, lines per second", run, scaled=False)
