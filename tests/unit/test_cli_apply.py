"""What ``zorder apply`` says it did."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from zorder_pipeline import pipeline
from zorder_pipeline.cli import common, tables
from zorder_pipeline.model.candidate import ANOTHER, COMPACTION
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.results import ApplyResult

SPEC = KeySpec((FeatureCodes("a", "int", (5,), (0, 1), 1),), (0,))
PLAN = Plan("t", "id", "hash", 0, SPEC, "learned", 1000)
MERGED = ApplyResult(3, "applied", ("compaction only worth it",), gate={"action": COMPACTION})


@pytest.mark.parametrize(
    ("plan", "result", "told"),
    [
        (PLAN, replace(MERGED, gate={"action": ANOTHER}), "applied"),
        (PLAN, replace(MERGED, gate={"action": ANOTHER}, dry_run=True), "would be applied"),
        (PLAN, MERGED, "small files were merged; the plan's layout was not applied"),
        (PLAN, replace(MERGED, dry_run=True), "small files would be merged; the plan's layout would not be applied"),
        (replace(PLAN, spec=None), MERGED, "small files were merged"),
        (PLAN, replace(MERGED, decision="declined"), "declined"),
    ],
)
def test_what_was_done_is_named(
    plan: Plan, result: ApplyResult, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where merging small files gained more than the plan."""
    page = Console(file=io.StringIO(), width=120)
    monkeypatch.setattr(common, "out", page)
    monkeypatch.setattr(tables, "out", page)
    monkeypatch.setattr(tables, "start_spark", lambda *_, **__: None)
    monkeypatch.setattr("zorder_pipeline.model.plan.read_plan", lambda _: plan)
    monkeypatch.setattr(pipeline, "apply", lambda *_, **__: result)
    words = ["--table", "/a/rather/long/path/of/a/table", "--plan", "p.json"]
    tables.apply.main(words, standalone_mode=False)
    assert page.file.getvalue().splitlines()[0] == f"{words[1]}: {told}"  # type: ignore[attr-defined]
    tables.apply.main([*words, "--json"], standalone_mode=False)
    payload = json.loads(capsys.readouterr().out)
    assert (payload["decision"], payload["action"]) == (result.decision, result.gate["action"])
