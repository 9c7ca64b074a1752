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


def test_a_name_that_the_catalog_does_not_know_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    error = AnalysisException("[TABLE_OR_VIEW_NOT_FOUND] ... To tolerate the error on drop use DROP VIEW IF EXISTS.")
    monkeypatch.setattr(error, "getCondition", lambda: "TABLE_OR_VIEW_NOT_FOUND")
    said = str(not_opened("trips", error))
    assert said == "the session's catalog knows no table trips; give a folder with a slash, or a catalog name"
