"""Requests for approval, as far as they need no Spark: which ones wait, and in what order."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from zorder_pipeline.errors import ZorderError
from zorder_pipeline.model.approval import APPROVED, DONE, PENDING, REJECTED, WITHDRAWN, Request
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.state.approvals import Approvals


def asked(table_id: str, at: int, status: str, name: str = "", location: str = "") -> Request:
    location = location or f"/data/{table_id}"
    return Request(name or location, table_id, Plan(location, table_id, "hash", 0, None, "learned", 100), status, at)


def test_requests_that_wait_come_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [("a", 1, REJECTED), ("b", 2, PENDING), ("c", 3, DONE), ("a", 4, APPROVED)]
    monkeypatch.setattr(Approvals, "all", lambda _: [asked(*event) for event in events])
    spark: Any = None
    waiting = Approvals(spark, "/state").waiting()
    assert [(request.table_id, request.asked_at) for request in waiting] == [("b", 2), ("a", 4)]


@pytest.mark.parametrize("newer", [PENDING, DONE])
@pytest.mark.parametrize(("name", "location"), [("/data/old", "file:/data/old/"), ("other", "/data/old")])
def test_what_was_asked_of_a_table_that_was_made_anew_is_over(
    newer: str, name: str, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has another id, so that no night would ever settle the request of the one before it."""
    events = [
        asked("old", 1, APPROVED, "orders"),
        asked("else", 2, PENDING, "sales"),
        asked("new", 3, newer, name, location),
    ]
    monkeypatch.setattr(Approvals, "all", lambda _, table_id=None: events)
    monkeypatch.setattr(Approvals, "settle", lambda *_: None)
    spark: Any = None
    approvals = Approvals(spark, "/state")
    assert [one.table_id for one in approvals.waiting()] == ["else", *(["new"] if newer == PENDING else [])]
    if newer == DONE:
        with pytest.raises(ZorderError, match="no plan of orders waits"):
            approvals.answer("orders", None, REJECTED, "asha")


def test_another_table_of_the_same_name_hides_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two configurations may share a state; a night does not ask again while its request is pending."""
    events = [asked("one", 1, PENDING, "orders", "/one"), asked("other", 2, DONE, "orders", "/other")]
    monkeypatch.setattr(Approvals, "all", lambda _, table_id=None: events)
    spark: Any = None
    assert [one.table_id for one in Approvals(spark, "/state").waiting()] == ["one"]


def test_an_answer_comes_after_the_request_whatever_the_clocks_say(monkeypatch: pytest.MonkeyPatch) -> None:
    spark: Any = None
    noted: list[dict[str, Any]] = []
    approvals = Approvals(spark, "/state")
    monkeypatch.setattr(approvals.table, "append", noted.extend)
    far = 4_102_444_800_000_000  # of a machine whose clock is ahead
    for settled_at in (None, far + 9):
        request: Any = SimpleNamespace(table_id="t", table="t", plan_id="p", asked_at=far, settled_at=settled_at)
        approvals.settle(request, APPROVED)
    assert [row["event_at"] for row in noted] == [f"2100-01-01T00:00:00.0000{end}+00:00" for end in ("01", "10")]
    assert noted[0]["event_date"] == "2100-01-01"
    request.asked_at, request.settled_at = 1, None
    approvals.settle(request, REJECTED)
    assert noted[2]["event_at"] < "2100"


def test_a_request_comes_after_what_was_said_of_the_table_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that was ahead: asked again it sorted before that, and read as done or as rejected."""
    spark: Any = None
    noted: list[dict[str, Any]] = []
    approvals, far = Approvals(spark, "/state"), 4_102_444_800_000_000
    monkeypatch.setattr(approvals.table, "append", noted.extend)
    plan = asked("t", 1, PENDING).plan
    settled = [replace(asked("t", 5, DONE), settled_at=far), asked("t", far - 9, REJECTED)]
    for before in (settled, []):
        monkeypatch.setattr(approvals, "all", {"t": before}.__getitem__)
        approvals.ask("t", plan, (), 3)
    assert noted[0]["event_at"] == "2100-01-01T00:00:00.000001+00:00"
    assert noted[1]["event_at"] < "2100"


@pytest.mark.parametrize(("said", "end"), [(REJECTED, DONE), (APPROVED, WITHDRAWN)])
def test_what_a_night_ends_stays_as_a_person_answered_it_since(
    said: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark: Any = None
    noted: list[dict[str, Any]] = []
    approvals, read = Approvals(spark, "/state"), replace(asked("t", 5, APPROVED), settled_at=7)
    monkeypatch.setattr(approvals.table, "append", noted.extend)
    other = replace(asked("t", 9, REJECTED), asked_as="other")
    monkeypatch.setattr(approvals, "all", lambda _: [other, now])
    now = replace(read, status=said, settled_at=8)
    approvals.settle(read, end)
    assert noted == []
    approvals.settle(read, REJECTED, "asha")
    assert [row["event"] for row in noted] == [REJECTED], "another person's answer counts"
    now = read
    approvals.settle(read, end)
    assert [row["event"] for row in noted] == [REJECTED, end]
