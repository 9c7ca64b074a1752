"""Where a statement names tables, and what it becomes with others in their place."""

from __future__ import annotations

import pytest

from zorder_pipeline.query_log.references import references, respelled, with_names

CASES = [
    ("SELECT * FROM t", "SELECT * FROM `v` AS `t`"),
    ("select a.x from Db.`my t` a, u", "select a.x from `v` a, `v` AS `u`"),
    ("SELECT 't' FROM delta.`/a b/t` WHERE c = 't'", "SELECT 't' FROM `v` AS `/a b/t` WHERE c = 't'"),
    ("WITH t AS (SELECT 1) SELECT * FROM t", "WITH t AS (SELECT 1) SELECT * FROM t"),
    ("WITH x AS (SELECT * FROM t) SELECT * FROM x, t", "WITH x AS (SELECT * FROM {t}) SELECT * FROM x, {t}"),
    ("SELECT 1 FROM t WHERE a IN (SELECT b FROM t u--t\n)", "SELECT 1 FROM {t} WHERE a IN (SELECT b FROM `v` u--t\n)"),
    ("SELECT * FROM t VERSION AS OF 3", "SELECT * FROM t VERSION AS OF 3"),
    ("SELECT * FROM t TABLESAMPLE (5 PERCENT)", "SELECT * FROM t TABLESAMPLE (5 PERCENT)"),
    ("SELECT * FROM t AS a(x, y)", "SELECT * FROM t AS a(x, y)"),
    ("SELECT '😀' AS e FROM t", "SELECT '😀' AS e FROM `v` AS `t`"),
    ("DELETE FROM t WHERE a = 1", "DELETE FROM t WHERE a = 1"),
    ("INSERT INTO t SELECT * FROM u", "INSERT INTO t SELECT * FROM u"),
    ("SELECT * FROM t; SELECT 1", "SELECT * FROM t; SELECT 1"),
    ("not sql at all (", "not sql at all ("),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "expected"), CASES)
def test_references_are_replaced_and_nothing_else(statement: str, expected: str) -> None:
    assert with_names(statement, [(reference, "v") for reference in references(statement)]) == expected.format(
        t="`v` AS `t`"
    )


@pytest.mark.parametrize("text", ["c = '${x}'", r"c = '$\{x}'", r"c = '\${x}'", "`${x}` = 1"])
def test_a_text_in_which_spark_would_replace_variables_is_not_respelled(text: str) -> None:
    assert respelled(text) is None


def test_strings_are_respelled_as_they_are_understood() -> None:
    assert respelled("c = 'it''s'") == r"c = 'it\'s'"


def test_respelling_is_none_where_nothing_is_understood() -> None:
    assert respelled("a BETWEEN") is None
    assert respelled("a  !=  1") == "a <> 1"
