"""From queries and a sample to a plan: what is filtered by, which order skips most, what it promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.layout.choosing import STORED
from zorder_pipeline.layout.learn import Learned
from zorder_pipeline.model.candidate import ANOTHER, Candidate
from zorder_pipeline.model.plan import KEPT, Plan
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.model.wording import counted
from zorder_pipeline.pipeline.records import LearnSettings, LogSource, TableAnalysis
from zorder_pipeline.pipeline.table_log import asked_log
from zorder_pipeline.relayout.snapshot import AUTO, open_table

from .analysing import analyse
from .candidates import Unseen, candidates_at_first, candidates_of
from .drafting import STAYS, drafted
from .drifting import missed, nothing_lost, with_regret
from .keeping import layout_of
from .looked_up import refuse_unfiltered, with_bloom_filters
from .memory import Memory
from .proving import earlier_ones_proved, proved
from .reading_layout import contest_of, for_reading
from .seeking import Sought, sought
from .situation import Situation, situation_of
from .sizes import target_rows
from .useful_statistics import useful_statistics
from .words import bit_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["learn", "learn_layout_for", "learn_remembering"]


def learn(
    spark: SparkSession,
    table: str,
    logs: Sequence[LogSource | str] = (),
    *,
    state: str | None = None,
    aliases: Sequence[str] = (),
    days: float | None = None,
    settings: LearnSettings | None = None,
    warm: Plan | None = None,
    committer: str = AUTO,
    progress: Progress | None = None,
) -> Plan:
    """Learn a layout for one table from query logs or stored queries: the chain up to, but without, the gate.

    Args:
        table: path or catalog name.
        logs: query logs.
        state: folder of the state, whose stored queries count, too; those that the logs hold as well count once.
        aliases: further names that the log may call the table by.
        days: only stored queries of so many days before the newest.
        warm: an earlier plan, whose order of bits is among those that the search starts from. If the table lies by it,
            it is a candidate, too, and the gate wants a change to have been missed long enough.
        committer: how the table is opened, see `zorder_pipeline.relayout.snapshot.COMMITTERS`.

    Raises:
        TableError, LogError: see `analyse` and `ingest`; or the state alone is named, and holds no query of the table.
        ZorderError: neither a log nor a state is named.
        PlanError: a column of ``settings.bloom_filters`` can have none.
    """
    say = progress or silent
    snapshot = open_table(spark, table, committer=committer)
    warm = warm.as_called(snapshot.asked_schema) if warm is not None else None
    refuse_unfiltered(snapshot.schema, (settings.bloom_filters if settings is not None else None) or ())
    log = asked_log(spark, table, snapshot, logs, state=state, aliases=aliases, days=days)
    say(f"read {counted(log.lines, 'statement')}, {len(log.of_table([snapshot.location])):,} of them scan the table")
    known = [warm.spec] if warm is not None and warm.spec is not None else []
    analysis = analyse(spark, snapshot, log, [snapshot.location], settings, layouts=known)
    say(
        f"sampled {analysis.sample.rows:,} of {counted(analysis.sample.total_rows, 'row')} "
        f"in {counted(len(analysis.sample.columns), 'column')}"
    )
    orders = [order] if warm and warm.spec and (order := bit_order(warm.spec)) else []
    if warm is not None and not orders:
        say("the earlier plan holds no order of bits to start from; searching without it")

    def tell(done: int, planned: int, cost: float) -> None:
        say(f"trial {done} of {planned}: training queries read {cost:.2%} of the rows")

    present = warm if warm and warm.spec and warm.spec.layout_id == layout_of(snapshot) else None
    plan, _ = learn_layout_for(analysis, settings, tell, orders, present, say)
    return plan


def learn_layout_for(
    analysis: TableAnalysis,
    settings: LearnSettings | None = None,
    progress: Callable[[int, int, float], None] | None = None,
    warm: Sequence[Sequence[str]] = (),
    present: Plan | None = None,
    say: Progress = silent,
) -> tuple[Plan, Learned]:
    """Search for a layout on the analysed sample, and promise what it saves on queries that chose nothing.

    Args:
        progress: called with trials done, trials planned, and the best share of rows read so far.
        warm: orders of bits to start from, such as last night's, as the column of each bit; one that names another
            column than the search may use is left out.
        present: the plan that the table lies by (`present_plan`). Unless another layout is surely better than laying
            out the new files by it, that is tonight's plan; the gate decides between all of the plan's candidates.
        say: told what is done besides trials: which tree grows and how far it is, what is compared with.
    """
    return learn_remembering(analysis, settings, progress, warm, present, say=say)[:2]


def learn_remembering(
    analysis: TableAnalysis,
    settings: LearnSettings | None = None,
    progress: Callable[[int, int, float], None] | None = None,
    warm: Sequence[Sequence[str]] = (),
    present: Plan | None = None,
    memory: Memory | None = None,
    gate: GateSettings | None = None,
    say: Progress = silent,
) -> tuple[Plan, Learned, Memory]:
    """`learn_layout_for` with what is remembered from earlier nights, and what is to be remembered after this one.

    Args:
        memory: what is remembered; None for nothing.
        gate: what the gate will assume and demand: where no layout can meet it, none is sought (`why_not_search`). None
            searches always, and tells the regret in the cost model's assumptions.
    """
    settings = settings or LearnSettings()
    situation = situation_of(analysis, settings, present, memory or Memory(), gate)
    found = sought(
        analysis, settings, situation.blocks, kept=situation.kept, partition=situation.partition, warm=warm,
        progress=progress, say=say, searching=not situation.unsought,
    )  # fmt: skip
    unseen, boxes = situation.unseen, situation.unseen_boxes
    sampled = Unseen(analysis, settings, unseen, boxes, found.learned.before, situation.rate, situation.now)
    night = _Night(drafted(situation, found), found.learned, situation.memory, sampled)
    for_readers = settings.enriched_share > 0
    if not for_readers:
        night = _with_losses(situation, night)
    night = _with_promise(situation, night)
    if for_readers and not situation.unsought:
        by_columns = _by_columns(night, found)
        if (contest := contest_of(situation, by_columns, found.weights, say)) is not None:
            if (won := for_reading(contest, by_columns, night.proof, night.learned)) is not None:
                return _for_readers(situation, night, *won)
            night = _staying(situation, night)
    night = _with_useful_statistics(situation, found, night)
    if for_readers:
        night = _with_losses(situation, night)
    plan = with_bloom_filters(analysis, _with_candidates(situation, night), settings)
    return plan, night.learned, _remembered(situation, night.memory)


def _remembered(situation: Situation, memory: Memory) -> Memory:
    """What is to be remembered after the night."""
    analysis = situation.analysis
    if situation.laid_out is None:
        memory = nothing_lost(analysis, memory)
    return replace(memory, columns={column.name: column.type for column in analysis.snapshot.schema.columns})


@dataclass(frozen=True, eq=False)
class _Night:
    """What a night has come to, step by step.

    Attributes:
        plan: tonight's, ``stays`` when it keeps the present layout.
        memory: what is to be remembered.
        proof: what candidates promise by.
    """

    plan: Plan
    learned: Learned
    memory: Memory
    proof: Unseen

    @property
    def stays(self) -> bool:
        """Whether the present layout is kept."""
        return self.plan.origin == KEPT


def _with_losses(situation: Situation, night: _Night) -> _Night:
    """What the present layout has lost with the new queries; a night that seeks nothing leaves that to a later one."""
    present = situation.laid_out
    if present is None or situation.unsought:
        return night
    unseen = situation.unseen.queries.tolist()
    memory = missed(situation.analysis, night.memory, present, situation.standing, night.plan, unseen, situation.costs)
    return replace(night, memory=memory, plan=with_regret(night.plan, memory, present))


def _with_promise(situation: Situation, night: _Night) -> _Night:
    """What the plan saves on queries that chose nothing, told by all rows where these may be asked."""
    kept = situation.kept if night.stays else None
    plan, learned, proof = proved(
        night.plan, night.learned, night.proof, situation.unseen_boxes, situation.may_pay, kept
    )
    return replace(night, plan=plan, learned=learned, proof=proof)


def _by_columns(night: _Night, found: Sought) -> Plan:
    """Tonight's plan by the layout that was found by columns alone; without one where the present layout is kept."""
    if not night.stays:
        return night.plan
    notes = tuple(note for note in night.plan.notes if note != STAYS)
    return replace(night.plan, spec=None, origin="learned", target_file_rows=found.target, notes=notes)


def _for_readers(situation: Situation, night: _Night, plan: Plan, learned: Learned) -> tuple[Plan, Learned, Memory]:
    """The plan by a layout for the expected mix of readers, with what else could be done, and what is remembered.

    What other layouts would have saved is told of ordinary readers, so this one has not been missed by it.
    """
    stays = _with_losses(situation, replace(night, plan=replace(plan, spec=None)))
    others = _with_candidates(situation, stays).candidates
    if others and plan.spec is not None:
        others = (Candidate(ANOTHER, plan.spec, plan.target_file_rows, plan.promise), *others)
    plan = with_bloom_filters(situation.analysis, replace(plan, candidates=others), situation.settings)
    return plan, learned, _remembered(situation, stays.memory)


def _staying(situation: Situation, night: _Night) -> _Night:
    """The plan where no layout is surely better for the expected mix of readers than what the table stays as."""
    plan, learned, present = night.plan, night.learned, situation.laid_out
    if learned.spec is None:
        return night
    assert present is not None
    (train, select), before = learned.stays, night.proof.before
    learned = replace(learned, spec=None, train=train, select=select, before=before, after=learned.standing)
    plan = replace(plan, predicted={"train_fraction": train, "validation_fraction": select})
    if situation.kept is None:
        learned, plan = replace(learned, name=STORED), replace(plan, spec=None)
    else:
        learned = replace(learned, name=KEPT)
        target, notes = present.target_file_rows, (*plan.notes, STAYS)
        plan = replace(plan, spec=present.spec, origin=KEPT, target_file_rows=target, notes=notes)
    promise = night.proof.promise(plan, learned.standing, situation.kept, before)
    return replace(night, plan=replace(plan, promise=promise), learned=learned)


def _with_useful_statistics(situation: Situation, found: Sought, night: _Night) -> _Night:
    """Of a layout that is kept for what is new, the statistics that skip something by it."""
    analysis, plan, present = situation.analysis, night.plan, situation.present
    if not night.stays or present is None or situation.kept is None or not analysis.columns:
        return night
    useful = useful_statistics(analysis, situation.kept, found.weights, situation.blocks, plan.spec, present.statistics)
    return replace(night, plan=replace(plan, statistics=useful))


def _with_candidates(situation: Situation, night: _Night) -> Plan:
    """The plan with all that could be done tonight, each with its own promise."""
    plan, proof, present = night.plan, night.proof, situation.laid_out
    if present is None:
        options = candidates_at_first(proof, plan)
        if options and options[0].action == ANOTHER:
            plan = replace(plan, target_file_rows=options[0].target_file_rows, promise=options[0].promise)
        elif plan.spec is not None and not situation.blocks.apart:  # nothing tells sizes apart
            size = target_rows(situation.analysis.snapshot, situation.settings)
            plan = replace(plan, target_file_rows=size)
        return replace(plan, candidates=options)
    options = candidates_of(proof, plan, night.learned.standing, situation.kept, present, night.memory)
    plan = with_regret(replace(plan, candidates=options), night.memory, present)
    if situation.settings.confirm and situation.may_pay is not None:
        plan = earlier_ones_proved(plan, proof, situation.unseen_boxes, situation.may_pay)
    return plan
