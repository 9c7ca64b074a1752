"""Scan volumes: every line of the report is there for every seed. What Spark would measure is made up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from zorder_pipeline import pipeline, spark
from zorder_pipeline.benchmarks import harness, volumes
from zorder_pipeline.benchmarks.harness import Options, Outcome
from zorder_pipeline.features import sample
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.pipeline.learning import volumes as learned
from zorder_pipeline.relayout import snapshot

ROWS = 640


def _returning(value: object) -> Callable[..., Any]:
    return lambda *given, **named: value


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Everything that needs Spark is made up; the seeds of the samples that were taken."""
    seeds: list[int] = []
    opened = SimpleNamespace(location="t", table_id="id", schema=TableSchema(()))
    taken = SimpleNamespace(
        arrays={}, rows=ROWS, total_rows=ROWS, file=np.zeros(ROWS, dtype=np.int32), stands_for=1.0, columns={}
    )
    read = SimpleNamespace(bytes=np.ones(2), rows=np.ones(2), bytes_after=np.ones(2))

    def take_sample(*given: object, seed: int, **named: object) -> SimpleNamespace:
        seeds.append(seed)
        return taken

    def measured(*given: Any) -> Outcome:
        errors = {"error_bytes": np.array([1.5]), "error_rows": np.array([1.0])}
        return Outcome(given[5], given[5], given[6], errors)

    promise = SimpleNamespace(bytes_before=2.0, bytes_saved_per_query=1.0, after=0.5)
    analysis = SimpleNamespace(snapshot=opened, sample=taken, queries=[0, 1], boxes=[(), ()])
    blocks = SimpleNamespace(promise=SimpleNamespace(queries=np.arange(2)))
    for module, name, value in (
        (spark, "session", _returning(None)),
        (snapshot, "open_table", _returning(opened)),
        (sample, "take_sample", take_sample),
        (learned, "present_volumes", _returning(read)),
        (learned, "read_volumes", _returning(read)),
        (pipeline, "ingest", _returning(None)),
        (pipeline, "analyse", _returning(analysis)),
        (pipeline, "learn_layout_for", _returning((SimpleNamespace(promise=promise), None))),
        (volumes, "delta_table", lambda _, path, *given: path.mkdir(parents=True, exist_ok=True)),
        (volumes, "replace", lambda one, **named: SimpleNamespace(**{**vars(one), **named})),
        (volumes, "blocks_of", _returning(blocks)),
        (volumes, "whole_table_shares", _returning(np.full(2, 0.5))),
        (volumes, "files_under", _returning(np.zeros(ROWS))),
        (volumes, "_key", _returning(object())),
        (volumes, "_measured", measured),
        (volumes.Estimator, "build", _returning(None)),
    ):
        monkeypatch.setattr(module, name, value)
    rows = SimpleNamespace(num_rows=ROWS)
    cases = [volumes.Case(name, _returning(rows), _returning(([], []))) for name in ("lineitem", "taxi")]
    monkeypatch.setattr(volumes, "CASES", tuple(cases))
    return seeds


def test_every_cell_of_the_grid_is_there_for_every_seed(made_up: list[int], tmp_path: Path) -> None:
    report = harness.summarise(volumes.run(Options((0, 1), tmp_path), lambda _: None))
    grid = [f"Z {z}, SOP {sop}" for z in volumes.Z for sop in volumes.SOP]
    assert list(report["contenders"]) == [harness.OURS, *grid, "lineitem", "taxi"]
    assert report["seeds"] == made_up == [0, 1]
    assert len(report["outcomes"]) == 2 * (len(grid) + 3)
