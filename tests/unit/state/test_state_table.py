"""Tables of the state, as far as they need no Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from zorder_pipeline.errors import LostRaceError
from zorder_pipeline.state.state_table import StateTable


def test_an_update_is_tried_again_where_another_one_upgrades_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    conf = SimpleNamespace(get=lambda name, default: default, unset=lambda name: None)
    spark: Any = SimpleNamespace(sql=lambda text: said.append(text) or SimpleNamespace(collect=list), conf=conf)
    spark.session_id = "one"
    table = StateTable(spark, "/state", "notes", ("schema_version INT", "name STRING"), 1, "name")
    raced = [LostRaceError("another writer was faster")]

    def upgrade(_: StateTable) -> None:
        if raced:
            raise raced.pop()

    monkeypatch.setattr(StateTable, "_upgrade", upgrade)
    table.update({"name": "a"}, {"name": "b"})
    assert len(said) == 1


def test_rows_whose_instants_are_some_are_read_as_they_are() -> None:
    """Spark Connect refuses to add no column."""
    spark: Any = None
    stored: Any = SimpleNamespace(dtypes=[("at", "timestamp"), ("other", "timestamp_ntz")])
    assert StateTable(spark, "/state", "notes", ("at TIMESTAMP",), 1, "at")._zoned(stored) is stored
