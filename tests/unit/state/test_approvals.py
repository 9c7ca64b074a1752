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
