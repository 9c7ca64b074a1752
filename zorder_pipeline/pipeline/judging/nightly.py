"""The night over all tables: each was judged, now the budget goes to what gains most per core-hour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from zorder_pipeline.gate.budget import Choice, allot
from zorder_pipeline.gate.decision import postponed

from .judgements import Judgement

__all__ = ["share_budget"]

HOUR = 3600.0
UNASKED = ("gate_off", "approved_by_hand")
"""Causes of what is done without weighing what it saves."""
LITTLE = 1e-9


def share_budget(judged: Sequence[Judgement], core_hours: float | None) -> tuple[Judgement, ...]:
    """The judgements, those approved ones postponed that the budget has no room for; in the same order.

    What saves most per core-hour at least comes first, over tables and, of a table that is partitioned, over its
    partitions: then some of them may be done tonight and the others later. What is done without asking for its benefit
    (a pinned layout, a switched-off gate, a plan approved by hand) comes before all else, as many partitions as fit.

    Args:
        core_hours: the budget; None is no limit.
    """
    if core_hours is None:
        return tuple(judged)
    left = core_hours * HOUR
    granted: dict[int, set[str]] = {}
    for number, one in enumerate(judged):
        if one.decision.approved and one.decision.cause in UNASKED:
            for part in one.parts:
                if part.cost <= left:
                    granted.setdefault(number, set()).add(part.key)
                    left -= part.cost
    # what was approved pays together: a partition that does not with its part of the job's cost has the last place, and
    # is not left out while there is room
    units = {
        f"{number:09d} {part.key}": [Choice(part.key, part.cost, max(part.saving - part.cost, LITTLE * part.saving))]
        for number, one in enumerate(judged)
        if one.decision.approved and one.decision.cause == "worth_it"
        for part in one.parts
    }
    for unit, choice in allot(units, left).items():
        granted.setdefault(int(unit.split(" ", 1)[0]), set()).add(choice.name)
    return tuple(_granted(one, granted.get(number, set()), core_hours) for number, one in enumerate(judged))


def _granted(one: Judgement, keys: set[str], core_hours: float) -> Judgement:
    if not one.decision.approved or keys == {part.key for part in one.parts}:
        return one
    cost = sum(part.cost for part in one.parts) / HOUR
    least = min(part.cost for part in one.parts) / HOUR
    if not keys and least > core_hours:
        which = "the smallest of its partitions" if len(one.parts) > 1 else "it"
        why = (
            f"postponed by the budget: {which} takes {least:,.3g} core-hours, more than a night's {core_hours:g}; "
            "raise budget_core_hours, or do it once with zorder apply"
        )
        return replace(one, decision=postponed(one.decision, "budget", why))
    if not keys:
        first = "go to what was asked for by hand" if one.decision.cause in UNASKED else "save more elsewhere"
        why = (
            f"postponed by the budget: it would take {cost:,.3g} core-hours of tonight's {core_hours:g}, which {first}"
        )
        return replace(one, decision=postponed(one.decision, "budget", why))
    share = sum(part.cost for part in one.parts if part.key in keys) / HOUR
    which = "" if one.decision.cause in UNASKED else ", those that save most in it"
    why = (
        f"{len(keys)} of {len(one.parts)} partitions fit tonight's budget{which} "
        f"({share:,.3g} of {cost:,.3g} core-hours); the others wait"
    )
    decision = replace(one.decision, reasons=(*one.decision.reasons, why))
    return replace(one, decision=decision, partitions=tuple(sorted(keys)))
