"""Canonical values as Spark SQL: each literal equals itself in a column of its type, and boxes match their rows."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from zorder_pipeline.model.predicate import And, Comparison, Literal, Or
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.spark_sql import boxes_sql, value_sql
from zorder_pipeline.model.values import ValueType, canonical_array

COLUMNS = {
    "int": pa.array([-5, None, 2**31 - 1], pa.int32()),
    "bigint": pa.array([-(2**63), None, 0], pa.int64()),
    "float": pa.array([0.1, None, float("nan")], pa.float32()),
    "double": pa.array([1e-300, float("-inf"), float("nan")]),
    "decimal(12,2)": pa.array([Decimal("-0.05"), None, Decimal("9999999999.99")], pa.decimal128(12, 2)),
    "decimal(38,0)": pa.array([Decimal(10**37), None, Decimal(-1)], pa.decimal128(38, 0)),
    "string": pa.array(["it's \\n \u00fc\U0001f600", None, ""]),
    "date": pa.array([dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
    "timestamp": pa.array([-1, None, 1_720_000_000_123_456], pa.timestamp("us", "UTC")),
    "timestamp_ntz": pa.array([-1_500_001, None, 1_720_000_000_123_456], pa.timestamp("us")),
    "boolean": pa.array([True, None, False]),
    "binary": pa.array([b"\xff\x00", None, b""]),
}


@pytest.fixture(scope="module", params=["UTC", "America/New_York"])
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> str:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


def test_every_value_equals_itself(spark: SparkSession, zone: str) -> None:
    table = pa.table({f"c{i}": column for i, column in enumerate(COLUMNS.values())})
    rows = spark.createDataFrame(table)
    checks = []
    for i, (name, column) in enumerate(COLUMNS.items()):
        value_type = ValueType.parse(name)
        values, valid = canonical_array(column, value_type)
        present = enumerate(values[valid].tolist())
        checks += [f"count_if(c{i} = {value_sql(v, value_type)}) AS `{name} {place}`" for place, v in present]
    found = rows.selectExpr(*checks).collect()[0].asDict()
    assert {name: count for name, count in found.items() if count != 1} == {}, zone


def test_boxes_match_like_the_predicate(spark: SparkSession) -> None:
    schema = TableSchema((Column("a.b", "int"), Column("we`ird", "string")))
    paths = {"a.b": ("a", "b"), "we`ird": ("we`ird",)}
    rows = spark.sql(
        "SELECT named_struct('b', x) AS a, s AS `we``ird` FROM VALUES (1, 'p'), (5, NULL), (NULL, 'q') t(x, s)"
    )
    predicate = Or(
        (
            And((Comparison("a.b", "<>", (Literal("number", "5"),)), Comparison("we`ird", "is_not_null"))),
            Comparison("we`ird", "is_null"),
        )
    )
    condition = boxes_sql(to_boxes(predicate, schema), paths)
    assert sorted(row[0] for row in rows.where(condition).selectExpr("coalesce(a.b, 0)").collect()) == [1, 5]
    assert rows.where(f"NOT ({condition})").count() == 1
