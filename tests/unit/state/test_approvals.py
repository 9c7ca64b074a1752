"""Requests for approval, as far as they need no Spark: which ones wait, and in what order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from zorder_pipeline.model.approval import APPROVED, DONE, PENDING, REJECTED
from zorder_pipeline.state.approvals import Approvals


def test_requests_that_wait_come_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [("a", 1, REJECTED), ("b", 2, PENDING), ("c", 3, DONE), ("a", 4, APPROVED)]
    made = [SimpleNamespace(table_id=table, asked_at=at, status=status) for table, at, status in events]
    monkeypatch.setattr(Approvals, "all", lambda _: made)
    spark: Any = None
    waiting = Approvals(spark, "/state").waiting()
    assert [(request.table_id, request.asked_at) for request in waiting] == [("b", 2), ("a", 4)]


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
