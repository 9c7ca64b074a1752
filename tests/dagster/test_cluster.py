"""The configured chain on a standalone cluster of two workers: the same layout and the same rows as on one machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deltalake import DeltaTable

from tests.json_page import json_printed

from .conftest import statements, write_log, write_table

pytestmark = [pytest.mark.dagster, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]
CONFIG = """
spark:
  master: "{master}"
  conf: {{spark.driver.memory: 1g, spark.driver.host: 127.0.0.1, spark.executor.memory: 512m, {more}}}
query_logs: [{{path: log.jsonl, format: sql}}]
tables:
  - name: sales
    location: sales
    search: {{trials: 60, sample_rows: 8000}}
    layout: {{target_file_rows: 500, verify: hash}}
    gate: {{queries_per_day: 10000000}}
"""


def chain(data: Path, folder: Path, master: str, more: str) -> tuple[dict[str, Any], Any]:
    """``zorder run`` on a copy of ``data``; what it told, and the rows in an order of their own."""
    shutil.copytree(data, folder)
    (folder / "tables.yaml").write_text(CONFIG.format(master=master, more=more))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    environment.pop("DAGSTER_HOME", None)
    words = [sys.executable, "-m", "zorder_pipeline.cli", "run", "--config", str(folder / "tables.yaml"), "--json"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json_printed("run", done.stdout)["tables"]["sales"]
    order = [(name, "ascending") for name in ("day", "sent", "part")]
    return told, DeltaTable(str(folder / "sales")).to_pyarrow_table().sort_by(order)


def layout(table: Path) -> set[str]:
    """Ids of the layout that the first relayout's files lie by: a hash of all that the key says."""
    actions = (table / "_delta_log" / f"{16:020d}.json").read_text().splitlines()
    added = (json.loads(line).get("add", {}) for line in actions)
    return {tags["zorder.layout"] for add in added if (tags := add.get("tags"))}


def test_a_cluster_comes_to_the_same_layout_and_rows(tmp_path: Path) -> None:
    machines = pytest.importorskip("tests.spark.test_cluster", reason="the cluster of the relayout's own tests")
    data, rng = tmp_path / "data", np.random.default_rng(1)
    data.mkdir()
    write_table(data / "sales", rng)  # once: rows are sampled by the names of their files
    write_log(data / "log.jsonl", statements("sales", 120, rng))
    with machines.cluster(tmp_path) as url:
        spread, there = chain(data, tmp_path / "cluster", url, f'spark.executorEnv.PYTHONPATH: "{ROOT}"')
    alone, here = chain(data, tmp_path / "alone", "local[2]", "spark.ui.enabled: false")
    assert spread["decision"] == alone["decision"] == "applied"
    layouts = [layout(tmp_path / name / "sales") for name in ("cluster", "alone")]
    assert layouts[0] == layouts[1]
    assert len(layouts[0]) == 1
    assert there.equals(here)
    assert there.num_rows == 8000
