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
    monkeypatch: pytest.MonkeyPatch,
    formatted: int = 0,
    weighed: bool | None = None,
    sampled: tuple[int, int] = (50_000, 1_000_000),
    per_file: float = 100.0,
    **learned: tuple[str, ...],
) -> tuple[str, ...]:
    monkeypatch.setattr(drafting, "without_statistics", lambda _: [])
    told = SimpleNamespace(
        **({"left_out": (), "late": (), "shortened": (), "name": "tree", "history": (0.5,)} | learned)
    )
    situation = SimpleNamespace(
        changes=(),
        analysis=SimpleNamespace(
            snapshot=SimpleNamespace(schema=DAILY),
            queries=QUERIES[:formatted],
            told={},
            sample=SimpleNamespace(rows=sampled[0], total_rows=sampled[1]),
        ),
        unsought="",
        now=None if weighed is None else SimpleNamespace(weighed=weighed),
        blocks=SimpleNamespace(apart=True),
        settings=SimpleNamespace(seconds=2.5),
    )
    found = SimpleNamespace(learned=told, rows_per_file=per_file, target=2_000)
    return drafting._notes(cast(Any, situation), cast(Any, found))


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


def test_more_rows_are_asked_for_where_there_are_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows of a table of small files were sampled, and it was told to sample more."""
    (told,) = notes(monkeypatch, per_file=12.4)
    assert told.startswith("a file is represented by only 12 sample rows: raise --sample-rows, or search.sample_rows")
    assert notes(monkeypatch, per_file=12.4, sampled=(50_000, 50_000)) == ()


@pytest.mark.parametrize("name", ["stored", "kept"])
def test_where_there_is_nothing_to_seek_it_is_said_why(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """It was said that no layout surely beat the present one, where there was no other."""
    nothing = {"history": (), "name": name}
    (told,) = notes(monkeypatch, sampled=(2_500, 2_500), **nothing)  # type: ignore[arg-type]
    assert told == "no order of rows was sought: the table's 2,500 rows make one file of 2,000"
    (told,) = notes(monkeypatch, **nothing)  # type: ignore[arg-type]
    assert told.startswith("no order of rows was sought: queries filter by no column that can order rows: by partition")
