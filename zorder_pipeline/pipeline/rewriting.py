"""The last step: ask the gate, and rewrite the files that the plan wants elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from zorder_pipeline.errors import UnsupportedTableError
from zorder_pipeline.gate.decision import GateSettings, judge
from zorder_pipeline.layout.cells import Cuts, cut_cells
from zorder_pipeline.layout.extend import extended
from zorder_pipeline.layout.interleave import hilbert_table
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.relayout.history import undone_by
from zorder_pipeline.relayout.ledger import Ledger
from zorder_pipeline.relayout.rewrite import Cutter, RelayoutResult, apply_layout
from zorder_pipeline.relayout.snapshot import open_table

from .costs import cost_model, relayout_work
from .records import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["apply"]


def apply(
    spark: SparkSession,
    table: str,
    plan: Plan,
    *,
    where: str | None = None,
    full: bool = False,
    dry_run: bool = False,
    force: bool = False,
    gate: GateSettings | None = None,
    verify: str = "counts",
    row_group_bytes: int | None = None,
    state: str | None = None,
    progress: Progress | None = None,
) -> ApplyResult:
    """Rewrite the files that ``plan`` wants elsewhere, when the gate approves.

    Args:
        where: condition on partition columns; only those partitions are touched.
        full: rewrite files that already lie by this layout, too.
        dry_run: decide and say what would be done.
        force: do not ask the gate.
        verify: ``counts`` or ``hash``, see `zorder_pipeline.relayout.rewrite.apply_layout`.
        row_group_bytes: size of the new files' Parquet row groups; None leaves it to the session and the table.
        state: folder of the state, where the relayout is recorded and what it costs is known from; None records
            nothing and asks the gate with its assumptions.

    Raises:
        PlanError: the plan does not fit the table.
        UnsupportedTableError: the table has a feature under which it may not be rewritten.
        LostRaceError: another writer changed the files meanwhile; nothing was committed.
        VerificationError: the written rows differ; nothing was committed.
    """
    snapshot = open_table(spark, table)
    plan.refuse_unless_fits(snapshot.table_id, snapshot.schema)
    if (reason := snapshot.unsupported()) is not None:
        raise UnsupportedTableError(reason)
    if plan.spec is None:
        why = "the plan says the table should stay as it is: no layout beat the present one on the select queries"
        return ApplyResult(snapshot.version, "nothing_to_do", (why,), skipped_files=len(snapshot.files()))
    spec = plan.spec

    def run(dry: bool) -> RelayoutResult:
        return apply_layout(
            spark,
            snapshot,
            spec,
            cutter=_cutter(plan.target_file_rows),
            extend=extended,
            target_rows=plan.target_file_rows,
            hilbert_table=hilbert_table(spec) if spec.curve == "hilbert" else None,
            where=where,
            full=full,
            dry_run=dry,
            verify=verify,
            row_group_bytes=row_group_bytes,
            progress=progress,
        )

    preview = run(True)
    if not preview.files_removed:
        why = "every file already lies by this layout" + (" in the chosen partitions" if where else "")
        return ApplyResult(snapshot.version, "nothing_to_do", (why,), skipped_files=preview.skipped_files)
    if not force and (undone := undone_by(snapshot, spec.layout_id)) is not None:
        return ApplyResult(snapshot.version, "declined", (undone,), skipped_files=len(snapshot.files()))
    gate = gate or GateSettings()
    gate = replace(gate, costs=cost_model(spark, state, gate.costs))
    work = relayout_work(snapshot, plan, preview, verify)
    decision = judge(plan, preview.bytes_rewritten, float(snapshot.files().bytes.sum()), gate, work)
    approved = force or decision.approved
    reasons = ("applied without asking the gate (--force)",) if force else decision.reasons
    done = preview if dry_run or not approved else run(False)
    if state is not None and done.committed:
        known = {name: getattr(work, name) for name in ("additional", "predicates", "hashed")}
        known["replaced_version"] = snapshot.version
        Ledger(spark, state).record(plan, spec.layout_id, done.version, vars(done), decision.to_json(), known)
    return ApplyResult(
        version=done.version,
        decision="applied" if approved else "declined",
        reasons=reasons,
        files_removed=done.files_removed if approved else 0,
        files_added=done.files_added if approved else 0,
        bytes_rewritten=done.bytes_rewritten if approved else 0,
        rows=done.rows if approved else 0,
        skipped_files=done.skipped_files if approved else len(snapshot.files()),
        seconds=done.seconds,
        dry_run=dry_run,
        gate=decision.to_json(),
    )


def _cutter(target: int) -> Cutter:
    def cut(cells: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> Cuts:
        return cut_cells(cells, counts, target)

    return cut
