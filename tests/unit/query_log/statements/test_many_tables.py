"""Statements of many tables: each scan looks at the conditions on it, and of more tables than are read none does."""

from __future__ import annotations

import pytest

from zorder_pipeline.model.predicate import And
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.query_log.statements import scopes
from zorder_pipeline.query_log.statements.catalog import Catalog
from zorder_pipeline.query_log.statements.sql import TOO_MANY_TABLES, Unusable, parse_statement, read_statement
from zorder_pipeline.query_log.statements.templates import Parser, Template

SCHEMAS = {
    name: TableSchema(tuple(Column(column, "int") for column in columns))
    for name, columns in {"t": "kab", "u": "kx", "v": "ky"}.items()
}


def _joined(count: int) -> str:
    joins = " ".join(f"JOIN c{i} ON c{i}.k = c{i - 1}.k AND c{i}.x > {i}" for i in range(1, count))
    return f"SELECT c0.a FROM c0 {joins} WHERE c0.a = 5"


def test_a_scan_of_a_hundred_joined_ones_has_its_own_conditions_alone() -> None:
    recipes = read_statement(_joined(100), Catalog())
    assert isinstance(recipes, tuple)
    assert len(recipes) == 100
    assert max(len(recipe.conditions) for recipe in recipes) <= 3
    scans = parse_statement(_joined(100))
    assert isinstance(scans, tuple)
    assert [scan.predicate.to_sql() for scan in scans[:3]] == ["a = 5", "x > 1", "x > 2"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("u.x = 1 AND 1 = 0", "FALSE"),
        ("u.x = NULL", "TRUE"),
        ("u.x = t.b AND u.x = 7", "b = 7"),
        ("u.x > v.y AND u.x = 7", "TRUE"),
        ("x = 7", "TRUE"),
        ("u.x = u.x AND t.a = 1", "a = 1"),
    ],
)
def test_what_other_conditions_say_of_a_table_is_still_said(condition: str, expected: str) -> None:
    text = f"SELECT t.a FROM t JOIN u ON t.k = u.k JOIN v ON u.k = v.k WHERE {condition}"
    scans = parse_statement(text, schemas=SCHEMAS)
    assert isinstance(scans, tuple)
    assert next(scan.predicate.to_sql() for scan in scans if scan.table == "t") == expected


def test_conditions_are_handed_into_as_many_branches_as_they_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scopes, "MAX_HANDED", 1_000)
    parser = Parser(Catalog())
    branches = " UNION ALL ".join(f"SELECT a, b, '{i}' AS c FROM t{i}" for i in range(40))
    for start in range(4):
        either = " OR ".join(f"(a = {i} AND b = {i})" for i in range(start, start + 20))
        found = parser.scans(f"SELECT * FROM ({branches}) WHERE {either}")
        assert not isinstance(found, Unusable)
        assert 0 < sum(scan.predicate != And(()) for scan in found) < 20
        assert found == parse_statement(f"SELECT * FROM ({branches}) WHERE {either}")
    assert [type(known) for known in parser._known.values()] == [Template]


def test_a_template_of_many_tables_is_known_and_too_many_are_counted() -> None:
    parser = Parser(Catalog())
    for _ in range(3):
        assert len(parser.scans(_joined(40))) == 40  # type: ignore[arg-type]
    assert any(isinstance(known, Template) for known in parser._known.values())
    for count, text in ((200, True), (201, False)):
        assert (parse_statement(f"SELECT * FROM {', '.join(f't{i}' for i in range(count))}") == TOO_MANY_TABLES) != text
    many = _joined(250)
    assert {parser.scans(many.replace("= 5", f"= {i}")) for i in range(3)} == {TOO_MANY_TABLES}
