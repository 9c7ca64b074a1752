"""A workload is run with the options it knows, alone in its folder, and leaves a report."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from tests.json_page import differences
from zorder_pipeline.benchmarks import WORKLOADS, find_workload, reports, running
from zorder_pipeline.benchmarks.harness import OURS, RAW, Options, Outcome, Progress, Workload
from zorder_pipeline.cli.runs import bench
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
    assert differences("bench", {key: value for key, value in report.items() if key != "outcomes"}) == []
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


def test_what_was_measured_before_a_failure_is_kept_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(options: Options, progress: Progress) -> list[Outcome]:
        found = options.noted(_outcomes(options.seeds))
        if len(options.seeds) == 2:
            options.noted(_outcomes([2]))
            raise error
        return found

    monkeypatch.setattr(running, "find_workload", lambda name: Workload(name, "made up", run))
    raw = tmp_path / "work" / RAW
    errors: tuple[BaseException, ...] = (ZorderError("no space"), ValueError("odd"), KeyboardInterrupt())
    for error in errors:
        said: list[str] = []
        with pytest.raises(type(error)) as caught:
            running.bench("fake", out=tmp_path, seeds=2, progress=said.append)
        told = [str(caught.value), *getattr(caught.value, "__notes__", ()), *said]
        assert any(f"what was measured by then is in {raw}" in sentence for sentence in told), told
        lines = [json.loads(line) for line in raw.read_text().splitlines()]
        assert [(line["contender"], line["seed"]) for line in lines] == [
            *((OURS, seed) for seed in (0, 1)), *(("zorder", seed) for seed in (0, 1)), (OURS, 2), ("zorder", 2)
        ]  # fmt: skip
        assert lines[0]["per_query"]["rows"] == np.arange(1.0, 9.0).tolist()
    running.bench("fake", out=tmp_path, seeds=1)
    assert not raw.exists(), "the report has it all"


def test_contenders_of_other_seeds_are_told_with_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(options: Options, progress: Progress) -> list[Outcome]:
        return options.noted(_outcomes(options.seeds)[:-1])

    monkeypatch.setattr(running, "find_workload", lambda name: Workload(name, "made up", run))
    with pytest.raises(ValueError, match="contender zorder has other seeds than ours"):
        running.bench("fake", out=tmp_path, seeds=2)
    assert (tmp_path / "work" / RAW).is_file()


@pytest.mark.parametrize("workload", ["demo", "all"])
def test_a_folder_that_cannot_be_written_is_one_sentence(workload: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place, why in ((tmp_path / "file" / "x", "not a directory"), (Path("/proc/x"), "no such file or directory")):
        refused = CliRunner().invoke(bench, ["--workload", workload, "--out", str(place)])
        assert isinstance(refused.exception, ZorderError)
        said = str(refused.exception)
        assert said == f"--out: the folder {place} cannot be written: {why}; choose another place"
    (tmp_path / "work").touch()
    with pytest.raises(ZorderError, match="/work cannot be written: file exists"):
        running.bench("demo", out=tmp_path)


def _all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, **options: Any
) -> tuple[list[list[str]], list[str], dict[str, Any]]:
    """Every workload run by a made-up program; returns what it was told, what was said, and what came of it."""
    told, said = tmp_path / "told", list[str]()
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nshift 3\necho "$@" >> {told}\necho working >&2\n{program}\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    found = running.bench_all(out=tmp_path / "out", progress=said.append, **options)
    return [line.split() for line in told.read_text().splitlines()], said, found


def test_all_workloads_run_in_turn_with_the_options_they_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, said, found = _all(tmp_path, monkeypatch, "true", quick=True, seeds=1, scale=0.5, against=["sort", "none"])
    names = [name for name, _ in WORKLOADS]
    assert [call[0] for call in calls] == [f"--workload={name}" for name in names]
    for name, call in zip(names, calls, strict=True):
        workload = find_workload(name)
        assert {f"--out={tmp_path / 'out'}", "--quick", "--seeds=1"} <= set(call)
        assert ("--scale=0.5" in call, "--against=sort,none" in call) == (workload.scaled, bool(workload.peers))
    assert said[:2] == [f"workload 1 of {len(names)}: {names[0]}", f"{names[0]}: working"]
    text = (tmp_path / "out" / running.INDEX).read_text()
    assert all(f"| [{name}]({name}.md) | {find_workload(name).summary} | 0.0 |" in text for name in names)
    assert [run["workload"] for run in found["runs"]] == names
    assert differences("bench", found) == []


def test_all_goes_on_when_one_fails_and_says_so_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = 'case "$*" in *=guard*) echo "zorder: no | space" >&2; exit 1;; *=drift*) exit 7;; esac'
    with pytest.raises(ZorderError, match=r"^2 of \d+ workloads failed: guard, drift; .*index.md says why"):
        _all(tmp_path, monkeypatch, program)
    text = (tmp_path / "out" / running.INDEX).read_text()
    assert re.search(r"^\| guard \| .* \| failed: no \\\| space \|$", text, re.MULTILINE)
    assert f"[{WORKLOADS[-1][0]}]" in text


def test_all_refuses_a_mistyped_peer_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZorderError, match="--against knows no 'zordr'"):
        _all(tmp_path, monkeypatch, "true", against=["zordr"])
    assert not (tmp_path / "told").exists()
    runner = CliRunner()
    refused = runner.invoke(bench, ["--workload", "all", "--files", "8", "--out", str(tmp_path / "out")])
    assert str(refused.exception) == "--files means nothing to all workloads; name one, or leave it out"
