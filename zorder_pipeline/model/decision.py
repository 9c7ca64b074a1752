"""What the gate decided about a table, with reasons a person can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .lasting import Lasting
from .wording import counted

__all__ = ["APPROVE", "CAUSES", "DECLINE", "POSTPONE", "Decision", "Option", "assumptions_told"]

APPROVE, DECLINE, POSTPONE = "approve", "decline", "postpone"
CAUSES: Mapping[str, str] = {
    "worth_it": "even the lower end of the saving pays for the rewrite",
    "gate_off": "the gate is switched off for this table, or its layout is pinned",
    "approved_by_hand": "a person approved the plan",
    "in_good_order": "no layout beat the present one on the select queries, or none was sought as none can pay",
    "nothing_new": "every file lies as it should already",
    "no_workload": "the layout was given by hand, and no query shows that it pays",
    "too_few_queries": "too few later queries to prove it on",
    "not_proved": "the interval of the saving reaches zero",
    "interval_too_wide": "it is expected to pay, but not sure to",
    "not_worth_it": "it is not even expected to pay",
    "too_little_new_data": "it would pay, but more new data is waited for",
    "not_lost_enough": "another layout is better, but the present one has not yet lost what a change costs",
    "undone": "another job keeps undoing the layout",
    "rolled_back": "a RESTORE took our last relayout back, and nobody has said to go on",
    "budget": "tonight's budget goes to what gains more per core-hour",
    "blackout": "it is a blackout window",
    "stopped": "an operator stopped all relayouts",
    "awaiting_approval": "a person has to approve the plan",
    "rejected": "a person rejected the plan",
}
"""Every cause of a decision and what it means; the reasons say it with the table's own figures."""


@dataclass(frozen=True)
class Option:
    """One of the things that could be done with a table, in core-seconds over the horizon.

    Attributes:
        action: ``nothing``, or as in `zorder_pipeline.model.candidate.Candidate`.
        cost: expected cost, with ``cost_low`` and ``cost_high`` as its 90% interval.
        saving: expected saving, with ``saving_low`` and ``saving_high`` as its interval.
        bytes, files: what it would rewrite.
        made: files that it would make of them.
        why_not: why it is out of the question, "" when it is not.
    """

    action: str
    cost: float = 0.0
    cost_low: float = 0.0
    cost_high: float = 0.0
    saving: float = 0.0
    saving_low: float = 0.0
    saving_high: float = 0.0
    bytes: float = 0.0
    files: int = 0
    why_not: str = ""
    made: int = 0

    @property
    def label(self) -> str:
        """The action, and how many files it makes."""
        words = self.action.replace("_", " ")
        return f"{words} in {counted(self.made, 'file')}" if self.made else words

    @property
    def net_low(self) -> float:
        """What it gains at least: the lower end of the saving less the expected cost."""
        return self.saving_low - self.cost


def assumptions_told(assumptions: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Assumptions of a decision for a table that people read: each in words, and its value.

    >>> assumptions_told({"horizon_days": 30.0})
    [('horizon days', 30.0)]
    """
    return [
        ("of the saving is left", Lasting.in_words(value)) if name == "lasting" else (name.replace("_", " "), value)
        for name, value in assumptions.items()
    ]


@dataclass(frozen=True)
class Decision:
    """The gate's answer.

    Attributes:
        verdict: `APPROVE`, `DECLINE` (for what is known of the table) or `POSTPONE` (it would pay, but not now).
        cause: the reason as one word for programs, such as ``worth_it`` or ``budget``; see
            `CAUSES`.
        reasons: sentences, the deciding one first.
        action: what was decided about, as in `Option`.
        cost_core_seconds: expected cost of the rewrite.
        saving_core_seconds: expected saving over the horizon.
        saving_low, saving_high: interval of the saving, by the bootstrap over queries and the doubt about scan costs.
        cost_low, cost_high: 90% interval of the cost.
        assumptions: the figures the saving rests on (query rate, horizon, seconds per GB), by name.
        options: all that was weighed, the chosen one included.
    """

    verdict: str
    cause: str
    reasons: tuple[str, ...]
    action: str = ""
    cost_core_seconds: float = 0.0
    saving_core_seconds: float = 0.0
    saving_low: float = 0.0
    saving_high: float = 0.0
    cost_low: float = 0.0
    cost_high: float = 0.0
    assumptions: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[Option, ...] = ()

    @property
    def approved(self) -> bool:
        """Whether the rewrite may go ahead now."""
        return self.verdict == APPROVE

    def to_json(self) -> dict[str, Any]:
        """JSON-ready form."""
        options = [asdict(option) | {"net_low": option.net_low} for option in self.options]
        plain = {**vars(self), "reasons": list(self.reasons), "assumptions": dict(self.assumptions)}
        return {"approved": self.approved, **plain, "options": options}
