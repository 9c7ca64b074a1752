"""A run of which some failed prints what became of all, and ends as an error."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from zorder_pipeline.assets import run as runs
from zorder_pipeline.assets.run import TableOutcome
from zorder_pipeline.config.models import PipelineConfig

DONE = TableOutcome("sales", "applied", ("worth it",), {"Delta version": 3}, failed_checks=("rows_unchanged",))
FAILED = TableOutcome("orders", "failed", ("orders: /data/orders is no Delta table",))


@pytest.mark.parametrize("words", [["--json"], []])
def test_what_became_of_the_others_is_told(
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ended_with: Callable[..., object],
) -> None:
    monkeypatch.setattr("zorder_pipeline.cli.runs._configuration", lambda _: PipelineConfig.model_construct())
    monkeypatch.setattr(runs, "run_tables", lambda *_, **__: (DONE, FAILED))
    assert ended_with("run", *words) == 1
    told = capsys.readouterr()
    said = "zorder: sales: it was rewritten, but did not pass rows_unchanged; orders: /data/orders is no Delta table"
    assert told.err.splitlines()[-1] == said
    if not words:
        assert "worth it" in told.out
        return
    assert json.loads(told.out) == {
        "tables": {
            "sales": {
                "decision": "applied",
                "reasons": ["worth it"],
                "version": 3,
                "failed_checks": ["rows_unchanged"],
            },
            "orders": {"decision": "failed", "reasons": list(FAILED.reasons)},
        }
    }
