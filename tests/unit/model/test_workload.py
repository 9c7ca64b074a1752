"""The queries of a log, and of several that hold the same."""

from __future__ import annotations

from zorder_pipeline.model.predicate import Comparison, Literal
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
