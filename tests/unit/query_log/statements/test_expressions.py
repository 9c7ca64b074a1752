"""What is kept of a log to be evaluated: nothing but allow-listed functions, and what means the same at any time."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from zorder_pipeline.model.predicate import And, Opaque, Or, Predicate, conjuncts
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.query_log.statements.sql import Unusable, parse_statement

REFLECT = "reflect(''java.lang.System'',''setProperty'',''a'',''1'') = ''x''"
QUOTED = REFLECT.replace("''", "'")
CRAFTED = [
    ("spark", f"EXTRACT('year FROM ts) = 1 OR {REFLECT} OR EXTRACT(year' FROM ts) = 5"),
    ("spark", f"datediff('DAY, day, day) = 7 OR {REFLECT} OR datediff(DAY', day, DATE'2024-01-01') = 1000"),
    ("spark", f"EXTRACT(`year FROM ts) = 1 OR {QUOTED} OR EXTRACT(year` FROM ts) = 5"),
    ("spark", f"datediff(`DAY, day, day) = 7 OR {QUOTED} OR datediff(DAY`, day, DATE'2024-01-01') = 1000"),
    *((name, f'EXTRACT("year FROM ts) = 1 OR {QUOTED} OR EXTRACT(year" FROM ts) = 5')
      for name in ("snowflake", "duckdb", "clickhouse", "databricks", "postgres", "trino", "oracle", "tsql")),
    *((name, f'datediff("DAY, day, day) = 7 OR {QUOTED} OR datediff(DAY", day, day) = 1000')
      for name in ("snowflake", "duckdb", "clickhouse", "databricks")),
]  # fmt: skip
RELATIVE = [
    "ts < TRY_CAST(concat('no', 'w') AS TIMESTAMP)",
    "coalesce(ts, ts) < CAST('now\x01' AS TIMESTAMP)",
    "date_add(day, 1) = CAST('today+01:00' AS DATE)",
    "coalesce(ts, ts) > lower('NOW')",
    "coalesce(ts, ts) > '\x02Tomorrow'",
]


def _expressions(predicate: Predicate) -> list[str]:
    match predicate:
        case And(children) | Or(children):
            return [text for child in children for text in _expressions(child)]
        case Opaque(expression=text):
            return [text]
    return []


def _kept(condition: str, dialect: str = "spark") -> list[str]:
    found = parse_statement(f"SELECT * FROM t WHERE {condition}", dialect=dialect)
    return [] if isinstance(found, Unusable) else [text for scan in found for text in _expressions(scan.predicate)]


@pytest.mark.parametrize(("dialect", "condition"), CRAFTED)
def test_no_text_of_a_log_gets_into_an_expression_as_given(dialect: str, condition: str) -> None:
    try:
        kept = _kept(condition, dialect)
    except SqlglotError:
        return
    read_again = [sqlglot.parse_one(text, read="spark") for text in kept if text]
    assert not any(tree.find(exp.Anonymous) for tree in read_again), kept


@pytest.mark.parametrize("condition", RELATIVE)
def test_what_another_day_would_mean_something_else_is_not_kept(condition: str) -> None:
    assert not any(_kept(condition))


def test_harmless_expressions_are_kept() -> None:
    assert any(_kept("c = 'nowhere' AND EXTRACT(HOUR FROM ts) = 3 AND datediff(DAY, a, b) > 3"))


@pytest.mark.parametrize(
    ("dialect", "condition"),
    [
        ("bigquery", "TIMESTAMP_TRUNC(ts, MONTH, 'America/New_York') <> other"),
        ("postgres", "date_trunc('month', ts, 'Europe/Berlin') <> other"),
        ("bigquery", "DATE(ts, 'America/New_York') = day"),
        *((dialect, "a / 2 = 3") for dialect in ("trino", "duckdb", "snowflake")),
        *((dialect, "DAYOFWEEK(day) = 0") for dialect in ("snowflake", "duckdb")),
        *(
            ("duckdb", text)
            for text in ("EXTRACT(dow FROM day) = 0", "s[1] = 'x'", "substr(s, 0, 3) = 'ab'", "a // 2 / 1 = 1")
        ),
        *(("duckdb", text) for text in ("left(s, -1) = 'ab'", "substr(s, a, 3) <> 'x'", "s LIKE '%a\\_b'")),
        *(("snowflake", text) for text in ("WEEK(day) = 3", "datediff(month, day, ts) = 1", "NOT s RLIKE 'a'")),
        *(("trino", f"date_add('{unit}', 1, ts) > other") for unit in ("hour", "day", "month")),
        *(("snowflake", text) for text in ("dateadd(minute, -5, ts) > other", "timestampadd(hour, 1, ts) > other")),
        *((dialect, "CAST(x AS INTEGER) = 3") for dialect in ("trino", "duckdb", "snowflake", "bigquery")),
        *(("trino", text) for text in ("CAST(x AS VARCHAR) LIKE '%2024%'", "greatest(a, b) = 5", "least(a, b) <> 5")),
        ("snowflake", "DATE_TRUNC('week', ts) <> other"),
        *(("snowflake", text) for text in ("split_part(s, '.', 0) = 'x'", "add_months(day, 1) > ts")),
    ],
)
def test_what_spark_would_mean_otherwise_counts_its_columns_alone(dialect: str, condition: str) -> None:
    for text in (condition, f"NOT ({condition})"):
        found = parse_statement(f"SELECT * FROM t WHERE {text}", dialect=dialect)
        assert not isinstance(found, Unusable)
        assert "<" in found[0].predicate.to_sql()
        assert not any(_kept(text, dialect))


@pytest.mark.parametrize("dialect", ["spark", "databricks", "hive"])
def test_the_same_in_a_dialect_of_spark_is_kept(dialect: str) -> None:
    for text in ("a / 2 = 3", "dayofweek(day) = 1", "s[1] = 'x'", "EXTRACT(DAYOFWEEK FROM day) = 1"):
        assert any(_kept(text, dialect))


def test_what_means_the_same_is_kept_of_every_dialect() -> None:
    for dialect in ("trino", "duckdb", "snowflake", "bigquery"):
        for text in ("lower(s) = 'x'", "substr(s, 2, 3) = 'ab'", "EXTRACT(MONTH FROM day) = 3", "s LIKE '%x'"):
            assert any(_kept(text, dialect)), (dialect, text)


SPARK = Dialect.get_or_raise("spark")
WORDS = {
    *(word.split()[0].lower() for word in SPARK.tokenizer_class.KEYWORDS if word[:1].isalpha()),
    *(word.lower() for known in (SPARK.parser_class.FUNCTIONS, SPARK.parser_class.FUNCTION_PARSERS) for word in known),
}
PLACES = ["{} LIKE '%x%'", "{} = n + 1", "upper({}) = 'X'", "coalesce({}, n) = 'b'", "NOT {} RLIKE 'a+'"]


@pytest.mark.parametrize("place", PLACES)
def test_a_column_may_be_called_by_any_word_of_the_language(place: str) -> None:
    """What is kept is read again by itself, where some words, such as comment and load, begin a command."""
    words = sorted(word for word in WORDS if word.isidentifier())
    assert len(words) > 500
    lost = [word for word in words if not all(_kept(place.format(f"`{word}`")) or [""])]
    assert not lost


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("comment LIKE '%late%'", "`comment` LIKE '%late%'"),
        ("`desc` LIKE '%late%'", "`desc` LIKE '%late%'"),
        ("upper(comment) = 'X'", "UPPER(comment) = 'X'"),
        ("`all` LIKE '%late%'", "all LIKE '%late%'"),
        ("upper(`all`) = 'X'", "UPPER(`all`) = 'X'"),
    ],
)
def test_such_a_name_is_in_quotes_only_where_it_needs_them(condition: str, kept: str) -> None:
    assert _kept(condition) == [kept]


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("CASE c WHEN 'a' THEN 1 WHEN 'b' THEN 2 END = n", "CASE c WHEN 'a' THEN 1 WHEN 'b' THEN 2 END = n"),
        ("a || b = 'ab'", "a || b = 'ab'"),
        ("CASE c WHEN 'a' THEN upper('x') END = b", ""),
        ("CASE c WHEN 'a' THEN 'now' END > ts", ""),
        ("ts < if(c = 'a', 'n' || 'ow', ts)", ""),
    ],
)
def test_cases_of_values_and_joined_texts_are_kept_unless_they_tell_the_time(condition: str, kept: str) -> None:
    assert [text for text in _kept(condition) if text] == ([kept] if kept else [])


def test_a_list_of_pairs_chooses_partitions_where_each_of_them_partitions_the_table() -> None:
    """Delta evaluates conditions on partition columns alone: one that looks at another column, too, chooses none."""
    columns = [Column(name, "int", partition=name != "x") for name in ("y", "m", "x")]

    def asked(condition: str) -> set[str]:
        found = parse_statement(f"SELECT * FROM t WHERE {condition}", schemas={"t": TableSchema(tuple(columns))})
        assert not isinstance(found, Unusable)
        return {item.column for box in to_boxes(found[0].predicate, TableSchema(tuple(columns))) for item in box}

    assert asked("(y, m) IN ((2024, 1), (2024, 2))") == {"y", "m"}
    assert asked("(y, x) IN ((2024, 1), (2024, 2))") == set()


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("upper(`user.name`) = 'A'", "UPPER(`user.name`) = 'A'"),
        ("upper(T.`USER.name`) = 'A'", "UPPER(`user.name`) = 'A'"),
        ("upper(t.s.x) = 'A'", "UPPER(s.x) = 'A'"),
        ("upper(t.s.`y.z`) = 'A'", "UPPER(s.`y.z`) = 'A'"),
    ],
)
def test_a_column_with_a_dot_in_its_name_is_no_field_of_a_struct(known: bool, condition: str, kept: str) -> None:
    schema = TableSchema(tuple(Column.at(path, "string") for path in (("user.name",), ("s", "x"), ("s", "y.z"))))
    found = parse_statement(f"SELECT * FROM t WHERE {condition}", schemas={"t": schema} if known else None)
    assert not isinstance(found, Unusable)
    assert _expressions(found[0].predicate) == [kept]


def test_a_column_whose_name_reads_like_a_path_is_told_from_that() -> None:
    dotted = replace(Column.at(("s.x",), "string"), name="`s.x`")  # as tables with both have it
    schema = TableSchema((Column.at(("s", "x"), "string"), dotted))
    found = parse_statement("SELECT * FROM t WHERE upper(`s.x`) = 'A' AND lower(s.x) = 'a'", schemas={"t": schema})
    assert not isinstance(found, Unusable)
    assert _expressions(found[0].predicate) == ["UPPER(`s.x`) = 'A'", "LOWER(s.x) = 'a'"]
    assert [one.columns for one in conjuncts(found[0].predicate) if isinstance(one, Opaque)] == [("`s.x`",), ("s.x",)]
