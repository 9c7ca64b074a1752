"""What a plan makes of a table: the job that does it, what that would rewrite, and what it did."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from zorder_pipeline.layout.cells import Cuts, cell_sizes, cut_cells
from zorder_pipeline.layout.extend import extended
from zorder_pipeline.layout.interleave import hilbert_table
from zorder_pipeline.model.candidate import COMPACTION, FULL
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.partition_key import partition_key
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.pipeline.records import PartitionPreview, Preview
from zorder_pipeline.relayout.clustering import Clustering
from zorder_pipeline.relayout.compaction import Compaction
from zorder_pipeline.relayout.job import RelayoutResult
from zorder_pipeline.relayout.routing import Cutter
from zorder_pipeline.relayout.snapshot import TableSnapshot

__all__ = ["cutter_of", "job_of", "preview", "result_of"]


def job_of(plan: Plan, full: bool = False) -> Clustering | Compaction:
    """What carries out a plan that has a layout, or merges files.

    Args:
        full: rewrite files that already lie by the layout, too. A plan of which that is the action has done it with
            those that were written since it was learned: a run that goes on, or a second one, leaves them.
    """
    target = plan.target_file_rows
    if plan.spec is None:
        return Compaction(target)
    table = hilbert_table(plan.spec) if plan.spec.curve == "hilbert" else None
    all_files, done = full or plan.action == FULL, None if full else plan.delta_version
    return Clustering(plan.spec, cutter_of(plan.spec, target), target, extended, table, all_files, done)


def cutter_of(spec: KeySpec, target: int) -> Cutter:
    """Cuts keys of a layout into files of about ``target`` rows, or of as many times that as it says."""

    def cut(cells: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> Cuts:
        return cut_cells(cells, counts, target, sizes=cell_sizes(spec, cells))

    return cut


def preview(snapshot: TableSnapshot, plan: Plan, *, where: str | None = None, full: bool = False) -> Preview:
    """What ``plan`` would rewrite; nothing when it says that the table stays as it is.

    Args:
        where, full: see `zorder_pipeline.pipeline.apply`.
    """
    files, target = snapshot.files(), plan.target_file_rows
    if plan.spec is None and plan.action != COMPACTION:
        return Preview(snapshot.version, skipped_files=len(files))
    job = job_of(plan, full)
    chosen = job.select(snapshot, where)
    whole = chosen if where is None else job.select(snapshot, None)
    if plan.partitions:
        columns, wanted = snapshot.partition_columns, set(plan.partitions)
        codes = np.unique(files.partition_codes[chosen], return_index=True)
        named = {int(code): files.partitions[chosen[i]] for code, i in zip(*codes, strict=True)}
        here = [code for code, values in named.items() if partition_key(columns, values) in wanted]
        chosen = chosen[np.isin(files.partition_codes[chosen], here)]
    counts: dict[tuple[str | None, ...], int] = {}
    sizes: dict[tuple[str | None, ...], int] = {}
    rows: dict[tuple[str | None, ...], int] = {}
    for i in chosen:
        values = files.partitions[i]
        counts[values] = counts.get(values, 0) + 1
        sizes[values] = sizes.get(values, 0) + int(files.bytes[i])
        rows[values] = rows.get(values, 0) + int(files.rows[i])
    parts = {
        values: PartitionPreview(counts[values], max(1, round(rows[values] / target)) if rows[values] else 0, size)
        for values, size in sizes.items()
    }
    return Preview(
        version=snapshot.version,
        files_removed=len(chosen),
        files_added=sum(part.files_added for part in parts.values()),
        bytes_rewritten=sum(sizes.values()),
        rows=sum(rows.values()),
        skipped_files=len(files) - len(chosen),
        bytes_unrestricted=int(files.bytes[whole].sum()),
        partitions=parts,
    )


def result_of(done: RelayoutResult, decision: str, reasons: tuple[str, ...]) -> ApplyResult:
    """What a rewrite did (or, in a dry run, would do), as commands report it."""
    return ApplyResult(
        version=done.version,
        decision=decision,
        reasons=reasons,
        files_removed=done.files_removed,
        files_added=done.files_added,
        bytes_rewritten=done.bytes_rewritten,
        rows=done.rows,
        skipped_files=done.skipped_files,
        seconds=done.seconds,
    )
