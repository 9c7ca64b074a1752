"""The chain as a Dagster run in this process, for the command line and the demo; the UI shows it like any other run."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from dagster import (
    AssetCheckSeverity,
    AssetKey,
    AssetMaterialization,
    AssetObservation,
    DagsterEvent,
    DagsterInstance,
    Definitions,
    ExecuteInProcessResult,
)

from zorder_pipeline.config import PipelineConfig
from zorder_pipeline.errors import ConfigError, ZorderError
from zorder_pipeline.model.partition_key import spelled
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.progress import Progress
from zorder_pipeline.model.results import ApplyResult

from .budget import BUDGET
from .common import NIGHTLY_JOB, QUERY_LOG, chain_job
from .definitions import STAGES, build_definitions
from .events import decided, figures_of, note_of, reasons_of, sentence_of
from .layout import bit_allocation
from .listening import LISTENER, interruption, is_of_a_check, listener
from .partition_keys import PARTITIONS, partitions_of
from .records import Relayout
from .upstream import missing_partitions

__all__ = ["ChainRun", "TableOutcome", "run_job", "run_tables"]

LAST = STAGES[-1].__name__


@dataclass(frozen=True)
class TableOutcome:
    """How a run ended for one table.

    Attributes:
        decision: ``applied``, ``declined``, ``postponed``, ``nothing_to_do``, ``not_asked`` (no usable query) or
            ``failed``.
        reasons: sentences, the deciding one first.
        figures: the plain figures of the last asset that was made (files, rows, version, ...), by name.
        failed_checks: names of checks that did not pass and say that something is wrong, not merely worth a look.
        partitions: the same figures, with ``decision`` and ``reasons``, by partition, when some were asked for.
    """

    table: str
    decision: str
    reasons: tuple[str, ...]
    figures: dict[str, Any] = field(default_factory=dict)
    failed_checks: tuple[str, ...] = ()
    partitions: dict[str, dict[str, Any]] = field(default_factory=dict)


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
    partitions: Sequence[str] = (),
    *,
    instance: DagsterInstance | None = None,
    progress: Progress | None = None,
) -> tuple[TableOutcome, ...]:
    """Run the whole chain for ``tables`` (all without any); a table that fails does not stop the others.

    Args:
        partitions: keys of the only partitions to rewrite, of one table; one that fails does not stop the others.
        instance: where the run is recorded, such as ``DagsterInstance.get()``; a temporary one without it.
        progress: called with what the assets log.

    Raises:
        ConfigError: a table is not configured, or partitions are wanted of several tables, of one without, or none of
            them is there.
    """
    chosen = [config.table(name).name for name in tables] or [table.name for table in config.tables]
    if not tables:  # those with a schedule of their own share tonight's budget, too
        every = tuple(table.model_copy(update={"schedule": None}) for table in config.tables)
        config = config.model_copy(update={"tables": every})
    definitions = build_definitions(config)
    with contextlib.ExitStack() as stack:
        used = instance or stack.enter_context(DagsterInstance.ephemeral())
        if partitions:
            return (_run_partitions(config, definitions, chosen, partitions, used, progress),)
        everything = chain_keys(chosen) + ([] if tables or BUDGET not in _assets(definitions) else [BUDGET])
        result = _execute(definitions, None, everything, used, progress)
    return tuple(_outcome(name, result.all_events) for name in chosen)


def chain_keys(tables: Sequence[str]) -> list[AssetKey]:
    """The assets of the tables' chains."""
    return [QUERY_LOG, *(AssetKey([table, stage.__name__]) for table in tables for stage in STAGES)]


def _assets(definitions: Definitions) -> Set[AssetKey]:
    return definitions.resolve_asset_graph().materializable_asset_keys


def _run_partitions(
    config: PipelineConfig,
    definitions: Definitions,
    tables: Sequence[str],
    keys: Sequence[str],
    instance: DagsterInstance,
    progress: Progress | None,
) -> TableOutcome:
    """The chain up to the gate, then each partition as a run of its own."""
    if len(tables) != 1:
        raise ConfigError(f"--partition needs one --table, not {len(tables)}: {', '.join(tables)}")
    (table,) = tables
    asset = AssetKey([table, PARTITIONS])
    if asset not in _assets(definitions):
        raise ConfigError(f"{table} has no partitions; if it is a remote table that has, set partitions: true for it")
    missing, there = missing_partitions(config.table(table), keys)
    present = [key for key in keys if key not in missing]
    if not present:
        raise ConfigError(f"{table} has no partition {', '.join(missing)}; {there}")
    nothing = {"decision": "failed", "reasons": [f"there is no such partition; {there}"]}
    found: dict[str, dict[str, Any]] = {key: dict(nothing) for key in missing}
    judged = _execute(definitions, None, chain_keys(tables)[:-1], instance, progress)
    told = _outcome(table, judged.all_events)
    planned = instance.get_latest_materialization_event(AssetKey([table, bit_allocation.__name__])) is not None
    if not judged.success or told.decision == "declined" or (told.decision != "failed" and not planned):
        if not missing:
            return told  # the chain has said why nothing may be rewritten, or why there is no plan
        reasons = tuple(f"{key}: {nothing['reasons'][0]}" for key in missing)
        first, then = (told.reasons, reasons) if told.decision == "failed" else (reasons, told.reasons)
        return replace(told, decision="failed", reasons=(*first, *then), partitions=found)
    for key in present:
        name = spelled(key)  # else Dagster had a partition more, and the real one looked undone
        instance.add_dynamic_partitions(str(partitions_of(table).name), [name])  # a sensor may have taken it away
        done = _execute(definitions, None, [asset], instance, progress, name)
        notes = [note for event in done.all_events if (note := note_of(event)) is not None and note.partition == name]
        failures = [event for event in done.all_events if event.is_step_failure]
        if failures or not notes:
            why = sentence_of(failures[0]) if failures else "not done"
            found[key] = {"decision": "failed", "reasons": [why.removeprefix(f"{table} {name}: ")]}
        else:
            figures = figures_of(notes[-1])
            decision = decided(figures.pop("decision"))
            found[key] = {"decision": decision, "reasons": list(reasons_of(notes[-1])), **figures}
    decisions = [str(part["decision"]) for part in found.values()]
    overall = next((each for each in ("failed", "applied", "postponed", "declined") if each in decisions), decisions[0])
    reasons = tuple(f"{key}: {part['reasons'][0]}" for key, part in found.items() if part["decision"] == overall)
    return TableOutcome(table, overall, reasons, partitions=found)


def run_job(
    definitions: Definitions, instance: DagsterInstance, table: str, progress: Progress | None = None
) -> ChainRun:
    """Run the job that the schedule of ``table`` would run, for this table alone.

    Raises:
        ZorderError: a stage failed, the log has no usable query of the table, or it is empty; the sentence says why.
    """
    known = {found.name for found in definitions.resolve_all_job_defs()}
    job = next(name for name in (chain_job(table), NIGHTLY_JOB) if name in known)
    result = _execute(definitions, job, chain_keys([table]), instance, progress)
    outcome, gate = _outcome(table, result.all_events), AssetKey([table, "cost_benefit"])
    made = {event.asset_key for event in result.get_asset_materialization_events()}
    if outcome.decision == "failed" or gate not in made:
        raise ZorderError(outcome.reasons[0])
    from zorder_pipeline.pipeline import dry_result

    judged = result.asset_value(gate).judgement
    return ChainRun(
        plan=judged.plan,
        preview=dry_result(judged),
        relayout=result.asset_value(AssetKey([table, LAST])) if outcome.decision == "applied" else None,
        outcome=outcome,
    )


def _execute(
    definitions: Definitions,
    job: str | None,
    keys: Sequence[AssetKey],
    instance: DagsterInstance,
    progress: Progress | None,
    partition: str | None = None,
) -> ExecuteInProcessResult:
    """Make assets in this process; what they log goes to ``progress`` (and to the run's page).

    Raises:
        KeyboardInterrupt: somebody stopped it, which Dagster takes for the failure of a step; with that step's notes.
    """
    listened = Definitions.merge(definitions, Definitions(loggers={LISTENER: listener(progress)}))
    found = listened.resolve_implicit_global_asset_job_def() if job is None else listened.resolve_job_def(job)
    result = found.execute_in_process(
        run_config={"loggers": {LISTENER: {}}},
        instance=instance,
        asset_selection=list(keys),
        partition_key=partition,
        raise_on_error=False,
        tags={"zorder/started_by": "command line"},
    )
    if (stopped := next(filter(None, map(interruption, result.all_events)), None)) is not None:
        raise stopped
    return result


def _outcome(table: str, events: Sequence[DagsterEvent]) -> TableOutcome:
    failed = [event for event in events if event.is_step_failure and _concerns(event, table)]
    failures = [event for event in failed if not is_of_a_check(event)]  # then it was rewritten, and more is known
    checks = [
        event.asset_check_evaluation_data for event in events if event.event_type_value == "ASSET_CHECK_EVALUATION"
    ]
    wrong = [check for check in checks if not check.passed and check.severity == AssetCheckSeverity.ERROR]
    broken = tuple(check.check_name for check in wrong if check.asset_key.path[0] == table)
    notes = {key: note for event in events if (note := note_of(event)) is not None for key in [note.asset_key]}
    if failures:
        return TableOutcome(table, "failed", (sentence_of(failures[0]),), failed_checks=broken)
    last = notes.get(AssetKey([table, LAST]))
    if isinstance(last, AssetMaterialization):
        figures = figures_of(last)
        return TableOutcome(table, "applied", reasons_of(last), figures, broken)
    if last is not None:
        figures = figures_of(last)
        decision = decided(figures.pop("decision", "declined"))
        return TableOutcome(table, decision, reasons_of(last), figures)
    unasked = notes.get(AssetKey([table, STAGES[0].__name__]))
    if isinstance(unasked, AssetObservation) and unasked.description:
        figures = figures_of(unasked)
        decision = decided(figures.pop("decision", "not_asked"))
        return TableOutcome(table, decision, reasons_of(unasked), figures)
    return TableOutcome(table, "failed", ("the run ended before this table's turn",))


def _concerns(event: DagsterEvent, table: str) -> bool:
    step = event.step_key or ""
    mine = {f"{table}__{stage.__name__}" for stage in STAGES}
    return step == QUERY_LOG.path[-1] or step in mine or step.startswith(f"{table}__{LAST}_")
