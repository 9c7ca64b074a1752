"""A layout pinned in tables.yaml goes through the same engine: tags, checks and transaction; the gate is not asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from dagster import DagsterInstance

from tests.dagster.conftest import statements, write_log, write_table
from zorder_pipeline.assets.run import run_tables
from zorder_pipeline.config import load_config
from zorder_pipeline.pipeline import layout_by_hand
from zorder_pipeline.relayout.snapshot import open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONFIG = """
spark: {master: "local[2]"}
state: state
query_logs: [{path: log.jsonl, format: sql}]
tables:
  - {name: sales, location: sales, gate: {queries_per_day: 0.000001}, search: {sample_rows: 4000},
     layout: {target_file_rows: 500, pinned_bits: {part: 4, day: 2}, verify: hash}}
"""


@pytest.mark.dagster
@pytest.mark.spark
@pytest.mark.slow
def test_a_pinned_layout_is_applied_once_although_no_benefit_shows(spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    write_table(tmp_path / "sales", rng)
    write_log(tmp_path / "log.jsonl", statements("sales", 30, rng))
    (tmp_path / "tables.yaml").write_text(CONFIG)
    config = load_config(tmp_path / "tables.yaml", check_paths=False)
    with DagsterInstance.ephemeral() as instance:
        first, second = (run_tables(config, ["sales"], instance=instance)[0] for _ in range(2))
    assert (first.decision, second.decision) == ("applied", "nothing_to_do")
    snapshot = open_table(spark, str(tmp_path / "sales"))
    files = snapshot.files()
    by_hand = layout_by_hand(spark, snapshot.location, {"part": 4, "day": 2})
    assert by_hand.spec is not None
    (layout,) = set(files.layout)
    row = spark.sql(f"DESCRIBE HISTORY delta.`{snapshot.location}` LIMIT 1").collect()[0]
    assert row["operation"] == "OPTIMIZE"
    assert row["userMetadata"].startswith(f"zorder layout {layout} ")
    assert json.loads(row["operationParameters"]["zOrderBy"]) == list(by_hand.spec.columns)
    width = (files.zones["part"].high - files.zones["part"].low).astype(float)
    assert width.mean() < 200  # of a thousand parts
    assert int(files.rows.sum()) == 8000
