"""Texts that take sqlglot twice as long with each word end as a count, and what people write is read."""

from __future__ import annotations

import time

import pytest

from zorder_pipeline.errors import LogError
from zorder_pipeline.query_log.statements.bounded import TooAmbiguousError, all_in, one_in
from zorder_pipeline.query_log.statements.catalog import Catalog
from zorder_pipeline.query_log.statements.quotes import has_quoted_names
from zorder_pipeline.query_log.statements.sql import TOO_AMBIGUOUS, Unusable, parse_statement
from zorder_pipeline.query_log.statements.templates import Parser

SECONDS = 30
"""A slow machine beside other work; unbounded each of these takes hours."""


def _joined(join: str, count: int = 40) -> str:
    return "SELECT * FROM c0 " + " ".join(f"{join} c{i}" for i in range(1, count))


def _nested(call: str, depth: int = 40) -> str:
    return "SELECT * FROM t WHERE " + call * depth + "a" + ")" * depth + " = 1"


BOMBS = [
    *(_joined(f"{kind} JOIN") for kind in ("", "LEFT", "LEFT SEMI")),
    "SELECT * FROM c0 " + " ".join(f"JOIN (SELECT {i}) x{i}" for i in range(40)),
    "SELECT * FROM c0 " + " ".join(f"JOIN LATERAL (SELECT {i}) x{i}" for i in range(40)),
    "UPDATE t SET a = 1 FROM " + " JOIN ".join(f"c{i}" for i in range(40)),
    *(_nested(f"{call}(") for call in ("date", "string", "struct")),
]


@pytest.mark.parametrize("dialect", ["spark", "snowflake"])
@pytest.mark.parametrize("statement", BOMBS, ids=lambda text: text[22:40])
def test_what_takes_the_parser_for_ever_is_counted(statement: str, dialect: str) -> None:
    began = time.perf_counter()
    found = parse_statement(statement, dialect=dialect)
    assert found == TOO_AMBIGUOUS
    assert time.perf_counter() - began < SECONDS


def test_a_few_joins_before_a_long_list_are_read() -> None:
    joins = " ".join(f"JOIN u {name}" for name in "bcd")
    text = f"SELECT * FROM t {joins} WHERE t.x IN ({', '.join(map(str, range(3000)))})"
    assert not isinstance(parse_statement(text), Unusable)


def test_one_bomb_of_a_template_is_tried_and_the_rest_known() -> None:
    parser, text = Parser(Catalog()), _joined("JOIN") + " WHERE a = {}"
    assert parser.scans(text.format(1)) == TOO_AMBIGUOUS
    began = time.perf_counter()
    assert {parser.scans(text.format(i)) for i in range(200)} == {TOO_AMBIGUOUS}
    assert time.perf_counter() - began < SECONDS


def test_quoted_names_and_parameters_of_a_bomb_are_bounded_too() -> None:
    text = _joined("JOIN") + ' WHERE "a" = 7'
    assert not has_quoted_names(text, "spark")
    assert parse_statement(text + " AND b = ?", parameters=[1]) == TOO_AMBIGUOUS
    assert Parser(Catalog()).scans(text) == TOO_AMBIGUOUS


def test_a_view_that_is_a_bomb_is_one_sentence() -> None:
    with pytest.raises(LogError, match="view v is no query that can be read: a text has more ways to be read"):
        Catalog.of({}, {}, {"v": _joined("JOIN")}, "spark")


@pytest.mark.parametrize(
    "statement",
    [
        _joined("JOIN", 10),
        _joined("CROSS JOIN", 150),
        _joined(",", 150),
        "SELECT * FROM c0 " + " ".join(f"JOIN c{i} ON c{i}.a = c0.a" for i in range(1, 100)),
        "SELECT * FROM c0 " + " ".join(f"LEFT JOIN c{i} USING (a)" for i in range(1, 100)),
        "SELECT * FROM c0 " + " ".join(f"NATURAL JOIN c{i}" for i in range(1, 8)),
        ";".join([_joined("JOIN", 6)] * 50),
        _nested("date(", 5),
        _nested("coalesce(", 60),
        "SELECT * FROM t WHERE " + "(" * 200 + "a = 1" + ")" * 200,
        "SELECT CASE " + " ".join(f"WHEN a = {i} THEN date(string(b))" for i in range(500)) + " END FROM t WHERE a = 1",
    ],
    ids=lambda text: text[14:40],
)
def test_what_people_and_tools_write_is_read(statement: str) -> None:
    assert not isinstance(parse_statement(statement), Unusable)


def test_a_text_alone_is_one_tree_or_an_error() -> None:
    assert one_in("a + 1", "spark").sql() == "a + 1"
    assert [tree.sql() for tree in all_in("SELECT 1;;", "spark")] == ["SELECT 1"]
    with pytest.raises(ValueError, match="more ways"):
        one_in(_joined("JOIN"), "spark")
    assert issubclass(TooAmbiguousError, ValueError)
