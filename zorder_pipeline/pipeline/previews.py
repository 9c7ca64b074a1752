"""What a plan would rewrite of a table as it lies."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.plan import COMPACTION, FULL, Plan
from zorder_pipeline.relayout.compaction import Compaction
from zorder_pipeline.relayout.select import select_files
from zorder_pipeline.relayout.snapshot import TableSnapshot

from .records import Preview

__all__ = ["preview"]


def preview(snapshot: TableSnapshot, plan: Plan, *, where: str | None = None, full: bool = False) -> Preview:
    """What ``plan`` would rewrite; nothing when it says that the table stays as it is.

    Args:
        where, full: see `zorder_pipeline.pipeline.apply`.
    """
    files, target = snapshot.files(), plan.target_file_rows
    if plan.spec is None and plan.action != COMPACTION:
        return Preview(snapshot.version, skipped_files=len(files))

    def chosen_by(condition: str | None) -> npt.NDArray[np.int64]:
        if plan.spec is None:
            return Compaction(target).select(snapshot, condition)
        everything = full or plan.action == FULL
        return select_files(snapshot, plan.spec.layout_id, target, where=condition, full=everything).rewrite

    chosen = chosen_by(where)
    whole = chosen if where is None else chosen_by(None)
    sizes: dict[tuple[str | None, ...], int] = {}
    rows: dict[tuple[str | None, ...], int] = {}
    for i in chosen:
        sizes[files.partitions[i]] = sizes.get(files.partitions[i], 0) + int(files.bytes[i])
        rows[files.partitions[i]] = rows.get(files.partitions[i], 0) + int(files.rows[i])
    return Preview(
        version=snapshot.version,
        files_removed=len(chosen),
        files_added=sum(max(1, round(count / target)) for count in rows.values() if count),
        bytes_rewritten=sum(sizes.values()),
        rows=sum(rows.values()),
        skipped_files=len(files) - len(chosen),
        bytes_unrestricted=int(files.bytes[whole].sum()),
        partition_bytes=sizes,
    )
