"""What could be done with a table: each choice of a plan with what it would rewrite, and the gate's answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from zorder_pipeline.gate.decision import UNSOUGHT, decide
from zorder_pipeline.gate.proposal import PartitionWork, Proposal
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.candidate import ANOTHER, COMPACTION, FULL
from zorder_pipeline.model.decision import DECLINE, Decision
from zorder_pipeline.model.lasting import Lasting
from zorder_pipeline.model.partition_key import partition_key
from zorder_pipeline.model.plan import KEPT, Plan
from zorder_pipeline.pipeline.costs import relayout_work
from zorder_pipeline.pipeline.learning.keeping import layout_of
from zorder_pipeline.pipeline.records import Preview
from zorder_pipeline.relayout.snapshot import TableSnapshot

from .judgements import Judgement, Part
from .later_partitions import LaterPartitions, Values, later_partitions
from .previews import preview
from .still_to_do import Left, still_to_do

__all__ = ["Weighing"]


@dataclass(frozen=True)
class Weighing:
    """What the choices of a plan are weighed by; nothing of the table is changed.

    Attributes:
        snapshot: the table.
        gate: with the costs and the widening that the state knows.
        undone: why every layout would be undone; "" when none would.
        where, full, verify: see `zorder_pipeline.pipeline.apply`.
    """

    snapshot: TableSnapshot
    gate: GateSettings
    undone: str = ""
    where: str | None = None
    full: bool = False
    verify: str = "counts"

    def decided(self, plan: Plan) -> tuple[Decision, Plan, Preview]:
        """The gate's answer, which choice of the plan it is about, and what that would rewrite."""
        weighed = [(self.proposal(choice, would), would) for choice, would in self._with_something_to_do(plan)]
        if not weighed:
            why = "every file already lies by this layout" + (" in the chosen partitions" if self.where else "")
            why += f"; {UNSOUGHT}: {plan.unsought}" if plan.unsought else ""
            return Decision(DECLINE, "nothing_new", (why,)), plan, self._nothing
        decision, chosen = decide([proposal for proposal, _ in weighed], self.gate)
        if chosen is None:
            return decision, plan, self._nothing
        known = next((would for proposal, would in weighed if proposal.plan is chosen.plan), None)
        return decision, chosen.plan, known or self.preview(chosen.plan)  # it may be for fewer partitions now

    def cost(self, plan: Plan, would: Preview) -> Decision:
        """What a plan costs and saves, whether it pays or not.

        Args:
            would: what it would rewrite.
        """
        proposal = replace(self, undone="").proposal(plan, would)
        return decide([proposal], replace(self.gate, enabled=False))[0]

    def preview(self, plan: Plan) -> Preview:
        """What a plan would rewrite."""
        return preview(self.snapshot, plan, where=self.where, full=self.full)

    @property
    def _nothing(self) -> Preview:
        return Preview(self.snapshot.version, skipped_files=len(self.snapshot.files()))

    def _with_something_to_do(self, plan: Plan) -> list[tuple[Plan, Preview]]:
        """The choices that are weighed; leaving a table as it is is one of them, without any file."""
        # without the gate nobody asks whether merging files pays, so there it is left to `zorder compact`
        merging = self.gate.enabled and not self.snapshot.whole_partitions
        offered = [candidate for candidate in plan.candidates if merging or candidate.action != COMPACTION]
        choices = [plan.choosing(candidate) for candidate in offered] or [plan]
        if self.full:
            choices = [replace(choice, action=FULL) if choice.origin == KEPT else choice for choice in choices]
        would = [(choice, self.preview(choice)) for choice in _in_the_size_in_use(choices, self.snapshot)]
        return [(one, files) for one, files in would if files.files_removed or not (one.spec is not None or one.action)]

    def proposal(self, plan: Plan, would: Preview) -> Proposal:
        """A plan with all that the gate weighs it by.

        Args:
            would: what it would rewrite.
        """
        files, columns = self.snapshot.files(), self.snapshot.partition_columns
        layout = plan.spec.layout_id if plan.spec else ""
        new: dict[Values, int] = {}
        for i in np.flatnonzero(~files.lies_by(layout)):
            new[files.partitions[i]] = new.get(files.partitions[i], 0) + int(files.bytes[i])
        known, credits, lasting = plan.saving_by_partition(), *self._shares(plan, would)
        works = tuple(
            PartitionWork(
                key := partition_key(columns, values),
                credits[values],
                part.bytes,
                part.files_removed + part.files_added,
                min(new.get(values, 0), part.bytes),
                part.files_added,
                lasting.get(values),
                measured=not columns or key in known,
            )
            for values, part in would.partitions.items()
        )
        return Proposal(
            plan=plan,
            work=relayout_work(self.snapshot, plan, would, self.verify),
            table_bytes=float(files.bytes.sum()),
            new_bytes=float(sum(work.new_bytes for work in works)),
            credited=min(1.0, sum(credits.values())),
            lost=self._lost(plan, sum(credits.values())),
            patience=plan.patience,
            why_not=self.undone,
            made=would.files_added,
            in_force=layout_of(self.snapshot),
            partitions=works if known else (),
            lasting=Lasting.together(list(lasting.values())) if lasting else None,
        )

    def _lost(self, plan: Plan, credited: float) -> float | None:
        """What the present layout has lost of what some partitions bring: a part of it pays for a part of a change.

        Args:
            credited: share of the plan's promise that is weighed.
        """
        if plan.lost is None or self.where is None:
            return plan.lost
        whole = preview(self.snapshot, plan, full=self.full)
        return plan.lost * min(1.0, credited / (sum(self._shares(plan, whole)[0].values()) or 1.0))

    def parts(self, judged: Judgement) -> tuple[Part, ...]:
        """What the budget chooses from: each partition's part of the cost by bytes, and of the saving by its own."""
        decision, columns = judged.decision, self.snapshot.partition_columns
        sizes = {values: part.bytes for values, part in judged.preview.partitions.items()}
        credits, lasting = self._shares(judged.plan, judged.preview)
        saving = {values: each.over(self.gate.credited_days) for values, each in lasting.items()} or credits
        total, brought = max(1, sum(sizes.values())), sum(saving.values()) or 1.0
        most = max(1.0, brought)  # together they bring no more than was promised
        return tuple(
            Part(
                partition_key(columns, values),
                decision.cost_core_seconds * size / total,
                decision.saving_low * saving[values] / brought,
                credits[values],
                lasting[values].times(1 / most) if values in lasting else None,
                size,
            )
            for values, size in sizes.items()
        ) or (Part("", decision.cost_core_seconds, decision.saving_low, 0.0),)

    def _shares(self, plan: Plan, would: Preview) -> tuple[dict[Values, float], dict[Values, Lasting]]:
        """Share of the plan's promise that each partition brings, and what that comes to as queries move on."""
        pages = self.gate.page_skipping
        later = later_partitions(self.snapshot, plan, would.partitions, pages=pages)
        left = still_to_do(self.snapshot, plan)
        return self._credits(plan, would, later, left), self._lasting(plan, would, later, left)

    def _credits(self, plan: Plan, would: Preview, later: LaterPartitions, left: Left) -> dict[Values, float]:
        """What was measured of each partition, or of others where it came later; by its bytes where nothing was.

        Args:
            left: see `still_to_do`.
        """
        columns, known = self.snapshot.partition_columns, plan.saving_by_partition(pages=self.gate.page_skipping)
        if not (columns and known):
            return self._by_bytes(plan, would, left)
        credits = {}
        for values, part in would.partitions.items():
            own = known.get(partition_key(columns, values))
            rest = None if own is None else own * left.get(values, 1.0)
            credits[values] = later.credited(values, part.bytes) if rest is None else rest
        return credits

    def _lasting(self, plan: Plan, would: Preview, later: LaterPartitions, left: Left) -> dict[Values, Lasting]:
        """What these shares come to as queries move on to newer data; empty where none does."""
        columns, known = self.snapshot.partition_columns, plan.lasting_by_partition(pages=self.gate.page_skipping)
        if not known:
            return {}
        if not columns:
            shares = self._by_bytes(plan, would, left)
            return {values: known[""].times(share) for values, share in shares.items() if "" in known}
            # the table may have had partitions when it was learned
        if any(known[name].shares[0] for name in known.keys() & {""}):
            return {}  # or none
        nothing, lasting = next(iter(known.values())).times(0.0), {}
        for values, part in would.partitions.items():
            own = known.get(partition_key(columns, values))
            rest = own and own.times(left.get(values, 1.0))
            lasting[values] = rest or later.lasts(values, part.bytes) or nothing
        return lasting

    def _by_bytes(self, plan: Plan, would: Preview, left: Left) -> dict[Values, float]:
        if not plan.promises_part:
            whole = max(1, int(self.snapshot.files().bytes.sum()))
            return {values: part.bytes / whole for values, part in would.partitions.items()}
        whole = max(1, would.bytes_unrestricted)
        return {values: part.bytes / whole * left.get(values, 1.0) for values, part in would.partitions.items()}


def _in_the_size_in_use(choices: Sequence[Plan], snapshot: TableSnapshot) -> list[Plan]:
    """The choices but those that would write files of a layout again in another size.

    A plan offers its layout in several sizes of files, each with a promise against the table as it was then. Once files
    lie by that layout one of them was chosen, and is what the rest of the table gets.
    """
    files, kept = snapshot.files(), list(choices)
    for layout in {one.spec.layout_id for one in choices if one.spec is not None and one.action == ANOTHER}:
        mine = files.lies_by(layout)
        sizes = [one for one in kept if one.action == ANOTHER and one.spec and one.spec.layout_id == layout]
        if mine.any():
            here = math.log(max(1.0, float(files.rows[mine].mean())))
            nearest = min(sizes, key=lambda one: abs(math.log(one.target_file_rows) - here))
            kept = [one for one in kept if one is nearest or one not in sizes]
    return kept
