"""The chain as a Dagster run in this process, for the command line and the demo; the UI shows it like any other run."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dagster import (
    AssetCheckSeverity,
    AssetKey,
    AssetMaterialization,
    AssetObservation,
    BetaWarning,
    DagsterEvent,
    DagsterInstance,
    Definitions,
    ExecuteInProcessResult,
    InitLoggerContext,
    LoggerDefinition,
)

from zorder_pipeline.config import PipelineConfig
from zorder_pipeline.errors import ZorderError
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.results import ApplyResult

from .common import QUERY_LOG
from .definitions import NIGHTLY_JOB, STAGES, build_definitions
from .records import Relayout

__all__ = ["ChainRun", "TableOutcome", "quiet_dagster", "run_job", "run_tables"]

Progress: TypeAlias = Callable[[str], None]
LISTENER = "progress"

LAST = STAGES[-1].__name__


@dataclass(frozen=True)
class TableOutcome:
    """How a run ended for one table.

    Attributes:
        decision: ``applied``, ``declined``, ``nothing_to_do``, ``not_asked`` (no usable query) or ``failed``.
        reasons: sentences, the deciding one first.
        figures: the plain figures of the last asset that was made (files, rows, version, ...), by name.
        failed_checks: names of checks that did not pass and say that something is wrong, not merely worth a look.
    """

    table: str
    decision: str
    reasons: tuple[str, ...]
    figures: dict[str, Any] = field(default_factory=dict)
    failed_checks: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChainRun:
    """One table's way through the chain.

    Attributes:
        plan: what was learned.
        preview: what the gate said about it.
        relayout: what was done, or None when the gate declined or nothing was left to do.
        outcome: the same in words.
    """

    plan: Plan
    preview: ApplyResult
    relayout: Relayout | None
    outcome: TableOutcome


def run_tables(
    config: PipelineConfig,
    tables: Sequence[str] = (),
    *,
    instance: DagsterInstance | None = None,
    progress: Progress | None = None,
) -> tuple[TableOutcome, ...]:
    """Run the whole chain for ``tables`` (all without any); a table that fails does not stop the others.

    Args:
        instance: where the run is recorded, such as ``DagsterInstance.get()``; a temporary one without it.
        progress: called with what the assets log.

    Raises:
        ConfigError: a table is not configured.
    """
    chosen = [config.table(name).name for name in tables] or [table.name for table in config.tables]
    result = _execute(build_definitions(config), None, chosen, instance, progress)
    return tuple(_outcome(name, result.all_events) for name in chosen)


def run_job(
    definitions: Definitions, instance: DagsterInstance, table: str, progress: Progress | None = None
) -> ChainRun:
    """Run the job that the schedule of ``table`` would run, for this table alone.

    Raises:
        ZorderError: a stage failed, or the log has no usable query of the table; the sentence says which and why.
    """
    own = f"relayout_{table}"
    job = own if own in {found.name for found in definitions.resolve_all_job_defs()} else NIGHTLY_JOB
    result = _execute(definitions, job, [table], instance, progress)
    outcome = _outcome(table, result.all_events)
    if outcome.decision in ("failed", "not_asked"):
        raise ZorderError(outcome.reasons[0])
    return ChainRun(
        plan=result.asset_value(AssetKey([table, "bit_allocation"])),
        preview=result.asset_value(AssetKey([table, "cost_benefit"])),
        relayout=result.asset_value(AssetKey([table, LAST])) if outcome.decision == "applied" else None,
        outcome=outcome,
    )


@contextlib.contextmanager
def quiet_dagster() -> Iterator[None]:
    """Without Dagster's warnings about its own beta features while the block runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BetaWarning)
        yield


def _execute(
    definitions: Definitions,
    job: str | None,
    tables: Sequence[str],
    instance: DagsterInstance | None,
    progress: Progress | None,
) -> ExecuteInProcessResult:
    """Run the tables' assets in this process; what they log goes to ``progress`` (and to the run's page)."""
    listened = Definitions.merge(definitions, Definitions(loggers={LISTENER: _listener(progress)}))
    found = listened.resolve_implicit_global_asset_job_def() if job is None else listened.resolve_job_def(job)
    keys = [AssetKey([table, stage.__name__]) for table in tables for stage in STAGES]
    return found.execute_in_process(
        run_config={"loggers": {LISTENER: {}}},
        instance=instance,
        asset_selection=[QUERY_LOG, *keys],
        raise_on_error=False,
        tags={"zorder/started_by": "command line"},
    )


def _listener(progress: Progress | None) -> LoggerDefinition:
    class _Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            facts = getattr(record, "dagster_meta", {})
            if progress is not None and not facts.get("dagster_event"):
                progress(facts.get("orig_message") or record.getMessage())

    def make(_: InitLoggerContext) -> logging.Logger:
        made = logging.Logger(LISTENER, logging.INFO)
        made.addHandler(_Handler())
        return made

    return LoggerDefinition(make, description="what the assets say, for the command line")


def _outcome(table: str, events: Sequence[DagsterEvent]) -> TableOutcome:
    failures = [event for event in events if event.is_step_failure and _concerns(event, table)]
    checks = [
        event.asset_check_evaluation_data for event in events if event.event_type_value == "ASSET_CHECK_EVALUATION"
    ]
    wrong = [check for check in checks if not check.passed and check.severity == AssetCheckSeverity.ERROR]
    broken = tuple(check.check_name for check in wrong if check.asset_key.path[0] == table)
    notes = {key: note for event in events if (note := _note(event)) is not None for key in [note.asset_key]}
    if failures:
        return TableOutcome(table, "failed", (_sentence(failures[0]),), failed_checks=broken)
    last = notes.get(AssetKey([table, LAST]))
    if isinstance(last, AssetMaterialization):
        figures = _figures(last)
        return TableOutcome(table, "applied", _reasons(last), figures, broken)
    if last is not None:
        figures = _figures(last)
        decision = str(figures.pop("decision", "declined")).replace(" ", "_")
        return TableOutcome(table, decision, _reasons(last), figures)
    unasked = notes.get(AssetKey([table, STAGES[0].__name__]))
    if isinstance(unasked, AssetObservation) and unasked.description:
        return TableOutcome(table, "not_asked", (unasked.description,), _figures(unasked))
    return TableOutcome(table, "failed", ("the run ended before this table's turn",))


def _concerns(event: DagsterEvent, table: str) -> bool:
    step = event.step_key or ""
    mine = {f"{table}__{stage.__name__}" for stage in STAGES}
    return step == QUERY_LOG.path[-1] or step in mine or step.startswith(f"{table}__{LAST}_")


def _note(event: DagsterEvent) -> AssetMaterialization | AssetObservation | None:
    if event.event_type_value == "ASSET_MATERIALIZATION":
        return event.step_materialization_data.materialization
    if event.event_type_value == "ASSET_OBSERVATION":
        return event.asset_observation_data.asset_observation
    return None


def _sentence(event: DagsterEvent) -> str:
    failure = event.step_failure_data
    if failure.user_failure_data is not None and failure.user_failure_data.description:
        return str(failure.user_failure_data.description)
    error = failure.error
    while error is not None and error.cause is not None:
        error = error.cause
    return (error.message if error else "unknown failure").strip().splitlines()[0]


def _reasons(note: AssetMaterialization | AssetObservation) -> tuple[str, ...]:
    listed = note.metadata.get("reasons")
    lines = str(listed.value).splitlines() if listed is not None else [note.description or ""]
    return tuple(line.removeprefix("- ") for line in lines)


def _figures(note: AssetMaterialization | AssetObservation) -> dict[str, Any]:
    """Figures that fit a line of a terminal: no pictures, no tables."""
    plain = {name: entry.value for name, entry in note.metadata.items()}
    short = {name: value for name, value in plain.items() if isinstance(value, int | float | str)}
    return {name: value for name, value in short.items() if not isinstance(value, str) or len(value) < 100}
