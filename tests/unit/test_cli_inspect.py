"""What ``zorder inspect`` says of a table."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from zorder_pipeline import pipeline
from zorder_pipeline.cli import common, tables

FOUND: dict[str, Any] = {
    "table": "file:/lake/t",
    "version": 3,
    "files": 4,
    "rows": 1000,
    "bytes": 5000,
    "partition_columns": ["region", "channel"],
    "clustered_fraction": 0.0,
    "layouts": {},
    "generations": 0,
    "key_overlap": None,
    "deletion_vector_rows": 1,
    "overlap_depth": {"k": 2.0},
    "unsupported": "file:/lake/t uses liquid clustering; use the learned columns as advice",
}


def told(found: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> str:
    page = Console(file=io.StringIO(), width=120)
    for module in (common, tables):
        monkeypatch.setattr(module, "out", page)
    monkeypatch.setattr(tables, "start_spark", lambda *_, **__: None)
    monkeypatch.setattr(pipeline, "inspect", lambda *_, **__: found)
    tables.inspect.main(["--table", "/lake/t"], standalone_mode=False)
    return page.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_people_are_told_what_scripts_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """That a table may not be rewritten stood in the JSON object alone, as did its partitions and deleted rows."""
    lines = told(FOUND, monkeypatch).splitlines()
    assert lines[-1] == f"it may not be rewritten: {FOUND['unsupported']}"
    assert any(line.split("  ", 1)[0] == "partitioned by" and "region, channel" in line for line in lines)
    assert any(line.startswith("deleted by vectors") and line.rstrip().endswith("1 row") for line in lines)


def test_a_plain_table_has_no_lines_about_what_it_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = {**FOUND, "partition_columns": [], "deletion_vector_rows": 0, "unsupported": None}
    page = told(plain, monkeypatch)
    assert not any(word in page for word in ("partitioned", "deleted", "may not be"))
