"""What a plan says of a search that a time budget cut short, and of queries that are not understood."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from zorder_pipeline.model.predicate import Opaque
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.learning import drafting

DAILY = TableSchema((Column("ds", "date", partition=True),))
QUERIES = (LoggedQuery("t", Opaque("function", ("ds",))),) * 3


def notes(
    monkeypatch: pytest.MonkeyPatch, formatted: int = 0, weighed: bool | None = None, **learned: tuple[str, ...]
) -> tuple[str, ...]:
    monkeypatch.setattr(drafting, "without_statistics", lambda _: [])
    told = SimpleNamespace(**({"left_out": (), "late": (), "shortened": (), "name": "tree"} | learned))
    situation = SimpleNamespace(
        changes=(),
        analysis=SimpleNamespace(snapshot=SimpleNamespace(schema=DAILY), queries=QUERIES[:formatted], told={}),
        unsought="",
        now=None if weighed is None else SimpleNamespace(weighed=weighed),
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


def test_queries_that_choose_partitions_by_what_is_not_understood_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    (told,) = notes(monkeypatch, formatted=3)
    assert told.startswith("3 queries choose partitions by conditions that are not understood and count as reading all")


def test_that_bytes_are_told_without_footers_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert notes(monkeypatch, weighed=True) == ()
    assert notes(monkeypatch, weighed=False) == (drafting.UNWEIGHED,)
