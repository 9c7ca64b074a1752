"""Logs of another dialect: names in double quotes are never taken for texts without a word."""

from pathlib import Path

import pytest

from zorder_pipeline.query_log.catalog import Catalog
from zorder_pipeline.query_log.ingest import ingest
from zorder_pipeline.query_log.quotes import has_quoted_names
from zorder_pipeline.query_log.sql import OTHER_DIALECT
from zorder_pipeline.query_log.templates import Parser


@pytest.mark.parametrize("dialect", ["spark", "databricks", "hive", "bigquery"])
def test_it_is_found_wherever_double_quotes_make_texts(dialect: str) -> None:
    assert has_quoted_names('SELECT 1 FROM t WHERE "a" >= 5', dialect)
    assert has_quoted_names("SELECT 1 FROM t WHERE \"ü\" = 'ž' AND c = 'x'", dialect)


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


def test_such_a_log_is_quarantined_and_read_in_its_own_dialect(tmp_path: Path) -> None:
    path = tmp_path / "log.sql"
    path.write_text("".join(f'SELECT * FROM "t" WHERE "a" BETWEEN {i} AND {i + 9};\n' for i in range(20)))
    wrong, right = (ingest([str(path)], dialect=dialect) for dialect in ("spark", "trino"))
    assert wrong.quarantined == {"other_dialect": 20}
    assert not wrong.queries
    assert [query.predicate.to_sql() for query in right.queries][3] == "a BETWEEN 3 AND 12"
