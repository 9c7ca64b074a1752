"""Every reason for which a line is not used is said in words."""

import re
from pathlib import Path

import pytest

import zorder_pipeline.query_log as package
from zorder_pipeline.model.predicate import And
from zorder_pipeline.model.workload import LoggedQuery, QueryLog
from zorder_pipeline.query_log.insight import REASONS, filter_forms, filters_of, insight
from zorder_pipeline.query_log.intake.ingest import ingest
from zorder_pipeline.query_log.intake.records import line_of
from zorder_pipeline.query_log.statements.sql import Unusable, parse_statement


def test_each_reason_has_words_and_no_other_does() -> None:
    sources = [path.read_text() for path in Path(package.__file__).parent.rglob("*.py") if path.stem != "insight"]
    given = {name for text in sources for name in re.findall(r'(?:Unusable\(|reason=|damage=)"([a-z_0-9]+)"', text)}
    assert given <= set(REASONS)
    assert {name for name in REASONS if not any(f'"{name}"' in text for text in sources)} == set()


@pytest.mark.parametrize("text", ["SELEC * FORM flights", "CLEAR CACHE", "x", "a + 1"])
def test_what_is_no_known_statement_is_not_called_by_a_parser_s_word(text: str) -> None:
    assert parse_statement(text) == Unusable("unknown_statement", ignored=True)


def test_a_log_tells_which_tables_it_reads_whether_they_are_known_or_not(tmp_path: Path) -> None:
    log = tmp_path / "log.sql"
    log.write_text("SELECT * FROM a WHERE x = 1;\nSELECT * FROM b WHERE x = 1;\nSELECT * FROM b;\n")
    assert ingest([str(log)], aliases={"a": "a"}).read == "they read b 2 times, a 1 time"
    assert QueryLog((), 0, 0).read == "no statement is logged"
    assert QueryLog((), 3, 0).read == "they read no table"


def test_a_log_goes_as_far_as_the_statements_of_all_tables_known_or_not(tmp_path: Path) -> None:
    log, script = tmp_path / "log.jsonl", tmp_path / "log.sql"
    asked = {"b": 1_700_000_000, "a": 1_700_100_000, "c": 1_700_200_000}
    log.write_text(
        "".join(f'{{"statement": "SELECT * FROM {t} WHERE x = 1", "ts": {at}}}\n' for t, at in asked.items())
    )
    script.write_text("SELECT * FROM a WHERE x = 1;\n")
    found = ingest([str(log), str(script)], aliases={"a": "a"})
    assert [query.timestamp for query in found.queries] == [1_700_100_000_000_000, None]
    assert found.until == 1_700_200_000_000_000
    assert ingest([str(script)], aliases={"a": "a"}).until is None


def test_statements_read_as_event_logs_are_counted_as_what_they_are(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"statement": "SELECT * FROM t WHERE x = 1"}\n' * 3)
    found = ingest([str(log)], log_format="spark-events")
    assert (found.lines, found.used, found.quarantined) == (3, 0, {"no_event": 3})
    assert "try another --log-format" in REASONS["no_event"]


def test_only_a_query_without_any_condition_filters_by_nothing() -> None:
    texts = ("SELECT * FROM t", "SELECT * FROM t WHERE c LIKE '%x%'", "SELECT * FROM t WHERE c = 'x'")
    found = [parse_statement(text) for text in texts]
    queries = [LoggedQuery("t", scan.predicate) for scans in found if isinstance(scans, tuple) for scan in scans]
    assert insight(queries)["unfiltered"] == 1


def test_queries_without_a_time_that_can_be_read_are_counted() -> None:
    told = ("2026-01-01T00:00:00Z", "yesterday", "9999-12-31T00:00:00Z", None)
    lines = [line_of("log", i, {"statement": "SELECT * FROM t", "timestamp": text}) for i, text in enumerate(told)]
    found = insight([LoggedQuery("t", And(()), timestamp=line.timestamp) for line in lines])
    assert (found["queries"], found["untimed"]) == (4, 3)


def test_what_filters_alike_is_one_form_whatever_it_selects(tmp_path: Path) -> None:
    """People saw the same filter, or none, as often as there were select lists."""
    log = tmp_path / "log.sql"
    log.write_text(
        "SELECT * FROM t;\nSELECT sum(b) FROM t;\nSELECT a FROM t WHERE a = 1;\nSELECT * FROM t WHERE a = 2;\n" * 2
    )
    forms = filter_forms(ingest([str(log)]).queries)
    assert [(len(members), filters_of(members[0], redact=True)) for members in forms] == [(4, "nothing"), (4, "a = ?")]


def test_what_filters_otherwise_is_a_form_of_its_own(tmp_path: Path) -> None:
    """Other functions and patterns on a column, another table, another scan of the same statement."""
    log = tmp_path / "log.sql"
    conditions = ("upper(n) = 'X'", "length(n) > 3", "length(n) > 4", "n LIKE '%abc'", "n NOT LIKE '%abc'", "a = 1")
    statements = [f"SELECT a FROM t WHERE {condition}" for condition in conditions]
    statements += ["SELECT a FROM u WHERE a = 1", "SELECT a FROM t WHERE b = 1 UNION ALL SELECT a FROM t WHERE c > 3"]
    log.write_text(";\n".join(statements))
    forms = filter_forms(ingest([str(log)]).queries)
    assert [len(members) for members in forms] == [2, *[1] * 7]
    assert {query.predicate.to_sql() for query in forms[0]} == {"LENGTH(n) > 3", "LENGTH(n) > 4"}
    assert {filters_of(members[0], redact=False) for members in forms[1:]} >= {"b = 1", "c > 3"}
