"""What is said of a ``--where`` that Spark does not take."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from zorder_pipeline.relayout.select import REFUSED, _names_one, _problem_of


def refused(monkeypatch: pytest.MonkeyPatch, condition: str, told: str, **parameters: str) -> AnalysisException:
    """An error as Spark's analysis raises it."""
    for name, value in (("getCondition", condition), ("getMessageParameters", parameters), ("__str__", told)):
        monkeypatch.setattr(AnalysisException, name, lambda _, value=value: value)
    return AnalysisException(told)


def test_a_name_that_is_no_partition_column_is_named_and_nothing_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "[UNRESOLVED_COLUMN.WITH_SUGGESTION] ... [`ds`, `__place_ce12`]. SQLSTATE: 42703; line 1 pos 0;\n'Filter"
    error = refused(monkeypatch, "UNRESOLVED_COLUMN.WITH_SUGGESTION", told, objectName="`origin`")
    assert _problem_of(error) == "`origin` is no partition column"


def test_any_other_problem_is_told_in_the_first_of_sparks_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "\n[PARSE_SYNTAX_ERROR] Syntax error at  or near '='. SQLSTATE: 42601; line 1 pos 4;\n== SQL =="
    error = refused(monkeypatch, "PARSE_SYNTAX_ERROR", told)
    assert _problem_of(error) == "[PARSE_SYNTAX_ERROR] Syntax error at or near '='. SQLSTATE: 42601; line 1 pos 4"


@pytest.mark.parametrize("condition", REFUSED)
def test_what_spark_itself_would_take_is_told_in_our_words(monkeypatch: pytest.MonkeyPatch, condition: str) -> None:
    error = refused(monkeypatch, f"{condition}.DEEPER" if condition.endswith("CATEGORY") else condition, "[X] long")
    assert _problem_of(error) == REFUSED[condition]


def test_a_column_is_named_in_any_case_but_not_in_a_text() -> None:
    assert _names_one("array_contains(array(1), `Ds`)", ["p", "ds"])
    assert not _names_one("'ds' <> \"ds\" /* ds */ AND ds(1) > 0", ["p", "ds"])
    assert _names_one("what sqlglot) cannot read", ["ds"])
