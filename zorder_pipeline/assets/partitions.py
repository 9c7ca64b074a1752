"""A partitioned table, partition by partition: its keys in Dagster, backfills, and what was done to each."""

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dagster import (
    AssetExecutionContext,
    AssetIn,
    AssetMaterialization,
    AssetsDefinition,
    DagsterEventType,
    Failure,
)

from zorder_pipeline.errors import LostRaceError
from zorder_pipeline.java import reason_of
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.results import ApplyResult

from .common import DeltaSparkResource, Shelf, opened, stage_asset, told
from .events import spoken
from .metadata import bullets, cause_of
from .partition_keys import PARTITIONS, keep_in_step, partitions_of
from .repeated import refuse_repeated
from .settings import gate_settings, rules
from .upstream import has_partitions

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from pyspark.sql import SparkSession

    from zorder_pipeline.pipeline import Judgement, PartitionOutcome, RelayoutSettings
    from zorder_pipeline.relayout.file_list import FileList
    from zorder_pipeline.relayout.snapshot import TableSnapshot

__all__ = ["clustered_partitions", "noted_changes", "relayout_settings", "separately", "why_failed"]

APPLIED = "applied"
"""The decision of a result that a partition was rewritten by."""


def clustered_partitions(shelf: Shelf) -> AssetsDefinition:
    """The asset ``clustered_partitions``: chosen partitions by tonight's layout, for backfills."""
    table = shelf.table

    @stage_asset(
        shelf,
        PARTITIONS,
        {"pyspark", "deltalake"},
        table.layout.model_dump(),
        partitions_def=partitions_of(table.name),
        ins={"plan": AssetIn(key=shelf.key("bit_allocation"))},
        deps=[shelf.key("cost_benefit")],
        output_required=False,
        metadata={"dagster/table_name": table.catalog or table.name},
        description=(
            "**Which partitions lie by the layout?** A backfill rewrites the chosen partitions by the newest bit "
            "allocation, each in its own transaction and in one Spark session; one that fails leaves the others done. "
            "The nightly run notes here, too, what it did to each partition."
        ),
    )
    def _clustered_partitions(
        context: AssetExecutionContext, zorder_spark: DeltaSparkResource, plan: Plan
    ) -> Iterator[AssetMaterialization]:
        from zorder_pipeline import pipeline

        with told(context, table.name):
            snapshot = opened(zorder_spark.session, shelf)
            refuse_repeated(context, shelf, snapshot)
            rows = pipeline.rows_by_partition(snapshot)
            outcomes = pipeline.apply_partitions(
                zorder_spark.session,
                table.table,
                plan,
                list(context.partition_keys),
                relayout_settings(context, shelf),
                gate=replace(gate_settings(table), min_new_data_share=0.0, min_new_data_bytes=0.0),  # a person's wish
            )
            yield from _recorded(context, shelf, outcomes, rows)

    return _clustered_partitions


def relayout_settings(context: AssetExecutionContext, shelf: Shelf) -> "RelayoutSettings":
    """How the table's configuration has relayouts carried out."""
    from zorder_pipeline.pipeline import RelayoutSettings

    layout = shelf.table.layout
    return RelayoutSettings(
        rules=rules(shelf.config, shelf.table),
        verify=layout.verify,
        row_group_bytes=layout.row_group_bytes,
        committer=layout.committer,
        state=shelf.config.state,
        progress=shelf.saying(context),
        name=shelf.table.name,
    )


def _raise_failed(context: AssetExecutionContext, shelf: Shelf, outcomes: Sequence["PartitionOutcome"]) -> None:
    """End the step when a partition failed; after lost races alone it is tried again, and finds the others done.

    Raises:
        Failure, RetryRequested: see `told`.
    """
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    if not failed:
        return
    name = shelf.table.name
    reasons = [f"{outcome.key}: {why_failed(outcome.error)}" for outcome in failed]
    for reason in reasons:
        context.log.error(f"{name} {reason}")
    first = failed[0]
    if all(isinstance(outcome.error, LostRaceError) for outcome in failed):
        with told(context, f"{name} {first.key}"):
            raise LostRaceError(why_failed(first.error))
    more = f" (and {len(failed) - 1} more partitions)" if len(failed) > 1 else ""
    raise Failure(
        f"{name} {reasons[0]}{more}{_others(outcomes)}",
        metadata={
            "table": name,
            "partitions": bullets(outcome.key for outcome in failed),
            "cause": bullets(reasons),
            "next step": "correct what the cause names and launch a backfill of the failed partitions",
        },
        allow_retries=False,
    )


def _others(outcomes: Sequence["PartitionOutcome"]) -> str:
    """What became of the partitions that did not fail, to end a sentence; those with nothing to do are done, too."""
    decisions = Counter(outcome.result.decision for outcome in outcomes if outcome.result is not None)
    if not decisions:
        return ""
    others = f"; the other {decisions.total()} of {len(outcomes)} partitions"
    if decisions.keys() <= {APPLIED, "nothing_to_do"}:
        return f"{others} are done"
    return f"{others}: {', '.join(f'{count} {spoken(decision)}' for decision, count in decisions.items())}"


def _recorded(
    context: AssetExecutionContext,
    shelf: Shelf,
    outcomes: Iterator["PartitionOutcome"],
    rows: Mapping[str, int],
    only_applied: bool = False,
    is_shown: bool = True,
) -> Generator[AssetMaterialization, None, list[ApplyResult]]:
    """Record each partition as soon as it is done.

    What an earlier attempt of the step did to a partition stays its newest note where this one finds nothing to do.

    Args:
        only_applied: those alone that were rewritten.
        is_shown: whether Dagster shows the table's partitions; else there is nothing to note them of.

    Returns:
        What was done.

    Raises:
        Failure, RetryRequested: some partitions failed, see `_raise_failed`.
    """
    seen = []
    done = _applied_before(context, shelf)
    for outcome in outcomes:
        seen.append(outcome)
        left_out = only_applied or outcome.key in done
        if not is_shown or outcome.result is None:
            continue
        if not left_out or outcome.result.decision == APPLIED:
            yield _noted(context, shelf, outcome.key, outcome.result, rows.get(outcome.key))
    _raise_failed(context, shelf, seen)
    return [outcome.result for outcome in seen if outcome.result is not None]


def _applied_before(context: AssetExecutionContext, shelf: Shelf) -> set[str]:
    """Keys of the partitions that earlier attempts of this run's step have rewritten."""
    if not context.retry_number:
        return set()
    made = context.instance.all_logs(context.run_id, of_type=DagsterEventType.ASSET_MATERIALIZATION)
    notes = [entry.asset_materialization for entry in made if entry.asset_materialization is not None]
    mine = [note for note in notes if note.asset_key == shelf.key(PARTITIONS) and note.partition]
    return {str(note.partition) for note in mine if note.metadata["decision"].value == spoken(APPLIED)}


def _noted(
    context: AssetExecutionContext, shelf: Shelf, key: str, result: ApplyResult, rows: int | None, timed: bool = True
) -> AssetMaterialization:
    """What became of a partition: declined ones, too, were looked at and are not missing.

    It has to be yielded: what is only logged is lost with a step that fails, and then all partitions look undone.

    Args:
        timed: whether the result's seconds are those of this partition alone.
    """
    decision = spoken(result.decision)
    facts: dict[str, Any] = {
        "decision": decision,
        **cause_of(result),
        "reasons": bullets(result.reasons),
        "files removed": result.files_removed,
        "files added": result.files_added,
        "files left alone": result.skipped_files,
        "rows rewritten": result.rows,
        "bytes rewritten": result.bytes_rewritten,
        **({"seconds": round(result.seconds, 1)} if timed else {}),
        "Delta version": result.version,
    }
    if rows is not None:
        facts["dagster/partition_row_count"] = rows
    said = f"{decision}: {result.reasons[0]}" if result.reasons else decision
    return AssetMaterialization(
        shelf.key(PARTITIONS), description=said, metadata=facts, partition=key, tags=_run(context)
    )


def noted_changes(
    context: AssetExecutionContext, shelf: Shelf, result: ApplyResult, before: "TableSnapshot", after: "TableSnapshot"
) -> Iterator[AssetMaterialization]:
    """For each partition what a relayout of the whole table did to it; nothing where Dagster shows no partitions.

    What others wrote meanwhile is no work of ours.
    """
    if not after.partition_columns or not has_partitions(shelf.table):
        return
    from zorder_pipeline import pipeline
    from zorder_pipeline.model.partition_key import partition_key

    rows = pipeline.rows_by_partition(after)
    keep_in_step(context.instance, shelf.table.name, list(rows))
    old, new = before.files(), after.files()

    def summed(files: "FileList", some: "npt.NDArray[np.bool_]", values: Sequence[int]) -> Counter[str]:
        found = Counter[str]()
        for i in some.nonzero()[0].tolist():
            found[partition_key(after.partition_columns, files.partitions[i])] += values[i]
        return found

    gone, come = old.replaced_by(new)
    laid_out = come & (new.generation > before.version)
    come = laid_out if laid_out.any() else come  # files that were merged keep their generation, or have none
    each, every = [1] * len(old), [1] * len(new)
    removed, left, size = summed(old, gone, each), summed(old, ~gone, each), summed(old, gone, old.bytes.tolist())
    added, written = summed(new, come, every), summed(new, come, new.rows.tolist())
    for key in [key for key in rows if added[key] and removed[key]]:
        done = replace(
            result,
            files_removed=removed[key],
            files_added=added[key],
            skipped_files=left[key],
            rows=written[key],
            bytes_rewritten=size[key],
        )
        yield _noted(context, shelf, key, done, rows[key], timed=False)


def separately(
    context: AssetExecutionContext, shelf: Shelf, spark: "SparkSession", judged: "Judgement"
) -> Generator[AssetMaterialization, None, ApplyResult]:
    """After a relayout of the whole table failed: each partition on its own, so that only what is broken is left.

    Returns:
        All partitions' results as one.

    Raises:
        Failure, RetryRequested: some partitions failed; the sentence names them.
    """
    from zorder_pipeline import pipeline

    now = opened(spark, shelf)
    rows, is_shown = pipeline.rows_by_partition(now), has_partitions(shelf.table)
    if is_shown:
        keep_in_step(context.instance, shelf.table.name, list(rows))
    keys = [part.key for part in judged.parts if judged.partitions is None or part.key in judged.partitions]
    outcomes = pipeline.carry_out_partitions(spark, judged, keys, relayout_settings(context, shelf))
    results = yield from _recorded(context, shelf, outcomes, rows, only_applied=True, is_shown=is_shown)
    applied = [result for result in results if result.decision == APPLIED]
    return replace(
        (applied or results)[-1],
        files_removed=sum(result.files_removed for result in applied),
        files_added=sum(result.files_added for result in applied),
        bytes_rewritten=sum(result.bytes_rewritten for result in applied),
        rows=sum(result.rows for result in applied),
        skipped_files=len(now.files()) - sum(result.files_removed for result in applied),
        seconds=sum(result.seconds for result in applied),
    )


def _run(context: AssetExecutionContext) -> dict[str, str]:
    """The backfill's id, by which its page counts the partition as done."""
    found = context.run.tags.get("dagster/backfill")
    return {"dagster/backfill": found} if found else {}


def why_failed(error: Exception | None) -> str:
    """What an error says, or what it is called where it says nothing."""
    return reason_of(error, 600) if error is not None and str(error).strip() else type(error).__name__
