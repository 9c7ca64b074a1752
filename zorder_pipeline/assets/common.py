"""What every asset needs: the Spark resource, keys and names, and errors as one sentence in the run's page."""

from __future__ import annotations

import contextlib
import hashlib
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Self

from dagster import (
    AssetExecutionContext,
    AssetKey,
    AssetRecordsFilter,
    AssetsDefinition,
    BackfillPolicy,
    CodeReferencesMetadataValue,
    DagsterInstance,
    EventLogRecord,
    Failure,
    FreshnessPolicy,
    InitResourceContext,
    LocalFileCodeReference,
    OpExecutionContext,
    RetryRequested,
    RunRecord,
    RunsFilter,
    asset,
)
from dagster_pyspark import LazyPySparkResource

from zorder_pipeline import __version__
from zorder_pipeline.config import PipelineConfig, TableConfig
from zorder_pipeline.errors import LostRaceError, RecordError, TableError, VerificationError, ZorderError
from zorder_pipeline.interrupts import stop_jobs_first
from zorder_pipeline.java import is_gone, of_spark, reason_of
from zorder_pipeline.model.places import shown_place
from zorder_pipeline.model.progress import Progress, silent

from .cut_off import at_work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.relayout.snapshot import TableSnapshot

__all__ = [
    "APPROVAL_JOB",
    "IMPLICIT",
    "NIGHTLY_JOB",
    "POOL",
    "QUERY_LOG",
    "REQUEST",
    "TABLES",
    "VALUES",
    "DeltaSparkResource",
    "Shelf",
    "backoff",
    "chain_job",
    "code_reference",
    "freshness",
    "newest_answers",
    "newest_observation",
    "newest_run",
    "opened",
    "stage_asset",
    "told",
]

NIGHTLY_JOB = "nightly_relayout"
"""Of the tables without a schedule of their own."""
QUERY_LOG = AssetKey("query_log")
POOL = "spark"
"""Dagster's pool of the assets that use Spark; its limit is set in dagster.yaml."""
APPROVAL_JOB = "answer_approval"
"""Not in the pool: what is approved can be rejected while it is at work, which holds the pool until it is done."""
IMPLICIT = "__ASSET_JOB"
"""Job of what is materialized by hand; other code locations have one of this name, too."""
VALUES = "zorder_values"
"""The resource that keeps assets' values; this and `zorder_spark` are called so that a project's own resources, which
often are `spark` and `io_manager`, can stand beside them."""
REQUEST = "zorder/request"
"""Tag of the runs that a sensor's request led to."""
TABLES = "zorder/tables"
"""Tag of the runs of our jobs: the tables that they are about."""
LOST_RACE_RETRIES = 3
NEXT_STEPS: tuple[tuple[type[ZorderError], str], ...] = (
    (LostRaceError, "run it again when the other writer is done, or schedule it when nobody writes"),
    (VerificationError, "look at the table's history (DESCRIBE HISTORY) before anything is run again, and report it"),
    (RecordError, "see that the state can be written; the table itself is laid out"),
    (TableError, "correct the table's entry in tables.yaml, or the table"),
)
GONE = "Spark's Java process ended; where it was out of memory, raise spark.driver.memory in tables.yaml"
ANY_STEP = "correct what the cause names; nothing half-done was left behind, so the run can be repeated"


class DeltaSparkResource(LazyPySparkResource):
    """dagster-pyspark's lazy session, started as the command line starts it: with Delta's jars and our errors.

    A run that is terminated stops its jobs, in whichever step that is.
    """

    SETTINGS: ClassVar[Mapping[str, str]] = {}
    ALONE: ClassVar[bool] = True

    @staticmethod
    def of(settings: Mapping[str, str], *, alone: bool = True) -> DeltaSparkResource:
        """A session with settings that Dagster neither shows nor stores, as it does a resource's own: they may be keys.

        Args:
            settings: of Spark, by full name.
            alone: whether all definitions of the code location are ours. Beside others what is materialized by hand may
                run in a process per step, of which none tells whether the run goes on.
        """

        class ConfiguredSparkResource(DeltaSparkResource):
            SETTINGS: ClassVar[Mapping[str, str]] = dict(settings)
            ALONE: ClassVar[bool] = alone

        return ConfiguredSparkResource(spark_config={})

    def _init_session(self) -> None:
        if self._spark_session is None:
            from zorder_pipeline.spark import session

            self._spark_session = session({**self.SETTINGS, **self.spark_config}, "zorder dagster")

    @contextlib.contextmanager
    def yield_for_execution(self, context: InitResourceContext) -> Iterator[Self]:
        """Of the whole run: it says for whom it waits, and whether it goes on is seen by others."""
        run = context.run
        if context.instance is None or run is None or (run.job_name == IMPLICIT and not self.ALONE):
            yield self
            return
        say = context.log.info if context.log is not None else silent
        pool = None if run.job_name == APPROVAL_JOB else POOL
        with at_work(context.instance, run.run_id, pool, say):
            yield self

    @property
    def session(self) -> SparkSession:
        """The Spark session; the first use starts it."""
        found: SparkSession = self.spark_session
        stop_jobs_first(found)
        return found


@dataclass(frozen=True)
class Shelf:
    """One table's place among the assets: its configuration and the keys of its stages.

    Attributes:
        gone: it was taken out of the configuration after a run of its stages was planned, see `planned_jobs`.
    """

    config: PipelineConfig
    table: TableConfig
    gone: bool = False

    def key(self, stage: str) -> AssetKey:
        """``[table, stage]``."""
        return AssetKey([self.table.name, stage])

    def command(self, *words: str) -> str:
        """A command of ``zorder`` about the table, to be pasted into a shell."""
        by = self.table.layout.committer  # a Delta that nobody tested is refused by the others
        other = () if by == "auto" else ("--committer", by)
        return shlex.join(("zorder", words[0], "--table", shown_place(self.table.table), *words[1:], *other))

    def saying(self, context: AssetExecutionContext) -> Progress:
        """Logs sentences as the table's: a night on the command line is one stream of lines about all tables."""
        return lambda sentence: context.log.info(f"{self.table.name}: {sentence}")

    def tags(self, stage: str) -> dict[str, str]:
        """The configured tags, and ours by which assets are found: ``tag:zorder/stage=cost_benefit``."""
        return {**self.table.tags, "zorder/table": self.table.name, "zorder/stage": stage}


def stage_asset(
    shelf: Shelf, stage: str, kinds: set[str], code: Mapping[str, Any], **options: Any
) -> Callable[[Callable[..., Any]], AssetsDefinition]:
    """Dagster's ``@asset`` with what all of a table's assets have in common.

    Args:
        code: what of the configuration decides the result; a change makes Dagster show the asset as stale.
        options: further arguments of ``@asset``.
    """
    settings = hashlib.blake2b(repr(sorted(code.items())).encode(), digest_size=4).hexdigest()
    metadata = dict(options.pop("metadata", {}))

    def decorate(function: Callable[..., Any]) -> AssetsDefinition:
        made: AssetsDefinition = asset(
            key=shelf.key(stage),
            group_name=shelf.table.name,
            kinds=kinds,
            owners=list(shelf.table.owners) or None,
            tags=shelf.tags(stage),
            code_version=f"{__version__}-{settings}",
            pool=POOL,
            io_manager_key=VALUES,
            backfill_policy=BackfillPolicy.single_run(),
            metadata=metadata | code_reference(function),
            **options,
        )(function)
        return made

    return decorate


def code_reference(function: Callable[..., Any]) -> dict[str, CodeReferencesMetadataValue]:
    """Where the asset's code is, as Dagster links it."""
    code = function.__code__
    place = LocalFileCodeReference(file_path=code.co_filename, line_number=code.co_firstlineno, label="asset")
    return {"dagster/code_references": CodeReferencesMetadataValue(code_references=[place])}


def freshness(config: PipelineConfig) -> FreshnessPolicy | None:
    """When Dagster calls an asset overdue; None when nothing is configured."""
    hours = config.monitoring.max_age_hours
    return FreshnessPolicy.time_window(fail_window=timedelta(hours=hours)) if hours is not None else None


def opened(spark: SparkSession, shelf: Shelf) -> TableSnapshot:
    """The table as it is now.

    Raises:
        TableError: there is no such Delta table.
    """
    from zorder_pipeline.relayout.snapshot import open_table

    return open_table(spark, shelf.table.table, committer=shelf.table.layout.committer)


def chain_job(table: str) -> str:
    """Name of the job that runs one table's chain."""
    return f"relayout_{table}"


def backoff(first: int, most: int, tries: int) -> int:
    """Seconds to wait after so many tries: twice as long each time, up to ``most``.

    >>> [backoff(5, 60, tries) for tries in range(6)]
    [5, 10, 20, 40, 60, 60]
    """
    return int(min(most, first * 2 ** min(tries, 20)))


def newest_run(instance: DagsterInstance, request: str) -> RunRecord | None:
    """The newest run that a sensor's request led to."""
    return next(iter(instance.get_run_records(RunsFilter(tags={REQUEST: request}), limit=1)), None)


def newest_observation(instance: DagsterInstance, key: AssetKey) -> EventLogRecord | None:
    """The newest observation of an asset, which Dagster's own records of assets do not hold."""
    found = instance.fetch_observations(AssetRecordsFilter(asset_key=key), limit=1).records
    return found[0] if found else None


def newest_answers(instance: DagsterInstance, shelf: Shelf) -> list[tuple[str, EventLogRecord]]:
    """The newest observation of each stage that notes that a table stays as it is, with what that means by itself."""
    stages = {"feature_candidates": "not_asked", "clustered_table": "declined"}
    found = [(meant, newest_observation(instance, shelf.key(stage))) for stage, meant in stages.items()]
    return [(meant, record) for meant, record in found if record is not None]


@contextlib.contextmanager
def told(context: AssetExecutionContext | OpExecutionContext, about: str) -> Iterator[None]:
    """Turn an expected error, or one of Spark's, into the run's failure sentence; only a lost race is tried again.

    Args:
        about: the table, or the table and the partition.
    """
    try:
        yield
    except LostRaceError as error:
        if context.retry_number < LOST_RACE_RETRIES:
            wait = backoff(30, 240, context.retry_number)
            context.log.warning(f"{about}: {error}; trying again in {wait} s")
            raise RetryRequested(LOST_RACE_RETRIES, wait) from error
        raise _failure(about, error) from error
    except Exception as error:
        if not isinstance(error, ZorderError) and not of_spark(error):
            raise  # of ours, and nobody's to correct: its trace is what helps
        raise _failure(about, error) from error


def _failure(about: str, error: Exception) -> Failure:
    step = next((text for kind, text in NEXT_STEPS if isinstance(error, kind)), ANY_STEP)
    cause = str(error) if isinstance(error, ZorderError) else GONE if is_gone(error) else reason_of(error, 600)
    table, _, partition = about.partition(" ")
    facts = {"table": table, "cause": cause, "next step": step}
    return Failure(
        f"{about}: {cause}", metadata=facts | ({"partition": partition} if partition else {}), allow_retries=False
    )
