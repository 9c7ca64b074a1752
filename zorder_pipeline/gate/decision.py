"""The decision: of all that could be done with a table, what surely gains most, and why not the rest (seed 004, 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from zorder_pipeline.model.candidate import ANOTHER, COMPACTION
from zorder_pipeline.model.decision import CAUSES, DECLINE, POSTPONE, Decision, Option

from .proposal import Proposal, narrowed
from .settings import GateSettings
from .weighing import saved_by, weighed

__all__ = ["UNSOUGHT", "decide", "postponed"]

GOOD_ORDER = "the present layout was not beaten on the select queries; the table stays as it is"

NO_OTHER = "there is no other layout to try; the table stays as it is"
UNSOUGHT = "no other layout was sought"


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
    decisions = [weighed(proposal, settings) for proposal in able]

    def rank(i: int) -> tuple[bool, bool, float]:  # of what is declined, a layout is what people want to hear of
        declined, gains = not decisions[i].approved, _net(decisions[i]) if settings.enabled else 0.0
        return declined, declined and able[i].action == COMPACTION, -gains

    order = sorted(range(len(able)), key=rank)
    chosen, proposal = decisions[order[0]], able[order[0]]
    options = (Option("nothing"), *(_option(decisions[i], able[i]) for i in order))
    if not chosen.approved and all(one.plan.spec is None for one in able):
        cause, (why,) = _as_it_is(able)
        why = f"{why}; {_in_short(options[1], proposal)}"
        return replace(chosen, cause=cause, reasons=(why, *chosen.reasons), options=options), proposal
    others = [_in_short(_option(decisions[i], able[i]), able[i]) for i in order[1:]]
    reasons = (*chosen.reasons, "also weighed: " + "; ".join(others)) if others else chosen.reasons
    if proposal.plan.unsought:
        reasons = (*reasons, f"{UNSOUGHT}: {proposal.plan.unsought}")
    return replace(chosen, reasons=reasons, options=options), proposal


def _as_it_is(proposals: Sequence[Proposal]) -> tuple[str, tuple[str]]:
    """Cause and reason of a table that no layout is proposed for."""
    why = next((one.plan.unsought for one in proposals if one.plan.unsought), "")
    if not why:
        return "in_good_order", (GOOD_ORDER if any(one.plan.trials for one in proposals) else NO_OTHER,)
    laid_out = any(one.in_force for one in proposals)
    return ("in_good_order", (f"{UNSOUGHT}: {why}",)) if laid_out else ("not_worth_it", (why,))


def postponed(decision: Decision, cause: str, why: str) -> Decision:
    """An approved decision that has to wait for a reason outside the table."""
    return replace(decision, verdict=POSTPONE, cause=cause, reasons=(why, *decision.reasons))


def _where_it_pays(proposal: Proposal, settings: GateSettings) -> Proposal:
    """The proposal without partitions that cost more than they save; all of it where the gate does not ask."""
    if not settings.enabled or not proposal.partitions or not proposal.plan.promise.queries:
        return proposal
    return narrowed(proposal, saved_by(proposal.plan, settings).low, settings.credited_days, settings.costs)


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
