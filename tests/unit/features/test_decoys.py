"""Of forty columns the six useful ones are found: no copies, no constants, nothing empty or rarely asked."""

from __future__ import annotations

import json

import numpy as np
import pytest

from zorder_pipeline.features.candidates import column_candidates
from zorder_pipeline.features.predicates import predicate_candidates
from zorder_pipeline.features.sample import Sample, SampleColumn
from zorder_pipeline.features.select import analyse
from zorder_pipeline.model.predicate import And, Comparison, Literal, Opaque, Or, Predicate
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.workload import LoggedQuery

USEFUL = tuple(f"u{i}" for i in range(6))
ROWS = 2500


def _sample(rng: np.random.Generator) -> Sample:
    base = {name: rng.integers(0, 2000, ROWS) for name in USEFUL}
    columns = {name: SampleColumn(values, np.ones(ROWS, dtype=np.bool_)) for name, values in base.items()}
    for i, (name, values) in enumerate(base.items()):  # each has a copy that follows it, and one that runs against it
        columns[f"same{i}"] = SampleColumn(values * 3 + rng.integers(0, 2, ROWS), columns[name].valid)
        columns[f"against{i}"] = SampleColumn(-values, columns[name].valid)
    for i in range(6):
        columns[f"constant{i}"] = SampleColumn(np.full(ROWS, 7), np.ones(ROWS, dtype=np.bool_))
        columns[f"empty{i}"] = SampleColumn(rng.integers(0, 99, ROWS), np.zeros(ROWS, dtype=np.bool_))
        columns[f"rare{i}"] = SampleColumn(rng.integers(0, 2000, ROWS), np.ones(ROWS, dtype=np.bool_))
    for i in range(4):
        columns[f"single{i}"] = SampleColumn(rng.integers(0, 2000, ROWS), np.ones(ROWS, dtype=np.bool_))
    file = np.sort(rng.integers(0, 20, ROWS)).astype(np.int32)
    return Sample(columns, file, ROWS, ROWS)


def _is(column: str, value: int) -> Comparison:
    return Comparison(column, "=", (Literal("number", str(value)),))


def _queries(rng: np.random.Generator) -> list[LoggedQuery]:
    """Useful columns in half of the queries, their copies in a quarter, every decoy as often but for what is wrong."""
    found: list[LoggedQuery] = []
    for i in range(1000):
        name = USEFUL[i % 6]
        parts: list[Predicate] = [_is(name, int(rng.integers(0, 2000)))]
        if i % 2:
            parts.append(_is(f"same{i % 6}" if i % 4 == 1 else f"against{i % 6}", int(rng.integers(0, 2000))))
        parts.append(_is(f"constant{i % 6}", int(rng.integers(0, 50))))
        parts.append(_is(f"empty{i % 6}", int(rng.integers(0, 50))))
        parts.append(_is(f"single{i % 4}", 42))
        if i % 300 == 0:
            parts.append(_is(f"rare{i % 6}", int(rng.integers(0, 50))))
        found.append(LoggedQuery("t", And(tuple(parts))))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_the_primary_features_are_the_six(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sample = _sample(rng)
    schema = TableSchema(tuple(Column(name, "int") for name in sample.columns))
    assert len(schema.columns) == 40
    analysis = analyse(_queries(rng), schema, sample)
    assert sorted(analysis.primary) == sorted(USEFUL)
    told = {candidate.column: candidate.reason for candidate in analysis.candidates}
    assert "constant" in told["constant0"]
    assert "null" in told["empty0"]
    assert "distinct value" in told["single0"]
    assert "follows" in told["same1"]
    assert "follows" in told["against1"]
    assert "of the queries" in told["rare0"]


def test_expressions_are_counted_with_what_they_are_compared_with() -> None:
    schema = TableSchema((Column("ts", "timestamp"), Column("c", "string"), Column("a", "int"), Column("b", "int")))
    asked = [Opaque("function", ("ts",), f"MONTH(ts) = {i % 7 + 1}") for i in range(60)]
    asked += [Opaque("function", ("ts",), "NOT (MONTH(ts) IN (3, 11))")] * 5
    asked += [Opaque("function", ("c",), "UPPER(c) = 'X'")] * 30 + [
        Opaque("column_comparison", ("a", "b"), "a < b")
    ] * 9
    asked += [Opaque("function", ("c",))] * 5 + [Opaque("function", ("gone",), "ABS(gone) = 1")] * 5
    queries = [LoggedQuery("t", Or((item, _is("a", 1)))) for item in asked]
    found = analyse(queries, schema, Sample({}, np.zeros(0, np.int32), 0, 0)).expression_candidates
    assert [(c.expression, c.queries, c.comparison_points, c.chosen) for c in found] == [
        ("MONTH(ts)", 60, 7, True),
        ("UPPER(c)", 30, 1, False),
    ]
    assert "UPPER" not in json.dumps([candidate.to_json(redact=True) for candidate in found])


def test_a_weaker_predicate_serves_those_who_ask_for_more() -> None:
    schema = TableSchema((Column("x", "int"), Column("y", "int"), Column("flag", "boolean", delta_stats=False)))
    five, three = (Comparison("x", ">", (Literal("number", str(n)),)) for n in (5, 3))
    either = Or((_is("x", 1), _is("y", 2)))
    inside = Or((_is("x", 1), Opaque("like", ("y",), "y LIKE '%1'")))
    flag = Comparison("flag", "=", (Literal("boolean", "true"),))
    asked = [five] * 30 + [three] * 10 + [either] * 5 + [inside] * 4 + [flag] * 3
    sample = Sample({}, np.zeros(0, np.int32), 0, 0)
    queries = [LoggedQuery("t", predicate) for predicate in asked]
    weights = [1.0] * len(queries)
    columns = column_candidates(queries, weights, schema, sample, theta=10)
    found = predicate_candidates(queries, weights, schema, columns)
    assert {candidate.predicate: candidate.queries for candidate in found} == {
        three: 40,
        five: 30,
        either: 5,
        inside: 4,
        flag: 3,
    }
    assert "42" not in json.dumps([candidate.to_json(redact=True) for candidate in found])


def test_of_many_constants_on_one_side_a_few_are_tried_and_the_weakest_serves_all() -> None:
    def price(op: str, constant: float) -> Opaque:
        return Opaque("arithmetic", ("a", "b"), f"a * (1 - b) {op} {constant}")

    schema = TableSchema((Column("a", "decimal(15,2)"), Column("b", "decimal(15,2)"), Column("c", "string")))
    above = [price(">", 80_000 + 7 * n) for n in range(50)]
    below = [price("<=", 90 - n / 2) for n in range(3)]
    asked = [*above, *below, price("=", 100_000), Opaque("like", ("c",), "c LIKE '%x%'")]
    queries = [LoggedQuery("t", predicate) for predicate in asked]
    found = {c.predicate: c.queries for c in predicate_candidates(queries, [1.0] * len(asked), schema, ())}
    kept = [predicate for predicate in above if predicate in found]
    assert [found[predicate] for predicate in kept] == [51, 34, 18, 2]
    assert kept[0] == above[0]
    assert [found[predicate] for predicate in below] == [3, 2, 1]
    assert found[asked[-1]] == 1
