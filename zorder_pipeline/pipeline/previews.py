"""What a plan would rewrite of a table as it lies."""

from __future__ import annotations

from zorder_pipeline.model.plan import FULL, Plan
from zorder_pipeline.relayout.select import select_files
from zorder_pipeline.relayout.snapshot import TableSnapshot

from .records import Preview

__all__ = ["preview"]


def preview(snapshot: TableSnapshot, plan: Plan, *, where: str | None = None, full: bool = False) -> Preview:
    """What ``plan`` would rewrite; nothing when it says that the table stays as it is.

    Args:
        where, full: see `zorder_pipeline.pipeline.apply`.
    """
    files, everything = snapshot.files(), full or plan.action == FULL
    if plan.spec is None:
        return Preview(snapshot.version, skipped_files=len(files))
    layout, target = plan.spec.layout_id, plan.target_file_rows
    chosen = select_files(snapshot, layout, target, where=where, full=everything).rewrite
    whole = chosen if where is None else select_files(snapshot, layout, target, full=everything).rewrite
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
