"""One table's judgement: what could be done with it, what the gate says of each, and what else stands against it."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from zorder_pipeline.errors import UnsupportedTableError
from zorder_pipeline.gate.decision import UNSOUGHT, decide, postponed
from zorder_pipeline.gate.holds import Hold, held, stopped_by
from zorder_pipeline.gate.proposal import PartitionWork, Proposal
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.decision import DECLINE, Decision
from zorder_pipeline.model.partition_key import partition_key
from zorder_pipeline.model.plan import ANOTHER, COMPACTION, FULL, KEPT, Plan
from zorder_pipeline.pipeline.costs import cost_model, relayout_work
from zorder_pipeline.pipeline.learning.keeping import layout_of
from zorder_pipeline.pipeline.measuring.accounting import trust
from zorder_pipeline.pipeline.records import Preview
from zorder_pipeline.relayout.history import LOOKED_AT, TakenBack, history_of, taken_back, undone_by
from zorder_pipeline.relayout.snapshot import AUTO, TableSnapshot, open_table
from zorder_pipeline.relayout.unrecorded import record_late
from zorder_pipeline.state.ledger import Ledger
from zorder_pipeline.state.stop_file import StopFile

from .asking import with_approval
from .judgements import Judgement, Part, Rules
from .previews import preview

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["hold_now", "judge_table", "why_held"]


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
    plan = plan.as_called(snapshot.asked_schema)
    plan.refuse_unless_fits(snapshot.table_id, snapshot.schema)
    if (reason := snapshot.unsupported()) is not None:
        raise UnsupportedTableError(reason)
    if state is not None and asking:
        record_late(snapshot, state)
    gate = replace(gate, costs=cost_model(spark, state, gate.costs))
    gate = replace(gate, widening=trust(spark, state, snapshot.table_id, gate, now))
    undone = undone_by(snapshot) or ""
    # without the gate nobody asks whether merging files pays, so there it is left to `zorder compact`
    merging = gate.enabled and not snapshot.whole_partitions
    weighed = [candidate for candidate in plan.candidates if merging or candidate.action != COMPACTION]
    choices = [plan.choosing(candidate) for candidate in weighed] or [plan]
    if full:
        choices = [replace(choice, action=FULL) if choice.origin == KEPT else choice for choice in choices]
    proposals = []
    for choice in _in_the_size_in_use(choices, snapshot):
        would = preview(snapshot, choice, where=where, full=full)
        if not would.files_removed and (choice.spec is not None or choice.action):
            continue
        proposals.append(_proposal(snapshot, choice, would, gate, undone, verify))
    nothing = Preview(snapshot.version, skipped_files=len(snapshot.files()))
    if not proposals:
        why = "every file already lies by this layout" + (" in the chosen partitions" if where else "")
        why += f"; {UNSOUGHT}: {plan.unsought}" if plan.unsought else ""
        decision, chosen = Decision(DECLINE, "nothing_new", (why,)), None
    else:
        decision, chosen = decide(proposals, gate)
    picked = chosen.plan if chosen is not None else plan
    would = preview(snapshot, picked, where=where, full=full) if chosen is not None else nothing
    judged = Judgement(name or snapshot.location, table, snapshot.version, picked, decision, would)

    def costing(asked: Plan) -> Decision:
        """What a plan costs, whether it pays or not."""
        proposal = _proposal(snapshot, asked, preview(snapshot, asked, where=where), gate, "", verify)
        return decide([proposal], replace(gate, enabled=False))[0]

    back = _taken_back(snapshot, state) if decision.approved or rules.approval != "never" else None
    if state is not None and (rules.approval != "never" or back is not None):
        judged = with_approval(spark, snapshot, judged, rules, state, where, now, asking, costing, back)
    elif back is not None:
        why = f"{back.why}: zorder apply --force"
        judged = replace(judged, decision=postponed(decision, "rolled_back", why))
    if judged.decision.approved and (hold := hold_now(spark, state, rules, now)) is not None:
        judged = replace(judged, decision=postponed(judged.decision, hold.cause, hold.why))
    return replace(judged, parts=_parts(snapshot, judged, gate))


def _in_the_size_in_use(choices: Sequence[Plan], snapshot: TableSnapshot) -> list[Plan]:
    """The choices but those that would write files of a layout again in another size.

    A plan offers its layout in several sizes of files, each with a promise against the table as it was then. Once files
    lie by that layout one of them was chosen, and is what the rest of the table gets.
    """
    files, kept = snapshot.files(), list(choices)
    for layout in {one.spec.layout_id for one in choices if one.spec is not None and one.action == ANOTHER}:
        mine = files.lies_by(layout)
        sizes = [one for one in kept if one.action == ANOTHER and one.spec and one.spec.layout_id == layout]
        if mine.any():
            here = math.log(max(1.0, float(files.rows[mine].mean())))
            nearest = min(sizes, key=lambda one: abs(math.log(one.target_file_rows) - here))
            kept = [one for one in kept if one is nearest or one not in sizes]
    return kept


def hold_now(
    spark: SparkSession,
    state: str | None,
    rules: Rules | None = None,
    now: datetime | None = None,
) -> Hold | None:
    """Why nothing may be rewritten now: the kill switch (configuration, environment, state) or a blackout window."""
    rules = rules or Rules()
    states = dict.fromkeys(folder for folder in (state, rules.stop_state) if folder is not None)
    note = next((said for folder in states if (said := StopFile(spark, folder).note()) is not None), None)
    stopped = stopped_by(os.environ, rules.stop, note)
    return stopped or held(now or datetime.now(UTC), rules.blackouts)


def why_held(spark: SparkSession, state: str | None, rules: Rules | None = None) -> str | None:
    """`hold_now` in words, as a relayout asks it before each of its bins."""
    hold = hold_now(spark, state, rules)
    return hold.why if hold else None


def _taken_back(snapshot: TableSnapshot, state: str | None) -> TakenBack | None:
    """Who took our newest relayout back, by the table's history since; None when nobody did."""
    entries = Ledger(snapshot.spark, state).entries(snapshot.table_id) if state is not None else []
    since = entries[-1].replaced_version if entries else max(0, snapshot.version - LOOKED_AT)
    if snapshot.version < since + 2 or (entries and snapshot.files().generation.max(initial=-1) > since):
        return None  # files of it are still there: its history, which takes a job, need not be asked
    return taken_back(history_of(snapshot, snapshot.version - since + 1))


def _proposal(
    snapshot: TableSnapshot, plan: Plan, would: Preview, gate: GateSettings, undone: str, verify: str
) -> Proposal:
    files, columns = snapshot.files(), snapshot.partition_columns
    layout = plan.spec.layout_id if plan.spec else ""
    new: dict[tuple[str | None, ...], int] = {}
    for i in np.flatnonzero(~files.lies_by(layout)):
        new[files.partitions[i]] = new.get(files.partitions[i], 0) + int(files.bytes[i])
    credits = _credits(snapshot, plan, would, gate)
    works = tuple(
        PartitionWork(
            partition_key(columns, values),
            credits[values],
            part.bytes,
            part.files_removed + part.files_added,
            min(new.get(values, 0), part.bytes),
            part.files_added,
        )
        for values, part in would.partitions.items()
    )
    return Proposal(
        plan=plan,
        work=relayout_work(snapshot, plan, would, verify),
        table_bytes=float(files.bytes.sum()),
        new_bytes=float(sum(work.new_bytes for work in works)),
        credited=min(1.0, sum(credits.values())),
        lost=plan.lost,
        patience=plan.patience,
        why_not=undone,
        made=would.files_added,
        laid_out=bool(layout_of(snapshot)),
        partitions=works if plan.saving_by_partition() else (),
    )


def _credits(
    snapshot: TableSnapshot, plan: Plan, would: Preview, gate: GateSettings
) -> dict[tuple[str | None, ...], float]:
    """Share of the plan's promise that each partition brings: what was measured of it, else by its bytes."""
    columns, known = snapshot.partition_columns, plan.saving_by_partition(pages=gate.page_skipping)
    if columns and known:
        return {values: known.get(partition_key(columns, values), 0.0) for values in would.partitions}
    whole = would.bytes_unrestricted if plan.promises_part else int(snapshot.files().bytes.sum())
    return {values: part.bytes / max(1, whole) for values, part in would.partitions.items()}


def _parts(snapshot: TableSnapshot, judged: Judgement, gate: GateSettings) -> tuple[Part, ...]:
    """What the budget chooses from: each partition's part of the cost by bytes, and of the saving by what it brings."""
    decision, columns = judged.decision, snapshot.partition_columns
    sizes = {values: part.bytes for values, part in judged.preview.partitions.items()}
    credits = _credits(snapshot, judged.plan, judged.preview, gate)
    total, brought = max(1, sum(sizes.values())), sum(credits.values()) or 1.0
    return tuple(
        Part(
            partition_key(columns, values),
            decision.cost_core_seconds * size / total,
            decision.saving_low * credits[values] / brought,
            credits[values],
        )
        for values, size in sizes.items()
    ) or (Part("", decision.cost_core_seconds, decision.saving_low, 0.0),)
