"""A log that tells nothing of a table: the sentence names the cause."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.workload import LoggedQuery, QueryLog
from zorder_pipeline.pipeline.learning.nothing_asked import why_nothing, why_unfiltered
from zorder_pipeline.query_log.intake.ingest import ingest


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["SELECT * FROM t;", "SELECT a FROM t;"], "2 queries scan it and none has a condition"),
        (["SELECT * FROM t WHERE a LIKE '%x%';"], "1 query scans it and none has a condition that compares a column"),
        (["SELECT * FROM u WHERE a = 1;"], "they read u 1 time; if the log calls the table otherwise, .* --alias"),
        (["SELECT * FROM t WHERE a !> 7;"], r"1 line cannot be used \(1: no SQL of the dialect.*another --dialect\)"),
        (["SELECT * FROM u;", "SELECT FROM (;"], r"they read u 1 time.*; 1 line cannot be used \(1: no SQL"),
        (["SET a = 1;"], "they read no table"),
        ([], "no statement is logged"),
    ],
)
def test_the_cause_is_told(tmp_path: Path, lines: list[str], told: str) -> None:
    (tmp_path / "log.sql").write_text("\n".join(lines) + "\n")
    log = ingest([str(tmp_path)], aliases={"t": "t"})
    sentence = why_nothing(log, log.of_table(["t"]))
    assert re.match(told, sentence), sentence
    assert ("--alias" in sentence) == ("--alias" in told or " u " in told)


def test_what_a_state_keeps_no_more_is_not_said_to_read_no_table() -> None:
    """Of a state the queries of one table are loaded: those of others, or that were purged, were used all the same."""
    assert why_nothing(QueryLog((), 1_740, 1_700, {"SET": 40}), []) == (
        "of the 1,700 that could be used none that is kept scans it: they ask for other tables, or were deleted, "
        "by zorder purge or as older than retention_days; if the log calls the table otherwise, name it with --alias"
    )


def test_lines_that_are_no_log_are_told(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b"\xff\x00garbage\n{no JSON\n")
    log = ingest([str(tmp_path)], aliases={"t": "t"})
    assert why_nothing(log, []).startswith("2 lines cannot be used (1: ")


@pytest.mark.parametrize(
    ("statement", "partial"),
    [
        ("SELECT * FROM t WHERE old = 1", True),
        ("SELECT * FROM t AS o WHERE o.old = 1", True),
        ("SELECT * FROM t AS o JOIN u ON o.old = u.x", True),
        ("SELECT * FROM t WHERE new = 1 AND old = 2", True),
        ("SELECT * FROM (SELECT * FROM t) s WHERE old = 1", False),  # the derived table has none, whoever made it
        ("SELECT * FROM t JOIN u ON t.new = u.x WHERE old = 1", False),  # it may be u's
        ("SELECT * FROM t WHERE new IN (SELECT x FROM u WHERE y = 3)", False),
        ("SELECT * FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.new = old)", False),
        ("SELECT * FROM t WHERE new = 1 AND s.f = 2 AND s IS NOT NULL", False),
        ("SELECT new AS n, count(*) FROM t GROUP BY new HAVING n = 3", False),
    ],
)
def test_a_condition_on_a_column_that_the_table_does_not_have_is_noted(
    tmp_path: Path, statement: str, partial: bool
) -> None:
    (tmp_path / "log.sql").write_text(f"{statement};\n")
    schema = TableSchema((Column("new", "int"), Column("s.f", "int")))
    log = ingest([str(tmp_path)], aliases={"t": "t"}, schemas={"t": schema})
    (query,) = log.of_table(["t"])
    assert query.partial is partial
    told = why_nothing(log, [query])
    assert ("(were they renamed or dropped?)" in told) is partial


def _asked(folder: Path, *statements: str) -> list[LoggedQuery]:
    (folder / "log.sql").write_text("".join(f"{statement};\n" for statement in statements))
    return list(ingest([str(folder)], aliases={"t": "t"}).of_table(["t"]))


def test_columns_that_are_gone_are_named(tmp_path: Path) -> None:
    queries = _asked(
        tmp_path,
        "SELECT * FROM t WHERE a = 1 AND b = 2",
        "SELECT * FROM t WHERE c = 1 AND d = 2 AND e = 1 AND b = 4",
    )
    told = "they filter by b, a, c and 1 others; were these renamed or dropped?"
    assert why_unfiltered("t", queries, TableSchema((Column("e", "int"),)), ()).endswith(f"the table has: {told}")


def test_what_no_statistics_answer_is_not_said_to_be_gone(tmp_path: Path) -> None:
    queries = _asked(tmp_path, "SELECT * FROM t WHERE a = 1")
    told = why_unfiltered("t", queries, TableSchema((Column("a", "string"),)), ())
    assert told == "no query of t compares a column with values in a way that statistics of files answer"


def test_functions_that_ordinary_readers_do_not_skip_by_are_told_with_the_way_out(tmp_path: Path) -> None:
    queries = _asked(tmp_path, "SELECT * FROM t WHERE year(ts) = 2024")
    told = why_unfiltered("t", queries, TableSchema((Column("ts", "timestamp"),)), {"ts"})
    assert re.match(r"queries of t filter by ts only through functions .*--enriched-share.* or write such", told)
