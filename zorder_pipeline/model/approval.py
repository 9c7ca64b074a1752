"""A plan that waits for a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .plan import Plan

__all__ = ["APPROVED", "DONE", "PENDING", "REJECTED", "WITHDRAWN", "Request"]

PENDING, APPROVED, REJECTED, DONE, WITHDRAWN = "pending", "approved", "rejected", "done", "withdrawn"


@dataclass(frozen=True)
class Request:
    """A plan that was put to a person, and what became of it.

    Attributes:
        table: the table's configured name, or its location.
        table_id: Delta's id of the table.
        plan: what would be done; ``plan.plan_id`` is what an approval is for.
        status: `PENDING`, `APPROVED`, `REJECTED`, `DONE`, or `WITHDRAWN` when it fits or pays no more.
        asked_at, settled_at: microseconds since 1970 UTC; the latter None while it is pending.
        by: who settled it.
        reasons: what the gate said of it.
        version: table version that it was judged at.
        asked_as: the plan's id when it was asked; an older version of the code may have made another one.
    """

    table: str
    table_id: str
    plan: Plan
    status: str
    asked_at: int
    settled_at: int | None = None
    by: str = ""
    reasons: tuple[str, ...] = ()
    version: int = 0
    asked_as: str = ""

    @property
    def plan_id(self) -> str:
        """What an approval is for."""
        return self.asked_as or self.plan.plan_id

    def to_json(self) -> dict[str, Any]:
        """The object ``zorder approve --json`` prints per plan; the plan itself is in the state."""
        layout = self.plan.spec.layout_id if self.plan.spec else None
        plain = {key: value for key, value in vars(self).items() if key not in ("plan", "asked_as")}
        return {"plan_id": self.plan_id, "action": self.plan.action, "layout_id": layout, **plain}
