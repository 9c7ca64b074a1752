"""What could be done with a table tonight, each with its own promise on queries that chose nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from zorder_pipeline.gate.benefit import promise
from zorder_pipeline.layout.promise import in_proportion, unsampled, whole_table_shares
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.candidate import ANOTHER, COMPACTION, FULL, INCREMENTAL, Candidate
from zorder_pipeline.model.plan import KEPT, Plan, Promise
from zorder_pipeline.model.ranges import Boxes
from zorder_pipeline.pipeline.records import LearnSettings, TableAnalysis

from .apportioning import Apportioning
from .confirming import Shares, merged_shares
from .drifting import block_of
from .keeping import compacted_files, merged_files
from .memory import Memory, Rival, since_then
from .sizes import compact_rows, other_targets, partitions_of, query_bytes, target_rows
from .volumes import FileVolumes, read_volumes

__all__ = ["Unseen", "candidates_at_first", "candidates_of"]

Floats = npt.NDArray[np.float64]
Blocks = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Unseen:
    """The queries that chose nothing, and what they are measured by.

    Attributes:
        unseen: which they are.
        boxes: of each of their statements.
        before: share of the rows that each statement of theirs reads now, shape (statements,): told by the sample, of
            many small files by their own statistics.
        rate: queries per day, and how that is known.
        now: what each reads now in bytes and files; None when there are none.
        exact: shares that each reads now and by the learned layout, told by all rows of the table, by the rows of a
            file; not of sizes of which only the sample tells them.
    """

    analysis: TableAnalysis
    settings: LearnSettings
    unseen: Asked
    boxes: Sequence[Boxes]
    before: Floats
    rate: tuple[float, str]
    now: FileVolumes | None = None
    exact: Mapping[int, Shares] = field(default_factory=dict)

    def promise(
        self,
        plan: Plan,
        after: Floats,
        kept: Blocks | None = None,
        before: Floats | None = None,
        left: Floats | None = None,
    ) -> Promise:
        """What ``plan`` promises.

        Args:
            after: share of the rows that each query reads afterwards.
            kept: file of each sampled row afterwards, when most files stay as they are.
            before: share of the rows that each reads now, where more than the sample tells it.
            left: what readers through ``reading/`` read of what others do afterwards, 0 to 1, where that is known.
        """
        analysis, settings = self.analysis, self.settings
        chosen, before = self.unseen.statements.tolist(), self.before if before is None else before
        volumes = read_volumes(analysis, plan, chosen, after, kept, settings.row_group_bytes, self.now, before)
        if volumes is not None and left is not None:
            volumes = replace(volumes, enriched_bytes=volumes.bytes_after * left)
        return promise(before, after, self._whole, self.rate, settings.seed, volumes, self.unseen)

    def shares(self, block: Blocks, erring: float = 1.0, before: Floats | None = None) -> Floats:
        """Share of the rows that each query reads when the sampled rows lie in these files.

        Of one that asks beyond the sample it is what it reads now.

        Args:
            erring: by what factor the sample tells too little.
            before: see `promise`.
        """
        told = whole_table_shares(self._estimator, block, int(block.max()) + 1, self.analysis.sample.stands_for)
        now = self.before if before is None else before
        return np.where(self._unsampled, now, np.minimum(1.0, told * erring))

    def shares_in_proportion(self, block: Blocks) -> Floats:
        """`shares` in proportion to `before`, where that is known better than by the sample."""
        here = self.shares(self.analysis.sample.file)
        return np.minimum(1.0, in_proportion(self.before, here, self.shares(block)))

    def shared_out(self, candidate: Candidate, block: Blocks) -> Candidate:
        """The candidate with the share of its saving by partition and by day, see `Apportioning`."""
        return self._apportioning.shared_out(candidate, block) if len(self.unseen.statements) else candidate

    @cached_property
    def _apportioning(self) -> Apportioning:
        return Apportioning(self.analysis, self.unseen, self.boxes, self.now.indexed if self.now is not None else None)

    @cached_property
    def _estimator(self) -> Estimator:
        sample = self.analysis.sample
        return Estimator.build(sample.arrays, self.analysis.snapshot.schema, self.boxes, sample.rows)

    @cached_property
    def _unsampled(self) -> npt.NDArray[np.bool_]:
        sample = self.analysis.sample
        return unsampled(self._estimator, partitions_of(sample, self.analysis.snapshot.partition_columns))

    @cached_property
    def _whole(self) -> Floats:
        return query_bytes(self.analysis.snapshot, self.unseen.each(self.analysis.queries))


def candidates_at_first(proof: Unseen, plan: Plan) -> tuple[Candidate, ...]:
    """What could be done with a table that lies by no layout of ours: the learned one, or merging small files.

    The layout in files of about the present size comes first: that is what is done where the gate does not choose.
    Empty when there is only ``plan``, and nothing is known of it partition by partition or day by day.
    """
    learned, merged = _learned(proof, plan), _compaction(proof, plan)
    present = target_rows(proof.analysis.snapshot, proof.settings)
    learned.sort(key=lambda one: one.target_file_rows != present)
    if merged is None and len(learned) < 2 and not any(one.partitions or one.lasting for one in learned):
        return ()  # the plan alone
    return (*learned, merged) if merged is not None else tuple(learned)


def candidates_of(
    proof: Unseen, plan: Plan, standing: Floats, kept: Blocks | None, present: Plan, memory: Memory
) -> tuple[Candidate, ...]:
    """What could be done with a table that lies by a layout of ours.

    Args:
        plan: tonight's plan, kept or learned.
        standing: share of the rows that each unseen query reads once what is new is laid out by the present layout.
        kept: file of each sampled row then; None when nothing is new.
        memory: the layouts that were learned before, and what was lost against them.
    """
    assert present.spec is not None
    analysis, here, found = proof.analysis, present.spec.layout_id, []
    if kept is not None:
        candidate = Candidate(INCREMENTAL, present.spec, present.target_file_rows, plan.promise)
        candidate = proof.shared_out(candidate, kept)
        if plan.origin != KEPT:
            candidate = replace(candidate, promise=proof.promise(plan.choosing(candidate), standing, kept))
        found.append(candidate)
    if plan.spec is not None and plan.spec.layout_id != here:
        found += _learned(proof, plan)
    others = []
    files = analysis.snapshot.files()
    runs = {g for g, layout in zip(files.generation.tolist(), files.layout, strict=True) if layout == here}
    if len(runs) > 1 and all(name in analysis.sample.columns for name in present.spec.columns):
        others.append((FULL, Rival(present.spec, present.target_file_rows)))
    offered = {c.spec.layout_id for c in found if c.spec is not None}
    others += [(ANOTHER, rival) for name, rival in _missed(memory, present).items() if name not in offered]
    for action, rival in others:
        block = block_of(analysis, rival)
        candidate = proof.shared_out(Candidate(action, rival.spec, rival.target_file_rows, Promise()), block)
        after = proof.shares_in_proportion(block) if action == FULL else proof.shares(block)  # others may be proved
        found.append(replace(candidate, promise=proof.promise(plan.choosing(candidate), after)))
    merged = _compaction(proof, plan)
    return (*found, merged) if merged is not None else tuple(found)


def _learned(proof: Unseen, plan: Plan) -> list[Candidate]:
    """The layout that was learned tonight, and the same in files of other sizes (`other_targets`); none without one.

    Where all rows of the table told what the first one reads, but not what another does, that is told by the sample,
    times what it errs by.
    """
    if plan.spec is None:
        return []
    found, erring, known = [], 1.0, None
    sizes = other_targets(proof.analysis.snapshot, proof.settings, plan.target_file_rows)
    for target in (plan.target_file_rows, *(sizes if len(proof.unseen.statements) else ())):
        block = block_of(proof.analysis, Rival(plan.spec, target))
        candidate = proof.shared_out(Candidate(ANOTHER, plan.spec, target, plan.promise), block)
        exact = proof.exact.get(target)
        if target != plan.target_file_rows:
            before, after = exact or (known, proof.shares(block, erring, known))
            candidate = replace(candidate, promise=proof.promise(plan.choosing(candidate), after, before=before))
        elif sizes and exact is not None:
            (known, told), times = exact, proof.unseen.times
            erring = float(times @ told) / max(float(times @ proof.shares(block)), 1e-12)
        found.append(candidate)
    return found


def _compaction(proof: Unseen, plan: Plan) -> Candidate | None:
    """Merging small files: fewer to open, though no fewer rows to read; None when there are none."""
    target = compact_rows(proof.analysis.snapshot, proof.settings)
    became = merged_files(proof.analysis.snapshot, target)
    if became is None or not len(proof.unseen.statements):
        return None
    block = compacted_files(proof.analysis, became)
    alone = proof.shared_out(Candidate(COMPACTION, None, target, Promise()), block)
    before, after = merged_shares(proof.analysis.snapshot, became, proof.boxes)
    return replace(alone, promise=proof.promise(plan.choosing(alone), after, block, before))


def _missed(memory: Memory, present: Plan) -> dict[str, Rival]:
    """The remembered layouts that most was lost against since the present one is in force, by their ids.

    The first one, and the one to which the table would go with less patience (see `Drift`); none when nothing was lost.
    """
    drift = since_then(memory, present)[0]
    regret = drift.real.regret
    lost = [name for name in memory.rivals if regret.get(name, 0.0) > 0]
    if not lost:
        return {}
    first, ripest = max(lost, key=regret.__getitem__), max(lost, key=lambda n: regret[n] / drift.patience_for(n))
    return {name: memory.rivals[name] for name in (first, ripest)}
