"""Plans that a person has to approve: asked for, taken instead of tonight's once approved, and ended when stale."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from zorder_pipeline.errors import PlanError
from zorder_pipeline.gate.decision import postponed
from zorder_pipeline.gate.settings import KEEPS
from zorder_pipeline.model.approval import APPROVED, DONE, PENDING, REJECTED, WITHDRAWN, Request
from zorder_pipeline.model.candidate import ANOTHER, COMPACTION
from zorder_pipeline.model.decision import APPROVE, DECLINE, Decision
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.values import DAY
from zorder_pipeline.pipeline.learning.keeping import layout_of
from zorder_pipeline.relayout.history import TakenBack
from zorder_pipeline.state.approvals import Approvals

from .judgements import Judgement, Rules
from .previews import preview
from .weighing import Weighing

__all__ = ["Asking"]


@dataclass(frozen=True)
class Asking:
    """What a person is asked about a table, and has answered.

    Attributes:
        approvals, state: of the state's folder.
        weighing: of the table.
        now: the time to judge at.
        asking: put a plan to a person; without it nothing is written to the state.
        back: who took our newest relayout back: then a person is asked whatever the rules say.
        own: ids of the plans for which an approval counts; None where what was approved takes the place of tonight's.
    """

    approvals: Approvals
    state: str
    weighing: Weighing
    rules: Rules
    now: datetime
    asking: bool = True
    back: TakenBack | None = None
    own: frozenset[str] | None = None

    def answered(self, judged: Judgement) -> Judgement:
        """The judgement after a person was asked, where one has to be."""
        requests = self.approvals.all(self.weighing.snapshot.table_id)
        opened = self._open(requests)
        counts = opened is not None and (self.own is None or opened.plan.plan_id in self.own)
        if opened is not None and opened.status == APPROVED and counts:
            return self._approved(judged, opened)
        needed = self.rules.approval == "always" or self._changes(judged.plan)
        if not judged.decision.approved or not (needed or self.back is not None):
            self._withdraw_unless_wanted(opened, judged.decision)
            return judged
        if (no := self._rejected(requests, judged.plan)) is not None:
            return self._declined(judged, no)
        return self._put(judged, opened)

    def _changes(self, plan: Plan) -> bool:
        """Whether the table would get a layout that it does not lie by; one given by hand is the same every night."""
        if plan.effective_action != ANOTHER:
            return False
        return plan.spec is None or plan.spec.layout_id != layout_of(self.weighing.snapshot)

    def _open(self, requests: Sequence[Request]) -> Request | None:
        """The newest request, while it is to be answered or done; one that has outlived itself is settled."""
        if not requests or requests[-1].status not in (PENDING, APPROVED):
            return None
        snapshot, newest = self.weighing.snapshot, requests[-1]
        newest = replace(newest, plan=newest.plan.as_called(snapshot.asked_schema).at(self.now))
        if newest.plan.action == COMPACTION and snapshot.whole_partitions:
            return None  # it was asked of a session that can merge files, and waits for one
        if (gone := self._outlived(newest)) is None:
            return newest
        if self.asking:
            self.approvals.settle(newest, *gone)
        return None

    def _outlived(self, request: Request) -> tuple[str, str] | None:
        """How a request ends without an answer, or after one: it was done, does not fit, or is too old or forbidden."""
        snapshot, back = self.weighing.snapshot, self.back
        try:
            request.plan.refuse_unless_fits(snapshot.table_id, snapshot.schema)
        except PlanError as error:
            return WITHDRAWN, str(error)
        if back is not None and request.status == APPROVED and (request.settled_at or 0) < back.moment:
            return WITHDRAWN, "the table was rolled back since it was approved"
        if not self.weighing.gate.change_layout and layout_of(snapshot) and self._changes(request.plan):
            return WITHDRAWN, KEEPS
        if self._too_old(request):
            return WITHDRAWN, f"nothing came of it in {self.rules.approval_days:g} days"
        if self.weighing.where is None and not preview(snapshot, request.plan).files_removed:
            return DONE, ""
        return None

    def _approved(self, judged: Judgement, request: Request) -> Judgement:
        """What a person has approved, instead of what would be chosen tonight."""
        why = f"plan {request.plan_id} was approved by {request.by or 'a person'}"
        mine = judged.plan.plan_id == request.plan.plan_id
        reasons = (why, *(judged.decision.reasons if mine else request.reasons))
        would = preview(self.weighing.snapshot, request.plan, where=self.weighing.where)
        cost = self.weighing.cost(request.plan, would)
        decision = replace(cost, verdict=APPROVE, cause="approved_by_hand", reasons=reasons)
        return replace(judged, plan=request.plan, decision=decision, preview=would, request=request)

    def _withdraw_unless_wanted(self, request: Request | None, decision: Decision) -> None:
        """Withdraw what waits and the gate would not do any more, be it that something else gains more tonight."""
        if request is None or request.status != PENDING or not self.asking:
            return
        if not decision.options or self.weighing.where is not None:
            return  # where nothing was weighed tonight, or some partitions alone, nothing speaks against it either
        action = request.plan.effective_action
        if not any(option.action == action and not option.why_not for option in decision.options):
            self.approvals.settle(request, WITHDRAWN, "the gate would not do it any more")

    def _rejected(self, requests: Sequence[Request], plan: Plan) -> Request | None:
        """The rejection that still holds of what a plan would do: the same by the same columns, however cut."""

        def like(one: Plan) -> tuple[str, frozenset[str]]:
            return one.effective_action, frozenset(one.spec.columns if one.spec else ())

        last = next((request for request in reversed(requests) if like(request.plan) == like(plan)), None)
        return last if last is not None and last.status == REJECTED and not self._too_old(last) else None

    def _too_old(self, request: Request) -> bool:
        return self.now.timestamp() * 1e6 - (request.settled_at or request.asked_at) > self.rules.approval_days * DAY

    def _declined(self, judged: Judgement, no: Request) -> Judgement:
        since = datetime.fromtimestamp((no.settled_at or no.asked_at) / 1e6, UTC)
        last = datetime.max.replace(tzinfo=UTC)  # for so many days that there is no such date, as for ever
        until = since + timedelta(days=min(self.rules.approval_days, (last - since).days))
        why = f"plan {no.plan_id} was rejected by {no.by or 'a person'}, and its like is not asked for until {until:%F}"
        decision = replace(judged.decision, verdict=DECLINE, cause="rejected", reasons=(why, *judged.decision.reasons))
        return replace(judged, decision=decision, request=no)

    def _put(self, judged: Judgement, request: Request | None) -> Judgement:
        """The plan waits for an answer: it is put to a person, unless one was asked already."""
        cause, lead = ("rolled_back", f"{self.back.why}; ") if self.back is not None else ("awaiting_approval", "")
        if request is None and not self.asking:
            why = f"{lead}plan {judged.plan.plan_id} would be put to a person"
            return replace(judged, decision=postponed(judged.decision, cause, why))
        if request is None:
            snapshot = self.weighing.snapshot
            self.approvals.ask(judged.name, judged.plan, judged.decision.reasons, snapshot.version)
            request = self.approvals.newest(snapshot.table_id)
            assert request is not None
        if request.status == APPROVED:
            why = f"{lead}plan {request.plan_id} was approved, not {judged.plan.plan_id}: zorder apply --force"
            return replace(judged, decision=postponed(judged.decision, cause, why))
        answer = ("zorder", "approve", "--table", request.table, "--plan", request.plan_id, "--state", self.state)
        why = f"{lead}plan {request.plan_id} waits for approval: {shlex.join(answer)}"
        return replace(judged, decision=postponed(judged.decision, cause, why), request=request)
