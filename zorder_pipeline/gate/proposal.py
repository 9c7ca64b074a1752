"""What could be done with a table, partition by partition, and which partitions of it pay for their own rewrite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from zorder_pipeline.model.candidate import ANOTHER
from zorder_pipeline.model.lasting import Lasting
from zorder_pipeline.model.plan import Plan

from .cost import GIGABYTE, CostModel, RelayoutWork

__all__ = ["PartitionWork", "Proposal", "narrowed"]

LITTLE = 1e-12


@dataclass(frozen=True)
class PartitionWork:
    """What a proposal does to one partition.

    Attributes:
        key: see `zorder_pipeline.model.partition_key`.
        credited: share of the promised saving that this partition brings, 0 to 1.
        bytes: of the files that are replaced.
        files: read and written.
        new_bytes: of those among them that do not lie by the layout that the table has.
        made: files that it would make.
        lasting: what that share comes to as queries move on to newer data; None where none does.
        measured: whether the plan knows the partition; one that came after it is credited as others were measured.
    """

    key: str
    credited: float
    bytes: float
    files: int = 0
    new_bytes: float = 0.0
    made: int = 0
    lasting: Lasting | None = None
    measured: bool = True

    def credited_over(self, days: float) -> float:
        """The share that it brings on average of so many days."""
        return self.credited if self.lasting is None else self.lasting.over(days)


@dataclass(frozen=True)
class Proposal:
    """Something that could be done, and what doing it means for the table as it lies.

    Attributes:
        plan: the plan with this candidate as its choice.
        work: what its cost follows from.
        table_bytes: of the whole table; where it was `narrowed`, without what is new in the partitions left out.
        new_bytes: of the files that do not lie by the layout it has.
        credited: share of the promised saving that this work brings, 0 to 1.
        lost: core-seconds that queries have cost more than they would have under this layout, since the table lies by
            its present one; None when it lies by none.
        patience: the present layout must have lost so many times what the change costs.
        why_not: what else speaks against it; "" for nothing.
        made: files that it would make; 0 when that is not known.
        in_force: id of the layout of ours that the table lies by now; "" without one.
        partitions: the same partition by partition, where it is known which of them bring the saving.
        left_out: how many partitions the work was `narrowed` by.
        lasting: what is ``credited`` comes to as queries move on to newer data; None where none does.
    """

    plan: Plan
    work: RelayoutWork
    table_bytes: float
    new_bytes: float = 0.0
    credited: float = 1.0
    lost: float | None = None
    patience: float = 1.0
    why_not: str = ""
    made: int = 0
    in_force: str = ""
    partitions: tuple[PartitionWork, ...] = ()
    left_out: int = 0
    lasting: Lasting | None = None

    def credited_over(self, days: float) -> float:
        """Share of the promised saving that this work brings on average of so many days, 0 to 1."""
        return self.credited if self.lasting is None else min(1.0, self.lasting.over(days))

    @property
    def unmeasured(self) -> tuple[PartitionWork, ...]:
        """The partitions that the plan does not know."""
        return tuple(one for one in self.partitions if not one.measured)

    @property
    def action(self) -> str:
        """What would be done, in one or two words."""
        return self.plan.effective_action

    @property
    def changes_layout(self) -> bool:
        """Whether the table lies by a layout of ours and would get another one."""
        spec = self.plan.spec
        return bool(self.in_force) and self.action == ANOTHER and spec is not None and spec.layout_id != self.in_force


def narrowed(proposal: Proposal, saving: float, days: float, costs: CostModel) -> Proposal:
    """The proposal without the partitions that do not pay for their own rewrite; as it is when none does, or all do.

    What a job costs however little it rewrites is no partition's own: the gate holds it against all of them together.

    Args:
        saving: core-seconds that all of the promise saves at least within the horizon, if its queries go on as logged.
        days: the horizon.

    >>> hot, cold = PartitionWork("d=2", 1.0, 1e9, made=1), PartitionWork("d=1", 0.0, 9e9, made=9)
    >>> whole = Proposal(Plan("t", "id", "", 0, None, "learned", 1), RelayoutWork(1e10), 1e10, partitions=(cold, hot))
    >>> part = narrowed(whole, 1e3, 30.0, CostModel())
    >>> part.plan.partitions, part.work.bytes, part.credited, part.made, part.left_out
    (('d=2',), 1000000000.0, 1.0, 1, 1)
    """
    table, work = proposal.plan.table_id, proposal.work
    job, per_byte, per_file = (
        costs.relayout(replace(work, bytes=size, files=files), table).expected
        for size, files in ((0.0, 0), (GIGABYTE, 0), (0.0, 1))
    )
    per_byte, per_file = (per_byte - job) / GIGABYTE, per_file - job
    own, left, pay = proposal.partitions, 1.0, set[str]()
    for one, cost in sorted(
        ((one, one.bytes * per_byte + one.files * per_file) for one in own),
        key=lambda pair: pair[1] / max(pair[0].credited_over(days), LITTLE),
    ):  # the cheapest for what it brings first: together they bring no more than was promised
        brought = min(left, one.credited_over(days)) if one.lasting is not None else one.credited
        if saving * brought > cost:
            pay.add(one.key)
            left -= brought
    paying = [one for one in own if one.key in pay]
    return _only(proposal, paying) if 0 < len(paying) < len(own) else proposal


def _only(proposal: Proposal, chosen: Sequence[PartitionWork]) -> Proposal:
    """The proposal for some of its partitions."""
    credited = min(1.0, sum(one.credited for one in chosen))
    size, files = sum(one.bytes for one in chosen), sum(one.files for one in chosen)
    new_bytes = sum(one.new_bytes for one in chosen)
    part = credited / proposal.credited if proposal.credited else 0.0
    lasting = [one.lasting for one in chosen if one.lasting is not None]
    return replace(
        proposal,
        plan=replace(proposal.plan, partitions=tuple(sorted(one.key for one in chosen))),
        work=replace(proposal.work, bytes=size, files=files),
        table_bytes=proposal.table_bytes - (proposal.new_bytes - new_bytes),
        new_bytes=new_bytes,
        credited=credited,
        lost=None if proposal.lost is None else proposal.lost * part,
        made=sum(one.made for one in chosen),
        partitions=tuple(chosen),
        left_out=len(proposal.partitions) - len(chosen),
        lasting=Lasting.together(lasting) if lasting else None,
    )
