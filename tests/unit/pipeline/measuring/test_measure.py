"""Figures of what queries read where there is nothing to read."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zorder_pipeline.pipeline.measuring.measure import _row_group_fraction


@pytest.mark.parametrize("paths", [[], ["empty.parquet"]], ids=["no file", "no row group"])
def test_of_an_empty_table_no_row_group_is_read(tmp_path: Path, paths: list[str]) -> None:
    with pq.ParquetWriter(tmp_path / "empty.parquet", pa.schema([("k", pa.int64())])):
        pass
    files = SimpleNamespace(path=np.array(paths, dtype=object))
    snapshot: Any = SimpleNamespace(location=str(tmp_path), files=lambda: files, leaves=())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = _row_group_fraction(snapshot, [((),)], np.ones((1, len(paths)), dtype=bool), np.ones(1))
    assert found == 0.0
    files.path = np.array(["gone.parquet"], dtype=object)
    assert _row_group_fraction(snapshot, [((),)], np.ones((1, 1), dtype=bool), np.ones(1)) is None
