"""What a first look says of a table that the log does not ask for."""

from __future__ import annotations

from typing import Any

import pytest

from zorder_pipeline.model.triage import TableTriage
from zorder_pipeline.model.workload import QueryLog
from zorder_pipeline.pipeline.measuring import first_look
from zorder_pipeline.pipeline.records import LearnSettings


@pytest.mark.parametrize(
    ("quarantined", "told"),
    [
        ({}, "no query of it in the log"),
        ({"parse_error": 2}, "no query of it in the log, of which 2 lines cannot be used (zorder ingest says why)"),
    ],
)
def test_lines_that_cannot_be_used_are_told(
    quarantined: dict[str, int], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_look, "queries_of", lambda *_: [])
    monkeypatch.setattr(first_look, "_facts", lambda *_: TableTriage("t", "file:/t", rows=5))
    nothing: Any = None
    log = QueryLog((), 2, 0, quarantined=quarantined)
    assert first_look._one(nothing, "t", nothing, log, LearnSettings(), "").problem == told
