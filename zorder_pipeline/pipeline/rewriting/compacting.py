"""Compaction alone: small files become larger ones, the order of the rows and the layouts stay."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from zorder_pipeline.errors import UnsupportedTableError
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.pipeline.judging.judge import why_held
from zorder_pipeline.pipeline.judging.judgements import Rules
from zorder_pipeline.pipeline.judging.previews import result_of
from zorder_pipeline.pipeline.learning.sizes import compact_rows
from zorder_pipeline.pipeline.reading.kept_statistics import keep_statistics
from zorder_pipeline.pipeline.records import LearnSettings
from zorder_pipeline.relayout.compaction import Compaction
from zorder_pipeline.relayout.job import Safety
from zorder_pipeline.relayout.rewrite import rewrite
from zorder_pipeline.relayout.snapshot import open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["compact"]


def compact(
    spark: SparkSession,
    table: str,
    *,
    settings: LearnSettings | None = None,
    where: str | None = None,
    dry_run: bool = False,
    verify: str = "counts",
    row_group_bytes: int | None = None,
    rules: Rules | None = None,
    state: str | None = None,
    progress: Progress | None = None,
) -> ApplyResult:
    """Merge small files, and rewrite those with many deleted rows; no row gets a new place in the table's order.

    Files that lie by a layout are merged with their neighbours in it only and stay tagged, so that a relayout by the
    same plan leaves them alone.

    Args:
        settings: ``target_file_rows`` or ``target_file_bytes``; see
            `zorder_pipeline.pipeline.learning.sizes.compact_rows`.
        where, dry_run, verify, row_group_bytes: as for `apply`.
        rules: kill switch and blackout windows.
        state: folder of the state, whose file ``STOP`` stops it, before it begins or its next bin of partitions, and
            where statistics of the table's files are kept; None keeps none of the new ones.

    Raises:
        UnsupportedTableError: the table has a feature under which it may not be rewritten, or the session lacks Delta's
            own transaction.
        LostRaceError: another writer changed the files meanwhile; nothing was committed.
        VerificationError: the written rows differ; nothing was committed.
    """
    snapshot = open_table(spark, table)
    if (reason := snapshot.unsupported()) is not None:
        raise UnsupportedTableError(reason)
    settings = settings or LearnSettings()
    job = Compaction(compact_rows(snapshot, settings), not (settings.target_file_rows or settings.target_file_bytes))
    hold = partial(why_held, spark, state, rules)
    safety = Safety(verify, row_group_bytes, hold=hold, progress=progress or silent)
    done = rewrite(snapshot, job, where=where, dry_run=dry_run, safety=safety)
    if state is not None and done.committed:
        keep_statistics(snapshot, None, state, progress)
    if not done.files_removed and not done.held:
        why = f"no two files of less than half of {job.target_rows:,} rows could be merged, and none has many deleted"
        if not snapshot.files().rows.any():
            why = "the table is empty"
        return ApplyResult(done.version, "nothing_to_do", (why,), skipped_files=done.skipped_files, dry_run=dry_run)
    if dry_run and (stopped := hold()):
        skipped = done.skipped_files + done.files_removed
        return ApplyResult(done.version, "postponed", (stopped,), skipped_files=skipped, dry_run=True)
    told = f"{done.files_removed:,} small files, or with deleted rows, become {done.files_added:,}"
    reasons = tuple(filter(None, (done.held, told if done.files_removed else "")))
    return replace(result_of(done, "applied" if done.files_removed else "postponed", reasons), dry_run=dry_run)
