"""What people are told of a table that cannot be opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException

from zorder_pipeline.relayout.failures import not_opened


def test_a_folder_named_without_a_slash_is_pointed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flights").mkdir()
    error = AnalysisException("[TABLE_OR_VIEW_NOT_FOUND] The table or view `flights` cannot be found.")
    assert str(not_opened("flights", error)).endswith("; for the folder of that name write ./flights")
    assert str(not_opened("trips", error)).endswith("; give a folder with a slash, or a catalog name")
    assert "write ./" not in str(not_opened(str(tmp_path / "flights"), error))
