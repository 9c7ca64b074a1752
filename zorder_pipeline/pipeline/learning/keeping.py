"""Where sampled rows come to lie: by a layout that all of the table is given, or that only what is new is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from zorder_pipeline.errors import PlanError
from zorder_pipeline.layout.extend import extended
from zorder_pipeline.layout.interleave import keys
from zorder_pipeline.layout.placement import files_after, files_under
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.places import real_path
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.pipeline.records import TableAnalysis
from zorder_pipeline.relayout.compaction import groups_of
from zorder_pipeline.relayout.select import select_files
from zorder_pipeline.relayout.snapshot import TableSnapshot
from zorder_pipeline.relayout.unrecorded import record_late
from zorder_pipeline.state.ledger import Ledger

from .sizes import partitions_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["compacted_files", "kept_files", "layout_of", "merged_files", "present_plan", "sample_files", "sample_keys"]
__all__ += ["sampled_files"]

MOST = 0.5
"""Share of a partition's rows that must lie by a layout for it to be the partition's."""


def layout_of(snapshot: TableSnapshot) -> str:
    """Id of the layout that the table lies by, or the newest of those that partitions of it lie by; "" without one.

    Most of the rows lie by it, of the table or of a partition: the partitions that nobody asks for stay as they were
    written, and those that are asked for have a layout all the same.
    """
    return next(iter(_layouts(snapshot)), "")


def present_plan(
    spark: SparkSession,
    snapshot: TableSnapshot,
    state: str,
    schema: TableSchema | None = None,
    progress: Progress = silent,
) -> Plan | None:
    """The plan that the table lies by (`layout_of`), from the state; None when it knows of no such plan.

    A relayout whose process was killed before it could be recorded is recorded first.

    Args:
        schema: the table's, with the names that its columns had before; by default those that its history tells.
        progress: is told of a relayout that is recorded late, and of a layout of which the state knows nothing.
    """
    record_late(snapshot, state, progress)
    ledger = Ledger(spark, state)
    layouts = _layouts(snapshot)
    plans = (ledger.latest(snapshot.table_id, layout) for layout in layouts)
    found = next((plan for plan in plans if plan is not None), None)
    if layouts and found is None:
        progress(
            f"{snapshot.location} lies by layout {layouts[0]}, of which {state} knows nothing: if another state or "
            "configuration lays it out, too, leave the table to one of them"
        )
    return found.as_called(schema or snapshot.asked_schema) if found is not None else None


def _layouts(snapshot: TableSnapshot) -> list[str]:
    """Layouts that most rows of a partition lie by, the newest first."""
    files = snapshot.files()
    part = files.partition_codes
    size = int(part.max(initial=-1)) + 1
    rows = np.bincount(part, weights=files.rows, minlength=size)
    newest: dict[str, int] = {}
    for layout in set(files.layout) - {""}:
        mine = files.lies_by(layout)
        here = np.bincount(part[mine], weights=files.rows[mine], minlength=size)
        its = mine & ((here > 0) & (here >= MOST * rows))[part]
        if its.any():
            newest[layout] = int(files.generation[its].max())
    return sorted(newest, key=lambda layout: (-newest[layout], layout))


def kept_files(
    analysis: TableAnalysis, present: Plan, partition: npt.NDArray[np.int32] | None
) -> npt.NDArray[np.int32] | None:
    """File of each sampled row once the table's new files are laid out by ``present``, shape (rows,).

    Args:
        partition: table partition of each sampled row.

    Returns:
        None when the plan does not fit the table any more, or no file needs it.
    """
    snapshot, sample, spec = analysis.snapshot, analysis.sample, present.spec
    try:
        present.refuse_unless_fits(snapshot.table_id, snapshot.schema)
    except PlanError:
        return None
    if spec is None or any(name not in sample.columns for name in spec.columns):
        return None
    target, smallest = present.target_file_rows, spec.smallest_file
    chosen = select_files(snapshot, spec.layout_id, target, smallest=smallest).rewrite
    if not len(chosen):
        return None
    columns = sample.arrays
    rewritten = np.isin(sampled_files(analysis), chosen)[sample.file]
    rows_per_file = sample.rows / max(1.0, sample.total_rows / target)
    return files_after(spec, columns, sample.file, rewritten, rows_per_file, sample.stands_for, partition)


def sampled_files(analysis: TableAnalysis) -> npt.NDArray[np.int64]:
    """Index in the table's list of files of each file that rows were sampled from, -1 for one that is not in it."""
    snapshot = analysis.snapshot
    place = {real_path(str(path), snapshot.location): i for i, path in enumerate(snapshot.files().path)}
    return np.array([place.get(real_path(name, ""), -1) for name in analysis.sample.names], dtype=np.int64)


def merged_files(snapshot: TableSnapshot, target_rows: int) -> npt.NDArray[np.int64] | None:
    """The file that each file becomes once small ones are merged, shape (files,); None when there are none to merge.

    Args:
        target_rows: rows that a merged file should have, see `zorder_pipeline.relayout.compaction.groups_of`.
    """
    files = snapshot.files()
    groups = groups_of(files, np.ones(len(files), dtype=np.bool_), target_rows, keep_ours=True)
    if not groups:
        return None
    became = np.arange(len(files))
    for group in groups:
        became[list(group)] = group[0]
    return became


def compacted_files(analysis: TableAnalysis, became: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """File of each sampled row once files are merged, shape (rows,).

    Args:
        became: see `merged_files`.
    """
    sample, place = analysis.sample, sampled_files(analysis)
    merged = np.where(place >= 0, became[place], len(became) + np.arange(len(place)))
    number = np.unique(merged, return_inverse=True)[1].ravel()
    return number[sample.file].astype(np.int32)


def sample_files(analysis: TableAnalysis, spec: KeySpec, target_file_rows: int) -> npt.NDArray[np.int64]:
    """File of each sampled row if all of the table lay by a layout, numbered in its order, shape (rows,).

    Args:
        target_file_rows: rows per file of the table.
    """
    sample = analysis.sample
    partition = partitions_of(sample, analysis.snapshot.schema.partition_columns)
    rows_per_file = sample.rows / max(1, round(sample.total_rows / target_file_rows))
    return files_under(extended(spec, sample.arrays, sample.total_rows), sample.arrays, rows_per_file, partition)


def sample_keys(analysis: TableAnalysis, spec: KeySpec) -> npt.NDArray[np.int64]:
    """Key of each sampled row under a layout of sampled columns, shape (rows,)."""
    sample = analysis.sample
    return np.asarray(keys(extended(spec, sample.arrays, sample.total_rows), sample.arrays))
