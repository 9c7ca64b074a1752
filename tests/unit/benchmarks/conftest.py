"""A tiny lineitem from the real generator, shared by the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from zorder_pipeline.benchmarks.data import write_lineitem

SCALE = 0.01


@pytest.fixture(scope="package")
def lineitem_files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_lineitem(tmp_path_factory.mktemp("tpch"), SCALE, parts=12)


@pytest.fixture(scope="package")
def lineitem(lineitem_files: list[Path]) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with tables ``lineitem`` and, the same rows in another order, ``shuffled``."""
    with duckdb.connect() as db:
        files = [str(path) for path in lineitem_files]
        db.execute("CREATE TABLE lineitem AS SELECT * FROM read_parquet($files)", {"files": files})
        db.execute("CREATE TABLE shuffled AS SELECT * FROM lineitem ORDER BY hash(l_comment)")
        yield db
