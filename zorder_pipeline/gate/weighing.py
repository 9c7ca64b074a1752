"""Whether one rewrite pays: what it surely saves within the horizon against what it costs, and why not, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from zorder_pipeline.model.candidate import ANOTHER, COMPACTION
from zorder_pipeline.model.decision import APPROVE, DECLINE, Decision
from zorder_pipeline.model.plan import KEPT, Plan, Promise
from zorder_pipeline.model.wording import counted, queries_a_day

from .benefit import later_queries, saving
from .cost import GIGABYTE
from .proposal import Proposal
from .regression import Estimate
from .settings import KEEPS, GateSettings

__all__ = ["saved_by", "weighed"]

MIN_PROMISE_QUERIES = 5
NEARLY_ALL = 0.995
"""What is left of a saving, from which on that is not worth a word."""
RESIZED = 2
"""So many times as many files as they replace are told of."""


def weighed(proposal: Proposal, settings: GateSettings) -> Decision:
    """What is to be said of one proposal alone: approved where it surely pays, and nothing speaks against it now."""
    plan, action = proposal.plan, proposal.action
    cost = settings.costs.relayout(proposal.work, plan.table_id)
    saved = saved_by(plan, settings, proposal.credited_over(settings.credited_days))
    figures = (cost.expected, saved.expected, saved.low, saved.high, cost.low, cost.high)
    assumed = _assumptions(proposal, settings, cost.expected)
    found = Decision(DECLINE, "not_worth_it", (), action, *figures, assumed)
    if proposal.changes_layout and not settings.change_layout:
        return replace(found, cause="not_lost_enough", reasons=(KEEPS,))
    if not settings.enabled:
        if proposal.why_not:
            return replace(found, cause="undone", reasons=(proposal.why_not,))
        return replace(found, verdict=APPROVE, cause="gate_off", reasons=("the gate is switched off for this table",))
    cause, why = _not_to_be_weighed(plan)
    if why:
        return replace(found, cause=cause, reasons=(f"{why}; apply it with --force if you know better",))
    read, balance = _reading(proposal, settings), _balance(proposal, settings, cost, saved)
    lead = f"{action} " if action == COMPACTION else ""
    for cause, why in (
        _not_measured(proposal, settings),
        _moved_on(proposal, settings),
        _not_asked(settings),
        _not_proved(plan.promise, saved),
        _not_paying(cost, saved, balance, lead),
    ):
        if why:
            return replace(found, cause=cause, reasons=(why, read))
    found = replace(found, reasons=(f"{lead}worth it: {balance}", read))
    for cause, why in (  # it surely pays: when is best is a matter of what is expected
        _too_early(proposal, cost.expected),
        _too_little(proposal, settings, cost.expected),
        ("undone", proposal.why_not),
    ):
        if why:
            return replace(found, cause=cause, reasons=(why, *found.reasons))
    return replace(found, verdict=APPROVE, cause="worth_it")


def saved_by(plan: Plan, settings: GateSettings, credited: float = 1.0) -> Estimate:
    """Core-seconds that a plan saves within the horizon, or the part of it that is ``credited``, 0 to 1."""
    scans = _rate(plan, settings) * settings.credited_days * credited
    return saving(
        plan.promise, settings.costs, scans, plan.table_id, settings.enriched_share, settings.widening,
        settings.page_skipping,
    )  # fmt: skip


def _rate(plan: Plan, settings: GateSettings) -> float:
    """Queries per day."""
    return settings.queries_per_day if settings.queries_per_day is not None else plan.promise.queries_per_day


# What speaks against a rewrite: its cause and why, both "" when it does not.


def _not_to_be_weighed(plan: Plan) -> tuple[str, str]:
    """A plan that no query promises anything of."""
    if plan.origin == "manual":
        return "no_workload", "no workload: the layout was given by hand, so nothing shows that it pays"
    if not plan.promise.queries:
        why = "too few queries: there were none left to prove the layout on that it was not learned from"
        return "too_few_queries", why
    return "", ""


def _not_measured(proposal: Proposal, settings: GateSettings) -> tuple[str, str]:
    """Partitions that the plan does not know, where it promises nothing of others."""
    if not proposal.unmeasured or proposal.credited_over(settings.credited_days) > 0:
        return "", ""
    names = _named([one.key for one in proposal.unmeasured])
    why = (
        f"not proved to help: the plan measured nothing of {names}; learn a new one, as the table's next night does, "
        "or apply it with --force if you know better"
    )
    return "not_proved", why


def _moved_on(proposal: Proposal, settings: GateSettings) -> tuple[str, str]:
    """Queries that will ask for nothing of what would be laid out."""
    if proposal.lasting is None or proposal.credited_over(settings.credited_days) > 0:
        return "", ""
    days = f"the {settings.credited_days:,.3g} days that count"
    return "not_worth_it", f"not worth it: queries move on to newer data, and ask for none of these rows in {days}"


def _not_asked(settings: GateSettings) -> tuple[str, str]:
    """A table that nobody will ask, as the configuration says: that its saving is nothing has no other reason."""
    if settings.queries_per_day != 0:
        return "", ""
    return "not_worth_it", "not worth it: no queries are expected (gate.queries_per_day is 0)"


def _not_proved(promised: Promise, saved: Estimate) -> tuple[str, str]:
    """A saving that may be none."""
    if promised.proven_on < MIN_PROMISE_QUERIES:
        needed = f"at least {MIN_PROMISE_QUERIES} are needed"
        return "too_few_queries", f"only {promised.proven_on} different later queries to prove it on, {needed}"
    if not saved.low > 0:  # neither does what is no number pass
        return "not_proved", f"not proved to help: {_unproved(promised)}"
    return "", ""


def _not_paying(cost: Estimate, saved: Estimate, balance: str, lead: str) -> tuple[str, str]:
    """A saving that is not surely more than the cost."""
    if not saved.expected > cost.expected:
        return "not_worth_it", f"{lead}not worth it: {balance}"
    if not saved.low > cost.expected:
        return "interval_too_wide", f"interval too wide: it is expected to pay, but not sure to; {balance}"
    return "", ""


def _too_early(proposal: Proposal, cost: float) -> tuple[str, str]:
    """A change of layout before the present one was missed long enough."""
    if proposal.action != ANOTHER or proposal.lost is None:
        return "", ""
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


def _too_little(proposal: Proposal, settings: GateSettings, cost: float) -> tuple[str, str]:
    """A table that keeps its layout and has to wait for more new data, by its cost and what the first days save."""
    least = max(settings.min_new_data_share * proposal.table_bytes, settings.min_new_data_bytes)
    soon = saved_by(proposal.plan, settings, proposal.credited_over(settings.payback_days)).expected
    paid_back = soon * min(1.0, settings.payback_days / settings.credited_days) >= cost
    if proposal.plan.origin != KEPT or proposal.new_bytes >= least or paid_back:
        return "", ""
    share = proposal.new_bytes / proposal.table_bytes if proposal.table_bytes else 1.0
    whole = "what is laid out" if proposal.left_out else "the table"
    why = (
        f"too little new data: {_size(proposal.new_bytes)} ({share:.1%} of {whole}), the gate waits for {_size(least)}"
    )
    return "too_little_new_data", why


# In words.


def _reading(proposal: Proposal, settings: GateSettings) -> str:
    """What queries read now and afterwards."""
    promised, action = proposal.plan.promise, proposal.action
    read = (
        f"{later_queries(promised)} read {promised.before:.1%} of the rows now and {promised.after:.1%} "
        f"afterwards (95% interval of the saved share {promised.low:.1%} to {promised.high:.1%})"
    )
    if settings.page_skipping and promised.page_bytes_before:
        left = 1 - (promised.page_bytes_saved_per_query or 0.0) / promised.page_bytes_before
        read += f"; of the bytes in the pages that they read now they read {left:.1%} afterwards"
    replaced = proposal.work.files - proposal.made
    if proposal.made >= RESIZED * replaced > 0:
        read += f"; {counted(replaced, 'file')} {'becomes' if replaced == 1 else 'become'} {proposal.made:,}"
    if action == COMPACTION:
        then = promised.files_before - promised.files_saved_per_query
        read = f"merging small files lets a query open {then:,.1f} instead of {promised.files_before:,.1f}; {read}"
    if later := [one.key for one in proposal.unmeasured if one.credited_over(settings.credited_days) > 0]:
        came = "came after the plan and is" if len(later) == 1 else "came after the plan and are"
        read += f"; {_named(later)} {came} credited by bytes with what it measured of others"
    if proposal.left_out:
        most = counted(proposal.left_out + len(proposal.partitions), "partition")
        rest = "the others cost more than they save and stay as they are"
        read = f"{len(proposal.partitions):,} of {most} pay for their own rewrite, {rest}; {read}"
    return read


def _balance(proposal: Proposal, settings: GateSettings, cost: Estimate, saved: Estimate) -> str:
    """The saving against the cost."""
    plan = proposal.plan
    balance = (
        f"at {queries_a_day(_rate(plan, settings))} over {settings.horizon_days:g} days that saves at least "
        f"{saved.low:,.1f} core-seconds (expected {saved.expected:,.1f}) against a rewrite of {cost.expected:,.1f} "
        f"(90% interval {cost.low:,.1f} to {cost.high:,.1f})"
    )
    if settings.life_days is not None:
        balance += (
            f"; others undid what was laid out after {settings.life_days:,.1f} days on average, so "
            f"{settings.credited_days:,.1f} of the {settings.horizon_days:g} days count"
        )
    if (left := _left(proposal, settings)) is not None and left < NEARLY_ALL:
        balance += f"; queries move on to newer data, so they save {left:.0%} of what they would if they stayed"
    if settings.widening > 1:
        balance += f"; an earlier promise was broken, so the least is divided by {settings.widening:.1f}"
    if settings.costs.price_per_core_hour:
        balance += f"; that is {settings.costs.money(saved.low - cost.expected):+.2f} in money"
    return balance


def _left(proposal: Proposal, settings: GateSettings) -> float | None:
    """What is left of the saving within the horizon as queries move on; None where none does."""
    if proposal.lasting is None or not proposal.credited:
        return None
    return proposal.credited_over(settings.credited_days) / proposal.credited


def _lasting(proposal: Proposal, settings: GateSettings) -> dict[str, Any]:
    """What is left of the saving day by day, as shares of what the logged queries save; nothing where none moves on."""
    if proposal.lasting is None:
        return {}
    return {"lasting": proposal.lasting.foretold(proposal.credited, settings.credited_days)}


def _named(partitions: Sequence[str]) -> str:
    """Partitions in words; of several one as an example."""
    some = partitions[-1]
    return f"partition {some}" if len(partitions) == 1 else f"{len(partitions):,} partitions, such as {some}"


def _size(amount: float) -> str:
    """Bytes in words; those of tiny tables not in MB, as the two that are compared would look alike."""
    return f"{amount / 1e6:,.1f} MB" if amount >= 1e6 else f"{amount / 1e3:,.1f} kB"


def _unproved(promised: Promise) -> str:
    """Why the interval of the saving reaches zero."""
    more = -promised.files_saved_per_query
    if promised.low <= 0 or more <= 0:
        return "the interval of the saving reaches zero"
    return (
        f"fewer rows are read, but a query opens {promised.files_before + more:,.1f} files instead of "
        f"{promised.files_before:,.1f}, and that costs about what the rows save: the table is small for so many files"
    )


def _assumptions(proposal: Proposal, settings: GateSettings, cost: float) -> dict[str, Any]:
    costs, size = settings.costs, proposal.work.bytes
    return {
        "queries_per_day": _rate(proposal.plan, settings),
        "rate_source": "configured" if settings.queries_per_day is not None else proposal.plan.promise.rate_source,
        "horizon_days": settings.horizon_days,
        **({} if settings.life_days is None else {"credited_days": settings.credited_days}),
        "page_skipping": settings.page_skipping and proposal.plan.promise.page_bytes_before is not None,
        **_lasting(proposal, settings),
        "scan_core_seconds_per_gb": costs.to_json()["scan"],
        "scan_core_seconds_per_file": costs.to_json()["per_opened_file"],
        "rewrite_core_seconds_per_gb": cost / size * GIGABYTE if size else 0.0,
        "rewrite_bytes": size,
        "relayouts_measured": len(costs.relayouts),
        "broken_promise_factor": settings.broken_promise_factor,
        "promise_queries": proposal.plan.promise.queries,
        "promise_statements": proposal.plan.promise.statements,
    }
