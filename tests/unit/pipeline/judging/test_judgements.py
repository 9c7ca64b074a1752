"""What is recorded of a judgement of which the budget chose a part."""

from __future__ import annotations

from typing import Any

import pytest

from zorder_pipeline.model.decision import APPROVE, Decision
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.pipeline.judging.judgements import Judgement, Part
from zorder_pipeline.pipeline.records import Preview

FIGURES = ("cost_core_seconds", "cost_low", "cost_high", "saving_core_seconds", "saving_low", "saving_high")


def said(partitions: tuple[str, ...] | None, *parts: Part) -> list[Any]:
    """The figures of a decision about all of the parts, as they are recorded."""
    decision = Decision(APPROVE, "worth_it", ("worth it",), "", 1000.0, 9000.0, 6000.0, 12000.0, 500.0, 2000.0)
    plan = Plan("/t", "id", "hash", 0, None, "learned", 100)
    found = Judgement("t", "/t", 3, plan, decision, Preview(3), parts, partitions).said
    return [found[name] for name in FIGURES]


def test_cost_and_saving_are_of_the_partitions_that_the_budget_chose() -> None:
    """Of one of ten partitions the cost of all of them was foretold, and held against what that one took."""
    parts = [Part(f"d={i}", 100.0, 800.0 if i else 0.0, 0.1) for i in range(9)] + [Part("d=9", 100.0, -400.0, 0.1)]
    whole = [1000.0, 500.0, 2000.0, 9000.0, 6000.0, 12000.0]
    assert said(None, *parts) == whole
    assert said(tuple(part.key for part in parts), *parts) == whole
    assert said(("d=1",), *parts) == pytest.approx([100.0, 50.0, 200.0, 1200.0, 800.0, 1600.0])
    assert said(("d=0",), *parts)[3:] == [0.0, 0.0, 0.0]


def test_where_the_least_saving_is_nothing_parts_save_what_they_bring_of_the_promise() -> None:
    parts = (Part("d=0", 10.0, 0.0, 0.6), Part("d=1", 30.0, 0.0, 0.2))
    assert said(("d=0",), *parts) == pytest.approx([250.0, 125.0, 500.0, 6750.0, 4500.0, 9000.0])
    nothing = (Part("d=0", 0.0, 0.0, 0.0), Part("d=1", 0.0, 0.0, 0.0))
    assert said(("d=0",), *nothing) == said(None, *nothing)
