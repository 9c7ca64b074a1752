"""Learning as a night does it: from what is remembered of the nights before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from zorder_pipeline.errors import PlanError
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.layout.learn import Learned
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.pipeline.costs import cost_model
from zorder_pipeline.pipeline.records import LearnSettings, TableAnalysis
from zorder_pipeline.relayout.snapshot import TableSnapshot
from zorder_pipeline.state.memory import Memories

from .drifting import Memory
from .keeping import present_plan
from .learn import learn_remembering
from .words import bit_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["layouts_in_use", "learn_tonight"]


def layouts_in_use(
    spark: SparkSession, snapshot: TableSnapshot, state: str, progress: Progress = silent
) -> tuple[KeySpec, ...]:
    """The layouts that tonight's is compared with: the one that the table has, and those remembered.

    Args:
        progress: is told of relayouts that were cut off before they were recorded, and are now.
    """
    present = present_plan(spark, snapshot, state, progress)
    memory = _remembered(Memories(spark, state).newest(snapshot.table_id))
    here = [present.spec] if present is not None and present.spec is not None else []
    return (*here, *(rival.spec for rival in memory.rivals.values()))


def learn_tonight(
    spark: SparkSession,
    analysis: TableAnalysis,
    state: str,
    settings: LearnSettings | None = None,
    progress: Callable[[int, int, float], None] | None = None,
    warm: Sequence[Sequence[str]] = (),
    gate: GateSettings | None = None,
) -> tuple[Plan, Learned]:
    """`learn_layout_for` with the layout that the table has, its candidates, and the regret of the nights before.

    The search starts from ``warm`` and from the layouts that are remembered.

    Doing it twice in a night changes nothing: each query is counted once.

    Args:
        state: folder of the state, where the table's plans, its drift and its costs are kept.
        gate: what the gate will assume and demand: where no layout can meet it, none is sought. None searches always.
    """
    snapshot, memories = analysis.snapshot, Memories(spark, state)
    before = _remembered(memories.newest(snapshot.table_id))
    present = present_plan(spark, snapshot, state)
    if gate is not None:
        gate = replace(gate, costs=cost_model(spark, state, gate.costs))
    orders = [order for rival in before.rivals.values() if (order := bit_order(rival.spec))]
    plan, learned, after = learn_remembering(analysis, settings, progress, [*warm, *orders], present, before, gate)
    if after != before:
        memories.note(snapshot.table_id, after.to_json())
    return plan, learned


def _remembered(noted: dict[str, Any] | None) -> Memory:
    try:
        return Memory.from_json(noted) if noted is not None else Memory()
    except (KeyError, TypeError, PlanError):  # written by another version of this code: as if there were nothing
        return Memory()
