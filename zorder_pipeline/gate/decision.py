"""The decision: approve a rewrite only when what unseen queries save exceeds what the rewrite costs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from zorder_pipeline.model.decision import Decision
from zorder_pipeline.model.plan import KEPT, Plan

from .benefit import saving
from .cost import GIGABYTE, CostModel, RelayoutWork

__all__ = ["GateSettings", "judge"]

MIN_PROMISE_QUERIES = 5


@dataclass(frozen=True)
class GateSettings:
    """What the gate assumes and demands.

    Attributes:
        enabled: False approves every plan that has a layout.
        horizon_days: days over which a rewrite must pay for itself.
        queries_per_day: expected rate; None takes the rate observed in the log.
        min_new_data_share: an approved rewrite of a smaller share of the table's bytes waits for more, 0 to 1.
        costs: the cost model.
        enriched_share: share of the queries that are asked through `reading/`, 0 to 1.
    """

    enabled: bool = True
    horizon_days: float = 30.0
    queries_per_day: float | None = None
    min_new_data_share: float = 0.0
    costs: CostModel = field(default_factory=CostModel)
    enriched_share: float = 0.0


def judge(
    plan: Plan,
    rewrite_bytes: float,
    table_bytes: float,
    settings: GateSettings | None = None,
    work: RelayoutWork | None = None,
) -> Decision:
    """Decide about rewriting ``rewrite_bytes`` of a table of ``table_bytes`` by ``plan``.

    The saving is the bytes a promise query no longer reads, times query rate, times horizon; its bootstrap interval
    must lie above zero, and even its lower end must pay for the rewrite. A rewrite of part of the table is credited
    with that part of the saving (a kept layout's promise is about the rewritten part already), and waits when the part
    is below ``min_new_data_share``.

    Args:
        work: what the cost follows from, where more is known than bytes and the plan's key.
    """
    settings = settings or GateSettings()
    work = work or RelayoutWork(rewrite_bytes, len(plan.spec.features) if plan.spec else 1)
    part = rewrite_bytes / table_bytes if table_bytes else 1.0
    credited = 1.0 if plan.origin == KEPT else part
    decision = _weigh(plan, work, credited, settings)
    if not decision.approved or not settings.enabled or part >= settings.min_new_data_share:
        return decision
    why = (
        f"too little new data: {part:.1%} of the table would be rewritten, "
        f"the gate waits for {settings.min_new_data_share:.1%}"
    )
    return replace(decision, approved=False, reasons=(why, *decision.reasons))


def _weigh(plan: Plan, work: RelayoutWork, credited: float, settings: GateSettings) -> Decision:
    """Saving, of which the rewrite is credited with a part, against cost."""
    if plan.spec is None:
        return Decision(False, ("the present layout was not beaten on the select queries; the table stays as it is",))
    if not settings.enabled:
        return Decision(True, ("the gate is switched off for this table",))
    promised = plan.promise
    if plan.origin == "manual" or not promised.queries:
        why = "no workload: the layout was given by hand" if plan.origin == "manual" else "no workload to prove it on"
        return Decision(False, (f"{why}, so nothing shows that it pays; apply it with --force if you know better",))
    rate = settings.queries_per_day if settings.queries_per_day is not None else promised.queries_per_day
    costs = settings.costs
    cost, size = costs.relayout(work, plan.table_id), work.bytes
    scans = rate * settings.horizon_days
    saved = saving(promised, costs, scans * credited, plan.table_id, settings.enriched_share)
    figures = (cost.expected, saved.expected, saved.low, saved.high)
    ends = (cost.low, cost.high)
    assumptions = {
        "queries_per_day": rate,
        "rate_source": "configured" if settings.queries_per_day is not None else promised.rate_source,
        "horizon_days": settings.horizon_days,
        "scan_core_seconds_per_gb": costs.to_json()["scan"],
        "scan_core_seconds_per_file": costs.to_json()["per_opened_file"],
        "rewrite_core_seconds_per_gb": cost.expected / size * GIGABYTE if size else 0.0,
        "rewrite_bytes": size,
        "relayouts_measured": len(costs.relayouts),
        "promise_queries": promised.queries,
    }
    read = (
        f"{promised.queries} unseen queries read {promised.before:.1%} of the rows now and {promised.after:.1%} "
        f"under the new layout (95% interval of the saved share {promised.low:.1%} to {promised.high:.1%})"
    )
    money = f"; that is {costs.money(saved.low - cost.expected):+.2f} in money" if costs.price_per_core_hour else ""
    balance = (
        f"at {rate:,.0f} queries a day over {settings.horizon_days:g} days that saves at least "
        f"{saved.low:,.1f} core-seconds (expected {saved.expected:,.1f}) against a rewrite of {cost.expected:,.1f} "
        f"(90% interval {cost.low:,.1f} to {cost.high:,.1f}){money}"
    )
    if promised.queries < MIN_PROMISE_QUERIES:
        why = f"only {promised.queries} unseen queries to prove it on, at least {MIN_PROMISE_QUERIES} are needed"
        return Decision(False, (why, read), *figures, assumptions, *ends)
    if promised.low <= 0:
        return Decision(
            False, ("not proved to help: the interval of the saving reaches zero", read), *figures, assumptions, *ends
        )
    if saved.low <= cost.expected:
        return Decision(False, ("not worth it: " + balance, read), *figures, assumptions, *ends)
    return Decision(True, ("worth it: " + balance, read), *figures, assumptions, *ends)
