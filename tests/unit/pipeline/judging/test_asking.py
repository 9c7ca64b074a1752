"""A plan that a person rejected: for how long its like is not asked for. And how one that waits is answered."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest

from zorder_pipeline.model.approval import PENDING, REJECTED, Request
from zorder_pipeline.model.candidate import ANOTHER
from zorder_pipeline.model.decision import APPROVE, Decision
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.values import DAY
from zorder_pipeline.pipeline.judging.asking import Asking
from zorder_pipeline.pipeline.judging.judgements import Judgement, Rules
from zorder_pipeline.pipeline.records import Preview
from zorder_pipeline.relayout.file_list import FileList

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


def pinned_again(layout: str, approval: str) -> Judgement:
    """What becomes of a layout given by hand in a night in which new data came to a table that lies by ``layout``."""
    spec = KeySpec((FeatureCodes("a", "int", (10,), (0, 1), 1, null_code=0),), (0,))
    plan = Plan("/t", "id", "hash", 0, spec, "manual", 100)
    number, rows = np.arange(2), np.array([100, 5])
    files = FileList(
        path=np.array(["old", "new"], dtype=object), bytes=rows * 10, rows=rows, deleted=rows * 0,
        layout=(spec.layout_id if layout == "same" else layout, ""), generation=np.array([3, -1]),
        key_low=number, key_high=number, modified=number, partitions=((), ()), load_zones=lambda columns: {},
    )  # fmt: skip
    asking = Asking(
        SimpleNamespace(all=lambda _: []),  # type: ignore[arg-type]
        "state",
        SimpleNamespace(snapshot=SimpleNamespace(table_id="id", files=lambda: files)),  # type: ignore[arg-type]
        Rules(approval=approval),
        BEGIN,
        asking=False,
    )
    return asking.answered(Judgement("t", "/t", 0, plan, Decision(APPROVE, "gate_off", ("pinned",)), Preview(0, 1)))


def test_what_is_new_is_laid_out_by_pinned_bits_without_asking_every_night() -> None:
    """With `approval: changes` it was put to a person each time, as if the table were given another layout."""
    assert pinned_again("same", "changes").outcome == "approved"
    for layout, approval in (("", "changes"), ("another", "changes"), ("same", "always")):
        assert pinned_again(layout, approval).decision.cause == "awaiting_approval", (layout, approval)


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
