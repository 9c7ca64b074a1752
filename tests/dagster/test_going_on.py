"""A relayout of a partitioned table that fails: what is left is done by partition, what is committed is not hidden."""

from __future__ import annotations

import logging
from collections.abc import Generator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from dagster import Failure

from zorder_pipeline import pipeline
from zorder_pipeline.assets import relayout
from zorder_pipeline.assets.budget import BUDGET
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


@dataclass(frozen=True)
class Judged:
    """As much of a judgement as decides whether the table is judged anew."""

    version: int
    approved: bool = True
    partitions: tuple[str, ...] | None = None
    cause: str = "worth_it"

    @property
    def decision(self) -> Any:
        return SimpleNamespace(approved=self.approved, cause=self.cause)


NO_ROOM, WAITS = (Judged(3, approved=False, cause=cause) for cause in ("budget", "awaiting_approval"))


@pytest.mark.parametrize(
    ("made", "granted", "now", "expected"),
    [
        ({"cost_benefit": 0, "budget": 0}, Judged(3), 4, Judged(3)),  # a night: judged a moment ago
        ({}, Judged(3), 3, Judged(9)),  # alone: an approval may have come since
        ({}, Judged(3, approved=False), 3, Judged(9)),
        ({"cost_benefit": 1}, Judged(3), 3, Judged(3)),  # what failed, done again
        ({"cost_benefit": 1}, Judged(3), 4, Judged(9)),
        ({"cost_benefit": 1, "budget": 1}, Judged(3, partitions=("p=1",)), 4, Judged(9, partitions=("p=1",))),
        ({"cost_benefit": 1, "budget": 1}, NO_ROOM, 4, NO_ROOM),
        ({"cost_benefit": 1}, WAITS, 3, Judged(9)),  # it may be approved by now, or the blackout over
        ({"cost_benefit": 1, "budget": 1}, WAITS, 3, NO_ROOM),  # and others have the budget
        ({"cost_benefit": 0, "budget": 0}, WAITS, 4, WAITS),
        ({"budget": 0}, Judged(3), 4, Judged(9)),  # the budget made by hand, of older judgements
        ({"cost_benefit": 0}, Judged(3), 4, Judged(3)),
    ],
)
def test_a_judgement_of_another_run_is_made_anew_where_the_table_has_moved_on(
    made: dict[str, int], granted: Judged, now: int, expected: Judged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which of cost_benefit and the budget were made by this run (0), or by the one that it does again (1)."""
    keys = {"cost_benefit": "cost_benefit", BUDGET: "budget"}

    def made_here(_: object, key: Any, before: bool = True) -> bool:
        return made.get(keys[key], 2) <= before

    def judged_now(_: object, __: object, plan: object) -> Judged:
        assert plan == "bit_allocation", "the whole plan, and not the part of it that the gate chose before"
        return Judged(9)

    for name, value in {
        "granted": lambda *_: granted, "made_here": made_here, "judged_now": judged_now,
        "value_of": lambda *given: given[-1], "opened": lambda *_: SimpleNamespace(version=now),
        "without_room": lambda *_: NO_ROOM,
    }.items():  # fmt: skip
        monkeypatch.setattr(relayout, name, value)
    shelf: Any = SimpleNamespace(key=lambda stage: stage)
    nothing: Any = None
    assert relayout._tonight(nothing, nothing, nothing, shelf, nothing) == expected
