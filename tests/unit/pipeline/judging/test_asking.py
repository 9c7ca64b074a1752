"""A plan that a person rejected: for how long its like is not asked for. And how one that waits is answered."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from zorder_pipeline.model.approval import PENDING, REJECTED, Request
from zorder_pipeline.model.candidate import ANOTHER
from zorder_pipeline.model.decision import APPROVE, Decision
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.values import DAY
from zorder_pipeline.pipeline.judging.asking import Asking
from zorder_pipeline.pipeline.judging.judgements import Judgement, Rules
from zorder_pipeline.pipeline.records import Preview

PLAN = Plan("/t", "id", "hash", 0, None, "learned", 100, action=ANOTHER)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
ASKED = int(BEGIN.timestamp() * 1e6)


def asked_again(after_days: float, approval_days: float) -> Judgement:
    """What becomes of a plan of which the like was asked for two days before it was rejected."""
    no = Request("t", "id", PLAN, REJECTED, ASKED - 2 * DAY, ASKED, by="asha")
    now = datetime.fromtimestamp((ASKED + after_days * DAY) / 1e6, UTC)
    asking = Asking(
        SimpleNamespace(all=lambda _: [no]),  # type: ignore[arg-type]
        "state",
        SimpleNamespace(snapshot=SimpleNamespace(table_id="id")),  # type: ignore[arg-type]
        Rules(approval="changes", approval_days=approval_days),
        now,
        asking=False,
    )
    return asking.answered(Judgement("t", "/t", 0, PLAN, Decision(APPROVE, "worth_it", ("worth it",)), Preview(0, 1)))


def test_a_rejection_holds_for_its_days_from_the_answer_on() -> None:
    holds, over = asked_again(6.9, 7.0), asked_again(7.1, 7.0)
    assert (holds.outcome, holds.decision.cause) == ("declined", "rejected")
    assert holds.decision.reasons[0].endswith("rejected by asha, and its like is not asked for until 2026-01-08")
    assert holds.decision.reasons[1] == "worth it"
    assert (over.outcome, over.decision.cause) == ("postponed", "awaiting_approval")


@pytest.mark.parametrize("days", [3e6, 1e12])
def test_a_rejection_may_hold_for_ever(days: float) -> None:
    """There is no date so many days from now."""
    found = asked_again(400.0, days)
    assert found.decision.cause == "rejected"
    assert found.decision.reasons[0].endswith("not asked for until 9999-12-31")


def test_what_waits_is_answered_by_the_name_that_it_was_asked_by() -> None:
    asking = Asking(
        SimpleNamespace(),  # type: ignore[arg-type]
        "/state",
        SimpleNamespace(),  # type: ignore[arg-type]
        Rules(approval="changes"),
        BEGIN,
    )
    judged = Judgement("orders", "/t", 0, PLAN, Decision(APPROVE, "worth_it", ("worth it",)), Preview(0, 1))
    told = asking._put(judged, Request("/data/orders", "id", PLAN, PENDING, ASKED)).decision.reasons[0]
    assert f"zorder approve --table /data/orders --plan {PLAN.plan_id} --state /state" in told
