"""A workload is run with the options it knows, alone in its folder, and leaves a report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from zorder_pipeline.benchmarks import find_workload, reports, running
from zorder_pipeline.benchmarks.harness import OURS, Options, Outcome, Progress, Workload
from zorder_pipeline.errors import ZorderError


def _outcomes(seeds: Sequence[int]) -> list[Outcome]:
    rows = np.arange(1.0, 9.0)
    ours = [Outcome(OURS, "ours", seed, {"rows": rows}) for seed in seeds]
    return ours + [Outcome("zorder", "Delta ZORDER", seed, {"rows": 2 * rows}) for seed in seeds]


def test_bench_writes_json_and_markdown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Options] = []

    def run(options: Options, progress: Progress) -> list[Outcome]:
        asked.append(options)
        progress("running")
        return _outcomes(options.seeds)

    monkeypatch.setattr(running, "find_workload", lambda name: Workload(name, "made up", run, {"zorder": ("zorder",)}))
    said: list[str] = []
    monkeypatch.chdir(tmp_path)
    report = running.bench("fake", out=".", quick=True, seeds=3, against=["zorder", "none"], progress=said.append)
    assert (asked[0].seeds, asked[0].quick, asked[0].against) == ((0, 1, 2), True, ("zorder",))
    missing = "this workload has no such contender, only zorder"
    assert said == [f"default is not run: {missing}", "running"]
    assert report["not_run"] == {"default": missing}
    assert asked[0].work == tmp_path / "work", "SQL takes absolute paths alone"
    assert json.loads((tmp_path / "fake.json").read_text()) == report
    text = (tmp_path / "fake.md").read_text()
    assert f"Not run: default ({missing})." in text
    assert "2.00 (2.00–2.00)" in text
    assert "3 seeds" in text
    console = Console(record=True, width=160)
    console.print(reports.rich_table(report))
    assert "Delta ZORDER" in console.export_text()


def test_wrong_options_are_named(tmp_path: Path) -> None:
    with pytest.raises(ZorderError, match="--workload knows no 'nosuch'; it may be any of demo"):
        find_workload("nosuch")
    with pytest.raises(ZorderError, match="--seeds is 0"):
        running.bench("demo", out=tmp_path, seeds=0)
    with pytest.raises(ZorderError, match="--files means nothing to workload demo"):
        running.bench("demo", out=tmp_path, files=8)
    with pytest.raises(ZorderError, match="--scale means nothing to workload ingest"):
        running.bench("ingest", out=tmp_path, scale=2)
    with pytest.raises(ZorderError, match="--tables means nothing to workload relayout"):
        running.bench("relayout", out=tmp_path, tables=["flights"])
    with pytest.raises(ZorderError, match="--tables knows no 'flight'; it may be any of lineitem, orders_lineitem, "):
        running.bench("layout", out=tmp_path, tables=["flight"])
    assert not list(tmp_path.iterdir())


def test_two_benchmarks_do_not_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(options: Options, progress: Progress) -> list[Outcome]:
        if len(options.seeds) == 2:
            with pytest.raises(ZorderError, match="another benchmark is at work in "):
                running.bench("fake", out=tmp_path, seeds=1)
            running.bench("fake", out=tmp_path / "other", seeds=1)
        return _outcomes(options.seeds)

    monkeypatch.setattr(running, "find_workload", lambda name: Workload(name, "made up", run))
    running.bench("fake", out=tmp_path, seeds=2)
    running.bench("fake", out=tmp_path, seeds=1)  # the folder is free again
