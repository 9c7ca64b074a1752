"""From night to night: has the workload moved, has the schema, and what has the present layout lost by it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from zorder_pipeline.errors import PlanError
from zorder_pipeline.gate.cost import CostModel, RelayoutWork, ScanWork
from zorder_pipeline.gate.drift import remembered, schema_changes
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.values import DAY
from zorder_pipeline.pipeline.records import TableAnalysis

from .keeping import sample_files
from .memory import Memory, Rival, since_then
from .new_queries import later_one, learned_until, new_queries
from .sizes import query_bytes

__all__ = ["block_of", "fits", "missed", "most_lost", "nothing_lost", "noticed", "still_fitting", "with_regret"]

HALF_LIFE_DAYS = 30.0
"""Age at which regret counts half."""
REMEMBERED = 6
"""Rivals remembered besides the layouts in force."""

Floats = npt.NDArray[np.float64]


def noticed(analysis: TableAnalysis, memory: Memory, present: Plan | None) -> tuple[str, ...]:
    """Sentences about what changed of the schema since the last night, and what that means for the present layout."""
    columns = {column.name: column.type for column in analysis.snapshot.schema.columns}
    found = schema_changes(memory.columns, columns, memory.former)
    if present is not None:
        try:
            present.refuse_unless_fits(analysis.snapshot.table_id, analysis.snapshot.schema)
        except PlanError as error:
            found = (*found, f"the present layout is given up: {str(error).partition(';')[0]}")
    return found


def fits(analysis: TableAnalysis, plan: Plan) -> bool:
    """Whether the table can still be laid out by a plan."""
    try:
        plan.refuse_unless_fits(analysis.snapshot.table_id, analysis.snapshot.schema)
    except PlanError:
        return False
    return True


def still_fitting(analysis: TableAnalysis, memory: Memory) -> Memory:
    """What is remembered, without layouts of which the sample lacks a column as the type they were learned for."""
    types = {column.name: column.type for column in analysis.snapshot.schema.columns if not column.partition}
    known = analysis.sample.columns

    def usable(spec: KeySpec) -> bool:
        return all((f.expression or types.get(f.column) == f.type) and f.column in known for f in spec.features)

    return replace(memory, rivals={name: rival for name, rival in memory.rivals.items() if usable(rival.spec)})


def missed(
    analysis: TableAnalysis,
    memory: Memory,
    present: Plan,
    standing: npt.NDArray[np.int32],
    learned: Plan,
    unseen: Sequence[int],
    costs: CostModel,
) -> Memory:
    """What the present layout has lost with the queries that came in since the last night.

    Args:
        memory: what is remembered, of layouts that still fit (`still_fitting`).
        present: the plan that the table lies by.
        standing: file of each sampled row as the table lies, or as it will once what is new is laid out by it.
        learned: tonight's plan, whose layout takes part with the ``unseen`` queries alone.
        unseen: indices of the queries that it promises by.
        costs: what scans and relayouts cost.
    """
    assert present.spec is not None
    here = present.spec.layout_id
    drift, since = since_then(memory, present)
    new = new_queries(analysis, memory, present)
    rivals = {name: rival for name, rival in memory.rivals.items() if name != here}
    fresh = learned.spec.layout_id if learned.spec is not None and learned.spec.layout_id != here else ""
    if fresh in rivals:
        fresh = ""
    candidate = Rival(learned.spec, learned.target_file_rows) if fresh and learned.spec is not None else None
    asked = [*new, *(i for i in unseen if candidate is not None)]
    spent = _Spending(analysis, asked, costs)
    read = {here: spent.of(standing, range(len(new)))}
    read |= {name: spent.of(block_of(analysis, rival), range(len(new))) for name, rival in rivals.items()}
    prices = {name: _price(analysis, len(rival.spec.columns), costs) for name, rival in rivals.items()}
    prices[here] = _price(analysis, len(present.spec.columns), costs)  # of courses on paper that have left it
    came = set(new)
    tested = [len(new) + place for place, i in enumerate(unseen) if i in came] if candidate is not None else []
    part: dict[str, dict[str, float]] = {}
    if candidate is not None:
        prices[fresh] = _price(analysis, len(candidate.spec.columns), costs)
        scale = len(new) / len(tested) if tested else 0.0
        blocks = {here: standing, fresh: block_of(analysis, candidate)}
        blocks |= {name: block_of(analysis, rivals[name]) for name in drift.in_use if name in rivals}
        part[fresh] = {name: spent.of(block, tested) * scale for name, block in blocks.items()}
        rivals[fresh] = candidate
    times = [query.timestamp for query in analysis.queries if query.timestamp is not None]
    newest = max(times, default=None)
    days = (newest - since) / DAY if newest is not None and since is not None else 0.0
    drift = drift.after(read, prices, part, 0.5 ** (max(0.0, days) / HALF_LIFE_DAYS))
    rivals[here] = Rival(present.spec, present.target_file_rows)  # a rival itself, once the table has gone over
    kept = remembered(drift, list(rivals), [fresh] if fresh else [], REMEMBERED)
    return Memory(
        drift=drift,
        rivals={name: rivals[name] for name in kept if name in rivals},
        watermark=later_one(since, newest),
        counted=len(analysis.queries),
        columns={column.name: column.type for column in analysis.snapshot.schema.columns},
        former=memory.former,
        batch=_newest_batch(analysis, memory),
        learned_until=learned_until(memory, present),
    )


def nothing_lost(analysis: TableAnalysis, memory: Memory) -> Memory:
    """What is remembered of a table that lies by no layout of ours: a first one is learned from all of its queries.

    So those count no more once it is in force. Where they have times its plan says until which moment, and nothing of
    it is noted, which would be another note each night.
    """
    memory = replace(memory, drift=None, rivals={})
    if any(query.timestamp is not None for query in analysis.queries):
        return memory
    return replace(memory, counted=len(analysis.queries), batch=_newest_batch(analysis, memory))


def _newest_batch(analysis: TableAnalysis, memory: Memory) -> int | None:
    """Newest ingestion that brought queries."""
    return max((query.batch for query in analysis.queries if query.batch is not None), default=memory.batch)


def most_lost(
    analysis: TableAnalysis, memory: Memory, present: Plan, standing: npt.NDArray[np.int32], costs: CostModel
) -> float:
    """What the present layout can have lost at most, against any other.

    Against a layout that was never learned that is all that the new queries cost, as if it read nothing; against one
    that is remembered, what was lost before comes to it. Nothing is counted: what is not looked at tonight counts on a
    later night.

    Args:
        standing: see `missed`.
    """
    drift = since_then(memory, present)[0]
    new = new_queries(analysis, memory, present)
    return max(drift.real.regret.values(), default=0.0) + _Spending(analysis, new, costs).of(standing, range(len(new)))


def block_of(analysis: TableAnalysis, rival: Rival) -> npt.NDArray[np.int32]:
    """File of each sampled row if all of the table lay by a layout, shape (rows,)."""
    return sample_files(analysis, rival.spec, rival.target_file_rows).astype(np.int32)


class _Spending:
    """What some queries cost in core-seconds, by the file of each sampled row."""

    def __init__(self, analysis: TableAnalysis, chosen: Sequence[int], costs: CostModel) -> None:
        snapshot, sample = analysis.snapshot, analysis.sample
        boxes = [analysis.boxes[i] for i in chosen]
        asked = Asked.alike(boxes)
        self.which = asked.which
        self.estimator = Estimator.build(sample.arrays, snapshot.schema, asked.each(boxes), sample.rows)
        self.bytes = query_bytes(snapshot, [analysis.queries[i] for i in chosen])
        self.costs, self.table, self.rows = costs, snapshot.table_id, max(1, sample.rows)

    def of(self, block: npt.NDArray[np.int32], places: Sequence[int] | range) -> float:
        """What the queries at ``places`` cost."""
        some = np.asarray(list(places), dtype=np.int64)
        if not len(some):
            return 0.0
        shares: Floats = self.estimator.rows_read(block, int(block.max()) + 1) / self.rows
        read = float(shares[self.which[some]] @ self.bytes[some])
        return self.costs.scans(ScanWork(read), self.table).expected


def _price(analysis: TableAnalysis, columns: int, costs: CostModel) -> float:
    size = float(analysis.snapshot.files().bytes.sum())
    work = RelayoutWork(size, columns, files=2 * len(analysis.snapshot.files()))
    return costs.relayout(work, analysis.snapshot.table_id).expected


def with_regret(plan: Plan, memory: Memory, present: Plan) -> Plan:
    """The plan with what was lost against each of its other layouts."""
    assert present.spec is not None
    drift, here = since_then(memory, present)[0], present.spec.layout_id

    def lost(spec: KeySpec | None) -> float | None:
        return drift.real.regret.get(spec.layout_id, 0.0) if spec is not None and spec.layout_id != here else None

    def patience(spec: KeySpec | None) -> float:
        return drift.patience_for(spec.layout_id) if spec is not None else drift.real.patience

    candidates = tuple(replace(c, lost=lost(c.spec), patience=patience(c.spec)) for c in plan.candidates)
    return replace(plan, candidates=candidates, lost=lost(plan.spec), patience=patience(plan.spec))
