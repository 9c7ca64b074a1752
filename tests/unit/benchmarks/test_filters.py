"""How large the orders are in which scattered identifiers are looked up."""

from __future__ import annotations

from pathlib import Path

import pytest

from zorder_pipeline.benchmarks import filters
from zorder_pipeline.benchmarks.harness import Options


@pytest.mark.parametrize(
    ("quick", "scale", "rows", "files"),
    [
        (False, None, 10_000_000, 20),
        (True, None, 400_000, 16),
        (False, 0.5, 5_000_000, 20),
        (True, 0.01, 100_000, 16),
        (False, 3.0, 30_000_000, 20),
    ],
)
def test_the_scale_is_of_the_rows(quick: bool, scale: float | None, rows: int, files: int, tmp_path: Path) -> None:
    assert filters._size(Options((0,), tmp_path, quick, scale)) == (rows, files)
