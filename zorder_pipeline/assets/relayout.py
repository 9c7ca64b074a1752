"""The last stage: the Delta table in its new order, measured before and after. It is skipped when the gate declines."""

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dagster import (
    AssetExecutionContext,
    AssetIn,
    AssetMaterialization,
    AssetObservation,
    AssetsDefinition,
    IOManager,
    Output,
    ResourceParam,
)

from zorder_pipeline.errors import LostRaceError, RecordError, VerificationError
from zorder_pipeline.model.results import ApplyResult

from .budget import AFTER, BUDGET, granted, made_here, value_of, without_room
from .committed import besides, promises, shown
from .common import DeltaSparkResource, Shelf, opened, stage_asset, told
from .events import spoken
from .gate import judged_now
from .metadata import bullets, cause_of
from .partitions import APPLIED, relayout_settings, separately, why_failed
from .records import AnalysedTable, Judged, Relayout
from .repeated import refuse_repeated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.pipeline import Judgement

__all__ = ["clustered_table"]

HELD = ("blackout", "stopped")
"""Causes for which a table is not read either."""


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
            "**The table in its new order.** The files that the gate approved are rewritten in a Delta transaction "
            "that changes no row (of a large partitioned table, in one for each bin of partitions), and the queries' "
            "files are counted before and after. When the gate declined, this asset is skipped, the run stays green, "
            "and the reason is noted here as an observation."
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
            earlier = promises(context, zorder_spark.session, shelf, analysed.queries, until=analysed.until)
        if not tonight.decision.approved:
            _declined(context, shelf, pipeline.dry_result(tonight), earlier)
            _complete(context, shelf, zorder_spark.session, tonight.decision.cause)
            return
        with told(context, table.name):
            before = opened(zorder_spark.session, shelf)
            refuse_repeated(context, shelf, before)
            result = yield from _carried_out(
                context, shelf, zorder_spark.session, tonight, bool(before.partition_columns)
            )
            if result.decision != APPLIED:
                _declined(context, shelf, result, earlier)
                return
        yield (yield from shown(context, shelf, zorder_spark.session, tonight, result, before, analysed))
        _complete(context, shelf, zorder_spark.session)

    return _clustered_table


def _complete(context: AssetExecutionContext, shelf: Shelf, spark: "SparkSession", cause: str = "") -> None:
    """Gather statistics of files that others wrote, for who reads through ours; not while all is to stand still."""
    from zorder_pipeline import pipeline

    if shelf.table.gate.enriched_reader_share > 0 and cause not in HELD:
        with besides(context, shelf, "statistics of new files could not be kept"):
            pipeline.complete_statistics(opened(spark, shelf), shelf.config.state, shelf.saying(context))


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
    if going_on and tonight.decision.approved and opened(spark, shelf).version == tonight.version:
        return tonight
    again = judged_now(spark, shelf, value_of(context, storage, shelf.key("bit_allocation")))
    if not tonight.decision.approved and made_here(context, BUDGET):
        again = without_room(shelf, again)
    return replace(again, partitions=tonight.partitions)


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
        if result.decision != APPLIED:
            raise
        return result


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
