"""What the gate decided about a plan, with reasons a person can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Decision"]


@dataclass(frozen=True)
class Decision:
    """The gate's answer.

    Attributes:
        approved: whether the rewrite may go ahead.
        reasons: sentences, the deciding one first.
        cost_core_seconds: expected cost of the rewrite.
        saving_core_seconds: expected saving over the horizon.
        saving_low, saving_high: interval of the saving, by the bootstrap over queries and the doubt about scan costs.
        cost_low, cost_high: 90% interval of the cost.
        assumptions: the figures the saving rests on (query rate, horizon, seconds per GB), by name.
    """

    approved: bool
    reasons: tuple[str, ...]
    cost_core_seconds: float = 0.0
    saving_core_seconds: float = 0.0
    saving_low: float = 0.0
    saving_high: float = 0.0
    assumptions: Mapping[str, Any] = field(default_factory=dict)
    cost_low: float = 0.0
    cost_high: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {**vars(self), "reasons": list(self.reasons), "assumptions": dict(self.assumptions)}
