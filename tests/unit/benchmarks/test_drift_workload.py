"""What moving workloads cost is told by kind of log and price, over tables and seeds."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from zorder_pipeline.benchmarks import drift, harness
from zorder_pipeline.benchmarks.harness import Options


def test_a_seed_is_one_whatever_the_number_of_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paid: Any = (np.ones(4), 1)
    tables = [SimpleNamespace(name=name, rows=lambda *_: None) for name in drift.QUICK_TABLES]
    monkeypatch.setattr(drift, "CASES", tables)
    monkeypatch.setattr(drift, "draw_log", lambda *_: None)
    monkeypatch.setattr(drift, "World", SimpleNamespace(build=lambda *_: SimpleNamespace(specs=())))
    monkeypatch.setattr(drift, "hindsight", lambda *_: (paid, paid, paid))
    for name in ("replay", "greedy", "offline_optimum"):
        monkeypatch.setattr(drift, name, lambda *_: paid)
    outcomes = drift.run(Options((0,), tmp_path, quick=True), lambda _: None)
    assert {outcome.table for outcome in outcomes} == set(drift.QUICK_TABLES)
    report = harness.summarise(outcomes)
    assert report["seeds"] == [0]
    assert len(report["cases"]) == len(drift.QUICK_KINDS) * len(drift.PRICES)
