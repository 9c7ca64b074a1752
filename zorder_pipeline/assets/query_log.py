"""The shared first asset: what was asked, of which tables, and what of the logs could not be used."""

import hashlib
from collections.abc import Iterator, Sequence, Set
from datetime import UTC, datetime
from typing import Any

from dagster import (
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetExecutionContext,
    AssetsDefinition,
    DagsterInstance,
    DataVersion,
    Output,
    asset,
)

from zorder_pipeline import __version__
from zorder_pipeline.config import PipelineConfig, TableConfig
from zorder_pipeline.errors import ConfigError, LogError
from zorder_pipeline.java import reason_of
from zorder_pipeline.model.places import shown_place
from zorder_pipeline.model.wording import counted
from zorder_pipeline.model.workload import QueryLog
from zorder_pipeline.query_log.intake.stored import StoredLog

from .budget import CHAIN, steps_of
from .common import POOL, QUERY_LOG, VALUES, DeltaSparkResource, Shelf, code_reference, freshness, told
from .metadata import log_facts, percent
from .repeated import noted_repeated
from .source import observations

__all__ = ["check_parse_rate", "query_log"]

PARSE_RATE = "parse_rate"
FEW = 20
"""Of fewer statements that are newly read one alone would make a share that warns."""
STATE = "state"
"""Under this name the metadata tells for which state the log was read."""


def query_log(config: PipelineConfig) -> AssetsDefinition:
    """The asset ``query_log``: all logs, typed by the schemas of the configured tables."""

    parsing = AssetCheckSpec(PARSE_RATE, asset=QUERY_LOG, description=check_parse_rate.__doc__)

    def _query_log(
        context: AssetExecutionContext, zorder_spark: DeltaSparkResource
    ) -> Iterator[Output[QueryLog] | Any]:
        from zorder_pipeline import pipeline

        if (other := _other_state(context.instance, config.state)) is not None:
            here = shown_place(config.state)
            context.log.warning(
                f"query_log was last made for the state {other}, and here it is {here}: unless that was moved, two "
                "configurations share this DAGSTER_HOME and show each other's query log and budget; give each one"
            )
        # before the tables' own assets start, whose data versions they are
        for seen in observations(config, _tables(config, steps_of(context))):
            context.log_event(seen)
        with told(context, "query_log"):
            added, log, repeated = read_logs(context, zorder_spark, config)
            expired = _expired(context, zorder_spark, config)
            for name, count in pipeline.tidy_state(zorder_spark.session, config.state).items():
                context.log.info(f"merged {count:,} small files of the state's table {name}")
        new = {"new statements": added.log.lines, "new log files": added.files}
        facts = log_facts(log, config) | new | expired | {STATE: shown_place(config.state)} | noted_repeated(repeated)
        yield Output(log, metadata=facts, data_version=DataVersion(_version(log)))
        yield check_parse_rate(log, added.log, config.monitoring.min_parsed_share)

    made: AssetsDefinition = asset(
        key=QUERY_LOG,
        group_name="query_log",
        kinds={"pyspark"},
        pool=POOL,
        io_manager_key=VALUES,
        code_version=__version__,
        check_specs=[parsing],
        freshness_policy=freshness(config),
        metadata=code_reference(_query_log),
        description=(
            "**What was asked, of which tables?** Every statement of the configured query logs, taken apart into the "
            "comparisons that each table is filtered by. What cannot be used is counted with its reason."
        ),
    )(_query_log)
    return made


def _tables(config: PipelineConfig, steps: Set[str]) -> Sequence[TableConfig]:
    """Those that a run is about, by its steps; all where it reads the log alone."""
    shelves = [Shelf(config, table) for table in config.tables]
    own = [one.table for one in shelves if any(one.key(stage).to_python_identifier() in steps for stage in CHAIN)]
    return own or config.tables


def _other_state(instance: DagsterInstance, state: str) -> str | None:
    """The state of another configuration that has an asset of this name in the same instance; None without one."""
    event = instance.get_latest_materialization_event(QUERY_LOG)
    noted = event.asset_materialization.metadata.get(STATE) if event and event.asset_materialization else None
    found = "" if noted is None else shown_place(str(noted.value))
    return found if found not in ("", shown_place(state)) else None


def check_parse_rate(log: QueryLog, new: QueryLog, least: float) -> AssetCheckResult:
    """Enough of the log's statements, and of those newly read, can be used or are known to be of no use."""
    read = [("statement", log), *([("new statement", new)] if new.lines >= FEW else [])]
    bad, new_bad = (sum(one.quarantined.values()) for one in (log, new))
    return AssetCheckResult(
        passed=all(_readable(one) >= least for _, one in read),
        check_name=PARSE_RATE,
        severity=AssetCheckSeverity.WARN,
        description="; ".join(_parsed(what, one, least) for what, one in read),
        metadata={"statements": log.lines, "quarantined": bad, "new statements": new.lines, "new quarantined": new_bad},
    )


def _readable(log: QueryLog) -> float:
    return 1 - sum(log.quarantined.values()) / log.lines if log.lines else 1.0


def _parsed(what: str, log: QueryLog, least: float) -> str:
    sentence = f"{percent(_readable(log))} of {counted(log.lines, what)} can be read"
    if _readable(log) >= least:
        return sentence
    reason = max(log.quarantined, key=log.quarantined.__getitem__)
    return f"{sentence}, less than {percent(least)}; most often: {reason} ({log.quarantined[reason]:,}); see quarantine"


def read_logs(
    context: AssetExecutionContext, zorder_spark: DeltaSparkResource, config: PipelineConfig
) -> tuple[StoredLog, QueryLog, dict[str, str]]:
    """Add what is new in the configured logs to the state; returns that, the queries of the retention time, and which
    tables stand twice in the configuration (`zorder_pipeline.pipeline.repeated`).

    A table that cannot be opened is left to its own assets to complain about, and its queries are kept; a log that
    cannot be read is left to the next night, as long as there is another. Without any log what was recorded counts, or
    was ingested by hand.

    Raises:
        ConfigError: no log is configured, and the state holds none.
        LogError: no log can be read.
    """
    from zorder_pipeline import pipeline
    from zorder_pipeline.pipeline.repeated import repeated

    there = f"{counted(len(config.tables), 'table')} and {counted(len(config.query_logs), 'query log')}"
    context.log.info(f"opening {there} in Spark")
    known = pipeline.configured_tables(zorder_spark.session, config, context.log.warning)
    added, unread, places = [], [], [log.path for log in config.query_logs]
    for log in config.query_logs:
        source = pipeline.LogSource(log.path, log.format, log.dialect, log.time_zone)
        try:
            new = pipeline.ingest_into(
                zorder_spark.session, config.state, [source], known, config.views, context.log.info, places
            )
            added.append(new)
        except LogError as error:
            unread.append(error)
            context.log.warning(f"{error}; going on without what is new there")
    if unread and not added:
        raise unread[0]
    names = [table.name for table in config.tables]
    stored = pipeline.stored_log(zorder_spark.session, config.state, names, config.retention_days)
    if not config.query_logs and not stored.lines:
        raise ConfigError(
            f"no query log is configured, and none is recorded in {shown_place(config.state)}: name one under "
            "query_logs: in tables.yaml, or record sessions into that state (docs/reading.md)"
        )
    return StoredLog.merged(added), stored, repeated(known)


def _expired(
    context: AssetExecutionContext, zorder_spark: DeltaSparkResource, config: PipelineConfig
) -> dict[str, int]:
    """Delete from the state what is older than ``retention_days``; how much that was, for the metadata.

    What cannot be deleted now is left to the next night: the log is read all the same.
    """
    from zorder_pipeline import pipeline

    names, days = [table.name for table in config.tables], config.retention_days
    try:
        deleted = pipeline.expire(zorder_spark.session, config.state, names, days)
    except Exception as error:
        context.log.warning(
            f"what is older than {days} days (retention_days) could not be deleted from {shown_place(config.state)}: "
            f"{reason_of(error)}; the next run tries it again"
        )
        return {}
    told = {"expired queries": "query_log", "expired quarantined lines": "quarantine"}
    for name, count in deleted.items():
        again = ", or read again since" if name in told.values() else ""
        context.log.info(f"deleted {count:,} of the state's {name}, older than {days} days (retention_days){again}")
    return {fact: deleted.get(name, 0) for fact, name in told.items()}


def _version(log: QueryLog) -> str:
    """The newest query's time and a digest of all: the same log again is the same version."""
    digest = hashlib.blake2b(digest_size=8)
    for query in log.queries:
        digest.update(query.fingerprint.encode())
    newest = max((query.timestamp for query in log.queries if query.timestamp is not None), default=None)
    mark = "no time" if newest is None else datetime.fromtimestamp(newest / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{mark} {digest.hexdigest()}"
