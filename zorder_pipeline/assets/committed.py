"""What is told of a relayout that is committed: it is shown, whatever fails in looking at the table it has made."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from dagster import (
    AssetExecutionContext,
    AssetMaterialization,
    DataVersion,
    MetadataValue,
    Output,
    TableColumnDep,
    TableColumnLineage,
)

from zorder_pipeline.config.costs import assumed_costs
from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.ranges import Boxes
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.model.workload import LoggedQuery

from .common import Shelf, opened
from .metadata import bullets, gigabytes, md, md_table, percent, picture, table_facts
from .partitions import noted_changes, why_failed
from .records import AnalysedTable, Relayout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.pipeline import Judgement
    from zorder_pipeline.pipeline.rewriting.proof import Proof
    from zorder_pipeline.relayout.snapshot import TableSnapshot

__all__ = ["besides", "promises", "shown"]

Floats = npt.NDArray[np.float64]


def shown(
    context: AssetExecutionContext,
    shelf: Shelf,
    spark: SparkSession,
    judged: Judgement,
    result: ApplyResult,
    before: TableSnapshot,
    analysed: AnalysedTable,
) -> Generator[AssetMaterialization, None, Output[Relayout]]:
    """What is told of a relayout that is committed: its partitions' notes, and in the end its own.

    Where the table cannot be looked at afterwards nothing is proven, which is logged as an error and fails the checks;
    where only what queries read cannot be told, that is a warning, and fails the check of the promise alone.

    Args:
        judged: the judgement that was carried out.
        before: the table when the relayout began.
    """
    table, unseen, after = shelf.table, analysed.unseen, None
    try:
        after = opened(spark, shelf)
        yield from _each_noted(context, shelf, result, before, after)
        hashed = table.layout.verify == "hash"
        done = _measured(judged, result, before, after, unseen, unseen.each(analysed.boxes), hashed)
    except Exception as error:
        done = _unmeasured(context, shelf, judged, result, error)
    if done.unread:
        context.log.warning(f"{table.name}: what later queries read could not be told: {done.unread}")
    facts = _facts(shelf, done)
    if after is not None:
        with besides(context, shelf, "the new files could not be described"):
            facts |= _described(shelf, done, before, after)
        facts |= _drawn(context, shelf, judged.plan, done, before, after, analysed)
    asked = [analysed.queries[i] for i in unseen.queries]
    facts |= promises(context, spark, shelf, asked, result.version)
    return Output(done, metadata=facts, data_version=DataVersion(f"{before.table_id}-{result.version}"))


@contextmanager
def besides(context: AssetExecutionContext, shelf: Shelf, failed: str) -> Iterator[None]:
    """For what is no reason to call a finished relayout failed, as it is committed: an error is only logged."""
    try:
        yield
    except Exception as error:
        context.log.warning(f"{shelf.table.name}: {failed}: {why_failed(error)}")


def promises(
    context: AssetExecutionContext,
    spark: SparkSession,
    shelf: Shelf,
    queries: Sequence[LoggedQuery],
    version: int | None = None,
    until: int | None = None,
) -> dict[str, Any]:
    """Promised against measured, for relayouts whose saving still counts; a broken promise is logged as a warning."""
    from zorder_pipeline import pictures, pipeline

    facts: dict[str, Any] = {}
    table = shelf.table
    factor, committer = table.gate.broken_promise_factor, table.layout.committer
    with besides(context, shelf, "promises could not be checked"):
        checks = pipeline.check_promises(
            spark,
            shelf.config.state,
            table.table,
            queries,
            version=version,
            broken=factor,
            committer=committer,
            until=until,
            assumed=assumed_costs(table.gate),
        )
        for check in checks:
            if check.warning:
                context.log.warning(check.warning)
        if checks:
            drawn = pictures.promises_kept([check.drawn for check in checks])
            facts["promises"] = picture(drawn, "rows saved and costs, promised and measured, per relayout")
    return facts


def _measured(
    judged: Judgement,
    result: ApplyResult,
    before: TableSnapshot,
    after: TableSnapshot,
    unseen: Asked,
    boxes: Sequence[Boxes],
    hashed: bool,
) -> Relayout:
    """What the commits left as it was, and what the later queries (each statement's ``boxes``) read on either side."""
    from zorder_pipeline.pipeline.rewriting.proof import prove

    spec = judged.plan.spec
    proof = prove(before, after, hashed, spec is not None and spec.smallest_file != 1)
    try:
        then, now = (each.files().zone_map().shares_read(boxes)[unseen.which] for each in (before, after))
    except Exception as error:  # the rows are proven the same all the same
        return _relayout(judged, result, proof, np.ones(0), np.ones(0), why_failed(error))
    return _relayout(judged, result, proof, then, now)


def _relayout(
    judged: Judgement, result: ApplyResult, proof: Proof, read_before: Floats, read_after: Floats, unread: str = ""
) -> Relayout:
    plan, promise, credited = judged.plan, judged.plan.promise, judged.credited_by(result.bytes_rewritten)
    return Relayout(
        result,
        proof,
        read_before,
        read_after,
        promised=(promise.before - promise.after) * credited if promise.queries else None,
        promised_low=promise.low * credited,
        target_file_rows=plan.target_file_rows,
        unread=unread,
    )


def _unmeasured(
    context: AssetExecutionContext, shelf: Shelf, judged: Judgement, result: ApplyResult, error: Exception
) -> Relayout:
    """A relayout of which is known that it is committed, and no more."""
    from zorder_pipeline.pipeline.rewriting.proof import unproven

    why, undo = why_failed(error), shelf.command("rollback")
    context.log.error(
        f"{shelf.table.name}: version {result.version} is committed, and whether it holds the same rows, and saves "
        f"what was promised, could not be told: {why}; look at DESCRIBE HISTORY, or take it back with {undo}",
        exc_info=error,
    )
    return _relayout(judged, result, unproven(why), np.ones(0), np.ones(0))


def _each_noted(
    context: AssetExecutionContext, shelf: Shelf, result: ApplyResult, before: TableSnapshot, after: TableSnapshot
) -> list[AssetMaterialization]:
    """`noted_changes`, as far as they can be told."""
    found: list[AssetMaterialization] = []
    with besides(context, shelf, "not every partition could be noted"):
        found.extend(noted_changes(context, shelf, result, before, after))
    return found


def _facts(shelf: Shelf, done: Relayout) -> dict[str, Any]:
    """What the commit itself tells."""
    result = done.result
    return {
        "reasons": bullets(result.reasons),
        "files removed": result.files_removed,
        "files added": result.files_added,
        "files left alone": result.skipped_files,
        "bytes rewritten": result.bytes_rewritten,
        "rows rewritten": result.rows,
        "seconds": round(result.seconds, 1),
        "Delta version": result.version,
        "undo": MetadataValue.text(shelf.command("rollback")),
    }


def _described(shelf: Shelf, done: Relayout, before: TableSnapshot, after: TableSnapshot) -> dict[str, Any]:
    """What the table's own files tell."""
    now, then = after.files(), before.files()
    rows, shares = done.proof.rows, done.shares
    compared = not done.proof.nothing
    read = compared and not done.unread
    figures = [
        ("files", f"{len(then):,}", f"{len(now):,}"),
        *([("rows", f"{rows[0]:,}", f"{rows[1]:,}")] if compared else []),
        ("size", gigabytes(float(then.bytes.sum())), gigabytes(float(now.bytes.sum()))),
        *([("rows read per later query", percent(shares[0]), percent(shares[1]))] if read else []),
    ]
    columns = {column.name: [TableColumnDep(shelf.key("data"), column.name)] for column in after.schema.columns}
    return {
        "before and after": md(md_table(["", "before", "after"], figures)),
        "dagster/column_lineage": TableColumnLineage(columns),
        **table_facts(shelf.table, after),
    }


def _drawn(
    context: AssetExecutionContext,
    shelf: Shelf,
    plan: Plan,
    done: Relayout,
    before: TableSnapshot,
    after: TableSnapshot,
    analysed: AnalysedTable,
) -> dict[str, Any]:
    """Pictures of what has changed, as far as they can be drawn."""
    from zorder_pipeline import pictures
    from zorder_pipeline.pipeline.learning import drawing

    facts: dict[str, Any] = {}
    with besides(context, shelf, "pictures could not be drawn"):
        if len(done.read_after):
            facts["rows read by later queries"] = picture(
                pictures.rows_per_query(done.read_before, done.read_after, labels=("before", "after")),
                "rows read per query before and after, by the files' own statistics",
            )
        snapshots = {"before": before, "after": after}
        if (drawn := drawing.zones(snapshots, analysed.sample, plan.spec.columns if plan.spec else ())) is not None:
            facts["zone maps"] = picture(drawn, "span of every file per column before and after")
    return facts
