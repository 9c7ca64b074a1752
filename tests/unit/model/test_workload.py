"""The queries of a log, and of several that hold the same."""

from __future__ import annotations

from dataclasses import replace

from zorder_pipeline.model.predicate import And, Comparison, Literal
from zorder_pipeline.model.workload import LoggedQuery, QueryLog


def asked(value: int, moment: int | None) -> LoggedQuery:
    return LoggedQuery("t", Comparison("c", "=", (Literal("number", str(value)),)), ("c",), "c", moment)


def test_what_two_logs_hold_counts_once_and_what_is_asked_again_as_often_as_it_was() -> None:
    stored = QueryLog((asked(1, 1), asked(1, 1), asked(1, 2), asked(2, None), asked(2, None)), 9, 5)
    fresh = QueryLog((asked(1, 1), asked(2, None), asked(3, 1)), 3, 3)
    found = stored.besides(fresh)
    assert found.queries == (asked(1, 1), asked(1, 2), asked(2, None))
    assert (found.lines, found.used) == (7, 3)
    assert fresh.besides(QueryLog((), 0, 0)) == fresh


def test_a_line_that_both_have_read_counts_once_however_they_read_it() -> None:
    """Read without the table's columns, as into a state, conditions on others are not what they are read with them."""
    line = replace(asked(1, 5), source="/q.jsonl:3")
    other = replace(line, predicate=And(()), partial=True)
    stored = QueryLog((line, asked(1, 5)), 2, 2)
    assert stored.besides(QueryLog((other,), 1, 1)).queries == (asked(1, 5),)
    assert stored.besides(QueryLog((other, asked(1, 5)), 2, 2)).queries == ()
    later = replace(other, timestamp=6)
    assert stored.besides(QueryLog((later,), 1, 1)) == stored, "the file was written over since"


def test_several_logs_are_one_whose_counts_add_up() -> None:
    first = QueryLog((asked(1, 1),), 6, 1, {"DDL": 2}, {"no predicate": 3}, {"other": 2, "x": 1})
    second = QueryLog((asked(2, 2), asked(3, 3)), 7, 2, {"DDL": 1, "SET": 1}, {"no predicate": 3}, {"x": 4})
    both = QueryLog.merged([first, second])
    assert both.queries == (asked(1, 1), asked(2, 2), asked(3, 3))
    told = both.to_json()
    counts = told["lines"], told["used"], told["ignored"], told["quarantined"]
    assert counts == (13, 3, 4, 6), "N = U + I + Q"
    assert told["reasons"] == {"DDL": 3, "SET": 1, "no predicate": 6}
    assert (told["tables"], list(told["unmatched"].items())) == ({"t": 3}, [("x", 5), ("other", 2)])


def test_what_its_statements_read_is_told_the_most_read_first() -> None:
    log = QueryLog((asked(1, 1), asked(2, 2)), 9, 2, unmatched={"sales": 7, "t": 1})
    assert log.read == "they read sales 7 times, t 3 times"
    assert QueryLog((), 3, 0, {"SET": 3}).read == "they read no table"
    assert QueryLog((), 0, 0).read == "no statement is logged"


def test_a_table_is_called_without_case_and_only_what_restricts_a_column_is_of_use() -> None:
    log = QueryLog((asked(1, 1), LoggedQuery("Other", And(()), ("c",))), 2, 2)
    assert log.of_table(["T", "nobody"]) == (asked(1, 1),)
    assert [query.usable for query in log.queries] == [True, False]
    assert len(log.of_table(["t", "OTHER"])) == 2


def test_logs_go_as_far_as_the_one_that_goes_farthest() -> None:
    logs = [QueryLog((), 1, 0, until=until) for until in (40, None, 90, 30)]
    assert QueryLog.merged(logs).until == 90
    assert QueryLog.merged(logs[1:2]).until is None
