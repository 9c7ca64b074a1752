"""One Spark session and one finished nightly run for all of these tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from dagster import DagsterInstance, Definitions, ExecuteInProcessResult
from deltalake import write_deltalake

from tests.conftest import COMPILED
from zorder_pipeline.assets import build_definitions
from zorder_pipeline.benchmarks.data import session_conf
from zorder_pipeline.config import PipelineConfig, load_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONFIG = """
spark: {master: "local[2]"}
state: state
query_logs: [{path: log.jsonl, format: sql}]
tables:
  - name: sales
    location: sales
    search: {trials: 80, sample_rows: 4000}
    layout: {target_file_rows: 500}
    gate: {queries_per_day: 10000000}     # for so small a table only a high rate pays
  - {name: seldom, location: seldom, search: {trials: 40, sample_rows: 4000}, gate: {queries_per_day: 0.000001}}
  - name: daily
    location: daily
    search: {trials: 40, sample_rows: 4000}
    layout: {target_file_rows: 300, verify: hash}
    gate: {enabled: false}      # its partitions are what matters here
  - {name: unasked, location: unasked}
  - {name: missing, location: nowhere}
"""
FILES, ROWS = 16, 500


class Night(NamedTuple):
    """A nightly run over five tables, and where it left its traces."""

    folder: Path
    config: PipelineConfig
    defs: Definitions
    instance: DagsterInstance
    result: ExecuteInProcessResult


def write_table(folder: Path, rng: np.random.Generator) -> None:
    for _ in range(FILES):
        day = rng.integers(0, 1000, ROWS)
        part = rng.integers(0, 1000, ROWS)
        write_deltalake(str(folder), pa.table({"day": day, "sent": day + 1, "part": part}), mode="append")


DAYS = ["2026-01-01", "2026-01-02", "2026-01-03"]


def write_daily(folder: Path, rng: np.random.Generator, days: list[str]) -> None:
    """A table partitioned by day, two files to each."""
    for _ in range(2):
        for ds in days:
            values = {name: rng.integers(0, 1000, ROWS) for name in ("day", "sent", "part")}
            write_deltalake(str(folder), pa.table({"ds": [ds] * ROWS, **values}), mode="append", partition_by=["ds"])


def statements(table: str, n: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    made = []
    for i in range(n):
        column, low = ("day", "part", "sent")[i % 3], int(rng.integers(0, 980))
        text = f"SELECT count(*) FROM {table} WHERE {column} BETWEEN {low} AND {low + 10}"
        made.append({"statement": text, "timestamp": f"2026-01-{1 + i // 24:02d}T{i % 24:02d}:00:00Z", "user": "ann"})
    return made


def write_log(path: Path, log: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in log))


@pytest.fixture(scope="session")
def night(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    folder = tmp_path_factory.mktemp("night")
    rng = np.random.default_rng(1)
    for name in ("sales", "seldom", "unasked"):
        write_table(folder / name, rng)
    write_daily(folder / "daily", rng, DAYS)
    log = [*statements("sales", 120, rng), *statements("seldom", 90, rng), *statements("daily", 120, rng)]
    log = [*log, {"statement": "SELEKT <b>1</b> FROM"}]
    write_log(folder / "log.jsonl", log)
    (folder / "tables.yaml").write_text(CONFIG)
    config = load_config(folder / "tables.yaml", check_paths=False)
    defs = build_definitions(config)
    with session_conf(spark, COMPILED), DagsterInstance.ephemeral() as instance:  # interpreted it takes twice as long
        job = defs.resolve_job_def("nightly_relayout")
        yield Night(folder, config, defs, instance, job.execute_in_process(instance=instance, raise_on_error=False))
