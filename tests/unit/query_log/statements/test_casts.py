"""Where Spark casts one side of a comparison, and what is left of the comparison."""

from __future__ import annotations

import struct

import pytest

from zorder_pipeline.features.statistics import enriched
from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.model.predicate import Comparison, Literal, Opaque, Or, Predicate
from zorder_pipeline.model.ranges import Interval, to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.query_log.statements.sql import Unusable, parse_statement

TYPES = {"x": "int", "n": "bigint", "f": "float", "p": "decimal(10,2)", "q": "decimal(38,10)", "c": "string"}
TYPES |= {"d": "date", "v": "double", "ts": "timestamp", "ntz": "timestamp_ntz"}
SCHEMA = TableSchema(tuple(Column(name, kind) for name, kind in TYPES.items()))


def _read(condition: str) -> Predicate:
    found = parse_statement(f"SELECT * FROM t WHERE {condition}", aliases={"t": "t"}, schemas={"t": SCHEMA})
    assert not isinstance(found, Unusable)
    return found[0].predicate


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x * 1000 < 5000", "x < 5"),
        ("x + 1 < 0", "x < -1"),
        ("-x < 0", "x > 0"),
        ("p * 2 < 5", "p < 2.5"),
        ("x >= '5.5'", "x >= '5.5'"),
        ("f = '0.1'", "f = '0.1'"),
        ("NOT p IN ('05')", "p NOT IN ('05')"),
        ("d IN ('2024-01-01')", "d IN ('2024-01-01')"),
        ("d > '2024-01-01'", "d > '2024-01-01'"),
        ("x BETWEEN '1' AND '2'", "x BETWEEN '1' AND '2'"),
        ("c = '5'", "c = '5'"),
        ("x >= 16777217F", "x >= 16777216.0e0"),
        ("f >= 0.5F", "f >= 0.5e0"),
        # casts that change no value
        ("CAST(c AS STRING) = 'A'", "c = 'A'"),
        ("CAST(c AS VARCHAR(1)) = 'A'", "c = 'A'"),  # of which Spark makes a STRING, too
        ("CAST(v AS DOUBLE) > 1.5", "v > 1.5"),
        ("CAST(x AS DOUBLE) <= 5", "x <= 5"),
        ("CAST(p AS DECIMAL(18, 2)) = 5.25", "p = 5.25"),
        ("CAST(x AS DECIMAL(12, 2)) < 7", "x < 7"),
        ("CAST(ts AS TIMESTAMP) >= '2024-01-01'", "ts >= '2024-01-01'"),
        (
            "date_trunc('MONTH', CAST(ts AS TIMESTAMP)) = DATE '2024-02-01'",
            "ts >= DATE '2024-02-01' AND ts < DATE '2024-03-01'",
        ),
        (
            "CAST(date_trunc('MONTH', CAST(ts AS TIMESTAMP)) AS DATE) = DATE '2024-02-01'",
            "ts >= DATE '2024-02-01' AND ts < DATE '2024-03-01'",
        ),
        (
            "CAST(ts AS DATE) IN (DATE '2024-01-01', DATE '2024-01-03')",
            (
                "(ts >= DATE '2024-01-01' AND ts < DATE '2024-01-02') OR "
                "(ts >= DATE '2024-01-03' AND ts < DATE '2024-01-04')"
            ),
        ),
        ("year(d) IN (2023)", "d >= DATE '2023-01-01' AND d < DATE '2024-01-01'"),
        # those that do
        ("CAST(n AS DOUBLE) = 9007199254740993", None),
        ("CAST(x AS DOUBLE) = 4.99999999999999999999", None),
        ("CAST(p AS DECIMAL(18, 1)) = 5.2", None),
        ("CAST(ntz AS TIMESTAMP) >= '2024-01-01'", None),
        ("CAST(ts AS TIMESTAMP(0)) >= TIMESTAMP '2024-01-01 00:00:00'", None),
        ("CAST(x AS DECIMAL(2, 0)) <=> NULL", None),
        # Spark rounds such products, casts the column, or compares its text
        ("q * 1.123456 < 5", None),
        ("p * 2 < '5'", None),
        ("x + 1 < '5.5'", None),
        # no number is the bound
        ("x * 2 <> 5", None),
        ("p * 3 < 1", None),
        ("n * 2 < 5e0", None),
        ("n IN (9007199254740993, 1e0)", None),
        ("v NOT LIKE '5'", None),
    ],
)
def test_only_what_spark_surely_compares_so_is_a_comparison(condition: str, expected: str | None) -> None:
    told = _read(condition)
    if expected is None:
        assert isinstance(told, Opaque)
    else:
        assert told.to_sql() == expected


SINGLE = struct.unpack("f", struct.pack("f", 0.1))[0]


@pytest.mark.parametrize(
    ("condition", "low", "high"),
    [
        ("f = 0.1", SINGLE, SINGLE),
        ("f <= 0.1", None, SINGLE),
        ("f BETWEEN 0.1 AND 0.1", SINGLE, SINGLE),
        ("f IN (0.1, 0.1)", SINGLE, SINGLE),
        ("f = 16777217", 16777216.0, 16777216.0),
        ("CAST(f AS REAL) = 0.1", SINGLE, SINGLE),
        # of a double all are made doubles
        ("f <= 1e-1", None, 0.1),
        ("f <= CAST(0.1 AS DOUBLE)", None, 0.1),
        ("CAST(f AS DOUBLE) <= 0.1", None, 0.1),
        ("v = 0.1", 0.1, 0.1),
    ],
)
@pytest.mark.parametrize("dialect", ["trino", "presto", "duckdb"])
def test_other_engines_make_singles_of_what_a_float_is_compared_with(
    dialect: str, condition: str, low: float | None, high: float
) -> None:
    statement = f"SELECT * FROM t WHERE {condition}"
    found = parse_statement(statement, dialect=dialect, aliases={"t": "t"}, schemas={"t": SCHEMA})
    assert not isinstance(found, Unusable)
    (((asked,),),) = (to_boxes(found[0].predicate, SCHEMA),)
    assert asked.intervals == (Interval(low, high),)


@pytest.mark.parametrize("dialect", ["spark", "snowflake", "bigquery"])
def test_those_that_make_doubles_of_both_find_no_float_equal(dialect: str) -> None:
    found = parse_statement("SELECT * FROM t WHERE f = 0.1", dialect=dialect, aliases={"t": "t"}, schemas={"t": SCHEMA})
    assert not isinstance(found, Unusable)
    assert to_boxes(found[0].predicate, SCHEMA) == ()


@pytest.mark.parametrize(
    ("literal", "op", "kind", "used"),
    [("'3'", "=", "int", False), ("3", "=", "int", True), ("3e0", "=", "int", False), ("'3'", "=", "string", True)],
)
def test_an_expression_is_compared_with_literals_of_its_own_kind(literal: str, op: str, kind: str, used: bool) -> None:
    feature = Feature("LENGTH(c)", "expression", kind, "LENGTH(c)", ("c",))
    asked = Opaque("function", ("c",), f"LENGTH(c) {op} {literal}")
    assert (enriched(asked, {feature: "e"}) != asked) == used
    either = Or((asked, Comparison("x", "=", (Literal("number", "1"),))))
    assert (enriched(either, {feature: "e"}) != either) == used
