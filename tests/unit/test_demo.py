"""The demo's own configuration."""

from __future__ import annotations

from pathlib import Path

from zorder_pipeline.config import load_config
from zorder_pipeline.demo import _home, example_home


def test_the_demo_keeps_as_many_files_as_it_writes(tmp_path: Path) -> None:
    """Without that the gate merges its small files into one, and there is no layout to be seen."""
    example = load_config(example_home() / "tables.yaml", check_paths=False).tables[0].layout
    assert example.target_file_rows == 600_572 // 256  # of scale 0.1, the default
    own = load_config(_home(tmp_path, 17) / "tables.yaml", check_paths=False).tables[0]
    assert own.layout.target_file_rows == 17
    assert str(tmp_path) in str(own.location)
