"""Commands that go by the state's stored queries: what they ask the pipeline for, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from zorder_pipeline import pipeline
from zorder_pipeline.cli import learning, tables
from zorder_pipeline.cli.entry import zorder
from zorder_pipeline.errors import ZorderError

CONFIGURED = """
state: state
retention_days: 30
tables:
  - {name: a, location: a, search: {half_life_days: 9}}
  - {name: b, location: b}
"""
NEITHER = "nothing says what is asked: name a query log with --log, or a state with --state"


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the pipeline is asked for, in a folder with a configuration at hand and its state."""
    given: list[dict[str, Any]] = []

    def noted(_spark: object, *places: Any, **options: Any) -> None:
        given.append({"places": places} | options)
        raise InterruptedError

    for name in ("learn", "evaluate", "update_statistics"):
        monkeypatch.setattr(pipeline, name, noted)
    for module in (learning, tables):
        monkeypatch.setattr(module, "start_spark", lambda *_, **__: None)
    for name in ("state", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "tables.yaml").write_text(CONFIGURED)
    monkeypatch.setenv("ZORDER_CONFIG", str(tmp_path / "tables.yaml"))
    return given


def called(*words: str) -> None:
    with pytest.raises(InterruptedError):
        zorder.main(list(words), standalone_mode=False)


def test_stored_queries_count_as_in_the_nights_of_their_state(tmp_path: Path, asked: list[dict[str, Any]]) -> None:
    """As far back as retention_days, and as heavy by their age as the table's search says."""
    words = ("learn", "--out", str(tmp_path / "p.json"), "--table")
    mine, other = ("--state", f"{tmp_path}/state"), ("--state", f"{tmp_path}/other")
    called(*words, f"{tmp_path}/a", *mine)
    called(*words, f"{tmp_path}/b", *mine)
    called(*words, f"{tmp_path}/a", *mine, "--half-life-days", "2")
    called(*words, f"{tmp_path}/a", *other)
    called(*words, f"{tmp_path}/a", "--log", "x.sql")
    found = [(one["state"], one["days"], one["settings"].half_life_days) for one in asked]
    state = f"{tmp_path}/state"
    assert found == [(state, 30, 9), (state, 30, None), (state, 30, 2), (other[1], None, None), (None, None, None)]
    called("stats", "--table", f"{tmp_path}/a", *mine)
    called("stats", "--table", f"{tmp_path}/a", *other)
    assert [one["days"] for one in asked[5:]] == [30, None]


def test_of_evaluate_a_log_keeps_the_state_to_the_promises(tmp_path: Path, asked: list[dict[str, Any]]) -> None:
    words = ("evaluate", "--table", f"{tmp_path}/a", "--state", f"{tmp_path}/state")
    called(*words)
    called(*words, "--log", "x.sql")
    assert [(one["state"], one["days"]) for one in asked] == [(f"{tmp_path}/state", 30), (None, 30)]


@pytest.mark.parametrize("words", [("learn", "--out", "p.json"), ("evaluate",)], ids=["learn", "evaluate"])
def test_neither_a_log_nor_a_state_is_refused_before_spark_starts(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("zorder_pipeline.spark.session", lambda *_: pytest.fail("Spark is started"))
    with pytest.raises(ZorderError) as told:
        zorder.main([*words, "--table", "/t"], standalone_mode=False)
    assert str(told.value) == NEITHER
    with pytest.raises(ZorderError, match="--dialect means nothing without --log"):
        zorder.main([*words, "--table", "/t", "--state", str(tmp_path), "--dialect", "trino"], standalone_mode=False)
    with pytest.raises(ZorderError, match=r"typo does not exist"):
        zorder.main([*words, "--table", "/t", "--state", str(tmp_path / "typo")], standalone_mode=False)
