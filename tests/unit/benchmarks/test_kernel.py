"""Workload ``kernel``: it runs, small, and says what its bar asks for."""

from pathlib import Path

import pytest

from zorder_pipeline.benchmarks import find_workload, kernel
from zorder_pipeline.benchmarks.harness import OURS
from zorder_pipeline.benchmarks.running import bench


def test_the_workload_measures_each_part_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "LAYOUTS", 60)
    monkeypatch.setattr(kernel, "ROWS", 40_000)
    monkeypatch.setattr(kernel, "ROUNDS", 2)
    told: list[str] = []
    report = bench("kernel", out=tmp_path, quick=True, seeds=1, progress=told.append)
    assert set(report["contenders"]) == {OURS, "argsort", "moves", "cma-es", "tpe", "journal", "sqlite"}
    ours = next(outcome for outcome in report["outcomes"] if outcome["contender"] == OURS)["figures"]
    assert ours["layouts_to_argsort"] > 0
    assert ours["sampler_and_storage_to_argsort"] > 0
    assert len(ours["milliseconds_by_rows"]) == len(ours["milliseconds_by_queries"]) == 4
    assert ours["straight_line_of_rows"].keys() == {"fixed_ms", "ms_per_thousand", "r2"}
    assert any("bar 2" in line for line in told)
    assert "numpy.argsort" in (tmp_path / "kernel.md").read_text(encoding="utf-8")


def test_it_is_registered() -> None:
    assert find_workload("kernel").name == "kernel"
