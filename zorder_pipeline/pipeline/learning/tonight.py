"""Learning as a night does it: from what is remembered of the nights before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from zorder_pipeline.errors import PlanError
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.layout.learn import Learned
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.pipeline.costs import cost_model
from zorder_pipeline.pipeline.records import LearnSettings, TableAnalysis
from zorder_pipeline.relayout.snapshot import TableSnapshot
from zorder_pipeline.state.memory import Memories

from .keeping import present_plan
from .learn import learn_remembering
from .memory import Memory
from .studies import keep_study
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
    memory, schema = _recalled(_noted(Memories(spark, state), snapshot), snapshot)
    present = present_plan(spark, snapshot, state, schema, progress)
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
    say: Progress = silent,
) -> tuple[Plan, Learned]:
    """`learn_layout_for` with the layout that the table has, its candidates, and the regret of the nights before.

    The search starts from ``warm`` and from the layouts that are remembered; what it tried is kept in the state.

    Doing it twice in a night changes nothing: each query is counted once.

    Args:
        state: folder of the state, where the table's plans, its drift and its costs are kept.
        gate: what the gate will assume and demand: where no layout can meet it, none is sought. None searches always.
        progress, say: see `learn_layout_for`.
    """
    snapshot, memories = analysis.snapshot, Memories(spark, state)
    noted = _noted(memories, snapshot)
    before, schema = _recalled(noted, snapshot)
    present = present_plan(spark, snapshot, state, schema)
    if gate is not None:
        gate = replace(gate, costs=cost_model(spark, state, gate.costs))
    orders = [order for rival in before.rivals.values() if (order := bit_order(rival.spec))]
    plan, learned, after = learn_remembering(analysis, settings, progress, [*warm, *orders], present, before, gate, say)
    if after != noted:
        memories.note(snapshot.table_id, after.to_json())
    keep_study(spark, state, snapshot, learned, (settings or LearnSettings()).cost)
    return plan, learned


def _noted(memories: Memories, snapshot: TableSnapshot) -> Memory:
    """What the night before noted."""
    noted = memories.newest(snapshot.table_id)
    try:
        return Memory.from_json(noted) if noted is not None else Memory()
    except (KeyError, TypeError, PlanError):  # written by another version of this code: as if there were nothing
        return Memory()


def _recalled(noted: Memory, snapshot: TableSnapshot) -> tuple[Memory, TableSchema]:
    """What was noted, by the names that columns have now, and the table's schema with all names they are known to have
    had: Delta's history forgets them after a month.
    """
    schema = snapshot.asked_schema
    known = dict(schema.former)
    for old, was in noted.former.items():
        if old in known or schema.find(old) is not None or was in known.values():  # or another column has it since
            continue
        if (column := schema.called(was)) is not None:
            known[old] = column.name
    schema = replace(schema, former=tuple(known.items()))
    rivals = {name: replace(rival, spec=rival.spec.as_called(schema)) for name, rival in noted.rivals.items()}
    return replace(noted, rivals=rivals, former=known), schema
