"""The night over all tables: what they offer, and what the budget has room for."""

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dagster import (
    AssetExecutionContext,
    AssetKey,
    AssetMaterialization,
    AssetsDefinition,
    AssetSpec,
    DagsterEventType,
    InputContext,
    IOManager,
    MetadataValue,
    Output,
    ResourceParam,
    RetryRequested,
    asset,
)

from zorder_pipeline import __version__
from zorder_pipeline.config import PipelineConfig

from .common import QUERY_LOG, VALUES, Shelf, backoff, code_reference
from .events import spoken
from .metadata import md, md_table
from .records import Night

if TYPE_CHECKING:
    from zorder_pipeline.pipeline import Judgement

__all__ = ["ANALYSIS", "BUDGET", "CHAIN", "OFFERS", "granted", "made_here", "nightly_budget", "offers"]
__all__ += ["steps_of", "value_of", "without_room"]

GROUP = "night"
OFFERS = AssetKey([GROUP, "offers"])
BUDGET = AssetKey([GROUP, "nightly_budget"])
BEFORE, NOW, AFTER = ({"dagster/priority": str(number)} for number in (1, 0, -1))
"""Priorities of a table's analysis, of the budget, and of the relayouts.

The budget has to come after every table's analysis and must not be stopped by one that fails, as it would be if it
depended on it in the run. So the offers lie between them, which no step makes, and the order is by priority: a run
makes one asset after the other. Where another run holds the pool, Dagster takes the budget, which needs no Spark,
before them: then it puts itself off until they are through.
"""
WAITS = (5, 60)
"""Seconds that the budget puts itself off, the first time and at most."""
ANALYSIS = ("feature_candidates", "correlation_graph", "bit_allocation", "cost_benefit")
"""A table's assets up to its judgement."""
CHAIN = (*ANALYSIS, "clustered_table")
NEWEST = 20
"""Materializations of an asset among which one of this run is looked for; others may have come since."""


def offers(shelves: list[Shelf]) -> AssetSpec:
    """What lies between the tables' judgements and the budget, which notes what it found; no step makes it."""
    return AssetSpec(
        OFFERS,
        deps=[shelf.key("cost_benefit") for shelf in shelves],
        group_name=GROUP,
        kinds={"python"},
        description="**What could be done tonight?** Every table's judgement, from which the nightly budget chooses.",
    )


def nightly_budget(config: PipelineConfig, shelves: list[Shelf]) -> AssetsDefinition:
    """The asset ``nightly_budget``: the tables' judgements after the budget was shared out, by table."""

    def _nightly_budget(
        context: AssetExecutionContext, zorder_values: ResourceParam[IOManager]
    ) -> Iterator[AssetMaterialization | Output[Night]]:
        from zorder_pipeline import pipeline

        if left := _left(context, shelves):
            context.log.info(f"waiting for the judgement of {', '.join(left)}")
            wait = backoff(*WAITS, context.retry_number)
            raise RetryRequested(max_retries=context.retry_number + 1, seconds_to_wait=wait)
        judged = _judgements(context, zorder_values, shelves)
        # no step makes the offers, which therefore would be shown as never made
        yield AssetMaterialization(OFFERS, metadata={"tables": _told(judged)})
        shared = pipeline.share_budget(list(judged.values()), config.budget_core_hours)
        found = dict(zip(judged, shared, strict=True))
        for one in shared:
            context.log.info(f"{one.name}: {one.outcome.replace('_', ' ')}: {_reason(one)}")
        yield Output(Night(found), metadata=_facts(found, config.budget_core_hours))

    made: AssetsDefinition = asset(
        key=BUDGET,
        deps=[OFFERS, QUERY_LOG],
        group_name=GROUP,
        kinds={"python"},
        io_manager_key=VALUES,
        op_tags=NOW,
        code_version=__version__,
        metadata=code_reference(_nightly_budget),
        description=(
            "**What is done tonight, and what waits?** The rewrites that save most per core-hour come first, over all "
            "tables and their partitions, as far as budget_core_hours goes. It comes after every table's analysis, "
            "also after those that failed."
        ),
    )(_nightly_budget)
    return made


def granted(context: AssetExecutionContext, storage: IOManager, shelf: Shelf, judged: "Judgement") -> "Judgement":
    """The table's judgement after the budget of this run, or of the one that it goes on with; else the given one.

    What was judged after a budget with a limit was shared out has no room in it, and waits.
    """
    if not made_here(context, BUDGET):
        return judged
    night: Night = value_of(context, storage, BUDGET)
    found = night.judgements.get(shelf.table.name)
    if found is not None and found.plan.plan_id == judged.plan.plan_id:
        return found
    return without_room(shelf, judged)


def without_room(shelf: Shelf, judged: "Judgement") -> "Judgement":
    """A judgement that comes after the night's budget was shared out, which waits if that has a limit."""
    from zorder_pipeline.gate.decision import postponed

    core_hours = shelf.config.budget_core_hours
    if core_hours is None or not judged.decision.approved:
        return judged
    why = (
        f"postponed by the budget: tonight's {core_hours:g} core-hours were shared out before it was judged; "
        f"materialize {shelf.key('clustered_table').to_user_string()} by itself, or leave it to the next night"
    )
    return replace(judged, decision=postponed(judged.decision, "budget", why))


def _judgements(context: AssetExecutionContext, storage: IOManager, shelves: list[Shelf]) -> "dict[str, Judgement]":
    """Those of this run; where it was to make none (the budget is made by hand), the newest of every table."""
    keys = {shelf.table.name: shelf.key("cost_benefit") for shelf in shelves}
    chosen = [name for name, key in keys.items() if made_here(context, key)]
    if not steps_of(context) & {key.to_python_identifier() for key in keys.values()}:
        chosen = [
            name for name, key in keys.items() if context.instance.get_latest_materialization_event(key) is not None
        ]
    return {name: value_of(context, storage, keys[name]).judgement for name in chosen}


def steps_of(context: AssetExecutionContext) -> Set[str]:
    """Steps of this run."""
    chosen = context.run.step_keys_to_execute
    return set(context.job_def.graph.node_dict if chosen is None else chosen)


def _left(context: AssetExecutionContext, shelves: list[Shelf]) -> list[str]:
    """Tables whose judgement this run has yet to make; one of which a step failed gets none."""
    steps, done, failed = steps_of(context), DagsterEventType.STEP_SUCCESS, DagsterEventType.STEP_FAILURE
    logs = context.instance.all_logs(context.run.run_id, of_type={done, failed, DagsterEventType.STEP_SKIPPED})
    ended = {entry.step_key: entry.dagster_event_type for entry in logs}
    left = []
    for shelf in shelves:
        *before, judge = (shelf.key(stage).to_python_identifier() for stage in ANALYSIS)
        if judge in steps and judge not in ended and all(ended.get(step, done) == done for step in before):
            left.append(shelf.table.name)
    return left


def made_here(context: AssetExecutionContext, key: AssetKey, before: bool = True) -> bool:
    """Whether this run made an asset, or, with ``before``, a run of which it does again what failed, however often."""
    run = context.run
    runs = {run.run_id, *([run.root_run_id] if before else [])}
    while before and run.parent_run_id is not None:
        runs.add(run.parent_run_id)
        if (parent := context.instance.get_run_by_id(run.parent_run_id)) is None:  # deleted
            break
        run = parent
    return any(record.run_id in runs for record in context.instance.fetch_materializations(key, NEWEST).records)


def value_of(context: AssetExecutionContext, storage: IOManager, key: AssetKey) -> Any:
    """An asset's value as the run's own storage has it."""
    return storage.load_input(InputContext(asset_key=key, instance=context.instance, log_manager=context.log))


def _reason(judged: "Judgement") -> str:
    """The deciding one; of a table of which the budget chose some partitions the budget's, which comes last."""
    reasons = judged.decision.reasons
    return reasons[0 if judged.partitions is None else -1] if reasons else judged.decision.cause


def _told(judged: "Mapping[str, Judgement]") -> MetadataValue[Any]:
    header = ["table", "decision", "core-hours", "saves at least, core-hours", "why"]
    rows = [
        (
            name,
            spoken(one.outcome),
            sum(part.cost for part in one.chosen) / 3600,
            sum(part.saving for part in one.chosen) / 3600,
            _reason(one),
        )
        for name, one in judged.items()
    ]
    return md(md_table(header, rows))


def _facts(found: "Mapping[str, Judgement]", core_hours: float | None) -> dict[str, Any]:
    return {
        "tables": _told(found),
        "budget, core-hours": "no limit" if core_hours is None else core_hours,
        "approved": sum(one.outcome == "approved" for one in found.values()),
        "postponed": sum(one.outcome == "postponed" for one in found.values()),
    }
