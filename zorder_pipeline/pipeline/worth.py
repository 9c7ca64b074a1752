"""Whether tonight's search for another layout can pay at all: bounds that no layout can beat, known beforehand.

A search takes as long for a table that few ask as for one that many ask, so a night over many tables would spend most
of its time on what the gate then declines. The bounds are generous: what a layout saves is at most all that is read
now, and what the present one loses against another is at most all that its queries have cost. Where even that does not
pay for the cheapest rewrite, the gate would decline whatever was found.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from zorder_pipeline.gate.cost import RelayoutWork, ScanWork
from zorder_pipeline.gate.decision import GateSettings
from zorder_pipeline.model.plan import Plan

from .drifting import Memory, most_lost
from .records import LearnSettings, TableAnalysis
from .volumes import FileVolumes

__all__ = ["may_pay", "why_not_search"]

SLACK = 1.5
"""What all rows prove of a layout is nearer than this to what a sample tells of it."""


def why_not_search(
    analysis: TableAnalysis,
    settings: LearnSettings,
    memory: Memory,
    present: Plan | None,
    standing: npt.NDArray[np.int32],
    now: FileVolumes,
    scans: float,
    gate: GateSettings,
) -> str:
    """Why no layout is to be sought tonight, in words; "" when one may pay, or when nobody has looked yet.

    The first look at a table always searches: people want to see what a layout would be, declined or not.

    Args:
        present: the plan that the table lies by.
        standing: file of each sampled row as the table lies, or as it will once what is new is laid out by it.
        now: what the queries that would prove a layout read of the table as it lies.
        scans: queries within the gate's horizon.
    """
    if settings.always_search or settings.enriched_share > 0 or not gate.enabled or not memory.columns:
        return ""
    costs, snapshot = gate.costs, analysis.snapshot
    if present is not None and present.spec is not None:
        if not gate.change_layout:
            return "the table keeps its layout: layout.keep is set"
        lost, price = most_lost(analysis, memory, present, standing, costs)
        if lost < price:
            return (
                f"the queries that count against the present layout have cost {lost:,.1f} core-seconds in all, so none "
                f"can have been missed by the {price:,.1f} that a change costs at least"
            )
    if not len(now.bytes):
        return ""
    files = snapshot.files()
    work = RelayoutWork(float(files.bytes.sum()), files=len(files))
    cost = costs.relayout(work, snapshot.table_id).expected
    per_query = costs.scans(ScanWork(float(now.bytes.mean()), float(now.files.mean())), snapshot.table_id).expected
    most = per_query * scans
    if most > cost:
        return ""
    return (
        f"not worth it, whatever the layout: at {scans / gate.horizon_days:,.0f} queries a day over "
        f"{gate.horizon_days:g} days all that is read now costs {most:,.1f} core-seconds, and a rewrite at least "
        f"{cost:,.1f}"
    )


def may_pay(analysis: TableAnalysis, plan: Plan, scans: float, gate: GateSettings) -> bool:
    """Whether the gate may approve a rewrite of the whole table by a learned plan, whose promise the sample told.

    Args:
        scans: queries within the gate's horizon.
    """
    if not gate.enabled:
        return True
    files, costs, table = analysis.snapshot.files(), gate.costs, analysis.snapshot.table_id
    work = RelayoutWork(float(files.bytes.sum()), len(plan.spec.columns) if plan.spec else 1, files=len(files))
    cost, promised = costs.relayout(work, table).expected, plan.promise
    if plan.lost is not None and (not gate.change_layout or plan.lost < plan.patience * cost):
        return False
    saved = ScanWork(max(0.0, promised.bytes_saved_per_query), max(0.0, promised.files_saved_per_query))
    gained = costs.scans(saved, table).expected * scans
    return SLACK * gained > cost
