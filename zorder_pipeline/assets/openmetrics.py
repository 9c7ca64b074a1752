"""Figures for alerting, as OpenMetrics text: what Dagster knows of every table, without Spark.

``zorder metrics`` prints them; ``monitoring.metrics_file`` keeps them in a file, e.g. for node_exporter's textfile
collector.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dagster import AssetCheckKey, AssetKey, AssetRecordsFilter, DagsterInstance, EventLogRecord
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

from zorder_pipeline.config import PipelineConfig
from zorder_pipeline.errors import ZorderError

from .checks import CHECKS
from .common import QUERY_LOG, Shelf
from .events import decided
from .query_log import PARSE_RATE

__all__ = ["open_metrics", "write_metrics"]

FAMILIES = {
    "zorder_analysed_timestamp_seconds": "When the gate last looked at the table.",
    "zorder_relaid_timestamp_seconds": "When the table was last relaid.",
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
EVALUATED = {AssetCheckExecutionRecordStatus.SUCCEEDED, AssetCheckExecutionRecordStatus.FAILED}
DECISIONS = ("applied", "declined", "postponed", "nothing_to_do", "not_asked")


class _Sample(NamedTuple):
    family: str
    labels: dict[str, str]
    value: float


def open_metrics(instance: DagsterInstance, config: PipelineConfig) -> str:
    """The figures, family by family, with ``# EOF`` at the end."""
    samples = [*_log(instance), *(sample for table in config.tables for sample in _table(instance, config, table.name))]
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
    text, path = open_metrics(instance, config), Path(named)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_name(f".{path.name}.{os.getpid()}")  # a collector must not read half a file
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)
    except OSError as error:
        raise ZorderError(f"cannot write metrics to {named}: {error.strerror}") from error
    return sum(not line.startswith("#") for line in text.splitlines())


def _log(instance: DagsterInstance) -> Iterator[_Sample]:
    event = instance.get_latest_materialization_event(QUERY_LOG)
    facts = _facts(event.asset_materialization) if event is not None else {}
    for family, name in (
        ("zorder_log_statements", "statements"),
        ("zorder_log_quarantined", "quarantined"),
        ("zorder_log_newest_query_timestamp_seconds", "newest query"),
    ):
        if isinstance(facts.get(name), int | float):
            yield _Sample(family, {}, float(facts[name]))
    yield from _check(instance, QUERY_LOG, PARSE_RATE, {})


def _table(instance: DagsterInstance, config: PipelineConfig, name: str) -> Iterator[_Sample]:
    shelf, label = Shelf(config, config.table(name)), {"table": name}
    if (judged := instance.get_latest_materialization_event(shelf.key("cost_benefit"))) is not None:
        yield _Sample("zorder_analysed_timestamp_seconds", label, judged.timestamp)
    key = shelf.key("clustered_table")
    relaid = instance.get_latest_materialization_event(key)
    noted, unasked = _observed(instance, key), _observed(instance, shelf.key("feature_candidates"))
    moments = {"applied": relaid.timestamp if relaid else 0.0}
    for seen, otherwise in ((unasked, "not_asked"), (noted, "declined")):
        if seen is not None and seen.asset_observation is not None:
            decision = decided(_facts(seen.asset_observation).get("decision", otherwise))
            moments[decision] = max(seen.timestamp, moments.get(decision, 0.0))
    last = max(moments, key=moments.__getitem__)
    if moments[last]:
        for decision in dict.fromkeys([*DECISIONS, last]):
            yield _Sample("zorder_decision", label | {"decision": decision}, float(decision == last))
    if relaid is not None:
        facts = _facts(relaid.asset_materialization)
        yield _Sample("zorder_relaid_timestamp_seconds", label, relaid.timestamp)
        yield _Sample("zorder_rows", label, float(facts.get("dagster/row_count", 0)))
        yield _Sample("zorder_files_rewritten", label, float(facts.get("files removed", 0)))
    for check, _, _ in CHECKS:
        yield from _check(instance, key, check, label)


def _observed(instance: DagsterInstance, key: AssetKey) -> EventLogRecord | None:
    """The newest observation of an asset."""
    found = instance.fetch_observations(AssetRecordsFilter(asset_key=key), limit=1).records
    return found[0] if found else None


def _check(instance: DagsterInstance, key: AssetKey, name: str, label: dict[str, str]) -> Iterator[_Sample]:
    # the newest is none in a run that declined or failed: only planned there
    found = instance.event_log_storage.get_asset_check_execution_history(AssetCheckKey(key, name), 1, status=EVALUATED)
    event = found[0].event.dagster_event if found and found[0].event is not None else None
    if event is None:
        return
    passed = event.asset_check_evaluation_data.passed
    yield _Sample("zorder_check_passed", label | {"check": name}, float(passed))
    yield _Sample("zorder_check_timestamp_seconds", label | {"check": name}, found[0].create_timestamp)


def _facts(note: Any) -> dict[str, Any]:
    return {name: entry.value for name, entry in note.metadata.items()} if note is not None else {}


def _line(sample: _Sample) -> str:
    labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels.items())
    return f"{sample.family}{f'{{{labels}}}' if labels else ''} {sample.value:.17g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
