"""What a plan says of a search that a time budget cut short."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from zorder_pipeline.pipeline.learning import drafting


def notes(monkeypatch: pytest.MonkeyPatch, **learned: tuple[str, ...]) -> tuple[str, ...]:
    monkeypatch.setattr(drafting, "without_statistics", lambda _: [])
    told = SimpleNamespace(**({"left_out": (), "late": (), "shortened": (), "name": "tree"} | learned))
    situation = SimpleNamespace(
        changes=(),
        analysis=None,
        unsought="",
        blocks=SimpleNamespace(apart=True),
        settings=SimpleNamespace(seconds=2.5),
    )
    return drafting._notes(cast(Any, situation), cast(Any, SimpleNamespace(learned=told, rows_per_file=100.0)))


def test_what_there_was_no_time_for_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert notes(monkeypatch) == ()
    assert notes(monkeypatch, left_out=("seed",)) == ("not compared with seed, which take as long as a search",)
    short = ("tree was grown in part", "the search was ended after 40 of 600 trials")
    assert notes(monkeypatch, late=("seed", "piecewise"), shortened=short) == (
        f"within the time budget of 2.5 s: not compared with seed, piecewise; {'; '.join(short)}",
    )
