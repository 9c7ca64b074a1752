"""Logs of another dialect: names in double quotes are never taken for texts without a word."""

from pathlib import Path

import pytest

from zorder_pipeline.query_log.intake.ingest import ingest
from zorder_pipeline.query_log.statements.catalog import Catalog
from zorder_pipeline.query_log.statements.quotes import has_quoted_names
from zorder_pipeline.query_log.statements.sql import OTHER_DIALECT, Unusable
from zorder_pipeline.query_log.statements.templates import Parser


@pytest.mark.parametrize("dialect", ["spark", "databricks", "hive", "bigquery"])
def test_it_is_found_wherever_double_quotes_make_texts(dialect: str) -> None:
    assert has_quoted_names('SELECT 1 FROM t WHERE "a" >= 5', dialect)
    assert has_quoted_names("SELECT 1 FROM t WHERE \"ü\" = 'ž' AND c = 'x'", dialect)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1 FROM t WHERE \"d\" >= DATE '2024-01-01'",
        "SELECT 1 FROM t WHERE \"d\" BETWEEN TIMESTAMP '2024-01-01 00:00:00' AND TIMESTAMP '2024-02-01 00:00:00'",
        'SELECT 1 FROM t WHERE "a" IN (-5, 5)',
        'SELECT 1 FROM t WHERE 7 = "a"',
        'SELECT 1 FROM t WHERE b = 1 AND NOT ("a")',
        'SELECT 1 FROM t WHERE "a" = ?',
        'SELECT 1 FROM t WHERE "a" = "b"',
        'SELECT 1 FROM t WHERE ("a", "b") IN ((1, 2))',
        'SELECT 1 FROM t WHERE CAST("a" AS bigint) + 1 = 7',
        "SELECT 1 FROM t WHERE lower(\"a\") LIKE 'x%'",
        "SELECT 1 FROM t WHERE date_trunc('day', \"ts\") >= current_date - interval '7' day",
        'SELECT 1 FROM t WHERE "a" IN (SELECT b FROM u)',
        'SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM u WHERE "c" > 5)',
        'SELECT 1 FROM t JOIN u ON t.k = u.k AND "a" > 5',
        "SELECT 1 FROM t WHERE \"name\" = 'x' AND kind = 'name'",
        'SELECT x."b" FROM t x WHERE "a" = b',
        'SELECT "region", sum(b) FROM t WHERE "a" = b GROUP BY "region"',
        'SELECT b FROM t WHERE "x"."a" = 5',
        'SELECT a FROM t WHERE "a" = b QUALIFY row_number() OVER (PARTITION BY b ORDER BY "ts") = 1',
        'MERGE INTO t USING u ON t.k = u.k AND "a" > 5 WHEN MATCHED THEN UPDATE SET b = 1',
        'DELETE FROM t WHERE "a" < 5',
        'SELECT a FROM t; SELECT a FROM t WHERE "a" < 5',
        "SHOW TABLES; SELECT a FROM t WHERE \"a\" = 'b'",
        'SELECT 1 FROM t WHERE b > "a" AND "a" >= 5',
        'SELECT 1 FROM t WHERE "d" >= DATE \'2024-01-01\' AND b = "d"',
        # what a derived table hands out
        "WITH s AS (SELECT \"date\" AS d, a FROM t) SELECT sum(a) FROM s WHERE d = '2024-01-01'",
        "SELECT * FROM (SELECT \"k\" AS k, sum(a) FROM t GROUP BY 1) x WHERE k IN ('u', 'v')",
        "SELECT \"k\" AS kk, sum(a) FROM t GROUP BY 1 HAVING kk = 'u'",
    ],
)
def test_it_is_found_in_any_condition(statement: str) -> None:
    """Each would count as a query without that condition."""
    assert has_quoted_names(statement, "spark")


@pytest.mark.parametrize(
    ("dialect", "statement"),
    [
        ("spark", 'SELECT a FROM t WHERE c IS DISTINCT FROM "x" AND d = "y"'),
        ("spark", 'CREATE TABLE n USING delta TBLPROPERTIES ("k" = 2) AS SELECT a FROM t WHERE b = 7'),
        ("spark", 'CREATE TABLE n USING delta OPTIONS ("k" = \'x\') COMMENT "z" AS SELECT a FROM t WHERE b = "y"'),
        ("spark", 'SELECT * FROM (SELECT "eu" AS r, a FROM t UNION ALL SELECT "us" AS r, a FROM u) WHERE r = \'us\''),
        ("spark", "SELECT * FROM (SELECT \"x\" AS k, b FROM t UNION ALL SELECT c AS k, b FROM u) WHERE k = 'y'"),
        ("spark", "SELECT * FROM (SELECT \"x\" AS k, b FROM t WHERE k = 'z')"),
        ("spark", 'SELECT 1 FROM t WHERE (:region = "ALL" OR c = :region) AND current_database() = "prod"'),
        ("spark", 'SELECT 1 FROM t WHERE array_contains(:r, "ALL") OR array_contains(:r, c)'),
        ("bigquery", 'SELECT 1 FROM t WHERE (@region = "ALL" OR c = @region)'),
        ("spark", "ALTER TABLE n SET TBLPROPERTIES (\"k\" = '2')"),
        ("databricks", 'COPY INTO t FROM "s3://b/p" FILEFORMAT = CSV FORMAT_OPTIONS ("header" = "true")'),
        ("databricks", 'SELECT a FROM t WHERE is_account_group_member("admins") OR region = "US"'),
        ("spark", 'SELECT a FROM t WHERE current_user() = "ann" OR region = "US"'),
        ("spark", 'SELECT a FROM t WHERE date_format(now(), "EEEE") = \'Monday\' AND region = "US"'),
        ("hive", 'SELECT a FROM t WHERE ("EMEA" = \'ALL\' OR region = "EMEA") AND b = 3'),
        ("bigquery", 'SELECT a FROM t WHERE ("ALL" = "ALL" OR region = "EMEA") AND b = 3'),
        ("databricks", 'SELECT a FROM t WHERE (\'All\' IN ("All") OR c = "x")'),
        ("databricks", 'SELECT a FROM t WHERE ("2024-01-01" IS NULL OR d >= "2024-01-01")'),
        ("databricks", 'SELECT a FROM t WHERE ("weekly" = \'daily\' OR d >= "2024-01-01")'),
        ("bigquery", 'SELECT IF("a" IS NULL, 1, 2) FROM t WHERE b = 7'),
        ("bigquery", 'SELECT a FROM t WHERE DATE(ts, "UTC") = DATE "2024-01-01" AND "x" IN UNNEST(tags)'),
        ("spark", 'CREATE TABLE "db"."n" AS SELECT a FROM u WHERE b = 7'),
        ("spark", 'MERGE INTO t USING "db"."s" ON t.a = s.a WHEN MATCHED THEN UPDATE SET b = 1'),
        ("spark", 'SELECT count(*) AS "n" FROM "db"."t" WHERE a = 7'),
        ("spark", 'SELECT "a", "x"."b" FROM "t" AS "x" WHERE c = 7 GROUP BY "a"'),
        ("spark", 'SELECT a FROM t WHERE m["a"] = 5 AND from_json(d, "a int").a = "x"'),
    ],
)
def test_statements_that_are_read_rightly_are_read(dialect: str, statement: str) -> None:
    assert not has_quoted_names(statement, dialect)


@pytest.mark.parametrize("dialect", ["trino", "presto", "snowflake", "duckdb"])
def test_it_is_not_where_they_make_names(dialect: str) -> None:
    assert not has_quoted_names('SELECT "a" FROM "t" WHERE "a" >= 5', dialect)


@pytest.mark.parametrize(
    "condition",
    [
        "concat(c, \"a\") = 'xa'",
        "c || \"a\" = 'xa'",
        'c IN ("a", "b")',
        'c BETWEEN "a" AND "b"',
        'c LIKE "a%" AND "b" = c',
        '"1" = "1"',
        '"a" BETWEEN c AND d',
        'CASE WHEN c = "a" THEN "b" ELSE "c" END = \'x\'',
        'EXTRACT(YEAR FROM "2020-01-01") = a',
        'map["a"] = 5',
        'raw:a["b"] = 5',
        'm["a"].b = 5',
        'c = "open',
    ],
)
def test_texts_in_double_quotes_are_texts(condition: str) -> None:
    assert not has_quoted_names(f"SELECT a FROM t WHERE {condition}", "spark")


def test_a_known_template_does_not_hide_it() -> None:
    """Two statements of one template but for the quotes: the key of a template has no literals."""
    parser = Parser(Catalog())
    texts = ["SELECT a FROM t WHERE '{}' = 7 AND b = {}".format("a", i) for i in range(3)]
    assert all(parser.scans(text) is not OTHER_DIALECT for text in texts)
    assert parser.scans('SELECT a FROM t WHERE "a" = 7 AND b = 3') is OTHER_DIALECT
    assert parser.scans(texts[0]) is not OTHER_DIALECT


def test_a_known_answer_is_not_that_of_other_texts() -> None:
    """The answer is remembered by template and by what the texts are to each other."""
    parser = Parser(Catalog())
    text = 'SELECT a FROM t WHERE ("{}" = \'{}\' OR c = "{}")'
    for first, second, third, misread in [
        ("x", "y", "x", False),
        ("x", "y", "z", True),
        ("x", "x", "z", False),
        ("x", "y", "2024-01-01", False),
        ("x", "z", "y", True),
        ("y", "z", "y", False),
    ]:
        statement = text.format(first, second, third)
        assert (parser.scans(statement) is OTHER_DIALECT) == misread == has_quoted_names(statement, "spark"), statement


def test_such_a_log_is_quarantined_and_read_in_its_own_dialect(tmp_path: Path) -> None:
    path = tmp_path / "log.sql"
    path.write_text("".join(f'SELECT * FROM "t" WHERE "a" BETWEEN {i} AND {i + 9};\n' for i in range(20)))
    wrong, right = (ingest([str(path)], dialect=dialect) for dialect in ("spark", "trino"))
    assert wrong.quarantined == {"other_dialect": 20}
    assert not wrong.queries
    assert [query.predicate.to_sql() for query in right.queries][3] == "a BETWEEN 3 AND 12"


def test_templates_tell_apart_what_differs_in_numbers_alone() -> None:
    parser = Parser(Catalog())
    statements = [f'SELECT a FROM t WHERE "x" + 1 = "x" + {i}' for i in (1, 2, 1)]
    assert [parser.scans(text) is OTHER_DIALECT for text in statements] == [
        has_quoted_names(text, "spark") for text in statements
    ]


@pytest.mark.parametrize(
    ("dialect", "texts"),
    [
        ("spark", [r"r'a\b'", 'r"x"', "'c'", r"r'a\b'", r"'a\\b'"]),
        ("bigquery", [r"r'a\b'", "r'''x'''", "'c'", r"r'a\b'"]),
        ("snowflake", [r"$$a\b$$", "$$x$$", "'c'", r"$$a\b$$"]),
        ("duckdb", [r"$$a\b$$", "$in$x$in$", "'c'", r"'a\b'"]),
        ("tsql", [r"N'a\b'", "N'x'", "'c'", r"'a\b'"]),
    ],
)
def test_a_text_is_one_in_whatever_quotes_it_stands(dialect: str, texts: list[str]) -> None:
    """They said nothing, and each was a template of its own, in lower case."""
    parser, templates, found = Parser(Catalog(dialect=dialect)), set(), []
    for text in texts:
        scans = parser.scans(f"SELECT a FROM t WHERE c = {text} AND b = 'B'")
        assert not isinstance(scans, Unusable)
        templates.add(parser.template)
        found.append(scans[0].predicate.to_sql())
    expected = [r"a\b", "x", "c", r"a\b", r"a\b"]
    assert found == [f"c = '{text}' AND b = 'B'" for text in expected[: len(texts)]]
    assert len(templates) == 1
