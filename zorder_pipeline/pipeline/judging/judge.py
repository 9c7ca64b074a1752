"""One table's judgement: what could be done with it, what the gate says of each, and what else stands against it."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from zorder_pipeline.errors import UnsupportedTableError
from zorder_pipeline.gate.decision import postponed
from zorder_pipeline.gate.holds import Hold, held, stopped_by
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.pipeline.costs import cost_model
from zorder_pipeline.pipeline.measuring.accounting import experienced
from zorder_pipeline.relayout.history import LOOKED_AT, TakenBack, history_of, taken_back, undone_by
from zorder_pipeline.relayout.snapshot import AUTO, TableSnapshot, open_table
from zorder_pipeline.relayout.unrecorded import record_late
from zorder_pipeline.state.approvals import Approvals
from zorder_pipeline.state.ledger import Ledger
from zorder_pipeline.state.stop_file import StopFile

from .asking import Asking
from .judgements import ANY, NONE, OWN, Judgement, Rules
from .weighing import Weighing

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
    approvals: str = ANY,
) -> Judgement:
    """Weigh what could be done with a table; nothing of the table is changed.

    A plan that has to be approved is put to a person here.

    Args:
        name: what people call the table; its location when empty.
        state: folder of the state: what costs were measured, approvals, the file ``STOP``.
        where, full, verify, committer: see `zorder_pipeline.pipeline.apply`.
        now: the time to judge at, with its zone; the present when None.
        asking: put a plan to a person; without it nothing is written to the state.
        approvals: which answers of people count: `ANY` (what was approved is taken instead of ``plan``), `OWN` (those
            to this plan) or `NONE` (it is carried out whatever they said).

    Raises:
        PlanError: the plan does not fit the table.
        UnsupportedTableError: the table has a feature under which it may not be rewritten.
    """
    gate, rules, now = gate or GateSettings(), rules or Rules(), now or datetime.now(UTC)
    snapshot = open_table(spark, table, committer=committer)
    plan = plan.as_called(snapshot.asked_schema).at(now)
    plan.refuse_unless_fits(snapshot.table_id, snapshot.schema)
    if (reason := snapshot.unsupported()) is not None:
        raise UnsupportedTableError(reason)
    if state is not None and asking:
        record_late(snapshot, state)
    gate = replace(gate, costs=cost_model(spark, state, gate.costs))
    gate = experienced(spark, state, (snapshot.table_id, snapshot.location), gate, now)
    undone = undone_by(snapshot, lambda: _credited(snapshot, state, now.timestamp() * 1e6))
    weighing = Weighing(snapshot, gate, undone or "", where, full, verify)
    decision, picked, would = weighing.decided(plan)
    judged = Judgement(name or snapshot.location, table, snapshot.version, picked, decision, would)
    asked = approvals != NONE and (decision.approved or rules.approval != "never")
    back = _taken_back(snapshot, state) if asked else None
    if state is not None and asked and (rules.approval != "never" or back is not None):
        choices = (plan, *map(plan.choosing, plan.candidates))
        own = frozenset(choice.plan_id for choice in choices) if approvals == OWN else None
        judged = Asking(Approvals(spark, state), state, weighing, rules, now, asking, back, own).answered(judged)
    elif back is not None:
        why = f"{back.why}: zorder apply --force"
        judged = replace(judged, decision=postponed(decision, "rolled_back", why))
    if judged.decision.approved and (hold := hold_now(spark, state, rules, now)) is not None:
        judged = replace(judged, decision=postponed(judged.decision, hold.cause, hold.why))
    return replace(judged, parts=weighing.parts(judged))


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


def _credited(snapshot: TableSnapshot, state: str | None, moment: float) -> tuple[int | None, int]:
    """Of our relayouts whose saving is still credited the version before them, and rows that the largest one wrote.

    None and 0 without any in the state.
    """
    entries = Ledger(snapshot.spark, state).entries(snapshot.table_id, credited=moment) if state is not None else []
    first = min((entry.replaced_version for entry in entries), default=None)
    return first, max((entry.rows for entry in entries if entry.layout_id), default=0)


def _taken_back(snapshot: TableSnapshot, state: str | None) -> TakenBack | None:
    """Who took our newest relayout back, by the table's history since; None when nobody did."""
    entries = Ledger(snapshot.spark, state).entries(snapshot.table_id, newest=1) if state is not None else []
    since = entries[-1].replaced_version if entries else max(0, snapshot.version - LOOKED_AT)
    if snapshot.version < since + 2 or (entries and snapshot.files().generation.max(initial=-1) > since):
        return None  # files of it are still there: its history, which takes a job, need not be asked
    laid_out = bool(entries) and bool(entries[-1].layout_id)  # merged files do not tell that they are ours
    return taken_back(history_of(snapshot, snapshot.version - since + 1), gone_anyway=laid_out)
