"""Whether tonight's search for another layout can pay at all: bounds that no layout can beat, known beforehand.

A search takes as long for a table that few ask as for one that many ask, so a night over many tables would spend most
of its time on what the gate then declines. The bounds are generous: what a layout saves is at most all that is read
now, and what the present one loses against another is at most all that its queries have cost. Where even that does not
pay for the cheapest rewrite, the gate would decline whatever was found.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from zorder_pipeline.gate.cost import CostModel, RelayoutWork
from zorder_pipeline.gate.drift import PATIENCES
from zorder_pipeline.gate.settings import KEEPS, GateSettings
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.wording import queries_a_day
from zorder_pipeline.pipeline.records import LearnSettings, TableAnalysis
from zorder_pipeline.relayout.snapshot import TableSnapshot

from .drifting import most_lost
from .keeping import layout_of
from .memory import Memory
from .new_queries import uncounted
from .volumes import FileVolumes

__all__ = ["least_cost", "may_pay", "why_not_search"]

SLACK = 1.5
"""What all rows prove of a layout is nearer than this to what a sample tells of it."""
LONGEST_DAYS = 7.0
"""Queries wait no longer to be counted."""
MOST_OF_LOG = 0.9
"""Nor longer than until they make up this share of the time that the log goes back: then it begins to forget them."""


def why_not_search(
    analysis: TableAnalysis,
    settings: LearnSettings,
    memory: Memory,
    present: Plan | None,
    standing: npt.NDArray[np.int32],
    now: FileVolumes | None,
    scans: float,
    gate: GateSettings,
) -> str:
    """Why no layout is to be sought tonight, in words; "" when one may pay, or when nobody has looked yet.

    The first look at a table always searches, unless it keeps the layout that it has: people want to see what a layout
    would be, declined or not. What scans through ``reading/`` would lose by the present layout is not known beforehand.

    Args:
        present: the plan that the table lies by.
        standing: file of each sampled row as the table lies, or as it will once what is new is laid out by it.
        now: what the queries that would prove a layout read of the table as it lies; None when there are too few.
        scans: queries within the gate's horizon.
    """
    if not gate.change_layout and layout_of(analysis.snapshot):
        return KEEPS
    if settings.always_search or not gate.enabled or not memory.columns:
        return ""
    costs, snapshot = gate.costs, analysis.snapshot
    if present is not None and present.spec is not None and not settings.enriched_share:
        lost = most_lost(analysis, memory, present, standing, costs)
        change = min(PATIENCES) * least_cost(snapshot, costs)
        waited, held = uncounted(analysis, memory, present)
        if lost < change and not 0 < waited >= min(LONGEST_DAYS, MOST_OF_LOG * held):
            return (
                f"the present layout can have lost {lost:,.1f} core-seconds at most since it is in force, and a change "
                f"costs at least {change:,.1f}"
            )
    if now is None:  # few queries are soon searched, and the gate says what is missing
        return ""
    cost = least_cost(snapshot, costs)
    per_query = costs.scans(now.mean, snapshot.table_id).expected
    most = per_query * scans
    if most > cost:
        return ""
    return (
        f"not worth it, whatever the layout: at {queries_a_day(scans / gate.horizon_days)} over "
        f"{gate.horizon_days:g} days all that is read now costs {most:,.1f} core-seconds, and a rewrite at least "
        f"{cost:,.1f}"
    )


def may_pay(analysis: TableAnalysis, plan: Plan, now: FileVolumes, scans: float, gate: GateSettings) -> bool:
    """Whether the gate may approve a rewrite by a plan's layout, whose promise the sample told.

    In larger files, too, where fewer are opened: so all that are opened now may be saved.

    Args:
        now: see `why_not_search`.
        scans: queries within the gate's horizon.
    """
    if not gate.enabled or plan.spec is None:
        return True
    costs, table = gate.costs, analysis.snapshot.table_id
    cost = least_cost(analysis.snapshot, costs, plan.spec.layout_id)
    if plan.lost is not None and (not gate.change_layout or plan.lost < plan.patience * cost):
        return False
    promised = plan.promise
    most = max(0.0, promised.bytes_saved_per_query, promised.page_bytes_saved_per_query or 0.0)
    saved = replace(now.mean, bytes=most)
    return SLACK * costs.scans(saved, table).expected * scans > cost


def least_cost(snapshot: TableSnapshot, costs: CostModel, layout: str = "") -> float:
    """Core-seconds that no rewrite of a table costs less than: by one column, and as if it wrote no file.

    Of a partitioned table the gate may choose any partitions, so that is the cheapest one's.

    Args:
        layout: id of the layout that it is to lie by; files that do already may stay.
    """
    files = snapshot.files()
    others = ~files.lies_by(layout) if layout else np.ones(len(files), dtype=np.bool_)
    part = files.partition_codes[others]
    if not len(part):
        return costs.relayout(RelayoutWork(0.0), snapshot.table_id).expected
    counts, sizes = np.bincount(part), np.bincount(part, weights=files.bytes[others])
    work = RelayoutWork(float(sizes[counts > 0].min()), files=int(counts[counts > 0].min()))
    return costs.relayout(work, snapshot.table_id).expected
