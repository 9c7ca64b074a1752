"""Which features statistics are kept of, and the conditions that these evaluate."""

from __future__ import annotations

import pytest

from zorder_pipeline.features.statistics import MAX_FEATURES, features_of, predicate_sql
from zorder_pipeline.model.predicate import And, Comparison, Literal
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.workload import LoggedQuery

SCHEMA = TableSchema(
    (Column("status", "string"), Column("n", "int"), Column("day", "date"), Column("tags", "array<int>"))
)
PATHS = {column.name: (column.name,) for column in SCHEMA.columns}


def listed(column: str, kind: str, *texts: str, op: str = "not_in") -> Comparison:
    return Comparison(column, op, tuple(Literal(kind, text) for text in texts))


@pytest.mark.parametrize(
    ("asked", "sql"),
    [
        (
            listed("n", "number", "1", "2"),
            "`n` NOT IN (CAST(CAST('1' AS BIGINT) AS int), CAST(CAST('2' AS BIGINT) AS int))",
        ),
        (listed("status", "string", "x", "y"), "`status` NOT IN (decode(X'78', 'UTF-8'), decode(X'79', 'UTF-8'))"),
        (listed("n", "null", "", ""), "false"),
        (listed("status", "number", "5", "6"), None),
        (listed("tags", "number", "5", "6"), None),
        (
            Comparison(
                "day", "not_in", (Literal("date", "2024-01-01"), Literal("timestamp_ntz", "2024-01-02T00:00:00"))
            ),
            None,
        ),
    ],
)
def test_not_in_a_list_is_evaluated_as_it_stands_or_not_at_all(asked: Comparison, sql: str | None) -> None:
    assert predicate_sql(asked, SCHEMA, PATHS) == sql
    both = predicate_sql(And((asked, listed("n", "number", "3", op="in"))), SCHEMA, PATHS)
    assert (both is None) == (sql is None)


def test_of_what_is_asked_for_alike_the_first_is_kept() -> None:
    names = [f"c{i}" for i in range(MAX_FEATURES + 40)]
    schema = TableSchema(tuple(Column(name, "string") for name in names))
    asked = And(tuple(listed(name, "string", "x", op="in") for name in names))
    kept = features_of([LoggedQuery("t", asked)], [1.0], schema, {name: (name,) for name in names}, [], [])
    assert [feature.name for feature in kept] == names[:MAX_FEATURES]
