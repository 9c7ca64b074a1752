"""What a condition says without ANSI mode, where numbers wrap around and strings are cut."""

from __future__ import annotations

import pytest

from zorder_pipeline.features.statistics import enriched
from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.model.predicate import Comparison, Literal, Opaque, Or, Predicate
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.query_log.sql import Unusable, parse_statement

TYPES = {"x": "int", "n": "bigint", "f": "float", "p": "decimal(10,2)", "q": "decimal(38,10)", "c": "string"}
TYPES |= {"d": "date", "v": "double"}
SCHEMA = TableSchema(tuple(Column(name, kind) for name, kind in TYPES.items()))


def _read(condition: str, ansi: bool) -> Predicate:
    found = parse_statement(
        f"SELECT * FROM t WHERE {condition}", aliases={"t": "t"}, schemas={"t": SCHEMA}, sure=True, ansi=ansi
    )
    assert not isinstance(found, Unusable)
    return found[0].predicate


@pytest.mark.parametrize(
    ("condition", "ansi", "otherwise"),
    [
        ("x * 1000 < 5000", "x < 5", None),
        ("x + 1 < 0", "x < -1", None),
        ("-x < 0", "x > 0", None),
        ("p * 2 < 5", "p < 2.5", "p < 2.5"),
        ("x >= '5.5'", "x >= '5.5'", None),
        ("f = '0.1'", "f = '0.1'", None),
        ("NOT p IN ('05')", "p NOT IN ('05')", None),
        ("d IN ('2024-01-01')", "d IN ('2024-01-01')", None),
        ("d > '2024-01-01'", "d > '2024-01-01'", "d > '2024-01-01'"),
        ("x BETWEEN '1' AND '2'", "x BETWEEN '1' AND '2'", None),
        ("c = '5'", "c = '5'", "c = '5'"),
        ("x >= 16777217F", "x >= 16777216.0e0", None),
        ("f >= 0.5F", "f >= 0.5e0", "f >= 0.5e0"),
        # Spark rounds such products, casts the column, or compares its text, in either mode
        ("q * 1.123456 < 5", None, None),
        ("p * 2 < '5'", None, None),
        ("n * 2 < 5e0", None, None),
        ("n IN (9007199254740993, 1e0)", None, None),
        ("v NOT LIKE '5'", None, None),
    ],
)
def test_only_what_spark_surely_compares_so_is_a_comparison(
    condition: str, ansi: str | None, otherwise: str | None
) -> None:
    for told, expected in ((_read(condition, True), ansi), (_read(condition, False), otherwise)):
        if expected is None:
            assert isinstance(told, Opaque)
        else:
            assert told.to_sql() == expected


def test_a_statistic_of_a_text_is_not_that_of_the_same_text_in_another_mode() -> None:
    strict, lax = (_read("x >= '5.5' OR c LIKE '%a%'", ansi) for ansi in (True, False))
    feature = Feature(strict.to_sql(), "predicate", "boolean", "...", ("x", "c"))
    assert "bit = true" in enriched(strict, {feature: "bit"}).to_sql()
    assert "bit" not in enriched(lax, {feature: "bit"}).to_sql()


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
