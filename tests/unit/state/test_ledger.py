"""Under which name the ledger adds a relayout, and which row it changes, as far as that needs no Spark."""

from __future__ import annotations

from typing import Any

import pytest

from zorder_pipeline.model.plan import Plan
from zorder_pipeline.state import ledger as ledgers
from zorder_pipeline.state.ledger import Ledger

PLAN = Plan("/t", "id", "hash", 0, None, "learned", 100)
DONE = {"files_removed": 1, "files_added": 1, "bytes_rewritten": 10, "rows": 5, "seconds": 1.0}


def test_a_run_is_added_once_and_another_that_makes_its_version_again_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a table that was put back from a backup: its plan, promise and cost were lost."""
    spark: Any = None
    names: list[str] = []
    monkeypatch.setattr(ledgers, "_cores", lambda _: 2)
    ledger = Ledger(spark, "/state")
    merged: list[str | None] = []

    def append(rows: list[dict[str, Any]], once: str) -> None:
        names.append(once)
        merged.append(rows[0]["merged"])

    monkeypatch.setattr(ledger.table, "append", append)
    for run in ("zorder layout a 1", "zorder layout a 1", "zorder layout a 2", None):
        ledger.record(PLAN, "a", 4, DONE | {"run": run}, {})
    assert names[0] == names[1]
    assert len(set(names)) == 3
    assert names[3] == "zorder-relayouts-id-4", "as before runs were noted"
    for told in ({}, {3: 40}):
        ledger.record(PLAN, "a", 5, DONE | {"merged": told}, {})
    assert merged == [None] * 4 + ["{}", '{"3": 40}'], "that nothing was merged, or that nobody knows"
