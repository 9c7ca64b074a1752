"""The last stage: the Delta table in its new order, measured before and after. It is skipped when the gate declines."""

import shlex
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from dagster import (
    AssetExecutionContext,
    AssetIn,
    AssetMaterialization,
    AssetObservation,
    AssetsDefinition,
    DataVersion,
    IOManager,
    MetadataValue,
    Output,
    ResourceParam,
    TableColumnDep,
    TableColumnLineage,
)

from zorder_pipeline.errors import LostRaceError, RecordError, VerificationError
from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.ranges import Boxes
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.model.workload import LoggedQuery

from .budget import AFTER, BUDGET, granted, made_here, value_of, without_room
from .common import DeltaSparkResource, Shelf, stage_asset, told
from .events import spoken
from .gate import judged_now
from .metadata import bullets, cause_of, gigabytes, md, md_table, percent, picture, table_facts
from .partitions import noted_changes, relayout_settings, separately, why_failed
from .records import AnalysedTable, Judged, Relayout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.pipeline import Judgement
    from zorder_pipeline.relayout.snapshot import TableSnapshot

__all__ = ["clustered_table"]

Floats = npt.NDArray[np.float64]


def clustered_table(shelf: Shelf) -> AssetsDefinition:
    """The asset ``clustered_table``: a `Relayout`, or nothing when the gate declined (the run stays green)."""
    table = shelf.table

    @stage_asset(
        shelf,
        "clustered_table",
        {"pyspark", "deltalake"},
        table.layout.model_dump(),
        ins={
            "judged": AssetIn(key=shelf.key("cost_benefit")),
            "analysed": AssetIn(key=shelf.key("feature_candidates")),
        },
        deps=[BUDGET] if table.schedule is None else [],
        op_tags=AFTER,
        output_required=False,
        metadata={"dagster/table_name": table.catalog or table.name},
        description=(
            "**The table in its new order.** The files that the gate approved are rewritten in one Delta transaction "
            "that changes no row, and the queries' files are counted before and after. When the gate declined, this "
            "asset is skipped, the run stays green, and the reason is noted here as an observation."
        ),
    )
    def _clustered_table(
        context: AssetExecutionContext,
        zorder_spark: DeltaSparkResource,
        zorder_values: ResourceParam[IOManager],
        judged: Judged,
        analysed: AnalysedTable,
    ) -> Iterator[AssetMaterialization | Output[Relayout]]:
        from zorder_pipeline import pipeline

        with told(context, table.name):
            tonight = _tonight(context, zorder_values, zorder_spark.session, shelf, judged.judgement)
            earlier = _promises(context, zorder_spark.session, shelf, analysed.queries, spanned=analysed.spanned)
        if not tonight.decision.approved:
            _declined(context, shelf, pipeline.dry_result(tonight), earlier)
            return
        with told(context, table.name):
            before = _opened(zorder_spark.session, shelf)
            result = yield from _carried_out(
                context, shelf, zorder_spark.session, tonight, bool(before.partition_columns)
            )
            if result.decision != "applied":
                _declined(context, shelf, result, earlier)
                return
            after = _opened(zorder_spark.session, shelf)
            yield from _each_noted(context, shelf, result, before, after)
            unseen, hashed = analysed.unseen, table.layout.verify == "hash"
            done = _measured(tonight, result, before, after, unseen, unseen.each(analysed.boxes), hashed)
            facts = _facts(table.table, done, before, after) | table_facts(table, after)
            facts |= _drawn(context, shelf, tonight.plan, done, before, after, analysed)
            asked = [analysed.queries[i] for i in unseen.queries]
            facts |= _promises(context, zorder_spark.session, shelf, asked, result.version)
        facts["dagster/column_lineage"] = TableColumnLineage(
            {column.name: [TableColumnDep(shelf.key("data"), column.name)] for column in after.schema.columns}
        )
        yield Output(done, metadata=facts, data_version=DataVersion(f"{after.table_id}-{result.version}"))

    return _clustered_table


def _tonight(
    context: AssetExecutionContext, storage: IOManager, spark: "SparkSession", shelf: Shelf, judged: "Judgement"
) -> "Judgement":
    """The judgement to carry out: this run's own, else one of the table as it is now.

    Since another run judged it the table may have been rolled back, the plan approved, or a blackout over. Where that
    run shared out the budget, what it granted stays so, and for what it did not there is no room.
    """
    tonight, judge = granted(context, storage, shelf, judged), shelf.key("cost_benefit")
    if made_here(context, judge, before=False):
        return tonight
    going_on = made_here(context, judge) or made_here(context, BUDGET)
    if going_on and tonight.decision.cause == "budget":
        return tonight
    if going_on and tonight.decision.approved and _opened(spark, shelf).version == tonight.version:
        return tonight
    again = judged_now(spark, shelf, value_of(context, storage, shelf.key("bit_allocation")))
    if not tonight.decision.approved and made_here(context, BUDGET):
        again = without_room(shelf, again)
    return replace(again, partitions=tonight.partitions)


def _opened(spark: "SparkSession", shelf: Shelf) -> "TableSnapshot":
    from zorder_pipeline.relayout.snapshot import open_table

    return open_table(spark, shelf.table.table, committer=shelf.table.layout.committer)


def _carried_out(
    context: AssetExecutionContext, shelf: Shelf, spark: "SparkSession", tonight: "Judgement", partitioned: bool
) -> Generator[AssetMaterialization, None, ApplyResult]:
    """Rewrite the table, or partition by partition what a failure before the commit has left.

    What is committed already would look like nothing to do, so a failure after it is the run's own.
    """
    from zorder_pipeline import pipeline

    try:
        return pipeline.carry_out(spark, tonight, relayout_settings(context, shelf))
    except (LostRaceError, VerificationError, RecordError):
        raise
    except Exception as error:
        if not partitioned:
            raise
        context.log.warning(f"{shelf.table.name}: {why_failed(error)}; going on partition by partition")
        result = yield from separately(context, shelf, spark, tonight)
        if result.decision != "applied":
            raise
        return result


@contextmanager
def _besides(context: AssetExecutionContext, shelf: Shelf, failed: str) -> Iterator[None]:
    """For what is no reason to call a finished relayout failed, as it is committed: an error is only logged."""
    try:
        yield
    except Exception as error:
        context.log.warning(f"{shelf.table.name}: {failed}: {why_failed(error)}")


def _promises(
    context: AssetExecutionContext,
    spark: "SparkSession",
    shelf: Shelf,
    queries: Sequence[LoggedQuery],
    version: int | None = None,
    spanned: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Promised against measured, for relayouts whose saving still counts; a broken promise is logged as a warning."""
    from zorder_pipeline import pictures, pipeline

    facts: dict[str, Any] = {}
    table = shelf.table
    factor, committer = table.gate.broken_promise_factor, table.layout.committer
    with _besides(context, shelf, "promises could not be checked"):
        checks = pipeline.check_promises(
            spark, shelf.config.state, table.table, queries, version=version, broken=factor, committer=committer,
            spanned=spanned,
        )  # fmt: skip
        for check in checks:
            if check.warning:
                context.log.warning(check.warning)
        if checks:
            drawn = pictures.promises_kept([check.drawn for check in checks])
            facts["promises"] = picture(drawn, "rows saved and costs, promised and measured, per relayout")
    return facts


def _declined(
    context: AssetExecutionContext, shelf: Shelf, result: ApplyResult, earlier: dict[str, Any] | None = None
) -> None:
    decision = spoken(result.decision)
    say = shelf.saying(context)
    for reason in result.reasons:
        say(f"{decision}: {reason}")
    facts: dict[str, Any] = {
        "decision": decision,
        **cause_of(result),
        "reasons": bullets(result.reasons),
        "Delta version": result.version,
        **(earlier or {}),
    }
    key = shelf.key("clustered_table")
    context.log_event(AssetObservation(key, description=f"{decision}: {result.reasons[0]}", metadata=facts))


def _measured(
    judged: "Judgement",
    result: ApplyResult,
    before: "TableSnapshot",
    after: "TableSnapshot",
    unseen: Asked,
    boxes: Sequence[Boxes],
    hashed: bool,
) -> Relayout:
    """What the commits left as it was, and what the later queries (each statement's ``boxes``) read on either side."""
    from zorder_pipeline.pipeline.rewriting.proof import prove

    plan, promise, credited = judged.plan, judged.plan.promise, judged.credited_by(result.bytes_rewritten)
    return Relayout(
        result,
        prove(before, after, hashed),
        read_before=before.files().zone_map().shares_read(boxes)[unseen.which],
        read_after=after.files().zone_map().shares_read(boxes)[unseen.which],
        promised=(promise.before - promise.after) * credited if promise.queries else None,
        promised_low=promise.low * credited,
        target_file_rows=plan.target_file_rows,
    )


def _each_noted(
    context: AssetExecutionContext, shelf: Shelf, result: ApplyResult, before: "TableSnapshot", after: "TableSnapshot"
) -> list[AssetMaterialization]:
    """`noted_changes`, as far as they can be told."""
    found: list[AssetMaterialization] = []
    with _besides(context, shelf, "not every partition could be noted"):
        found.extend(noted_changes(context, shelf, result, before, after))
    return found


def _facts(table: str, done: Relayout, before: "TableSnapshot", after: "TableSnapshot") -> dict[str, Any]:
    result = done.result
    now, then = after.files(), before.files()
    figures = [
        ("files", f"{len(then):,}", f"{len(now):,}"),
        ("rows", *(f"{rows:,}" for rows in done.proof.rows)),
        ("size", gigabytes(float(then.bytes.sum())), gigabytes(float(now.bytes.sum()))),
        ("rows read per later query", *(percent(share) for share in done.shares)),
    ]
    return {
        "before and after": md(md_table(["", "before", "after"], figures)),
        "reasons": bullets(result.reasons),
        "files removed": result.files_removed,
        "files added": result.files_added,
        "files left alone": result.skipped_files,
        "bytes rewritten": result.bytes_rewritten,
        "rows rewritten": result.rows,
        "seconds": round(result.seconds, 1),
        "undo": MetadataValue.text(f"zorder rollback --table {shlex.quote(table)}"),
    }


def _drawn(
    context: AssetExecutionContext,
    shelf: Shelf,
    plan: Plan,
    done: Relayout,
    before: "TableSnapshot",
    after: "TableSnapshot",
    analysed: AnalysedTable,
) -> dict[str, Any]:
    """Pictures of what has changed, as far as they can be drawn."""
    from zorder_pipeline import pictures
    from zorder_pipeline.pipeline.learning import drawing

    facts: dict[str, Any] = {}
    with _besides(context, shelf, "pictures could not be drawn"):
        if len(done.read_after):
            facts["rows read by later queries"] = picture(
                pictures.rows_per_query(done.read_before, done.read_after, labels=("before", "after")),
                "rows read per query before and after, by the files' own statistics",
            )
        snapshots = {"before": before, "after": after}
        if (drawn := drawing.zones(snapshots, analysed.sample, plan.spec.columns if plan.spec else ())) is not None:
            facts["zone maps"] = picture(drawn, "span of every file per column before and after")
    return facts
