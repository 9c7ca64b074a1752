"""Tables and plans that the gate is asked about."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from zorder_pipeline import pipeline
from zorder_pipeline.gate.benefit import promise
from zorder_pipeline.gate.cost import CostModel
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.candidate import ANOTHER
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.relayout.snapshot import open_table

BUSY = GateSettings(queries_per_day=1e7, costs=CostModel(per_opened_file=0.0))
SETTINGS = pipeline.LearnSettings(trials=40, target_file_rows=500)


def make(spark: SparkSession, path: Path, rows: int = 4_000, parts: int = 1) -> str:
    frame = spark.range(rows).selectExpr(
        "id", "pmod(hash(id), 10000) AS k", "pmod(hash(id, 1), 10000) AS v", f"id % {parts} AS p"
    )
    writer = frame.repartition(4).write.format("delta")
    (writer.partitionBy("p") if parts > 1 else writer).save(str(path))
    return str(path)


def log(path: Path, statements: list[str]) -> str:
    lines = (
        json.dumps({"statement": text, "timestamp": f"2026-01-{1 + i // 24:02d}T{i % 24:02d}:00:00Z"})
        for i, text in enumerate(statements)
    )
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def promising(spark: SparkSession, table: str, saved: float = 0.8, column: str = "k") -> Plan:
    """A layout with the promise to save this share of what a hundred queries read."""
    plan = pipeline.layout_by_hand(spark, table, {column: 4}, settings=SETTINGS)
    size = float(open_table(spark, table).files().bytes.sum())
    shares = np.full(100, 1.0), np.full(100, 1.0 - saved), np.full(100, size)
    return replace(plan, origin="learned", action=ANOTHER, promise=promise(*shares, (1e7, "observed")))
