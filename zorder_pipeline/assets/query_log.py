"""The shared first asset: what was asked, of which tables, and what of the logs could not be used."""

import hashlib
from collections.abc import Iterator
from typing import Any

from dagster import AssetExecutionContext, AssetsDefinition, DataVersion, Output, asset

from zorder_pipeline import __version__
from zorder_pipeline.config import PipelineConfig
from zorder_pipeline.errors import ConfigError, TableError
from zorder_pipeline.model.workload import QueryLog
from zorder_pipeline.query_log.store import StoredLog

from .common import QUERY_LOG, DeltaSparkResource, told
from .metadata import log_facts

__all__ = ["query_log"]


def query_log(config: PipelineConfig) -> AssetsDefinition:
    """The asset ``query_log``: all logs, typed by the schemas of the configured tables."""

    @asset(
        key=QUERY_LOG,
        group_name="query_log",
        kinds={"pyspark"},
        pool="spark",
        code_version=__version__,
        description=(
            "**What was asked, of which tables?** Every statement of the configured query logs, taken apart into the "
            "comparisons that each table is filtered by. What cannot be used is counted with its reason."
        ),
    )
    def _query_log(context: AssetExecutionContext, spark: DeltaSparkResource) -> Iterator[Output[QueryLog]]:
        with told(context, "query_log"):
            added, log = read_logs(context, spark, config)
        facts = log_facts(log, config) | {"new statements": added.log.lines, "new log files": added.files}
        yield Output(log, metadata=facts, data_version=DataVersion(_digest(log)))

    return _query_log


def read_logs(
    context: AssetExecutionContext, spark: DeltaSparkResource, config: PipelineConfig
) -> tuple[StoredLog, QueryLog]:
    """Add what is new in the configured logs to the state; returns that, and the queries of the retention time.

    A table that cannot be opened is left to its own assets to complain about.
    """
    from zorder_pipeline import pipeline
    from zorder_pipeline.relayout.snapshot import open_table

    if not config.query_logs:
        raise ConfigError("no query log is configured: name one under query_logs: in tables.yaml")
    known: dict[str, Any] = {}
    for table in config.tables:
        try:
            snapshot = open_table(spark.session, table.table)
        except TableError as error:
            context.log.warning(f"{table.name}: {error}")
            continue
        known[table.name] = (snapshot, pipeline.names_of(table.table, snapshot, table.names))
    sources = [pipeline.LogSource(log.path, log.format, log.dialect, log.time_zone) for log in config.query_logs]
    added = pipeline.ingest_into(spark.session, config.state, sources, known, config.views, context.log.info)
    names = [table.name for table in config.tables]
    return added, pipeline.stored_log(spark.session, config.state, names, config.retention_days)


def _digest(log: QueryLog) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for query in log.queries:
        digest.update(query.fingerprint.encode())
    return digest.hexdigest()
