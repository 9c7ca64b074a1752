"""The cost model of this installation: what was assumed, fitted to its own relayouts and to its calibrations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from zorder_pipeline.gate.cost import CostModel, RelayoutWork, ScanWork
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.relayout.job import RelayoutResult
from zorder_pipeline.relayout.snapshot import TableSnapshot
from zorder_pipeline.state.ledger import Ledger
from zorder_pipeline.state.timings import Timings

from .records import Preview

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Measured", "cost_model", "measured_costs", "relayout_work"]

Measured: TypeAlias = tuple[Sequence[tuple[str, RelayoutWork, float]], Sequence[tuple[str, ScanWork, float]]]

LATEST = 300
"""Relayouts of the history that count: what a cluster cost long ago says little."""


def cost_model(spark: SparkSession, state: str | None, assumed: CostModel | None = None) -> CostModel:
    """``assumed`` fitted to what the state holds of relayouts and calibrations; as it is without a state.

    Args:
        state: folder of the state.
        assumed: what is believed before anything was measured, and the price.
    """
    assumed = assumed or CostModel()
    return assumed if state is None else assumed.measured(*measured_costs(spark, state))


def measured_costs(spark: SparkSession, state: str) -> Measured:
    """What the state holds of relayouts and scans, as `CostModel.measured` takes them."""
    timings = Timings(spark, state).all()
    relayouts = [
        (e.table_id, RelayoutWork(e.bytes_rewritten, e.columns, e.additional, e.predicates, e.files, e.hashed), cost)
        for e in Ledger(spark, state).entries(newest=LATEST)
        if (cost := e.cost_measured) > 0 and e.layout_id  # a compaction sorts nothing and tells little of a relayout
    ]
    relayouts += [
        (
            t.table_id,
            RelayoutWork(t.bytes, t.features, t.additional, t.predicates, t.files, t.hashed),
            t.seconds * t.cores,
        )
        for t in timings
        if t.kind == "relayout"
    ]
    scans = [(t.table_id, ScanWork(t.bytes, t.files, 1), t.seconds * t.cores) for t in timings if t.kind == "scan"]
    return relayouts, scans


def relayout_work(
    snapshot: TableSnapshot, plan: Plan, done: RelayoutResult | Preview | ApplyResult, verify: str = "counts"
) -> RelayoutWork:
    """What the cost of a relayout follows from.

    Args:
        snapshot: the table before it.
        done: the relayout, or its dry run.
        verify: ``counts`` or ``hash``.
    """
    used = plan.spec.table_columns if plan.spec else ()
    computed = sum(bool(feature.expression) for feature in plan.spec.features) if plan.spec else 0
    more = [column for column in snapshot.schema.columns if column.delta_stats and not column.partition]
    return RelayoutWork(
        bytes=done.bytes_rewritten,
        features=len(plan.spec.features) - computed if plan.spec else 0,
        additional=sum(column.name not in used for column in more),
        predicates=computed,
        files=done.files_removed + done.files_added,
        hashed=verify == "hash",
    )
