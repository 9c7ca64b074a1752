"""Figures for alerting, as OpenMetrics text: what Dagster knows of every table, without Spark.

``zorder metrics`` prints them; ``monitoring.metrics_file`` keeps them in a file, e.g. for node_exporter's textfile
collector.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dagster import (
    AssetCheckKey,
    AssetKey,
    DagsterEventType,
    DagsterInstance,
    DagsterRunStatus,
    EventLogEntry,
    RunsFilter,
)
from dagster._core.storage.asset_check_execution_record import (
    AssetCheckExecutionRecord,
    AssetCheckExecutionRecordStatus,
)

from zorder_pipeline.config import PipelineConfig
from zorder_pipeline.errors import ZorderError
from zorder_pipeline.model.whole_file import write_whole

from .budget import BUDGET, CHAIN, OFFERS
from .checks import CHECKS
from .common import QUERY_LOG, Shelf, newest_answers
from .events import decided
from .query_log import PARSE_RATE

__all__ = ["open_metrics", "write_metrics"]

FAMILIES = {
    "zorder_analysed_timestamp_seconds": "When the gate last looked at the table.",
    "zorder_relaid_timestamp_seconds": "When the table was last relaid.",
    "zorder_failed_timestamp_seconds": "When the table's last run failed at it; 0 where it did not.",
    "zorder_decision": "The last decision about the table: 1 for the one that was made.",
    "zorder_rows": "Rows of the table at its last relayout.",
    "zorder_files_rewritten": "Files that the last relayout replaced.",
    "zorder_check_passed": "Whether the asset check passed: 1 or 0.",
    "zorder_check_timestamp_seconds": "When the asset check was last evaluated.",
    "zorder_log_statements": "Statements in the query log.",
    "zorder_log_quarantined": "Statements that could not be used.",
    "zorder_log_newest_query_timestamp_seconds": "When the newest query of the log was asked.",
}
"""Each is a gauge."""
FAILING = [DagsterRunStatus.STARTED, DagsterRunStatus.FAILURE]
"""Runs in which a step may have failed; one that somebody terminated is no failure."""
ENDED = {DagsterEventType.STEP_SUCCESS, DagsterEventType.STEP_SKIPPED, DagsterEventType.STEP_FAILURE}
EVALUATED = {AssetCheckExecutionRecordStatus.SUCCEEDED, AssetCheckExecutionRecordStatus.FAILED}
DECISIONS = ("applied", "declined", "postponed", "nothing_to_do", "not_asked")


SHARED = tuple(key.to_python_identifier() for key in (QUERY_LOG, OFFERS, BUDGET))
"""Steps that all tables of a run wait for."""


class _Sample(NamedTuple):
    family: str
    labels: dict[str, str]
    value: float


def open_metrics(instance: DagsterInstance, config: PipelineConfig) -> str:
    """The figures, family by family, with ``# EOF`` at the end."""
    seen = _Seen.by(instance, config)
    samples = [*_log(seen), *(sample for table in config.tables for sample in _table(seen, config, table.name))]
    lines = []
    for family, meaning in FAMILIES.items():
        lines += [f"# TYPE {family} gauge", f"# HELP {family} {meaning}"]
        lines += [_line(sample) for sample in samples if sample.family == family]
    return "\n".join([*lines, "# EOF", ""])


def write_metrics(instance: DagsterInstance, config: PipelineConfig, target: str | None = None) -> int:
    """Write the figures to ``target`` or the configured file, whole or not at all; returns how many.

    Raises:
        ZorderError: no file is configured, or it cannot be written.
    """
    if (named := target or config.monitoring.metrics_file) is None:
        raise ZorderError("no file for metrics: set monitoring.metrics_file in tables.yaml, or give --out")
    text = open_metrics(instance, config)
    try:
        write_whole(named, text)  # a collector must not read half a file
    except OSError as error:
        raise ZorderError(f"cannot write metrics to {named}: {error.strerror}") from error
    return sum(not line.startswith("#") for line in text.splitlines())


@dataclass(frozen=True)
class _Seen:
    """What Dagster knows of the assets, asked for all of them at once: table by table takes seconds of each minute.

    Attributes:
        failed: when the newest run that was to lay a table out failed at it, seconds since 1970, by table; 0.0 where it
            did not.
    """

    instance: DagsterInstance
    made: Mapping[AssetKey, EventLogEntry]
    checked: Mapping[AssetCheckKey, AssetCheckExecutionRecord]
    failed: Mapping[str, float]

    @classmethod
    def by(cls, instance: DagsterInstance, config: PipelineConfig) -> _Seen:
        shelves = [Shelf(config, table) for table in config.tables]
        keys = [QUERY_LOG, *(shelf.key(stage) for shelf in shelves for stage in ("cost_benefit", "clustered_table"))]
        records = instance.get_asset_records(keys)
        made = {
            record.asset_entry.asset_key: record.asset_entry.last_materialization
            for record in records
            if record.asset_entry.last_materialization is not None
        }
        checks = [AssetCheckKey(QUERY_LOG, PARSE_RATE)]
        checks += [AssetCheckKey(shelf.key("clustered_table"), name) for shelf in shelves for name, _, _ in CHECKS]
        there = [key for key in checks if key.asset_key in made]  # of what was never made nothing was checked
        checked = instance.event_log_storage.get_latest_asset_check_execution_by_key(there)
        last = {record.asset_entry.asset_key: record.asset_entry.last_run_id for record in records}
        return cls(instance, made, checked, _failed(instance, shelves, last))


def _failed(
    instance: DagsterInstance, shelves: Sequence[Shelf], last: Mapping[AssetKey, str | None]
) -> dict[str, float]:
    """See `_Seen`; the nights of many tables are few runs, of which only those are asked that may have failed.

    Args:
        last: the newest run that was to make an asset, or made it.
    """
    last_key = {shelf.table.name: shelf.key("clustered_table") for shelf in shelves}
    run_of = {name: newest for name, key in last_key.items() if (newest := last.get(key))}
    failed = dict.fromkeys(run_of, 0.0)
    if not run_of:
        return failed
    table_of = {shelf.key(stage).to_python_identifier(): shelf.table.name for shelf in shelves for stage in CHAIN}
    for record in instance.get_run_records(RunsFilter(run_ids=sorted(set(run_of.values())), statuses=FAILING)):
        run = record.dagster_run
        ended = instance.all_logs(run.run_id, of_type=ENDED)
        failures = [entry for entry in ended if entry.dagster_event_type == DagsterEventType.STEP_FAILURE]
        mine = [name for name, newest in run_of.items() if newest == run.run_id]
        for entry in failures:
            own = table_of.get(entry.step_key or "")
            for name in mine if entry.step_key in SHARED else [own] if own in mine else []:
                failed[name] = max(failed[name], entry.timestamp)
        if run.is_finished:  # killed, or ended before or between steps, of which none says so
            done = {entry.step_key for entry in ended}
            left = [name for name in mine if not failed[name] and last_key[name].to_python_identifier() not in done]
            failed |= dict.fromkeys(left, record.end_time or record.update_timestamp.timestamp())
    return failed


def _log(seen: _Seen) -> Iterator[_Sample]:
    event = seen.made.get(QUERY_LOG)
    facts = _facts(event.asset_materialization) if event is not None else {}
    for family, name in (
        ("zorder_log_statements", "statements"),
        ("zorder_log_quarantined", "quarantined"),
        ("zorder_log_newest_query_timestamp_seconds", "newest query"),
    ):
        if isinstance(facts.get(name), int | float):
            yield _Sample(family, {}, float(facts[name]))
    yield from _check(seen, QUERY_LOG, PARSE_RATE, {})


def _table(seen: _Seen, config: PipelineConfig, name: str) -> Iterator[_Sample]:
    shelf, label = Shelf(config, config.table(name)), {"table": name}
    if (judged := seen.made.get(shelf.key("cost_benefit"))) is not None:
        yield _Sample("zorder_analysed_timestamp_seconds", label, judged.timestamp)
    if name in seen.failed:
        yield _Sample("zorder_failed_timestamp_seconds", label, seen.failed[name])
    key = shelf.key("clustered_table")
    relaid = seen.made.get(key)
    moments = {"applied": relaid.timestamp if relaid else 0.0}
    for otherwise, found in newest_answers(seen.instance, shelf):
        if found.asset_observation is not None:
            decision = decided(_facts(found.asset_observation).get("decision", otherwise))
            moments[decision] = max(found.timestamp, moments.get(decision, 0.0))
    last = max(moments, key=moments.__getitem__)
    if moments[last]:
        for decision in dict.fromkeys([*DECISIONS, last]):
            yield _Sample("zorder_decision", label | {"decision": decision}, float(decision == last))
    if relaid is not None:
        facts = _facts(relaid.asset_materialization)
        yield _Sample("zorder_relaid_timestamp_seconds", label, relaid.timestamp)
        # of one that could not be looked at afterwards the rows are not known
        for family, fact in (("zorder_rows", "dagster/row_count"), ("zorder_files_rewritten", "files removed")):
            if isinstance(facts.get(fact), int | float):
                yield _Sample(family, label, float(facts[fact]))
    for check, _, _ in CHECKS:
        yield from _check(seen, key, check, label)


def _check(seen: _Seen, key: AssetKey, name: str, label: dict[str, str]) -> Iterator[_Sample]:
    found = seen.checked.get(check := AssetCheckKey(key, name))
    if found is not None and found.status not in EVALUATED:  # only planned, by a run that declined or failed
        older = seen.instance.event_log_storage.get_asset_check_execution_history(check, 1, status=EVALUATED)
        found = older[0] if older else None
    entry = found.event if found is not None else None
    if entry is None or entry.dagster_event is None:
        return
    passed = entry.dagster_event.asset_check_evaluation_data.passed
    yield _Sample("zorder_check_passed", label | {"check": name}, float(passed))
    yield _Sample("zorder_check_timestamp_seconds", label | {"check": name}, entry.timestamp)


def _facts(note: Any) -> dict[str, Any]:
    return {name: entry.value for name, entry in note.metadata.items()} if note is not None else {}


def _line(sample: _Sample) -> str:
    labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels.items())
    return f"{sample.family}{f'{{{labels}}}' if labels else ''} {sample.value:.17g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
