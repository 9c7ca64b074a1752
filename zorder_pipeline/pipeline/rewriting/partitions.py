"""Chosen partitions of a table, one after the other: one that fails leaves the others done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from zorder_pipeline.errors import NoPartitionError, PlanError, TableError
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.candidate import INCREMENTAL
from zorder_pipeline.model.partition_key import partition_condition, partition_key
from zorder_pipeline.model.plan import KEPT, Plan
from zorder_pipeline.model.progress import Progress
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.pipeline.judging.judgements import Judgement
from zorder_pipeline.pipeline.learning.keeping import present_plan
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table

from .apply import applied, carry_out
from .relayout_settings import RelayoutSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PartitionOutcome", "apply_partitions", "carry_out_partitions", "rows_by_partition"]


@dataclass(frozen=True)
class PartitionOutcome:
    """How it went with one partition.

    Attributes:
        key: see `zorder_pipeline.model.partition_key`.
        result: what was done, None when it failed.
        error: why it failed, None when it did not.
    """

    key: str
    result: ApplyResult | None = None
    error: Exception | None = None


def apply_partitions(
    spark: SparkSession,
    table: str,
    plan: Plan,
    keys: Sequence[str],
    settings: RelayoutSettings,
    *,
    gate: GateSettings | None = None,
) -> Iterator[PartitionOutcome]:
    """Rewrite partitions by ``plan``, each on its own: the gate is asked, and committed, once per partition.

    By a plan that offers nothing, what is new is laid out by the layout that the table lies by.

    Args:
        keys: the partitions; one that the table does not have fails like any other.
        gate: what it assumes and demands.

    Yields:
        How it went with each, as soon as that is known.

    Raises:
        TableError: there is no such table.
    """
    snapshot = open_table(spark, table, committer=settings.committer)
    plan = _with_the_present_layout(spark, snapshot, plan, settings.state)
    types = snapshot.partition_types

    def one(key: str) -> ApplyResult:
        try:
            return applied(spark, table, plan, settings, where=partition_condition(key, types), gate=gate)
        except NoPartitionError as error:  # it never was, or others deleted it meanwhile
            there = list(rows_by_partition(open_table(spark, table, committer=settings.committer)))
            some = f", e.g. {there[0]}" if there else ""
            why = f"there is no such partition; {snapshot.location} has {len(there):,}{some}"
            raise TableError(why) from error

    return _each(keys, one, settings.progress)


def _with_the_present_layout(spark: SparkSession, snapshot: TableSnapshot, plan: Plan, state: str | None) -> Plan:
    """A plan that offers nothing is older than what is new in the table, else it would offer to lay that out.

    What the present layout promised counts by the new files' share of the table: it may have been promised of it whole.
    """
    if state is None or plan.spec is not None or plan.candidates:
        return plan
    present = present_plan(spark, snapshot, state)
    if present is None or present.spec is None:
        return plan
    try:
        present.refuse_unless_fits(snapshot.table_id, snapshot.schema)
    except PlanError:  # the next night learns another
        return plan
    origin = "learned" if present.origin == KEPT else present.origin
    return replace(present, origin=origin, action=INCREMENTAL, candidates=(), partitions=())


def carry_out_partitions(
    spark: SparkSession,
    judged: Judgement,
    keys: Sequence[str],
    settings: RelayoutSettings,
) -> Iterator[PartitionOutcome]:
    """Do what was decided about a table partition by partition; the gate is not asked again.

    Args:
        keys: see `apply_partitions`, as for what it yields.
    """

    def one(key: str) -> ApplyResult:
        return carry_out(spark, replace(judged, partitions=(key,)), settings)

    return _each(keys, one, settings.progress)


def _each(keys: Sequence[str], one: Callable[[str], ApplyResult], say: Progress) -> Iterator[PartitionOutcome]:
    for number, key in enumerate(keys, 1):
        say(f"partition {number} of {len(keys)}: {key}")
        try:
            outcome = PartitionOutcome(key, result=one(key))
        except Exception as error:  # whatever is wrong with one partition, the others are done
            outcome = PartitionOutcome(key, error=error)
        yield outcome


def rows_by_partition(snapshot: TableSnapshot) -> dict[str, int]:
    """Rows of each partition of a table, by its key, in order; empty for a table without partitions."""
    files, columns = snapshot.files(), snapshot.partition_columns
    if not columns:
        return {}
    rows: dict[tuple[str | None, ...], int] = {}
    for values, count in zip(files.partitions, files.rows.tolist(), strict=True):
        rows[values] = rows.get(values, 0) + count
    ordered = sorted(rows, key=lambda values: tuple((value is not None, value or "") for value in values))
    return {partition_key(columns, values): rows[values] for values in ordered}
