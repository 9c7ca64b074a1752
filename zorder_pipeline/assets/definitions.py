"""From tables.yaml to Dagster's definitions: explicit, fast to load, and without starting Spark."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable

from dagster import (
    AssetKey,
    AssetsDefinition,
    AssetSelection,
    AssetSpec,
    BetaWarning,
    DefaultScheduleStatus,
    Definitions,
    ExecutorDefinition,
    ScheduleDefinition,
    SourceAsset,
    define_asset_job,
    in_process_executor,
)
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from zorder_pipeline.config import PipelineConfig, ScheduleConfig, TableConfig, config_file, load_config
from zorder_pipeline.model.places import local_path

from .approval import approval_job
from .budget import BUDGET, nightly_budget, offers
from .checks import relayout_checks
from .common import APPROVAL_JOB, NIGHTLY_JOB, QUERY_LOG, TABLES, VALUES, DeltaSparkResource, Shelf, chain_job
from .cut_off import cut_off
from .features import correlation_graph, feature_candidates
from .gate import cost_benefit
from .history import history
from .layout import bit_allocation
from .partition_keys import PARTITIONS
from .partitions import clustered_partitions
from .planned import planned_jobs
from .query_log import query_log
from .relayout import clustered_table
from .sensors import sensors
from .source import data_table
from .stored_values import StoredValues
from .unfinished import TAG_LENGTH
from .upstream import has_partitions

__all__ = ["STAGES", "build_definitions", "load_definitions", "storage_folder"]

STAGES: tuple[Callable[[Shelf], AssetsDefinition], ...] = (
    feature_candidates,
    correlation_graph,
    bit_allocation,
    cost_benefit,
    clustered_table,
)
"""The chain of one table, in order; `query_log` comes before it and the nightly budget before its last, for all."""

UNSCHEDULED = ScheduleConfig(cron="0 2 * * *")


def load_definitions() -> Definitions:
    """The definitions of the configured tables.

    Raises:
        ConfigError: the configuration is wrong; the sentence says where.
    """
    return build_definitions(load_config(config_file(), check_paths=False))


def build_definitions(config: PipelineConfig, executor: ExecutorDefinition | None = in_process_executor) -> Definitions:
    """All assets, checks, jobs and schedules of a configuration.

    Args:
        executor: of what is materialized by hand, and of all jobs that name none: None beside the definitions of
            others, whose jobs would have it, too.
    """
    with warnings.catch_warnings():
        # backfill policies and observable sources are still called beta: once per asset, for every load
        warnings.simplefilter("ignore", BetaWarning)
        return _build(config, executor)


def _build(config: PipelineConfig, executor: ExecutorDefinition | None) -> Definitions:
    planned = planned_jobs(config)
    shelves = [Shelf(config, table) for table in config.tables]
    gone = {name for names in planned.values() for name in names} - {table.name for table in config.tables}
    shelves += [Shelf(config, TableConfig(name=name, catalog=name), gone=True) for name in sorted(gone)]
    nightly = [shelf for shelf in shelves if shelf.table.name in planned[NIGHTLY_JOB]]
    own = [shelf for shelf in shelves if chain_job(shelf.table.name) in planned]
    own_jobs = [_own_job(shelf) for shelf in own]
    jobs, schedules = list(own_jobs), []
    for shelf, job in zip(own, own_jobs, strict=True):
        if shelf.table.schedule is not None:
            schedules.append(_schedule(job.name, shelf.table.schedule))
    if nightly:
        jobs.append(_job(NIGHTLY_JOB, nightly, [BUDGET], "Analyses, judges and lays out every table of the night."))
        schedules.append(_schedule(NIGHTLY_JOB, config.schedule))
    assets: list[AssetsDefinition | SourceAsset | AssetSpec] = [
        query_log(config),
        *(data_table(shelf) for shelf in shelves),
        *(stage(shelf) for shelf in shelves for stage in STAGES),
        *(clustered_partitions(shelf) for shelf in shelves if has_partitions(shelf.table)),
    ]
    if nightly:
        assets += [offers(nightly), nightly_budget(config, nightly)]
    watching = [*sensors(config, own_jobs), cut_off()]
    if (days := config.monitoring.keep_runs_days) is not None:
        keys = [QUERY_LOG, BUDGET, *(shelf.key(stage.__name__) for shelf in shelves for stage in STAGES)]
        keys += [shelf.key(other) for shelf in shelves for other in ("data", PARTITIONS)]
        watching.append(history(days, [*(job.name for job in jobs), APPROVAL_JOB], keys))
    return Definitions(
        assets=assets,
        asset_checks=[relayout_checks(shelf) for shelf in shelves],
        jobs=[*jobs, approval_job(config)],
        schedules=schedules,
        sensors=watching,
        resources={
            "zorder_spark": DeltaSparkResource.of(config.spark.settings, alone=executor is not None),
            VALUES: StoredValues(base_dir=storage_folder(config), state=config.state),
        },
        executor=executor,
    )


def storage_folder(config: PipelineConfig) -> str | None:
    """Where values wait between two assets: under a local state folder, else where Dagster keeps such things."""
    local = local_path(config.state)
    return os.path.join(local, "assets") if local is not None and os.path.isabs(local) else None


def _own_job(shelf: Shelf) -> UnresolvedAssetJobDefinition:
    name = shelf.table.name
    return _job(chain_job(name), [shelf], [], f"Analyses, judges and lays out {name}.")


def _job(name: str, shelves: list[Shelf], also: list[AssetKey], description: str) -> UnresolvedAssetJobDefinition:
    keys = [shelf.key(stage.__name__) for shelf in shelves for stage in STAGES]
    return define_asset_job(
        name,
        AssetSelection.assets(QUERY_LOG, *keys, *also),
        description=description,
        executor_def=in_process_executor,
        tags={
            TABLES: ",".join(shelf.table.name for shelf in shelves)[:TAG_LENGTH],
            "dagster/max_runtime": str(round(3600 * shelves[0].config.monitoring.max_runtime_hours)),
        },
    )


def _schedule(job: str, schedule: ScheduleConfig | None) -> ScheduleDefinition:
    """Switched on when the configuration says when; else it can be switched on in the UI."""
    when = schedule or UNSCHEDULED
    return ScheduleDefinition(
        name=f"{job}_schedule",
        job_name=job,
        cron_schedule=when.cron,
        execution_timezone=when.time_zone,
        default_status=DefaultScheduleStatus.RUNNING if schedule else DefaultScheduleStatus.STOPPED,
    )
