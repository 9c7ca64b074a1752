"""Statements and what they scan: reviewed pairs in ``tests/cases/sql.yaml``, and dialects, parameters, views, bombs."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from zorder_pipeline.model.predicate import Opaque, predicate_from_json, predicate_to_json
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.query_log.statements.catalog import Catalog
from zorder_pipeline.query_log.statements.recipe import Recipe, Scan
from zorder_pipeline.query_log.statements.sql import Unusable, parse_statement
from zorder_pipeline.query_log.statements.templates import Parser, Template

CASES = yaml.safe_load((Path(__file__).parents[3] / "cases" / "sql.yaml").read_text(encoding="utf-8"))
MONDAY = 1_705_312_800_000_000  # 2024-01-15 10:00 UTC


def _schema(**columns: str) -> TableSchema:
    return TableSchema(tuple(Column(name, kind) for name, kind in columns.items()))


SCHEMAS = {
    "t": _schema(a="int", b="int", c="string", d="date", ts="timestamp", f="double", flag="boolean", p="decimal(12,2)"),
    "u": _schema(id="int", a="int", x="int", y="string"),
}
ALIASES = {"t": "t", "u": "u", "prod.t": "t"}


def _described(found: Any) -> dict[str, Any]:
    if isinstance(found, Unusable):
        return {"ignored" if found.ignored else "quarantined": found.reason}
    return {
        "scans": [{scan.table: scan.predicate.to_sql()} | ({"partial": True} if scan.partial else {}) for scan in found]
    }


@pytest.mark.parametrize(
    "condition",
    ["c LIKE '%${env:HOME}%'", r"c LIKE '%$\{system:user.name}%'", "upper(c) = '${x}'", "c LIKE 'a_${x}'"],
)
def test_text_in_which_spark_would_replace_variables_is_never_evaluated(condition: str) -> None:
    found = parse_statement(f"SELECT * FROM t WHERE {condition}", aliases=ALIASES, schemas=SCHEMAS)
    assert not isinstance(found, Unusable)
    assert "expression" not in str(predicate_to_json(found[0].predicate))
    old = predicate_from_json({"opaque": "like", "columns": ["c"], "expression": "c LIKE '%${x}%'"})
    assert old == Opaque("like", ("c",))


@pytest.mark.parametrize("unit", ["DAY", "WEEK", "MONTH", "QUARTER", "YEAR"])
def test_the_last_unit_that_dates_can_tell_is_read(unit: str) -> None:
    for day in ("9999-12-31", "9999-12-27", "9999-12-01", "9999-10-01", "9999-01-01", "0000-00-00"):
        for op in ("=", "<", ">="):
            statement = f"SELECT * FROM t WHERE date_trunc('{unit}', ts) {op} '{day}' AND a = 1"
            found = parse_statement(statement, aliases=ALIASES, schemas=SCHEMAS)
            assert not isinstance(found, Unusable)
            assert "a = 1" in found[0].predicate.to_sql()


def test_a_statement_that_nobody_thought_of_is_counted_and_the_rest_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Recipe, timestamp: int | None, zone: str) -> Scan:
        raise OverflowError("date value out of range")

    parser = Parser(Catalog(ALIASES, SCHEMAS))
    assert not isinstance(parser.scans("SELECT * FROM t WHERE a = 1"), Unusable)
    assert not isinstance(parser.scans("SELECT * FROM t WHERE a = 2"), Unusable)
    with monkeypatch.context() as patched:
        patched.setattr(Recipe, "scan", broken)
        for statement in ("SELECT * FROM t WHERE a = 3", "SELECT * FROM t WHERE b = 1"):
            assert parser.scans(statement) == Unusable("unsupported", ignored=False)
    assert not isinstance(parser.scans("SELECT * FROM t WHERE a = 4"), Unusable)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["statement"][:70])
def test_a_statement_is_taken_apart_as_reviewed(case: dict[str, Any]) -> None:
    found = parse_statement(case["statement"], aliases=ALIASES, schemas=SCHEMAS, timestamp=MONDAY)
    assert _described(found) == {key: value for key, value in case.items() if key != "statement"}


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len(CASES) >= 150


def test_a_template_gives_what_parsing_gives() -> None:
    parser = Parser(Catalog(ALIASES, SCHEMAS))
    for _ in range(4):
        for case in CASES:
            found = parser.scans(case["statement"], MONDAY)
            assert _described(found) == {key: value for key, value in case.items() if key != "statement"}
    known = list(parser._known.values())
    assert sum(isinstance(value, Template) for value in known) > 0.75 * len(known)


def test_new_literals_in_a_known_template_are_read_as_literals() -> None:
    parser = Parser(Catalog(ALIASES, SCHEMAS))
    text = "SELECT a FROM t JOIN u USING (a) WHERE t.b IN ({0}, 5) AND c LIKE '{1}' AND d > DATE '{2}' AND a = {0}"
    literals = [(1, "ab%", "2024-01-01"), (2, "a_c", "2024-02-01"), (3, "%x", "2024-03-01"), (4, "it''s", "x")]
    for values in literals * 2:
        statement = text.format(*values)
        expected = parse_statement(statement, aliases=ALIASES, schemas=SCHEMAS)
        assert parser.scans(statement) == expected


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("d = to_date('{}', 'yyyyMMdd')", ["run_date", "20240102", "20240103"]),
        ("d = to_date('{}', 'dd/MM/yyyy')", ["run_date", "02/01/2024", "03/01/2024"]),
        ("n > unix_timestamp('{}', 'yyyyMMdd')", ["x", "20240102", "20240103"]),
        ("t > to_timestamp('{}', 'yyyyMMdd')", ["x", "20240102", "20240103"]),
        ("d = to_date('{}', 'yyyyMMdd')", ["20240102", "run_date", "20240103"]),
        ("t >= date_trunc('{}', current_timestamp())", ["decade", "decade", "isoweek"]),
    ],
)
def test_a_template_whose_first_statement_says_nothing_is_checked_by_the_next(
    condition: str, values: list[str]
) -> None:
    parser = Parser(Catalog())
    statements = [f"SELECT * FROM x WHERE {condition.format(value)}" for value in values]
    for statement in (*statements, *statements):
        assert parser.scans(statement, MONDAY) == parse_statement(statement, timestamp=MONDAY)


def test_a_first_statement_without_a_moment_leaves_later_ones_theirs() -> None:
    parser = Parser(Catalog())
    statement = "SELECT * FROM x WHERE s = date_format(current_date(), 'yyyyMMdd')"
    for moment in (None, MONDAY, MONDAY + 86_400_000_000):
        assert parser.scans(statement, moment) == parse_statement(statement, timestamp=moment)


def test_decimals_written_as_text_are_literals_of_a_template() -> None:
    parser = Parser(Catalog(ALIASES, SCHEMAS, dialect="trino"))
    for value in ("10", "10.5", "3.25", "7"):
        (scan,) = parser.scans(f"SELECT * FROM t WHERE p > DECIMAL '{value}'")
        assert scan.predicate.to_sql() == f"p > {value}"
    assert [type(known) for known in parser._known.values()] == [Template]


def test_intervals_and_units_belong_to_the_template() -> None:
    parser = Parser(Catalog(ALIASES, SCHEMAS))

    def template(statement: str) -> str:
        parser.scans(statement)
        return parser.template

    assert template("SELECT date_trunc('month', d) FROM t") != template("SELECT date_trunc('year', d) FROM t")
    assert template("select A from T where b=1 -- x") == template("SELECT a\nFROM t WHERE b = 222")


@pytest.mark.parametrize(
    ("dialect", "statement", "expected"),
    [
        (
            "databricks",
            "SELECT * FROM t WHERE d >= current_date() - 7 AND c:x = 1",
            "d >= DATE '2024-01-08' AND GET_JSON_OBJECT(c, '$.x') = 1",
        ),
        (
            "databricks",
            "SELECT * FROM t WHERE datediff(d, DATE '2024-01-09') = 1 AND datediff(DAY, d, DATE '2024-01-09') = 1",
            "d >= DATE '2024-01-10' AND d < DATE '2024-01-11' AND <function over d>",
        ),
        (
            "snowflake",
            "SELECT * FROM t WHERE datediff(DAY, d, DATE '2024-01-09') = 1",
            "d >= DATE '2024-01-08' AND d < DATE '2024-01-09'",
        ),
        ("hive", "SELECT * FROM t WHERE d = '2024-01-01' AND a = 1", "d = '2024-01-01' AND a = 1"),
        ("presto", "SELECT * FROM t WHERE d >= date '2024-01-01' - interval '1' day", "d >= DATE '2023-12-31'"),
        (
            "trino",
            "SELECT * FROM t WHERE starts_with(c, 'ab') AND a BETWEEN 1 AND 2",
            "startswith(c, 'ab') AND a BETWEEN 1 AND 2",
        ),
        ("trino", "SELECT * FROM t WHERE p > DECIMAL '10.5' AND a = 1", "p > 10.5 AND a = 1"),
        ("presto", "SELECT * FROM t WHERE p < decimal '2.5'", "p < 2.5"),
        ("athena", "SELECT * FROM t WHERE p BETWEEN DECIMAL '0.5' AND DECIMAL '1.50'", "p BETWEEN 0.5 AND 1.50"),
        ("trino", "SELECT * FROM t WHERE p > CAST('10.0' AS DECIMAL) AND a = 1", "p > 10.0 AND a = 1"),
        (
            "snowflake",
            "SELECT * FROM T WHERE D >= DATEADD(day, -7, CURRENT_DATE()) AND A = 1",
            "d >= DATE '2024-01-08' AND a = 1",
        ),
        ("bigquery", "SELECT * FROM `t` WHERE d >= DATE_SUB(CURRENT_DATE(), INTERVAL 7 DAY)", "d >= DATE '2024-01-08'"),
        ("duckdb", "SELECT * FROM t WHERE d >= '2024-01-01'::DATE AND a <> 2", "d >= DATE '2024-01-01' AND a <> 2"),
    ],
)
def test_dialects(dialect: str, statement: str, expected: str) -> None:
    found = parse_statement(statement, dialect=dialect, aliases=ALIASES, schemas=SCHEMAS, timestamp=MONDAY)
    assert not isinstance(found, Unusable)
    assert found[0].predicate.to_sql() == expected


@pytest.mark.parametrize(
    ("dialect", "begins"),
    [("spark", True), ("hive", True), ("snowflake", True), ("bigquery", True), ("duckdb", False), ("trino", False)],
)
def test_texts_begin_at_zero_in_some_dialects_alone(dialect: str, begins: bool) -> None:
    for start, known in ((0, begins), (1, True)):
        statement = f"SELECT * FROM t WHERE substr(c, {start}, 2) = 'ab'"
        found = parse_statement(statement, dialect=dialect, aliases=ALIASES, schemas=SCHEMAS)
        assert not isinstance(found, Unusable)
        assert (found[0].predicate.to_sql() == "startswith(c, 'ab')") == known


def test_relative_time_is_read_in_the_sessions_zone_and_partial_without_a_time() -> None:
    statement = "SELECT a FROM t WHERE d = current_date"
    tokyo = parse_statement(
        statement, aliases=ALIASES, schemas=SCHEMAS, timestamp=MONDAY + 6 * 3_600_000_000, zone="Asia/Tokyo"
    )
    assert not isinstance(tokyo, Unusable)
    assert tokyo[0].predicate.to_sql() == "d = DATE '2024-01-16'"
    unknown = parse_statement(statement, aliases=ALIASES, schemas=SCHEMAS)
    assert not isinstance(unknown, Unusable)
    assert unknown[0].partial
    assert "2024" not in unknown[0].predicate.to_sql()


@pytest.mark.parametrize(
    ("statement", "parameters", "expected"),
    [
        ("SELECT a FROM t WHERE b = ? AND c = ?", [5, "x"], "b = 5 AND c = 'x'"),
        ("SELECT a FROM t WHERE b = :n AND c = :s", {"n": -5, "s": "x"}, "b = -5 AND c = 'x'"),
        # a clause that comes later in the text may come first in the tree
        ("SELECT a FROM t WHERE b = ? LIMIT ?", [5, 100], "b = 5"),
        ("WITH w AS (SELECT * FROM t WHERE a > ?) SELECT * FROM w WHERE b > ?", [1, 4], "a > 1 AND b > 4"),
        ("SELECT ? AS k, a FROM t WHERE b = ? ORDER BY ?", ["b", -5, 1], "b = -5"),
        ("SELECT a FROM t WHERE b = $2 AND c = $1", ["it's", 5], "b = 5 AND c = 'it''s'"),
        ("SELECT a FROM t WHERE c = '?' AND b = ?", [5], "c = '?' AND b = 5"),
        ("SELECT a FROM t WHERE b = ?2 AND a = ?1", [5, 6], "b = 6 AND a = 5"),
        ("SELECT a FROM t WHERE a = b -? OR b = 1", [-5], "a = b - -5 OR b = 1"),
        ("SELECT a FROM t WHERE a=?AND b = 2", [5], "a = 5 AND b = 2"),
        ("SELECT a FROM t WHERE b = ? AND p = ?", [5, Decimal("1.50")], "b = 5 AND p = 1.50"),
        # as notebooks, JDBC and Python's drivers write them
        ("%sql SELECT a FROM t WHERE b = %s AND c = %s", [5, "x"], "b = 5 AND c = 'x'"),
        ("SELECT a FROM t WHERE b = %(n)s AND d = {d '2024-01-01'}", {"n": 5}, "b = 5 AND d = DATE '2024-01-01'"),
        ("SELECT a FROM t WHERE ts >= {ts '2024-01-01 00:00:00'}", {}, "ts >= TIMESTAMP_NTZ '2024-01-01 00:00:00'"),
        (
            "%sql SELECT a FROM t WHERE c LIKE 'foo%s' AND b = %s",
            [5],
            "startswith(c, 'foo') AND c LIKE 'foo%s' AND b = 5",
        ),
        ("SELECT a FROM t WHERE c = '{fn x}' AND d = {d '2024-01-01'}", {}, "c = '{fn x}' AND d = DATE '2024-01-01'"),
        ("SELECT a FROM t WHERE b = :n AND flag = :f", {"n": 5}, "b = 5 AND <function over flag>"),
    ],
)
def test_prepared_statements(statement: str, parameters: Any, expected: str) -> None:
    found = parse_statement(statement, aliases=ALIASES, schemas=SCHEMAS, parameters=parameters)
    assert not isinstance(found, Unusable)
    assert found[0].predicate.to_sql() == expected
    assert found[0].partial == ("<" in expected)


def test_a_list_is_no_value_and_what_is_not_known_of_a_statement_says_nothing() -> None:
    listed = parse_statement(
        "SELECT a FROM t WHERE a IN (?) AND b = ?", aliases=ALIASES, schemas=SCHEMAS, parameters=[[1, 2], 4]
    )
    assert not isinstance(listed, Unusable)
    assert "[1, 2]" not in listed[0].predicate.to_sql()
    assert "b = 4" in listed[0].predicate.to_sql()
    for dialect, statement in (
        ("bigquery", "FROM t |> LIMIT 3 |> WHERE b = 2"),
        ("duckdb", "SELECT * FROM (PIVOT t ON b USING count(*) GROUP BY a) q WHERE a = 1"),
    ):
        found = parse_statement(statement, dialect=dialect, aliases=ALIASES, schemas=SCHEMAS)
        assert found == Unusable("unsupported", ignored=False)


def test_statements_are_read_deeply_in_several_threads_at_once() -> None:
    text = "SELECT * FROM t WHERE " + "(" * 250 + "a = 0" + "".join(f" OR a = {i})" for i in range(250))
    before = sys.getrecursionlimit()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: parse_statement(text, aliases=ALIASES, schemas=SCHEMAS), range(24)))
    assert not any(isinstance(one, Unusable) for one in found)
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT a FROM t WHERE d > current_date()" + " - INTERVAL 1 DAY" * 4000,
        "SELECT a FROM t WHERE a" + " + 1" * 9000 + " > 5",
        "WITH w0 AS (SELECT a + a AS a FROM t), "
        + ", ".join(f"w{i} AS (SELECT a + a AS a FROM w{i - 1})" for i in range(1, 40))
        + " SELECT * FROM w39 WHERE a > 1",
    ],
    ids=["intervals", "sums", "doubled"],
)
def test_chains_cost_no_more_than_they_are_long(statement: str) -> None:
    found = parse_statement(statement, aliases=ALIASES, schemas=SCHEMAS, timestamp=MONDAY)  # minutes, or for ever
    assert isinstance(found, Unusable) or {scan.table for scan in found} == {"t"}


def test_what_follows_a_view_s_name_follows_its_query() -> None:
    views = {"v": "SELECT a, b, c FROM t"}
    for statement, expected in (
        ("SELECT * FROM v AS x (b, a) WHERE x.a = 5", "TRUE"),  # two names for three columns: not known to be valid
        ("SELECT * FROM v AS x (b, a, d) WHERE x.a = 5", "b = 5"),
        ("SELECT * FROM v PIVOT (sum(a) FOR c IN ('x' AS b)) WHERE b > 5", "TRUE"),
        ("SELECT * FROM v TABLESAMPLE (5 PERCENT) WHERE a = 5", "TRUE"),
        ("SELECT * FROM v LATERAL VIEW explode(array(1, 2)) e AS a WHERE a = 5", "TRUE"),
    ):
        found = parse_statement(statement, aliases=ALIASES, schemas=SCHEMAS, views=views)
        assert not isinstance(found, Unusable)
        assert [scan.predicate.to_sql() for scan in found] == [expected], statement


def test_conditions_that_tools_join_one_by_one_are_read() -> None:
    either = "(" * 200 + "a = 0" + "".join(f" OR a = {i})" for i in range(1, 201))
    mixed = "(" * 200 + "a = 0" + "".join(f" OR a = {i})" if i % 2 else f" AND b = {i})" for i in range(1, 201))
    first, second = (
        parse_statement(f"SELECT * FROM t WHERE c = 'x' AND {text}", aliases=ALIASES, schemas=SCHEMAS)
        for text in (either, mixed)
    )
    assert not isinstance(first, Unusable)
    assert first[0].predicate.to_sql().count("a = ") == 201
    boxes = to_boxes(first[0].predicate, SCHEMAS["t"])
    assert [(item.column, item.tested[0].low, item.tested[0].high) for item in boxes[0]] == [
        ("c", "x", "x"),
        ("a", 0, 200),
    ]
    assert not isinstance(second, Unusable)
    assert (second[0].predicate.to_sql(), second[0].partial) == ("c = 'x' AND b = 200", True), (
        "more levels than can be gone through"
    )
    assert str(predicate_to_json(second[0].predicate))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("sales.recent", 1),
        ("main.sales.recent", 1),
        ("recent", 1),  # of one view alone
        ("other.recent", 0),
        ("twice", 0),
        ("b.twice", 3),
        ("t", -1),  # a table's own name
    ],
)
def test_a_view_is_found_by_longer_and_shorter_names(name: str, found: int) -> None:
    views = {"sales.recent": "SELECT * FROM t WHERE b = 1", "db.t": "SELECT * FROM t WHERE b = 4"}
    views |= {f"{schema}.twice": f"SELECT * FROM t WHERE b = {n}" for schema, n in (("a", 2), ("b", 3))}
    scans = parse_statement(f"SELECT * FROM {name}", aliases=ALIASES, schemas=SCHEMAS, views=views)
    told = [] if isinstance(scans, Unusable) else [scan.predicate.to_sql() for scan in scans]
    assert told == ([f"b = {found}"] if found > 0 else ["TRUE"] if found else [])


def test_a_configured_view_is_read_through() -> None:
    views = {"recent": "SELECT a, b AS amount FROM t WHERE d >= DATE '2024-01-01'", "big": "SELECT * FROM recent"}
    found = parse_statement(
        "SELECT * FROM big x JOIN u ON x.a = u.a WHERE x.amount > 5", aliases=ALIASES, schemas=SCHEMAS, views=views
    )
    assert not isinstance(found, Unusable)
    assert {scan.table: scan.predicate.to_sql() for scan in found} == {
        "t": "d >= DATE '2024-01-01' AND b > 5",
        "u": "TRUE",
    }


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT a FROM t WHERE " + "(" * 5000 + "a = 1" + ")" * 5000,
        "SELECT a FROM t WHERE a = 1 " + "AND b = 2 " * 100_000,
        "SELECT a FROM t WHERE a = 1 " + "OR NOT " * 3000 + "b = 1",
        "SELECT " + "-" * 4000 + "1 FROM t",
        "SELECT a FROM t WHERE c = '\0'",
        "SELECT a FROM t WHERE a IN (" + ", ".join(map(str, range(60_000))) + ")",
        "SELECT CASE " + "WHEN a = 1 THEN CASE " * 400,
        "WITH "
        + ", ".join(f"w{i} AS (SELECT * FROM {'t' if not i else f'w{i - 1}'})" for i in range(300))
        + " SELECT 1",
        "SELECT a FROM t WHERE a + 1 = 1e9999999",
        "SELECT a FROM t WHERE a + 1 = 1e-9999999 AND b = 1e9999999",
        "SELECT a FROM t WHERE a = CAST(1e499999998 AS DECIMAL(499999999, 0)) OR a = CAST(0e-499999998 AS DECIMAL)",
        "SELECT a FROM t WHERE a = 1 ) '" + "\\'" * 40_000,
        "SELECT a FROM t WHERE a = 1 ) " + "/* " * 30_000,
        "SELECT * FROM (SELECT "
        + ", ".join(f"a AS a{i}" for i in range(900))
        + " FROM t) WHERE "
        + " AND ".join(f"a{i} = 1" for i in range(900)),
        "SELECT a FROM t WHERE ( {fn" + " " * 190_000,
        "SELECT t0.a FROM t t0, " + ", ".join(f"t t{i}" for i in range(1, 900)) + " WHERE t0.a = 1 AND b = 2",
        "SELECT a FROM t t0 " + " ".join(f"JOIN t t{i} USING (a)" for i in range(1, 200)) + " WHERE a = 1",
    ],
    ids=[
        "parentheses",
        "megabyte",
        "nots",
        "minus",
        "nul",
        "in_list",
        "cases",
        "ctes",
        "huge",
        "tiny",
        "wide",
        "quotes",
        "comments",
        "outputs",
        "escape",
        "tables",
        "using",
    ],
)
def test_bombs_end_as_a_count_and_not_as_a_crash(statement: str) -> None:
    found = parse_statement(statement, aliases=ALIASES, schemas=SCHEMAS)
    assert isinstance(found, Unusable) or all(scan.table == "t" for scan in found)


def test_a_long_in_list_is_used_as_far_as_it_is_reasonable() -> None:
    statement = "SELECT a FROM t WHERE b = 1 AND a IN (" + ", ".join(map(str, range(10_000))) + ")"
    found = parse_statement(statement, aliases=ALIASES, schemas=SCHEMAS)
    assert not isinstance(found, Unusable)
    assert found[0].predicate.to_sql() == "b = 1 AND <in over a>"


@pytest.mark.parametrize(
    ("dialect", "statement", "expected"),
    [
        ("duckdb", "SELECT a FROM delta_scan('/lake/t') WHERE delta_scan.a = 1", {"t": "a = 1"}),
        ("duckdb", "SELECT a FROM delta_scan('file:///lake/t/') AS o WHERE o.a = 1", {"t": "a = 1"}),
        ("duckdb", "SELECT * FROM DELTA_SCAN('/lake/t') x, delta_scan('s3://b/u') y WHERE x.a = 1 AND y.x = 2",
         {"t": "a = 1", "u": "x = 2"}),
        ("duckdb", "SELECT 1 FROM delta_scan('/lake/t') JOIN delta_scan('/lake/u') USING (a) WHERE b = 1",
         {"t": "b = 1", "u": "TRUE"}),
        ("duckdb", "WITH t AS (SELECT 1 AS a) SELECT * FROM delta_scan('t') WHERE a = 1", {"t": "a = 1"}),
        ("duckdb", "SELECT * FROM delta_scan('/lake/t' || a) WHERE a = 1", "no_table"),
        ("duckdb", "SELECT * FROM delta_scan('/lake/t', pushdown = 1) WHERE a = 1", "no_table"),
        ("duckdb", "SELECT * FROM delta_scan('/lake/other') WHERE a = 1", "other_table"),
        ("databricks", "SELECT * FROM IDENTIFIER('prod.t') x WHERE x.a = 1", {"t": "a = 1"}),
        ("spark", "SELECT * FROM identifier('`t`') WHERE t.a = 1", {"t": "a = 1"}),
        ("spark", "SELECT * FROM IDENTIFIER(:name) WHERE a = 1", {"t": "a = 1"}),
        ("spark", "SELECT * FROM IDENTIFIER('recent') WHERE a = 1", {"t": "b = 9 AND a = 1"}),
        ("spark", "SELECT * FROM called WHERE a = 1", {"t": "b = 8 AND a = 1"}),
        ("spark", "CREATE TEMP VIEW v AS SELECT * FROM IDENTIFIER('t'); SELECT * FROM v WHERE a = 1",
         {"t": "a = 1"}),
        ("spark", "DELETE FROM IDENTIFIER('prod.t') WHERE a = 1", {"t": "a = 1"}),
        ("spark", "SELECT * FROM IDENTIFIER(concat('t', '')) WHERE a = 1", "no_table"),
        ("spark", "SELECT * FROM IDENTIFIER('t WHERE a = 2') WHERE a = 1", "no_table"),
        ("spark", "SELECT * FROM IDENTIFIER('') WHERE a = 1", "no_table"),
        ("snowflake", "SELECT * FROM IDENTIFIER('prod.t') WHERE a = 1", {"t": "a = 1"}),
        ("snowflake", "SELECT * FROM TABLE('prod.t') AS x SAMPLE (10) WHERE x.a = 1", {"t": "TRUE"}),
        ("snowflake", "SELECT * FROM TABLE('\"prod\".t') x JOIN u ON x.b = u.id WHERE x.a = 1",
         {"t": "a = 1", "u": "TRUE"}),
        ("snowflake", "SELECT * FROM TABLE(f('t')) WHERE a = 1", "no_table"),
    ],
)  # fmt: skip
def test_tables_that_are_named_by_a_call(dialect: str, statement: str, expected: dict[str, str] | str) -> None:
    views = {"recent": "SELECT * FROM t WHERE b = 9", "called": "SELECT * FROM IDENTIFIER('t') WHERE b = 8"}
    found = parse_statement(
        statement,
        dialect=dialect,
        aliases=ALIASES,
        schemas=SCHEMAS,
        views=views if dialect == "spark" else None,
        parameters={"name": "t"},
    )
    told = found.reason if isinstance(found, Unusable) else {scan.table: scan.predicate.to_sql() for scan in found}
    assert told == expected


@pytest.mark.parametrize("dialect", ["spark", "databricks", "hive", "trino", "snowflake", "bigquery", "duckdb"])
@pytest.mark.parametrize(
    "form",
    [
        "SELECT * FROM {} WHERE a = 1",
        "SELECT * FROM {} AS x WHERE x.a = 1 AND c IN ('p', 'q')",
        "FROM {} SELECT a WHERE a = 1",
        "SELECT * FROM prod.{} WHERE a = 1",
        "SELECT * FROM other, {} AS x WHERE x.a = 1",
        "SELECT * FROM other AS o JOIN {} AS x ON o.c = 'p' AND o.k = x.a WHERE x.a = 1",
        "SELECT * FROM other AS o JOIN v ON o.k IN (v.k, 2) AND v.c = 'p', {} AS x WHERE x.a = 1",
        "SELECT * FROM ({} AS x JOIN other AS o ON o.k = x.a) WHERE x.a = 1",
        "SELECT * FROM ((SELECT * FROM {})) AS x WHERE x.a = 1",
        "SELECT * FROM other WHERE k IN (SELECT a FROM {} WHERE a = 1)",
        "WITH w AS (SELECT * FROM {}) SELECT * FROM w WHERE a IS DISTINCT FROM 1",
        "SELECT * FROM other UNION ALL SELECT * FROM {} WHERE a = 1",
        "SELECT * FROM delta_scan({}) WHERE a = 1",
        "SELECT * FROM other AS o JOIN IDENTIFIER({}) AS x ON o.k = x.a WHERE x.a = 1",
        "SELECT * FROM TABLE({}) AS x WHERE x.a = 1",
        "COPY (SELECT * FROM {} WHERE a = 1) TO 'x.parquet'",
        "INSERT INTO other SELECT * FROM {} WHERE a = 1",
        "INSERT INTO {} SELECT * FROM other WHERE a = 1",
        "CREATE TABLE made AS SELECT * FROM other, {} AS x WHERE x.a = 1",
        "UPDATE {} SET b = 2 WHERE a = 1",
        "DELETE FROM {} WHERE a = 1",
        "MERGE INTO {} AS x USING other AS o ON x.a = o.k AND x.b = 1 WHEN MATCHED THEN DELETE",
        "MERGE INTO other AS o USING {} AS x ON x.a = o.k AND x.b = 1 WHEN MATCHED THEN DELETE",
    ],
)
def test_a_table_that_is_named_by_a_text_is_looked_up_whatever_came_before(form: str, dialect: str) -> None:
    parser = Parser(Catalog(ALIASES, SCHEMAS, dialect=dialect))
    for name in ("'x.parquet'", "'t'", "'t'", "'t'", "'y'", "'u'", "'u'", "'x.parquet'"):
        statement = form.format(name)
        alone = parse_statement(statement, dialect=dialect, aliases=ALIASES, schemas=SCHEMAS)
        assert parser.scans(statement) == alone, statement


def test_a_copy_of_a_query_reads_what_the_query_does() -> None:
    parser = Parser(Catalog(ALIASES, SCHEMAS, dialect="duckdb"))
    text = "COPY (SELECT * FROM t WHERE a > {0} AND ts >= date_trunc('{1}', now())) TO '{0}.parquet' (FORMAT parquet)"
    for values in ((5, "day"), (6, "day"), (7, "day"), (8, "year")):
        alone = parse_statement(
            text.format(*values), dialect="duckdb", aliases=ALIASES, schemas=SCHEMAS, timestamp=MONDAY
        )
        assert not isinstance(alone, Unusable)
        start = "2024-01-15" if values[1] == "day" else "2024-01-01"
        assert alone[0].predicate.to_sql() == f"a > {values[0]} AND ts >= TIMESTAMP_NTZ '{start} 00:00:00'"
        assert parser.scans(text.format(*values), MONDAY) == alone
    assert parse_statement("COPY t TO 'x'", dialect="duckdb") == Unusable("copy", ignored=True)


@pytest.mark.parametrize(
    ("dialect", "statement"),
    [
        ("hive", "FROM t INSERT OVERWRITE TABLE v SELECT a WHERE a > 5 INSERT OVERWRITE TABLE w SELECT a WHERE b > 3"),
        ("oracle", "INSERT ALL INTO v VALUES (a) INTO w VALUES (b) SELECT a, b FROM t WHERE a > 5"),
    ],
)
def test_a_query_for_several_tables_is_told_as_one_that_is_not_read(dialect: str, statement: str) -> None:
    assert parse_statement(statement, dialect=dialect) == Unusable("unsupported", ignored=False)


@pytest.mark.parametrize(
    "form",
    [
        "SELECT * FROM t WHERE c = '{}' AND b IN (1, 2)",
        "SELECT c, '{}' FROM t, u WHERE c IN ('{}', 'x') OR c IS DISTINCT FROM '{}' AND c = '{}'",
        "SELECT * FROM t JOIN u ON c = y AND c LIKE '{}' GROUP BY '{}', '{}'",
        "INSERT INTO t VALUES ('{}', 1), ('{}', 2)",
        "INSERT OVERWRITE TABLE t PARTITION (c = '{}') SELECT * FROM u WHERE y = '{}'",
        "ALTER TABLE t ADD PARTITION (d = '{}', c = '{}') LOCATION '/lake/{}'",
        "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED AND c = '{}' THEN UPDATE SET c = '{}', d = '{}'",
        "SELECT trim(BOTH '{}' FROM 'x') FROM t WHERE extract(year FROM '{}') = 1",
        "SELECT * FROM t WHERE c IN (SELECT trim('{}' FROM y) FROM u)",
        "COPY INTO t FROM '/landing/{}'",
    ],
)
def test_texts_that_are_values_make_no_templates(form: str) -> None:
    parser = Parser(Catalog(ALIASES, SCHEMAS))
    assert len({parser.template for text in "abc" if parser.scans(form.replace("{}", text))}) == 1


@pytest.mark.parametrize(
    ("dialect", "condition", "told"),
    [
        ("hive", "CAST(a AS TIMESTAMP) < '2024-01-01'", "a < 1704067200"),  # milliseconds, unless a setting says else
        ("hive", "date_format(d, 'YYYY-MM-dd') = '2025-12-30'", "DATE"),  # the year of the week
        ("duckdb", "to_timestamp(a) < '2024-01-01'", "a < 1704067200"),
    ],
)
def test_what_other_dialects_mean_otherwise_is_not_taken_for_spark_s(dialect: str, condition: str, told: str) -> None:
    found = parse_statement(
        f"SELECT * FROM t WHERE {condition}", dialect=dialect, aliases=ALIASES, schemas=SCHEMAS, zone="America/New_York"
    )
    assert not isinstance(found, Unusable)
    assert told not in found[0].predicate.to_sql()


def test_a_format_is_read_anew_in_each_statement_of_a_template() -> None:
    parser = Parser(Catalog(ALIASES, SCHEMAS, dialect="trino"))
    for _ in range(3):
        for form, value in (("%Y", "2024"), ("%Y", "2023"), ("%M", "January"), ("%Y-%m", "2024-02")):
            statement = f"SELECT a FROM t WHERE date_format(ts, '{form}') = '{value}'"
            alone = parse_statement(statement, dialect="trino", aliases=ALIASES, schemas=SCHEMAS)
            assert parser.scans(statement) == alone, statement
