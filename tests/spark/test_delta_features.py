"""A relayout of tables with each feature that Delta has: readers notice nothing, writers go on.

Every case makes a real table of several files, lays it out by hand, and is looked at before and after by Spark (rows,
row ids, change feed, a stream, time travel), by delta-rs and by DuckDB, which reads the new files on its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from tests.conftest import INTERPRETED
from tests.spark.delta_feature_cases import CASES, Case, made
from zorder_pipeline.benchmarks.data import session_conf
from zorder_pipeline.pipeline import LearnSettings, apply, layout_by_hand
from zorder_pipeline.relayout.file_list import LAYOUT_TAG
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table

pytestmark = pytest.mark.matrix

CONF = {  # many small plans: compiling them would take longer than running them
    **INTERPRETED,
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
TARGET = 100


@pytest.fixture(autouse=True, scope="module")
def _quick(spark: SparkSession) -> Iterator[None]:
    with session_conf(spark, CONF):
        yield


def spark_rows(spark: SparkSession, snapshot: TableSnapshot, version: int | None = None) -> list[str]:
    """The rows, with their ids where the table has them."""
    reader = spark.read.format("delta")
    reader = reader if version is None else reader.option("versionAsOf", version)
    ids = ["_metadata.row_id", "_metadata.row_commit_version"] if "rowTracking" in snapshot.features else []
    return sorted(map(str, reader.load(snapshot.location).selectExpr("*", *ids).collect()))


def delta_rs_rows(path: str) -> list[str]:
    found = QueryBuilder().register("t", DeltaTable(Path(path).as_uri())).execute("SELECT * FROM t").read_all()
    return sorted(map(str, (tuple(row.values()) for row in found.to_struct_array().to_pylist())))


def streamed(spark: SparkSession, path: str, checkpoint: Path) -> int:
    """Rows that a stream sees that goes on where it stopped the last time."""
    source = spark.readStream.format("delta").load(path)
    sink = source.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = sink.trigger(availableNow=True).start()
    query.awaitTermination()
    return sum(progress["numInputRows"] for progress in query.recentProgress)


def actions(path: str, version: int, kind: str) -> list[dict[str, Any]]:
    lines = Path(path, "_delta_log", f"{version:020}.json").read_text().splitlines()
    return [item[kind] for item in map(json.loads, lines) if kind in item]


def check_files(path: str, version: int, snapshot: TableSnapshot, layout_id: str) -> None:
    """The commit changes no data, and what it says of its files is what DuckDB finds in them."""
    added = actions(path, version, "add")
    assert not any(item["dataChange"] for item in added + actions(path, version, "remove"))
    assert len(added) > 2
    k = next(leaf.physical[0] for leaf in snapshot.leaves if leaf.path == ("k",))
    for item in added:
        stats, name = json.loads(item["stats"]), f"{path}/{unquote(item['path'])}"
        assert item["tags"][LAYOUT_TAG] == layout_id
        assert item.get("deletionVector") is None
        relation = duckdb.read_parquet(name, hive_partitioning=False)
        found = relation.aggregate(f'count(*), min("{k}"), max("{k}")').fetchall()
        assert [(stats["numRecords"], stats["minValues"][k], stats["maxValues"][k])] == found


QUICK = (
    "deletion vectors, row tracking and change feed",
    "generated, identity and default columns, CHECK and NOT NULL",
)
"""Cases that every change has to pass."""


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=() if case.name in QUICK else pytest.mark.slow, id=case.name) for case in CASES],
)
def test_nobody_notices_a_relayout(spark: SparkSession, tmp_path: Path, case: Case) -> None:
    path, checkpoint = made(spark, tmp_path, case), tmp_path / "checkpoint"
    table = f"delta.`{path}`"
    before = open_table(spark, path)
    rows = spark_rows(spark, before)
    others = [] if case.delta_rs else delta_rs_rows(path)
    assert len(before.files()) > 3
    streamed(spark, path, checkpoint)

    plan = layout_by_hand(spark, path, case.bits, settings=LearnSettings(target_file_rows=TARGET))
    done = apply(spark, path, plan, force=True, verify=case.verify)
    assert (done.decision, done.rows, done.version) == ("applied", len(rows), before.version + 1)
    after = open_table(spark, path)
    for part in ("metadata", "protocol"):
        assert getattr(after.jsnapshot, part)().json() == getattr(before.jsnapshot, part)().json()
    assert spark_rows(spark, after) == rows
    assert spark_rows(spark, after, before.version) == rows
    assert case.delta_rs or delta_rs_rows(path) == others
    assert plan.spec is not None
    check_files(path, done.version, after, plan.spec.layout_id)
    indexed = {column.name for column in after.schema.columns if column.delta_stats}
    zones = after.files().zones
    assert all(zones[name].known.all() for name in case.bits if name in indexed), zones.keys()
    history = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()[0]
    assert (history["operation"], history["operationMetrics"]["numAddedFiles"]) == ("OPTIMIZE", str(done.files_added))
    if "changeDataFeed" in after.features:
        changes = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", done.version)
        assert changes.load(path).count() == 0
    assert apply(spark, path, plan, force=True).decision == "nothing_to_do"

    spark.sql(f"INSERT INTO {table} {case.insert} FROM range(10)")
    assert streamed(spark, path, checkpoint) == 10
    for statement in case.writes:
        spark.sql(statement.replace("{t}", table))
    assert spark.sql(f"SELECT {case.then} FROM {table}").collect()[0][0] is True
