"""Statistics that are kept after a commit: what goes wrong there costs nothing but reading time."""

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from zorder_pipeline import pipeline
from zorder_pipeline.assets import relayout
from zorder_pipeline.assets.common import Shelf
from zorder_pipeline.config import GateConfig, PipelineConfig, TableConfig
from zorder_pipeline.pipeline.reading.kept_statistics import keep_statistics


@pytest.mark.parametrize("error", [pa.ArrowInvalid("a value that Arrow does not have"), AssertionError("not so")])
def test_what_arrow_refuses_or_was_not_expected_is_told(error: Exception) -> None:
    def newest() -> None:
        raise error

    told: list[str] = []
    before = SimpleNamespace(newest=newest, location="/data/t")
    assert keep_statistics(before, None, "/data/state", told.append) is None  # type: ignore[arg-type]
    assert len(told) == 1
    assert told[0].startswith(f"statistics of the new files could not be kept ({error}); run zorder stats --table")


@pytest.mark.parametrize(("share", "cause", "completed"), [(0.5, "", 1), (0.5, "not_worth_it", 1), (0.0, "", 0)])
@pytest.mark.parametrize("held", ["", "blackout", "stopped"])
def test_what_others_wrote_gets_statistics_at_night_where_somebody_reads_by_them(
    monkeypatch: pytest.MonkeyPatch, share: float, cause: str, completed: int, held: str
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(pipeline, "complete_statistics", lambda *told: seen.append(told))
    monkeypatch.setattr(relayout, "opened", lambda *_: "snapshot")
    table = TableConfig(name="t", location="t", gate=GateConfig(enriched_reader_share=share))
    context: Any = SimpleNamespace(log=SimpleNamespace(info=lambda _: None))
    shelf = Shelf(PipelineConfig(state="/state", tables=(table,)), table)
    relayout._complete(context, shelf, SimpleNamespace(), held or cause)  # type: ignore[arg-type]
    assert len(seen) == (0 if held else completed)


def test_statistics_that_cannot_be_completed_fail_no_relayout(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is committed by then, or was declined."""

    def fails(*_: object) -> None:
        raise OSError("the store is away")

    monkeypatch.setattr(relayout, "opened", fails)
    table = TableConfig(name="t", location="t", gate=GateConfig(enriched_reader_share=0.5))
    told: list[str] = []
    context: Any = SimpleNamespace(log=SimpleNamespace(info=lambda _: None, warning=told.append))
    shelf = Shelf(PipelineConfig(state="/state", tables=(table,)), table)
    relayout._complete(context, shelf, SimpleNamespace())  # type: ignore[arg-type]
    assert told == ["t: statistics of new files could not be kept: the store is away"]
