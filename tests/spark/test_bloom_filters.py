"""Parquet's Bloom filters of the columns by which queries look up what no order leads to."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from zorder_pipeline import pipeline
from zorder_pipeline.errors import PlanError
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.plan import Plan, read_plan, write_plan

ROWS = """SELECT CAST(hash(id) AS BIGINT) * 4294967296 + id AS order_id, sha2(CAST(id AS STRING), 256) AS token,
 date_add(DATE'2024-01-01', CAST(id % 400 AS INT)) d, CAST(id % 7 AS INT) kind, id FROM range(40000)"""


@pytest.fixture(scope="module")
def orders(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A table in 40 files, and a log of days and of look-ups by a scattered number, a kind and now and then a token."""
    folder = tmp_path_factory.mktemp("orders")
    path, log = str(folder / "orders"), folder / "log.jsonl"
    writer = spark.sql(ROWS).repartition(40).write.format("delta")
    writer.option("delta.columnMapping.mode", "name").save(path)
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN id TO line")
    ids = [row[0] for row in spark.read.format("delta").load(path).select("order_id").limit(200).collect()]
    asked = []
    for i in range(200):
        day, value = f"2024-{1 + i % 12:02}-{1 + i % 28:02}", ids[i]
        asked.append(f"d = DATE'{day}'" if i % 2 else f"order_id = {value}")
        asked += [f"kind = {i % 7} AND d > DATE'{day}'"] if i % 5 == 0 else []
        asked += [f"token = '{i:064}'"] if i % 100 == 0 else []
    lines = [
        json.dumps(
            {"statement": f"SELECT * FROM orders WHERE {condition}", "timestamp": 1_700_000_000_000_000 + i * 10**6}
        )
        for i, condition in enumerate(asked)
    ]
    log.write_text("\n".join(lines))
    return path, str(log)


def _filtered(path: str) -> set[str]:
    """Physical names of the columns with filters, in all row groups of the files that the table has now."""
    from deltalake import DeltaTable

    files = [file.removeprefix("file://") for file in DeltaTable(path).file_uris()]
    asked = "SELECT path_in_schema, count(bloom_filter_offset) = count(*) FROM parquet_metadata(?) GROUP BY ALL"
    found = duckdb.connect().execute(asked, [files]).fetchall()
    return {name for name, every in found if every}


def _learned(spark: SparkSession, orders: tuple[str, str], *filters: tuple[str, ...]) -> Plan:
    settings = pipeline.LearnSettings(trials=40, target_file_rows=1000, bloom_filters=filters[0] if filters else None)
    return pipeline.learn(spark, orders[0], [orders[1]], aliases=["orders"], settings=settings)


def test_what_is_looked_up_and_lies_scattered_gets_filters(
    spark: SparkSession, orders: tuple[str, str], tmp_path: Path
) -> None:
    path, _ = orders
    plan = _learned(spark, orders)
    cut = {plan.spec.features[i].column for i in plan.spec.telling} if plan.spec is not None else set()
    assert plan.bloom_filters == ("order_id",), (cut, plan.notes)
    assert any("Bloom filters of order_id, by which 4" in note for note in plan.notes), plan.notes
    write_plan(plan, tmp_path / "plan.json")
    before = sorted(map(tuple, spark.read.format("delta").load(path).collect()))
    result = pipeline.apply(spark, path, read_plan(tmp_path / "plan.json"), gate=GateSettings(enabled=False))
    assert result.decision == "applied"
    assert len(_filtered(path)) == 1, "by the name that the column has in the files"
    assert sorted(map(tuple, spark.read.format("delta").load(path).collect())) == before
    assert spark.conf.get("parquet.bloom.filter.max.bytes", None) is None, "the settings last for one rewrite"


def test_columns_can_be_named(spark: SparkSession, orders: tuple[str, str]) -> None:
    path, _ = orders
    assert _learned(spark, orders, ()).bloom_filters == ()
    with pytest.raises(PlanError, match="there is no column nobody to have Bloom filters of; the table has order_id, "):
        _learned(spark, orders, ("nobody",))
    settings = pipeline.LearnSettings(target_file_rows=1000, bloom_filters=("TOKEN", "line"))
    plan = pipeline.layout_by_hand(spark, path, {"d": 6}, settings=settings)
    assert plan.bloom_filters == ("token", "line")
    assert pipeline.apply(spark, path, plan, gate=GateSettings(enabled=False)).decision == "applied"
    assert len(_filtered(path)) == 2
