"""Where Spark casts one side of a comparison, and what is left of the comparison."""

from __future__ import annotations

import struct

import pytest

from zorder_pipeline.features.statistics import enriched
from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.model.predicate import Comparison, Literal, Opaque, Or, Predicate, comparisons
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
        ("CAST(p AS DECIMAL(12, 4)) = 5.25", "p = 5.25"),
        ("CAST(n AS DECIMAL(20, 0)) IN (5, 7)", "n = 5 OR n = 7"),
        ("CAST(d AS TIMESTAMP) >= TIMESTAMP '2024-01-01 00:00:00'", "d >= TIMESTAMP_NTZ '2024-01-01 00:00:00'"),
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
        # nor those to a decimal that has no place for some value
        ("CAST(x AS DECIMAL(9, 0)) = 5", None),
        ("CAST(n AS DECIMAL(19, 0)) BETWEEN 5 AND 7", None),
        ("CAST(n AS DECIMAL(19, 0)) IN (5, 7)", None),
        ("CAST(p AS DECIMAL(11, 4)) = 5.25", None),
        ("CAST(n AS DECIMAL) = 5", None),
        # nulls filled with what makes a double of the column, rounds it or makes an instant of it
        ("coalesce(n, 0e0) > 5", None),
        ("coalesce(x, 0F) > 5", None),
        ("coalesce(p, CAST(0 AS DOUBLE)) > 5", None),
        ("coalesce(q, 12345678901234567890123456789) > 5", None),
        ("coalesce(q, 0) > 0.12345678901234567890", None),
        ("coalesce(ntz, TIMESTAMP '2024-01-01 00:00:00') > TIMESTAMP '2024-02-01 00:00:00'", None),
        # and with what makes a wider number of it
        ("coalesce(p, 0) > 5", "p > 5"),
        ("coalesce(x, 0.5) < 5", "x < 5 OR x IS NULL"),
        ("coalesce(f, 0) > 5", "f > 5"),
        ("coalesce(v, 0.5) > 5", "v > 5"),
        # sums may overflow: Spark solves none
        ("x + 1 < 0", None),
        ("-x < 0", None),
        ("p * 2 < 5", None),
        # in a list Spark takes no date out of the time that is made of it
        ("CAST(d AS TIMESTAMP) IN (TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-01-03 00:00:00')", None),
        # Spark casts the column, or compares its text
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


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("c LIKE 'a!_%' ESCAPE '!'", "startswith(c, 'a_')"),
        ("c LIKE 'a!_b' ESCAPE '!'", "c = 'a_b'"),
        ("c LIKE 'a_b%'", "startswith(c, 'a')"),
        ("(x, p) IN ((1, 2.5), (3, 4.5))", "x IN (1, 3) AND p IN (2.5, 4.5)"),
        ("(x, p) = (1, 2.5)", "x IN (1) AND p IN (2.5)"),
        ("(1, NULL) = (x, p)", "x IN (1)"),  # in rows Spark takes a null for equal to it
        ("(x, p) IN ((1, NULL), (3, 4.5))", "x IN (1, 3)"),
    ],
)
def test_what_delta_makes_no_comparison_of_is_one_for_scans_alone(condition: str, expected: str) -> None:
    told = _read(condition)
    assert " AND ".join(leaf.to_sql() for leaf in comparisons(told)) == expected
    assert all(leaf.solved for leaf in comparisons(told))
    assert to_boxes(told, SCHEMA) == ((),)


@pytest.mark.parametrize("condition", ["c LIKE 'a%' ESCAPE '!'", "c LIKE 'a%b' ESCAPE '!'", "c LIKE 'ab' ESCAPE '!'"])
def test_an_escape_that_a_pattern_does_not_use_changes_nothing(condition: str) -> None:
    assert to_boxes(_read(condition), SCHEMA) == to_boxes(_read(condition.removesuffix(" ESCAPE '!'")), SCHEMA)


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
