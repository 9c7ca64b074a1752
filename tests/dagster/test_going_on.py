"""A relayout of a partitioned table that fails: what is left is done by partition, what is committed is not hidden."""

from __future__ import annotations

import logging
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest
from dagster import Failure

from zorder_pipeline import pipeline
from zorder_pipeline.assets import relayout
from zorder_pipeline.assets.common import told
from zorder_pipeline.errors import LostRaceError, RecordError, TableError, VerificationError, ZorderError
from zorder_pipeline.model.results import ApplyResult

pytestmark = pytest.mark.dagster

CONTEXT: Any = SimpleNamespace(log=logging.getLogger("quiet"), retry_number=3)
SHELF: Any = SimpleNamespace(table=SimpleNamespace(name="orders"))


def went_on(monkeypatch: pytest.MonkeyPatch, error: Exception, found: str, partitioned: bool = True) -> ApplyResult:
    """What becomes of a relayout that ends with ``error`` where each partition alone is then ``found``."""

    def fail(*_: object, **__: object) -> None:
        raise error

    def alone(*_: object) -> Generator[None, None, ApplyResult]:
        yield
        return ApplyResult(7, found, ("each alone",))

    monkeypatch.setattr(relayout, "relayout_settings", lambda *_: pipeline.RelayoutSettings())
    monkeypatch.setattr(relayout, "separately", alone)
    monkeypatch.setattr(pipeline, "carry_out", fail)
    spark: Any = None
    judged: Any = None
    steps = relayout._carried_out(CONTEXT, SHELF, spark, judged, partitioned)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: ApplyResult = end.value
            return result


def test_what_a_failure_has_left_is_done_by_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    assert went_on(monkeypatch, TableError("a file is broken"), "applied").version == 7
    with pytest.raises(TableError, match="a file is broken"):
        went_on(monkeypatch, TableError("a file is broken"), "applied", partitioned=False)


@pytest.mark.parametrize(
    ("error", "step"),
    [
        (VerificationError("version 7 was left as it is"), "DESCRIBE HISTORY"),
        (RecordError("version 7 is committed, but could not be recorded"), "the state can be written"),
        (LostRaceError("another writer was faster"), "run it again"),
    ],
)
@pytest.mark.parametrize("found", ["nothing_to_do", "applied"])
def test_a_commit_that_is_not_in_order_ends_the_run_red(
    monkeypatch: pytest.MonkeyPatch, error: ZorderError, step: str, found: str
) -> None:
    with pytest.raises(Failure) as failed, told(CONTEXT, "orders"):
        went_on(monkeypatch, error, found)
    assert failed.value.description == f"orders: {error}"
    assert step in str(failed.value.metadata["next step"].value)


@pytest.mark.parametrize("found", ["nothing_to_do", "postponed"])
def test_a_failure_after_which_nothing_is_applied_is_not_hidden(monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    with pytest.raises(ValueError, match="after the commit"):
        went_on(monkeypatch, ValueError("after the commit"), found)
