"""What was judged of a table, under which rules, and what the budget may choose from; plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from zorder_pipeline.gate.holds import Blackout
from zorder_pipeline.model.approval import Request
from zorder_pipeline.model.choices import APPROVAL_DAYS
from zorder_pipeline.model.decision import APPROVE, DECLINE, Decision
from zorder_pipeline.model.lasting import Lasting
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.pipeline.records import Preview

__all__ = ["ANY", "NONE", "OWN", "Judgement", "Part", "Rules"]

ANY, OWN, NONE = "any", "own", "none"
"""Which answers of people count, see `zorder_pipeline.pipeline.judge_table`."""
COST = ("cost_core_seconds", "cost_low", "cost_high")
SAVING = ("saving_core_seconds", "saving_low", "saving_high")
"""Figures of a decision that are of all parts together."""


@dataclass(frozen=True)
class Rules:
    """What stands above cost and benefit.

    Attributes:
        stop: the configuration's kill switch.
        stop_state: folder of a state whose file ``STOP`` counts, too, beside that of the state that is written to.
        blackouts: windows in which nothing is rewritten.
        approval: which plans a person has to approve: ``never`` any, ``changes`` of layout, or ``always``.
        approval_days: days that a request, and an approval, holds.
    """

    stop: bool = False
    blackouts: tuple[Blackout, ...] = ()
    approval: str = "never"
    approval_days: float = APPROVAL_DAYS
    stop_state: str | None = None


@dataclass(frozen=True)
class Part:
    """A partition that would be rewritten, or all of a table: what the budget chooses from.

    Attributes:
        key: see `zorder_pipeline.model.partition_key`; "" for all of the table.
        cost: core-seconds.
        saving: what it saves at least, in core-seconds over the horizon.
        credited: share of the plan's promise that it brings, 0 to 1.
        lasting: what that share comes to as queries move on to newer data; None where none does.
        bytes: of the files that it would replace.
    """

    key: str
    cost: float
    saving: float
    credited: float = 1.0
    lasting: Lasting | None = None
    bytes: int = 0


@dataclass(frozen=True)
class Judgement:
    """What is to become of a table tonight; plain data.

    Attributes:
        name: the table's configured name.
        table: its path or catalog name.
        version: table version that was judged.
        plan: what would be done.
        decision: the gate's answer.
        preview: files and bytes that it would rewrite.
        parts: what the budget may choose from, partition by partition where the table is partitioned.
        partitions: the partitions that the budget chose; None for all that the plan is for.
        request: the approval that it needs or has.
    """

    name: str
    table: str
    version: int
    plan: Plan
    decision: Decision
    preview: Preview
    parts: tuple[Part, ...] = ()
    partitions: tuple[str, ...] | None = None
    request: Request | None = field(default=None, repr=False)

    @property
    def outcome(self) -> str:
        """``approved``, ``declined``, ``postponed`` or ``nothing_to_do``."""
        if self.decision.cause in ("nothing_new", "in_good_order"):
            return "nothing_to_do"
        return {APPROVE: "approved", DECLINE: "declined"}.get(self.decision.verdict, "postponed")

    @property
    def credited(self) -> float:
        """Share of the plan's promise that is to be had tonight, 0 to 1."""
        return min(1.0, sum(part.credited for part in self.chosen))

    @property
    def bytes_chosen(self) -> int:
        """Bytes of the files that are to be replaced tonight."""
        return sum(part.bytes for part in self.chosen)

    def credited_by(self, rewritten: int, whole: int = 0) -> float:
        """Share of the plan's promise that so many bytes of them bring, where a relayout was stopped or lost a race.

        Args:
            whole: bytes that it would have rewritten, which are more where others have written since it was judged.

        >>> decision = Decision(APPROVE, "worth_it", ())
        >>> plan, parts = Plan("/t", "id", "hash", 0, None, "learned", 100), (Part("", 1.0, 1.0, 0.8, bytes=100),)
        >>> judged = Judgement("t", "/t", 0, plan, decision, Preview(0), parts)
        >>> [round(judged.credited_by(rewritten), 3) for rewritten in (50, 100, 300)]
        [0.4, 0.8, 0.8]
        """
        return self.credited * (min(1.0, rewritten / max(self.bytes_chosen, whole)) if self.bytes_chosen else 1.0)

    @property
    def said(self) -> dict[str, Any]:
        """The gate's figures, as the ledger keeps them: cost, saving and what lasts of what the budget chose."""
        said, lasting = self.decision.to_json(), [part.lasting for part in self.chosen if part.lasting is not None]
        if self.partitions is not None:
            brings = "saving" if any(part.saving for part in self.parts) else "credited"
            for figures, share in ((COST, self._share("cost")), (SAVING, self._share(brings))):
                said |= {name: said[name] * share for name in figures}
        assumed = said["assumptions"]
        if lasting and "horizon_days" in assumed:
            days = assumed.get("credited_days", assumed["horizon_days"])
            told = Lasting.together(lasting).foretold(self.credited, days)
            said["assumptions"] = {**assumed, "lasting": told}
        return said

    def _share(self, figure: str) -> float:
        """What the budget chose as a share of all parts, by one of their figures."""
        chosen, whole = (sum(getattr(part, figure) for part in some) for some in (self.chosen, self.parts))
        return chosen / whole if whole else 1.0

    @property
    def chosen(self) -> list[Part]:
        """The parts that are to be done tonight: all of them, unless the budget chose some."""
        return [part for part in self.parts if self.partitions is None or part.key in self.partitions]
