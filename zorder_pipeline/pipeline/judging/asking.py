"""Plans that a person has to approve: asked for, taken instead of tonight's once approved, and ended when stale."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from zorder_pipeline.errors import PlanError
from zorder_pipeline.gate.decision import postponed
from zorder_pipeline.model.approval import APPROVED, DONE, PENDING, REJECTED, WITHDRAWN, Request
from zorder_pipeline.model.decision import APPROVE, DECLINE, Decision
from zorder_pipeline.model.plan import ANOTHER, COMPACTION, Plan
from zorder_pipeline.model.values import DAY
from zorder_pipeline.relayout.history import TakenBack
from zorder_pipeline.relayout.snapshot import TableSnapshot
from zorder_pipeline.state.approvals import Approvals

from .judgements import Judgement, Rules
from .previews import preview

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["with_approval"]


def with_approval(
    spark: SparkSession,
    snapshot: TableSnapshot,
    judged: Judgement,
    rules: Rules,
    state: str,
    where: str | None,
    now: datetime,
    asking: bool,
    costing: Callable[[Plan], Decision],
    back: TakenBack | None = None,
) -> Judgement:
    """The judgement after a person was asked, where one has to be.

    Args:
        where, now, asking: see `zorder_pipeline.pipeline.judge_table`.
        costing: tells what a plan costs and saves.
        back: who took our newest relayout back: then a person is asked whatever the rules say.
    """
    approvals = Approvals(spark, state)
    requests = approvals.all(snapshot.table_id)
    request = requests[-1] if requests else None
    open_request = request if request is not None and request.status in (PENDING, APPROVED) else None
    if open_request is not None:
        open_request = replace(open_request, plan=open_request.plan.as_called(snapshot.asked_schema))
    if open_request is not None and open_request.plan.action == COMPACTION and snapshot.whole_partitions:
        open_request = None  # it was asked of a session that can merge files, and waits for one
    if open_request is not None and (gone := _outlived(snapshot, open_request, rules, where, now, back)):
        if asking:
            approvals.settle(open_request, *gone)
        open_request = None
    if open_request is not None and open_request.status == APPROVED:
        would = preview(snapshot, open_request.plan, where=where)
        why = f"plan {open_request.plan_id} was approved by {open_request.by or 'a person'}"
        mine = judged.plan.plan_id == open_request.plan.plan_id
        reasons = (why, *(judged.decision.reasons if mine else open_request.reasons))
        decision = replace(costing(open_request.plan), verdict=APPROVE, cause="approved_by_hand", reasons=reasons)
        return replace(judged, plan=open_request.plan, decision=decision, preview=would, request=open_request)
    needed = back is not None or rules.approval == "always" or judged.plan.effective_action == ANOTHER
    if not judged.decision.approved or not needed:
        # where nothing was weighed tonight, nothing speaks against it either
        weighed = bool(judged.decision.options)
        if open_request is not None and asking and weighed and not _wanted(open_request, judged.decision):
            approvals.settle(open_request, WITHDRAWN, "the gate would not do it any more")
        return judged
    if (no := _rejected(requests, judged.plan, rules, now)) is not None:
        until = datetime.fromtimestamp((no.settled_at or no.asked_at) / 1e6, UTC) + timedelta(days=rules.approval_days)
        why = f"plan {no.plan_id} was rejected by {no.by or 'a person'}, and its like is not asked for until {until:%F}"
        decision = replace(judged.decision, verdict=DECLINE, cause="rejected", reasons=(why, *judged.decision.reasons))
        return replace(judged, decision=decision, request=no)
    cause, lead = ("rolled_back", f"{back.why}; ") if back is not None else ("awaiting_approval", "")
    if open_request is None and not asking:
        why = f"{lead}plan {judged.plan.plan_id} would be put to a person"
        return replace(judged, decision=postponed(judged.decision, cause, why))
    if open_request is None:
        approvals.ask(judged.name, judged.plan, judged.decision.reasons, snapshot.version)
        open_request = approvals.newest(snapshot.table_id)
        assert open_request is not None
    answer = ("zorder", "approve", "--table", judged.name, "--plan", open_request.plan_id, "--state", state)
    why = f"{lead}plan {open_request.plan_id} waits for approval: {shlex.join(answer)}"
    return replace(judged, decision=postponed(judged.decision, cause, why), request=open_request)


def _wanted(request: Request, decision: Decision) -> bool:
    """Whether the gate would still do what was asked for, though something else may gain more tonight."""
    action = request.plan.effective_action
    return any(option.action == action and not option.why_not for option in decision.options)


def _rejected(requests: Sequence[Request], plan: Plan, rules: Rules, now: datetime) -> Request | None:
    """The rejection that still holds of what a plan would do: the same by the same columns, however they are cut."""

    def like(one: Plan) -> tuple[str, frozenset[str]]:
        return one.effective_action, frozenset(one.spec.columns if one.spec else ())

    last = next((request for request in reversed(requests) if like(request.plan) == like(plan)), None)
    return last if last is not None and last.status == REJECTED and not _too_old(last, rules, now) else None


def _too_old(request: Request, rules: Rules, now: datetime) -> bool:
    return now.timestamp() * 1e6 - (request.settled_at or request.asked_at) > rules.approval_days * DAY


def _outlived(
    snapshot: TableSnapshot,
    request: Request,
    rules: Rules,
    where: str | None,
    now: datetime,
    back: TakenBack | None,
) -> tuple[str, str] | None:
    """How a request ends without an answer, or after one: it was done, does not fit any more, or is too old."""
    try:
        request.plan.refuse_unless_fits(snapshot.table_id, snapshot.schema)
    except PlanError as error:
        return WITHDRAWN, str(error)
    if back is not None and request.status == APPROVED and (request.settled_at or 0) < back.moment:
        return WITHDRAWN, "the table was rolled back since it was approved"
    if _too_old(request, rules, now):
        return WITHDRAWN, f"nothing came of it in {rules.approval_days:g} days"
    if where is None and not preview(snapshot, request.plan).files_removed:
        return DONE, ""
    return None
