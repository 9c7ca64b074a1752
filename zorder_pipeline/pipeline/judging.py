"""One table's judgement: what could be done with it, what the gate says of each, and what else stands against it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from zorder_pipeline.errors import PlanError, UnsupportedTableError
from zorder_pipeline.gate.decision import UNSOUGHT, GateSettings, Proposal, decide, postponed
from zorder_pipeline.gate.holds import Blackout, Hold, held, stopped_by
from zorder_pipeline.model.approval import APPROVED, DONE, PENDING, REJECTED, WITHDRAWN, Request
from zorder_pipeline.model.decision import APPROVE, DECLINE, Decision
from zorder_pipeline.model.partition_key import partition_key
from zorder_pipeline.model.plan import ANOTHER, COMPACTION, FULL, KEPT, Plan
from zorder_pipeline.relayout.approvals import Approvals
from zorder_pipeline.relayout.history import undone_by
from zorder_pipeline.relayout.snapshot import AUTO, TableSnapshot, open_table
from zorder_pipeline.relayout.stop_file import StopFile

from .accounting import trust
from .costs import cost_model, relayout_work
from .keeping import layout_of
from .previews import preview
from .records import Preview

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Judgement", "Part", "Rules", "hold_now", "judge_table", "why_held"]

DAY = 86_400_000_000


@dataclass(frozen=True)
class Rules:
    """What stands above cost and benefit.

    Attributes:
        stop: the configuration's kill switch.
        blackouts: windows in which nothing is rewritten.
        approval: which plans a person has to approve: ``never`` any, ``changes`` of layout, or ``always``.
        approval_days: days that a request, and an approval, holds.
    """

    stop: bool = False
    blackouts: tuple[Blackout, ...] = ()
    approval: str = "never"
    approval_days: float = 14.0


@dataclass(frozen=True)
class Part:
    """A partition that would be rewritten, or all of a table: what the budget chooses from.

    Attributes:
        key: see `zorder_pipeline.model.partition_key`; "" for all of the table.
        cost: core-seconds.
        saving: what it saves at least, in core-seconds over the horizon.
    """

    key: str
    cost: float
    saving: float


@dataclass(frozen=True)
class Judgement:
    """What is to become of a table tonight; plain data.

    Attributes:
        name: the table's configured name.
        table: its path or catalog name.
        version: table version that was judged.
        plan: what would be done.
        decision: the gate's answer.
        preview: files and bytes that it would rewrite.
        parts: what the budget may choose from, partition by partition where the table is partitioned.
        partitions: the partitions that the budget chose; None for all.
        request: the approval that it needs or has.
    """

    name: str
    table: str
    version: int
    plan: Plan
    decision: Decision
    preview: Preview
    parts: tuple[Part, ...] = ()
    partitions: tuple[str, ...] | None = None
    request: Request | None = field(default=None, repr=False)

    @property
    def outcome(self) -> str:
        """``approved``, ``declined``, ``postponed`` or ``nothing_to_do``."""
        if self.decision.cause in ("nothing_new", "in_good_order"):
            return "nothing_to_do"
        return {APPROVE: "approved", DECLINE: "declined"}.get(self.decision.verdict, "postponed")


def judge_table(
    spark: SparkSession,
    table: str,
    plan: Plan,
    *,
    name: str = "",
    gate: GateSettings | None = None,
    rules: Rules | None = None,
    state: str | None = None,
    where: str | None = None,
    full: bool = False,
    verify: str = "counts",
    committer: str = AUTO,
    now: datetime | None = None,
    asking: bool = True,
) -> Judgement:
    """Weigh what could be done with a table; nothing of the table is changed.

    A plan that has to be approved is put to a person here, and one that was approved is taken instead of tonight's.

    Args:
        name: what people call the table; its location when empty.
        state: folder of the state: what costs were measured, approvals, the file ``STOP``.
        where, full, verify, committer: see `zorder_pipeline.pipeline.apply`.
        now: the time to judge at, with its zone; the present when None.
        asking: put a plan to a person; without it nothing is written to the state.

    Raises:
        PlanError: the plan does not fit the table.
        UnsupportedTableError: the table has a feature under which it may not be rewritten.
    """
    gate, rules, now = gate or GateSettings(), rules or Rules(), now or datetime.now(UTC)
    snapshot = open_table(spark, table, committer=committer)
    plan.refuse_unless_fits(snapshot.table_id, snapshot.schema)
    if (reason := snapshot.unsupported()) is not None:
        raise UnsupportedTableError(reason)
    widening = trust(spark, state, snapshot.table_id, gate.broken_promise_factor)
    gate = replace(gate, costs=cost_model(spark, state, gate.costs), widening=widening)
    undone = undone_by(snapshot) or ""
    # without the gate nobody asks whether merging files pays, so there it is left to `zorder compact`
    merging = gate.enabled and not snapshot.whole_partitions
    weighed = [candidate for candidate in plan.candidates if merging or candidate.action != COMPACTION]
    choices = [plan.choosing(candidate) for candidate in weighed] or [plan]
    if full:
        choices = [replace(choice, action=FULL) if choice.origin == KEPT else choice for choice in choices]
    found: dict[int, Preview] = {}
    proposals = []
    for choice in choices:
        would = preview(snapshot, choice, where=where, full=full)
        if not would.files_removed and (choice.spec is not None or choice.action):
            continue
        proposals.append(_proposal(snapshot, choice, would, undone, verify))
        found[id(proposals[-1].plan)] = would
    nothing = Preview(snapshot.version, skipped_files=len(snapshot.files()))
    if not proposals:
        why = "every file already lies by this layout" + (" in the chosen partitions" if where else "")
        why += f"; {UNSOUGHT}: {plan.unsought}" if plan.unsought else ""
        decision = Decision(DECLINE, "nothing_new", (why,))
        return Judgement(name or table, table, snapshot.version, plan, decision, nothing)
    decision, chosen = decide(proposals, gate)
    picked = chosen.plan if chosen is not None else plan
    judged = Judgement(
        name or snapshot.location, table, snapshot.version, picked, decision, found.get(id(picked), nothing)
    )
    if state is not None and rules.approval != "never":
        judged = _with_approval(spark, snapshot, judged, rules, state, where, now, asking)
    if judged.decision.approved and (hold := hold_now(spark, state, rules, now)) is not None:
        judged = replace(judged, decision=postponed(judged.decision, hold.cause, hold.why))
    return replace(judged, parts=_parts(snapshot, judged))


def hold_now(
    spark: SparkSession,
    state: str | None,
    rules: Rules | None = None,
    now: datetime | None = None,
    environment: Mapping[str, str] | None = None,
) -> Hold | None:
    """Why nothing may be rewritten now: the kill switch (configuration, environment, state) or a blackout window."""
    rules = rules or Rules()
    note = StopFile(spark, state).note() if state is not None else None
    stopped = stopped_by(os.environ if environment is None else environment, rules.stop, note)
    return stopped or held(now or datetime.now(UTC), rules.blackouts)


def why_held(spark: SparkSession, state: str | None, rules: Rules | None = None) -> str | None:
    """`hold_now` in words, as a relayout asks it before each of its bins."""
    hold = hold_now(spark, state, rules)
    return hold.why if hold else None


def _proposal(snapshot: TableSnapshot, plan: Plan, would: Preview, undone: str, verify: str) -> Proposal:
    files = snapshot.files()
    total = float(files.bytes.sum())
    layout = plan.spec.layout_id if plan.spec else ""
    new = sum(int(size) for size, own in zip(files.bytes, files.layout, strict=True) if own != layout)
    part = would.bytes_rewritten / max(1.0, would.bytes_unrestricted if plan.promises_part else total)
    return Proposal(
        plan=plan,
        work=relayout_work(snapshot, plan, would, verify),
        table_bytes=total,
        new_bytes=min(float(new), float(would.bytes_rewritten)),
        credited=min(1.0, part),
        lost=plan.lost,
        patience=plan.patience,
        why_not=undone,
        made=would.files_added,
        laid_out=bool(layout_of(snapshot)),
    )


def _parts(snapshot: TableSnapshot, judged: Judgement) -> tuple[Part, ...]:
    """What the budget chooses from: cost by bytes, saving by what was measured per partition, else by bytes, too."""
    decision, sizes = judged.decision, judged.preview.partition_bytes
    total = sum(sizes.values())
    columns = snapshot.partition_columns
    if not columns or not total:
        return (Part("", decision.cost_core_seconds, decision.saving_low),)
    keys = {partition_key(columns, values): size / total for values, size in sizes.items()}
    plan = judged.plan
    same = (c for c in plan.candidates if (c.action, c.target_file_rows) == (plan.action, plan.target_file_rows))
    known = next((c.partitions for c in same), {})
    saved = {key: known.get(key, 0.0) for key in keys} if known else keys
    return tuple(
        Part(key, decision.cost_core_seconds * share, decision.saving_low * saved[key]) for key, share in keys.items()
    )


def _with_approval(
    spark: SparkSession,
    snapshot: TableSnapshot,
    judged: Judgement,
    rules: Rules,
    state: str,
    where: str | None,
    now: datetime,
    asking: bool,
) -> Judgement:
    """The judgement after a person was asked, where one has to be."""
    approvals = Approvals(spark, state)
    request = approvals.newest(snapshot.table_id)
    open_request = request if request is not None and request.status in (PENDING, APPROVED) else None
    if open_request is not None and open_request.plan.action == COMPACTION and snapshot.whole_partitions:
        open_request = None  # it was asked of a session that can merge files, and waits for one
    if open_request is not None and (gone := _outlived(snapshot, open_request, rules, where, now)):
        if asking:
            approvals.settle(open_request, *gone)
        open_request = None
    if open_request is not None and open_request.status == APPROVED:
        would = preview(snapshot, open_request.plan, where=where)
        why = f"plan {open_request.plan_id} was approved by {open_request.by or 'a person'}"
        mine = judged.plan.plan_id == open_request.plan_id
        figures = judged.decision if mine else Decision(APPROVE, "", open_request.reasons, open_request.plan.action)
        decision = replace(figures, verdict=APPROVE, cause="approved_by_hand", reasons=(why, *figures.reasons))
        return replace(judged, plan=open_request.plan, decision=decision, preview=would, request=open_request)
    needed = rules.approval == "always" or judged.plan.action == ANOTHER or not judged.plan.action
    if not judged.decision.approved or not needed:
        if open_request is not None and asking:
            approvals.settle(open_request, WITHDRAWN, "the gate would not do it any more")
        return judged
    if request is not None and request.status == REJECTED and request.plan_id == judged.plan.plan_id:
        why = f"plan {request.plan_id} was rejected by {request.by or 'a person'}"
        decision = replace(judged.decision, verdict=DECLINE, cause="rejected", reasons=(why, *judged.decision.reasons))
        return replace(judged, decision=decision, request=request)
    if open_request is None and not asking:
        why = f"plan {judged.plan.plan_id} would be put to a person"
        return replace(judged, decision=postponed(judged.decision, "awaiting_approval", why))
    if open_request is None:
        approvals.ask(judged.name, judged.plan, judged.decision.reasons, snapshot.version)
        open_request = approvals.newest(snapshot.table_id)
        assert open_request is not None
    why = (
        f"plan {open_request.plan_id} waits for approval: zorder approve --table {judged.name} "
        f"--plan {open_request.plan_id} --state {state}"
    )
    return replace(judged, decision=postponed(judged.decision, "awaiting_approval", why), request=open_request)


def _outlived(
    snapshot: TableSnapshot, request: Request, rules: Rules, where: str | None, now: datetime
) -> tuple[str, str] | None:
    """How a request ends without an answer, or after one: it was done, does not fit any more, or is too old."""
    try:
        request.plan.refuse_unless_fits(snapshot.table_id, snapshot.schema)
    except PlanError as error:
        return WITHDRAWN, str(error)
    since = request.settled_at or request.asked_at
    if now.timestamp() * 1e6 - since > rules.approval_days * DAY:
        return WITHDRAWN, f"nothing came of it in {rules.approval_days:g} days"
    if where is None and not preview(snapshot, request.plan).files_removed:
        return DONE, ""
    return None
