"""Workloads that need no Spark, run on tiny data: each contender has an outcome for each seed, or no report is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from zorder_pipeline.benchmarks import find_workload, guard, harness, layout, onward
from zorder_pipeline.benchmarks.harness import RAW, Options


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["layout", "onward", "guard", "features"])
def test_every_contender_has_every_seed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (layout, onward, guard):
        for setting, value in (("QUERIES", 40), ("TRIALS", 4)):
            if hasattr(module, setting):
                monkeypatch.setattr(module, setting, value)
    monkeypatch.setattr(guard, "CASES", [case for case in guard.CASES if case.name == "flights"])
    against = ("stored", "sort", "zorder-2", "seed") if name != "features" else None
    options = Options((0, 1), tmp_path, quick=True, scale=0.02, against=against, files=16, tables=("flights",))
    report = harness.summarise(find_workload(name).run(options, lambda _: None))
    assert report["seeds"] == [0, 1]
    assert len((tmp_path / RAW).read_text().splitlines()) == len(report["outcomes"])
