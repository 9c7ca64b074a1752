"""No predicate excludes a row that its statement needs: judged by DuckDB, which runs every statement twice."""

from __future__ import annotations

from collections import Counter, defaultdict

import duckdb
import pytest
import sqlglot

from tests.unit.query_log.statements.queries import SCHEMAS, TABLES, Statements, database
from zorder_pipeline.model.predicate import And, Comparison, Opaque, Or, Predicate
from zorder_pipeline.query_log.statements.sql import Unusable, parse_statement

ALIASES = {name: name for name in TABLES}


def test_a_thousand_statements_give_the_same_result_on_the_rows_that_their_predicates_keep() -> None:
    restricted = _check(seed=1, statements=1200)
    assert restricted > 800  # and the predicates do say something


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 22))
def test_many_more_statements(seed: int) -> None:
    _check(seed, statements=1500)


def _check(seed: int, statements: int) -> int:
    connection, source, restricted = database(seed), Statements(seed), 0
    for _ in range(statements):
        text = source.statement()
        found = parse_statement(text, dialect="duckdb", aliases=ALIASES, schemas=SCHEMAS)
        assert not isinstance(found, Unusable), (text, found)
        kept: dict[str, list[str]] = defaultdict(list)
        for scan in found:
            kept[scan.table].append(_sql(scan.predicate))
        everything = _result(connection, text, {})
        remaining = _result(connection, text, kept)
        assert everything == remaining, f"{text}\n{dict(kept)}"
        restricted += any("TRUE" not in conditions for conditions in kept.values())
    return restricted


def _result(
    connection: duckdb.DuckDBPyConnection, text: str, kept: dict[str, list[str]]
) -> Counter[tuple[object, ...]]:
    for name in TABLES:
        condition = " OR ".join(f"({item})" for item in kept.get(name, [])) or "TRUE"
        connection.execute(f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM {name}_all WHERE {condition}")
    return Counter(connection.execute(text).fetchall())


def _sql(predicate: Predicate) -> str:
    """The predicate in DuckDB's words, with everything that it claims: solved and implied comparisons, expressions."""
    match predicate:
        case And(children):
            return " AND ".join(f"({_sql(child)})" for child in children) or "TRUE"
        case Or(children):
            return " OR ".join(f"({_sql(child)})" for child in children) or "FALSE"
        case Opaque(expression=expression):
            return sqlglot.transpile(expression, read="spark", write="duckdb")[0] if expression else "TRUE"
        case Comparison(column=column, op="<=>", literals=literals):
            return f"{column} IS NOT DISTINCT FROM {literals[0].to_sql()}"
        case Comparison(column=column, op="starts_with", literals=literals):
            return f"starts_with({column}, {literals[0].to_sql()})"
    return predicate.to_sql().replace("TIMESTAMP_NTZ '", "TIMESTAMP '")
