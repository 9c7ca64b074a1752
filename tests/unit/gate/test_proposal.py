"""Which partitions pay for their own rewrite, and what is left of a proposal for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from zorder_pipeline.gate.cost import CostModel, RelayoutWork
from zorder_pipeline.gate.proposal import PartitionWork, Proposal, narrowed
from zorder_pipeline.model.lasting import Lasting
from zorder_pipeline.model.plan import Plan

PER_GIGABYTE = CostModel(base=1.0, per_feature=0.0, per_job=5.0, per_written_file=0.0)


def of(*parts: PartitionWork, **others: float | None) -> Proposal:
    work = RelayoutWork(sum(part.bytes for part in parts))
    plan = Plan("t", "id", "hash", 0, None, "learned", 1000)
    told = {"table_bytes": 2 * work.bytes, "new_bytes": sum(part.new_bytes for part in parts), **others}
    return Proposal(plan, work, partitions=parts, **told)  # type: ignore[arg-type]


def test_what_brings_all_of_the_promise_for_less_leaves_nothing_to_what_brings_half_of_it() -> None:
    """Half of the promise for 3 is dearer than all of it for 4, though it takes less."""
    stays = Lasting((0.0,), (1.0,))
    whole, half = (
        PartitionWork("d=1", 1.0, 4e9, lasting=stays),
        PartitionWork("d=2", 0.5, 3e9, lasting=stays.times(0.5)),
    )
    for parts in ((whole, half), (half, whole)):
        assert narrowed(of(*parts), 10.0, 30.0, PER_GIGABYTE).plan.partitions == ("d=1",)


def test_what_a_partition_pays_for_is_its_own_and_not_the_job() -> None:
    """A job of 5 for partitions of 1: together they have to pay for it, which the gate asks next."""
    parts = [PartitionWork(f"d={i}", 0.5 - 0.1 * i, 1e9) for i in range(5)]
    assert narrowed(of(*parts), 3.5, 30.0, PER_GIGABYTE).plan.partitions == ("d=0", "d=1", "d=2")


@pytest.mark.parametrize(("credited", "lost"), [(1.0, 20.0), (0.5, 40.0), (0.0, 0.0)])
def test_of_what_was_lost_the_part_counts_that_is_brought_of_what_was_to_be_had(credited: float, lost: float) -> None:
    """Nothing is to be had of partitions that queries ask for from tomorrow on alone: nothing was lost by them."""
    later = Lasting((0.0, 1.0), (0.0, 1.0)) if not credited else None
    hot = PartitionWork("d=1", 0.2 if credited else 0.0, 1e9, lasting=later)
    cold = PartitionWork("d=2", 0.0, 1e9, lasting=later and later.times(0.0))
    found = narrowed(of(hot, cold, credited=credited, lost=100.0), 100.0, 30.0, PER_GIGABYTE)
    assert (found.plan.partitions, found.left_out) == (("d=1",), 1)
    assert found.lost == pytest.approx(lost)
    assert narrowed(replace(of(hot, cold), lost=None), 100.0, 30.0, PER_GIGABYTE).lost is None


def test_new_data_of_partitions_that_are_left_out_is_none_of_the_table() -> None:
    hot, cold = PartitionWork("d=1", 1.0, 1e9, new_bytes=3e8), PartitionWork("d=2", 0.0, 4e9, new_bytes=4e9)
    found = narrowed(of(hot, cold), 100.0, 30.0, PER_GIGABYTE)
    assert (found.new_bytes, found.table_bytes) == (3e8, 1e10 - 4e9)
