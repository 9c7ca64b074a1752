"""Workload ``kernel``: it runs, small, and says what its bar asks for.

The clock is made up: an evaluation takes as long as it has rows times queries, a sort as long as it has keys. So the
ratios and exponents that are told follow from what was evaluated, however busy the machine.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from zorder_pipeline.benchmarks import find_workload, kernel
from zorder_pipeline.benchmarks.harness import OURS
from zorder_pipeline.benchmarks.running import bench
from zorder_pipeline.layout.draft import SampledTable
from zorder_pipeline.layout.skipping import Estimator

LAYOUTS, ROWS, ROUNDS = 60, 40_000, 2
QUICK = 0.1


class _Clock:
    """Seconds that only evaluations and sorts use up, and how many there were by rows and queries."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.evaluations, self.sorts, self.inside = 0.0, dict[tuple[int, int], int](), 0, False
        read, argsort = SampledTable.rows_read, np.argsort

        def rows_read(table: SampledTable, draft: Any, estimator: Estimator) -> Any:
            self.inside, before = True, self.now
            found = read(table, draft, estimator)
            self.inside, self.now = False, before + 1e-9 * table.rows * estimator.queries
            size = table.rows, estimator.queries
            self.evaluations[size] = self.evaluations.get(size, 0) + 1
            return found

        def sort(values: Any, *rest: Any, **how: Any) -> Any:
            if not self.inside and getattr(values, "dtype", None) == np.int64 and len(values) == ROWS * QUICK:
                self.now += 1e-9 * len(values)
                self.sorts += 1
            return argsort(values, *rest, **how)

        monkeypatch.setattr(SampledTable, "rows_read", rows_read)
        monkeypatch.setattr(np, "argsort", sort)
        monkeypatch.setattr(kernel, "time", SimpleNamespace(perf_counter=lambda: self.now, time_ns=time.time_ns))


def test_the_workload_tells_what_it_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("LAYOUTS", LAYOUTS), ("ROWS", ROWS), ("ROUNDS", ROUNDS)):
        monkeypatch.setattr(kernel, name, value)
    clock, told = _Clock(monkeypatch), list[str]()
    report = bench("kernel", out=tmp_path, quick=True, seeds=1, progress=told.append)
    assert set(report["contenders"]) == {OURS, "argsort", "moves", "cma-es", "tpe", "journal", "sqlite"}
    found = {outcome["contender"]: outcome for outcome in report["outcomes"]}
    ours = found[OURS]["figures"]
    rows, queries = int(ROWS * QUICK), int(kernel.QUERIES * QUICK)
    assert (ours["rows"], ours["queries"], ours["files"]) == (rows, queries, int(kernel.FILES * QUICK))

    seconds: Mapping[str, float] = {name: one["seconds"][f"{LAYOUTS} trials"] for name, one in found.items()}
    assert seconds[OURS] == pytest.approx(LAYOUTS * rows * queries * 1e-9), "each layout once"
    assert seconds["argsort"] == pytest.approx(LAYOUTS * rows * 1e-9), "as many sorts"
    assert clock.sorts >= LAYOUTS
    assert ours["layouts_to_argsort"] == pytest.approx(seconds[OURS] / seconds["argsort"]) == pytest.approx(queries)
    added = (seconds["moves"] + seconds["journal"]) / seconds["argsort"]
    assert ours["sampler_and_storage_to_argsort"] == pytest.approx(added)

    for name, size, per_thousand in (("rows", rows, 1e-3 * queries), ("queries", queries, 1e-3 * rows)):
        cells = {int(size * part): size * part * per_thousand / 1e3 for part in kernel.GRID}
        assert ours[f"milliseconds_by_{name}"] == pytest.approx({str(n): cost for n, cost in cells.items()}, rel=0.05)
        assert ours[f"exponent_of_{name}"] == pytest.approx(1.0, abs=0.03)
        assert ours[f"straight_line_of_{name}"]["r2"] == pytest.approx(1.0, abs=1e-3)
    for size in ((rows // 4, queries), (2 * rows, queries), (rows, 2 * queries)):
        assert clock.evaluations[size] == kernel.GRID_LAYOUTS * ROUNDS
    assert any("bar 2" in line and f"take {ours['layouts_to_argsort']:.2f} times" in line for line in told)
    assert "numpy.argsort" in (tmp_path / "kernel.md").read_text(encoding="utf-8")


def test_time_that_grows_with_the_square_is_told_as_such() -> None:
    assert kernel.exponent([100, 200, 400], [1.0, 4.0, 16.0]) == pytest.approx(2.0)
    assert kernel.straight_line({n: float(n * n) for n in (100, 200, 400, 800)})["r2"] < 0.97


def test_it_is_registered() -> None:
    assert find_workload("kernel").name == "kernel"
