"""The decision: of all that could be done with a table, what surely gains most, and why not the rest (seed 004, 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from zorder_pipeline.model.choices import HORIZON_DAYS
from zorder_pipeline.model.decision import APPROVE, CAUSES, DECLINE, POSTPONE, Decision, Option
from zorder_pipeline.model.plan import ANOTHER, COMPACTION, KEPT, Plan, Promise
from zorder_pipeline.model.wording import counted

from .accounts import BROKEN
from .benefit import later_queries, saving
from .cost import GIGABYTE, CostModel, RelayoutWork
from .proposal import Proposal, narrowed
from .regression import Estimate

__all__ = ["UNSOUGHT", "GateSettings", "decide", "judge", "postponed"]

MIN_PROMISE_QUERIES = 5
RESIZED = 2
"""So many times as many files as they replace are told of."""
GOOD_ORDER = "the present layout was not beaten on the select queries; the table stays as it is"

UNSOUGHT = "no other layout was sought"


@dataclass(frozen=True)
class GateSettings:
    """What the gate assumes and demands.

    Attributes:
        enabled: False approves every plan that has a layout; of several choices the first one.
        horizon_days: days over which a rewrite must pay for itself.
        queries_per_day: expected rate; None takes the rate observed in the log.
        min_new_data_share, min_new_data_bytes: a table that stays with its layout waits until so much of its bytes is
            new, the larger of the two.
        payback_days: it does not wait where a rewrite that surely pays within the horizon is expected to have paid
            for itself after so many days; 0 always waits.
        costs: the cost model.
        enriched_share: share of the queries that are asked through `reading/`, 0 to 1.
        broken_promise_factor: a promise that was missed by more widens the interval of later ones.
        widening: how much, see `zorder_pipeline.gate.accounts.widening`; follows from the table's history.
        page_skipping: whether the queries' engine skips Parquet's pages by their index, as Spark does: then rows inside
            large files are skipped, too.
        change_layout: False stays with the layout that the table has.
    """

    enabled: bool = True
    horizon_days: float = HORIZON_DAYS
    queries_per_day: float | None = None
    min_new_data_share: float = 0.05
    min_new_data_bytes: float = 256e6
    payback_days: float = 1.0
    costs: CostModel = field(default_factory=CostModel)
    enriched_share: float = 0.0
    broken_promise_factor: float = BROKEN
    widening: float = 1.0
    page_skipping: bool = True
    change_layout: bool = True


def judge(
    plan: Plan,
    rewrite_bytes: float,
    table_bytes: float,
    settings: GateSettings | None = None,
    work: RelayoutWork | None = None,
) -> Decision:
    """Decide about one plan alone: rewriting ``rewrite_bytes`` of a table of ``table_bytes`` by it.

    Args:
        work: what the cost follows from, where more is known than bytes and the plan's key.
    """
    work = work or RelayoutWork(rewrite_bytes, len(plan.spec.features) if plan.spec else 1)
    part = rewrite_bytes / table_bytes if table_bytes else 1.0
    credited = 1.0 if plan.promises_part else part
    return decide([Proposal(plan, work, table_bytes, rewrite_bytes, credited)], settings)[0]


def decide(proposals: Sequence[Proposal], settings: GateSettings | None = None) -> tuple[Decision, Proposal | None]:
    """Choose among all that could be done with a table, doing nothing included.

    The saving of each is what a promise query no longer reads, times query rate, times horizon. What gains most at
    least (lower end of the saving less cost) is approved if that is more than nothing; a layout that is to replace one
    of ours must besides have been missed long enough (`zorder_pipeline.gate.drift`), and a table that keeps its layout
    waits for enough new data. Otherwise the reason is that of the layout which came nearest. Of a partitioned table
    each is weighed without the partitions whose own saving, at least, does not pay for their own rewrite.

    Returns:
        The decision, and the proposal it is about; None when there was none with anything to do.
    """
    settings = settings or GateSettings()
    able = [proposal for proposal in proposals if proposal.plan.spec is not None or proposal.plan.action]
    if not able:
        return Decision(DECLINE, *_as_it_is(proposals)), None
    able = [_where_it_pays(proposal, settings) for proposal in able]
    weighed = [_weigh(proposal, settings) for proposal in able]

    def rank(i: int) -> tuple[bool, bool, float]:  # of what is declined, a layout is what people want to hear of
        declined, gains = not weighed[i].approved, _net(weighed[i]) if settings.enabled else 0.0
        return declined, declined and able[i].action == COMPACTION, -gains

    order = sorted(range(len(able)), key=rank)
    chosen, proposal = weighed[order[0]], able[order[0]]
    options = (Option("nothing"), *(_option(weighed[i], able[i]) for i in order))
    if not chosen.approved and all(one.plan.spec is None for one in able):
        cause, (why,) = _as_it_is(able)
        why = f"{why}; {_in_short(options[1], proposal)}"
        return replace(chosen, cause=cause, reasons=(why, *chosen.reasons), options=options), proposal
    others = [_in_short(_option(weighed[i], able[i]), able[i]) for i in order[1:]]
    reasons = (*chosen.reasons, "also weighed: " + "; ".join(others)) if others else chosen.reasons
    if proposal.plan.unsought:
        reasons = (*reasons, f"{UNSOUGHT}: {proposal.plan.unsought}")
    return replace(chosen, reasons=reasons, options=options), proposal


def _as_it_is(proposals: Sequence[Proposal]) -> tuple[str, tuple[str]]:
    """Cause and reason of a table that no layout is proposed for."""
    why = next((one.plan.unsought for one in proposals if one.plan.unsought), "")
    if not why:
        return "in_good_order", (GOOD_ORDER,)
    laid_out = any(one.laid_out for one in proposals)
    return ("in_good_order", (f"{UNSOUGHT}: {why}",)) if laid_out else ("not_worth_it", (why,))


def postponed(decision: Decision, cause: str, why: str) -> Decision:
    """An approved decision that has to wait for a reason outside the table."""
    return replace(decision, verdict=POSTPONE, cause=cause, reasons=(why, *decision.reasons))


def _weigh(proposal: Proposal, settings: GateSettings) -> Decision:
    plan, promised, costs = proposal.plan, proposal.plan.promise, settings.costs
    action = proposal.action
    lead = f"{action} " if action == COMPACTION else ""
    rate, cost = _rate(plan, settings), costs.relayout(proposal.work, plan.table_id)
    saved = _saving(plan, settings, proposal.credited)
    figures = (cost.expected, saved.expected, saved.low, saved.high, cost.low, cost.high)
    assumed = _assumptions(proposal, settings, rate, cost.expected)
    found = Decision(DECLINE, "not_worth_it", (), action, *figures, assumed)
    if not settings.enabled:
        if proposal.why_not:
            return replace(found, cause="undone", reasons=(proposal.why_not,))
        return replace(found, verdict=APPROVE, cause="gate_off", reasons=("the gate is switched off for this table",))
    if plan.origin == "manual":
        why = "no workload: the layout was given by hand, so nothing shows that it pays"
        return replace(found, cause="no_workload", reasons=(f"{why}; apply it with --force if you know better",))
    if not promised.queries:
        why = "too few queries: there were none left to prove the layout on that it was not learned from"
        return replace(found, cause="too_few_queries", reasons=(f"{why}; apply it with --force if you know better",))
    read = (
        f"{later_queries(promised)} read {promised.before:.1%} of the rows now and {promised.after:.1%} "
        f"afterwards (95% interval of the saved share {promised.low:.1%} to {promised.high:.1%})"
    )
    if settings.page_skipping and promised.page_bytes_before:
        left = 1 - (promised.page_bytes_saved_per_query or 0.0) / promised.page_bytes_before
        read += f"; of the bytes in the pages that they read now they read {left:.1%} afterwards"
    replaced = proposal.work.files - proposal.made
    if proposal.made >= RESIZED * replaced > 0:
        read += f"; {counted(replaced, 'file')} become {proposal.made:,}"
    if action == COMPACTION:
        then = promised.files_before - promised.files_saved_per_query
        read = f"merging small files lets a query open {then:,.1f} instead of {promised.files_before:,.1f}; {read}"
    balance = (
        f"at {rate:,.0f} queries a day over {settings.horizon_days:g} days that saves at least "
        f"{saved.low:,.1f} core-seconds (expected {saved.expected:,.1f}) against a rewrite of {cost.expected:,.1f} "
        f"(90% interval {cost.low:,.1f} to {cost.high:,.1f})"
    )
    if settings.widening > 1:
        balance += f"; an earlier promise was broken, so the least is at most the expected / {settings.widening:.1f}"
    if costs.price_per_core_hour:
        balance += f"; that is {costs.money(saved.low - cost.expected):+.2f} in money"
    if proposal.left_out:
        most = counted(proposal.left_out + len(proposal.partitions), "partition")
        rest = "the others cost more than they save and stay as they are"
        read = f"{len(proposal.partitions):,} of {most} pay for their own rewrite, {rest}; {read}"
    found = replace(found, reasons=(f"{lead}not worth it: {balance}", read))
    if promised.proven_on < MIN_PROMISE_QUERIES:
        why = (
            f"only {promised.proven_on} different later queries to prove it on, at least {MIN_PROMISE_QUERIES} are "
            "needed"
        )
        return replace(found, cause="too_few_queries", reasons=(why, read))
    if not saved.low > 0:  # neither does what is no number pass
        why = f"not proved to help: {_unproved(promised)}"
        return replace(found, cause="not_proved", reasons=(why, read))
    if not saved.expected > cost.expected:
        return found
    if not saved.low > cost.expected:
        why = f"interval too wide: it is expected to pay, but not sure to; {balance}"
        return replace(found, cause="interval_too_wide", reasons=(why, read))
    found = replace(found, reasons=(f"{lead}worth it: {balance}", read))
    daily = saved.expected / settings.horizon_days  # it surely pays: when is best is a matter of what is expected
    for cause, why in (
        _too_early(proposal, settings, cost.expected),
        _too_little(proposal, settings, cost.expected, daily),
    ):
        if why:
            return replace(found, cause=cause, reasons=(why, *found.reasons))
    if proposal.why_not:
        return replace(found, cause="undone", reasons=(proposal.why_not, *found.reasons))
    return replace(found, verdict=APPROVE, cause="worth_it")


def _rate(plan: Plan, settings: GateSettings) -> float:
    return settings.queries_per_day if settings.queries_per_day is not None else plan.promise.queries_per_day


def _saving(plan: Plan, settings: GateSettings, credited: float = 1.0) -> Estimate:
    """Core-seconds that a plan saves within the horizon, or the part of it that is ``credited``."""
    scans = _rate(plan, settings) * settings.horizon_days * credited
    return saving(
        plan.promise, settings.costs, scans, plan.table_id, settings.enriched_share, settings.widening,
        settings.page_skipping,
    )  # fmt: skip


def _where_it_pays(proposal: Proposal, settings: GateSettings) -> Proposal:
    """The proposal without partitions that cost more than they save; all of it where the gate does not ask."""
    if not settings.enabled or not proposal.partitions or not proposal.plan.promise.queries:
        return proposal
    return narrowed(proposal, _saving(proposal.plan, settings).low, settings.costs)


def _too_early(proposal: Proposal, settings: GateSettings, cost: float) -> tuple[str, str]:
    """Why a change of layout is too early, "" when it is not."""
    if proposal.action != ANOTHER or proposal.lost is None:
        return "", ""
    if not settings.change_layout:
        return "not_lost_enough", "the table keeps its layout: layout.keep is set"
    lost = proposal.lost
    wanted = cost * proposal.patience
    if lost >= wanted:
        return "", ""
    times = f" ({proposal.patience:g} times its cost, as earlier changes did not pay)" if proposal.patience > 1 else ""
    why = (
        f"not lost enough yet: queries since the last relayout cost {lost:,.1f} core-seconds more than they would have "
        f"under this layout; a change waits until that exceeds {wanted:,.1f}{times}"
    )
    return "not_lost_enough", why


def _too_little(proposal: Proposal, settings: GateSettings, cost: float, daily: float) -> tuple[str, str]:
    """Why a table that keeps its layout has to wait for more new data, by its cost and a day's saving; "" when not."""
    least = max(settings.min_new_data_share * proposal.table_bytes, settings.min_new_data_bytes)
    paid_back = daily * settings.payback_days >= cost
    if proposal.plan.origin != KEPT or proposal.new_bytes >= least or paid_back:
        return "", ""
    share = proposal.new_bytes / proposal.table_bytes if proposal.table_bytes else 1.0
    whole = "what is laid out" if proposal.left_out else "the table"
    why = (
        f"too little new data: {proposal.new_bytes / 1e6:,.1f} MB ({share:.1%} of {whole}), "
        f"the gate waits for {least / 1e6:,.1f} MB"
    )
    return "too_little_new_data", why


def _unproved(promised: Promise) -> str:
    """Why the interval of the saving reaches zero."""
    more = -promised.files_saved_per_query
    if promised.low <= 0 or more <= 0:
        return "the interval of the saving reaches zero"
    return (
        f"fewer rows are read, but a query opens {promised.files_before + more:,.1f} files instead of "
        f"{promised.files_before:,.1f}, and that costs about what the rows save: the table is small for so many files"
    )


def _assumptions(proposal: Proposal, settings: GateSettings, rate: float, cost: float) -> dict[str, Any]:
    costs, size = settings.costs, proposal.work.bytes
    return {
        "queries_per_day": rate,
        "rate_source": "configured" if settings.queries_per_day is not None else proposal.plan.promise.rate_source,
        "horizon_days": settings.horizon_days,
        "page_skipping": settings.page_skipping and proposal.plan.promise.page_bytes_before is not None,
        "scan_core_seconds_per_gb": costs.to_json()["scan"],
        "scan_core_seconds_per_file": costs.to_json()["per_opened_file"],
        "rewrite_core_seconds_per_gb": cost / size * GIGABYTE if size else 0.0,
        "rewrite_bytes": size,
        "relayouts_measured": len(costs.relayouts),
        "promise_queries": proposal.plan.promise.queries,
        "promise_statements": proposal.plan.promise.statements,
    }


def _net(decision: Decision) -> float:
    return decision.saving_low - decision.cost_core_seconds


def _option(decision: Decision, proposal: Proposal) -> Option:
    return Option(
        decision.action,
        decision.cost_core_seconds,
        decision.cost_low,
        decision.cost_high,
        decision.saving_core_seconds,
        decision.saving_low,
        decision.saving_high,
        proposal.work.bytes,
        proposal.work.files,
        "" if decision.approved else CAUSES[decision.cause],
        proposal.made,
    )


def _in_short(option: Option, proposal: Proposal) -> str:
    why = f" ({option.why_not})" if option.why_not else ""
    first = proposal.lost is None and option.action == ANOTHER  # the table lies by none of ours, as far as is known
    label = option.label.replace(ANOTHER, "the plan's layout") if first else option.label
    return f"{label} {option.net_low:+,.1f} core-seconds at least{why}"
