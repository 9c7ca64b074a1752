"""A layout pinned in tables.yaml goes through the same engine: tags, checks and transaction; the gate is not asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from dagster import AssetKey, DagsterInstance
from deltalake import DeltaTable

from tests.dagster.conftest import statements, write_log, write_table
from zorder_pipeline.assets import build_definitions
from zorder_pipeline.assets.run import run_tables
from zorder_pipeline.config import PipelineConfig, load_config
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


pytestmark = [pytest.mark.dagster, pytest.mark.spark]


def lake(folder: Path, rng: np.random.Generator) -> PipelineConfig:
    """A table, its log and its configuration."""
    write_table(folder / "sales", rng)
    write_log(folder / "log.jsonl", statements("sales", 30, rng))
    (folder / "tables.yaml").write_text(CONFIG)
    return load_config(folder / "tables.yaml", check_paths=False)


@pytest.mark.slow
def test_a_pinned_layout_is_applied_once_although_no_benefit_shows(spark: SparkSession, tmp_path: Path) -> None:
    config = lake(tmp_path, np.random.default_rng(2))
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


@pytest.mark.matrix
def test_what_was_rolled_back_is_not_done_again_by_materializing_the_table_alone(tmp_path: Path) -> None:
    """The judgement of the night before approves; the table as it is now is judged again."""
    config, table = lake(tmp_path, np.random.default_rng(2)), DeltaTable(str(tmp_path / "sales"))
    job = build_definitions(config).resolve_job_def("nightly_relayout")
    alone = [AssetKey(["sales", "clustered_table"])]
    with DagsterInstance.ephemeral() as instance:
        night = job.execute_in_process(instance=instance)
        table.update_incremental()
        assert (night.success, table.version()) == (True, 16)
        table.restore(15)
        again = job.execute_in_process(instance=instance, asset_selection=alone)
        assert again.success
        (seen,) = instance.fetch_observations(alone[0], limit=1).records
    table.update_incremental()
    assert table.version() == 17
    said = seen.asset_observation
    assert said is not None
    assert said.metadata["cause"].value == "rolled_back"
