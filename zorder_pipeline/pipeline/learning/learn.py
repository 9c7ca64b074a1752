"""From queries and a sample to a plan: what is filtered by, which order skips most, what it promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from zorder_pipeline import __version__
from zorder_pipeline.features.statistics import worth_keeping
from zorder_pipeline.gate.benefit import observed_rate
from zorder_pipeline.gate.cost import CostModel
from zorder_pipeline.gate.decision import UNSOUGHT, GateSettings
from zorder_pipeline.layout.blocks import blocks_of
from zorder_pipeline.layout.learn import Learned
from zorder_pipeline.model.plan import ANOTHER, KEPT, Plan
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.model.wording import counted
from zorder_pipeline.pipeline.logs import ingest, names_of
from zorder_pipeline.pipeline.reading.statistics import without_statistics
from zorder_pipeline.pipeline.records import LearnSettings, LogSource, TableAnalysis
from zorder_pipeline.relayout.snapshot import AUTO, open_table

from .analysing import analyse
from .candidates import Unseen, candidates_at_first, candidates_of
from .drifting import Memory, fits, missed, noticed, still_fitting, with_regret
from .keeping import kept_files, layout_of
from .proving import earlier_ones_proved, proved
from .reading_layout import for_reading
from .seeking import sought
from .sizes import partitions_of, target_rows
from .useful_statistics import useful_statistics
from .volumes import present_volumes, with_sampled_pages
from .words import bit_order
from .worth import may_pay, why_not_search

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["learn", "learn_layout_for", "learn_remembering"]

FEW_ROWS_PER_FILE = 50
STAYS = "no other layout is surely better than the present one: only what is new is laid out, by it"


def learn(
    spark: SparkSession,
    table: str,
    logs: Sequence[LogSource | str],
    *,
    aliases: Sequence[str] = (),
    settings: LearnSettings | None = None,
    warm: Plan | None = None,
    committer: str = AUTO,
    progress: Progress | None = None,
) -> Plan:
    """Learn a layout for one table from query logs: the chain up to, but without, the gate.

    Args:
        table: path or catalog name.
        aliases: further names that the log may call the table by.
        warm: an earlier plan, whose layout is among those that the search starts from. If the table lies by it,
            it is a candidate, too, and the gate wants a change to have been missed long enough.
        committer: how the table is opened, see `zorder_pipeline.relayout.snapshot.COMMITTERS`.

    Raises:
        TableError, LogError: see `analyse` and `ingest`.
    """
    say = progress or silent
    snapshot = open_table(spark, table, committer=committer)
    names = names_of(table, snapshot, aliases)
    log = ingest(logs, {snapshot.location: (snapshot, names)})
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
    plan, _ = learn_layout_for(analysis, settings, tell, orders, present)
    return plan


def learn_layout_for(
    analysis: TableAnalysis,
    settings: LearnSettings | None = None,
    progress: Callable[[int, int, float], None] | None = None,
    warm: Sequence[Sequence[str]] = (),
    present: Plan | None = None,
) -> tuple[Plan, Learned]:
    """Search for a layout on the analysed sample, and promise what it saves on queries that chose nothing.

    Args:
        progress: called with trials done, trials planned, and the best share of rows read so far.
        warm: orders of bits to start from, such as last night's, as the column of each bit; one that names another
            column than the search may use is left out.
        present: the plan that the table lies by (`present_plan`). Unless another layout is surely better than laying
            out the new files by it, that is tonight's plan; the gate decides between all of the plan's candidates.
    """
    return learn_remembering(analysis, settings, progress, warm, present)[:2]


def learn_remembering(
    analysis: TableAnalysis,
    settings: LearnSettings | None = None,
    progress: Callable[[int, int, float], None] | None = None,
    warm: Sequence[Sequence[str]] = (),
    present: Plan | None = None,
    memory: Memory | None = None,
    gate: GateSettings | None = None,
) -> tuple[Plan, Learned, Memory]:
    """`learn_layout_for` with what is remembered from earlier nights, and what is to be remembered after this one.

    Args:
        memory: what is remembered; None for nothing.
        gate: what the gate will assume and demand: where no layout can meet it, none is sought (`why_not_search`). None
            searches always, and tells the regret in the cost model's assumptions.
    """
    settings, memory = settings or LearnSettings(), memory or Memory()
    changes, memory = noticed(analysis, memory, present), still_fitting(analysis, memory)
    present = present if present is not None and fits(analysis, present) else None
    snapshot, sample = analysis.snapshot, analysis.sample
    types = {column.name: column.type for column in snapshot.schema.columns}
    partition = partitions_of(sample, snapshot.schema.partition_columns)
    blocks = blocks_of(analysis.queries)
    kept = kept_files(analysis, present, partition) if present is not None else None
    rate = (
        observed_rate([query.timestamp for query in analysis.queries], len(analysis.queries))
        if settings.queries_per_day is None
        else (settings.queries_per_day, "configured")
    )
    unseen = blocks.promise
    queries = unseen.each(analysis.queries), unseen.each(analysis.boxes)
    now = None
    if blocks.apart:
        now = replace(present_volumes(snapshot, *queries), times=unseen.times)
        now = with_sampled_pages(analysis, now, queries[1])
    standing = kept if kept is not None else sample.file
    unsought, scans, costs = "", 0.0, gate.costs if gate is not None else CostModel()
    if gate is not None:
        asked = gate.queries_per_day if gate.queries_per_day is not None else rate[0]
        scans = asked * gate.horizon_days
        unsought = why_not_search(analysis, settings, memory, present, standing, now, scans, gate)
    found = sought(
        analysis, settings, blocks, kept=kept, partition=partition, warm=warm, progress=progress, searching=not unsought
    )
    learned, target = found.learned, found.target
    told = learned.before
    times = [query.timestamp for query in analysis.queries if query.timestamp is not None]
    notes = [*changes, *without_statistics(analysis)]
    if not blocks.apart:
        notes.append("too few distinct queries to prove a layout on unseen ones: the gate will decline it")
    if unsought:
        notes.append(f"{UNSOUGHT}: {unsought}")
    if found.rows_per_file < FEW_ROWS_PER_FILE:
        notes.append(f"a file is represented by only {found.rows_per_file:.0f} sample rows: raise --sample-rows")
    if learned.left_out:
        notes.append(f"not compared with {', '.join(learned.left_out)}, which take as long as a search")
    stays = present if learned.name == KEPT else None
    if stays is not None and not unsought:
        notes.append(STAYS)
    plan = Plan(
        table=snapshot.location,
        table_id=snapshot.table_id,
        schema_hash=snapshot.schema.fingerprint,
        delta_version=snapshot.version,
        spec=stays.spec if stays is not None else learned.spec,
        origin=KEPT if stays is not None else "learned",
        target_file_rows=stays.target_file_rows if stays is not None else target,
        predicted={"train_fraction": learned.train, "validation_fraction": learned.select},
        baselines=learned.baselines,
        trials=len(learned.history),
        seconds=learned.seconds,
        log_watermark=max(times, default=None),
        code_version=__version__,
        notes=tuple(notes),
        statistics=worth_keeping(tuple(analysis.columns)),
        unsought=unsought,
    )
    proof = Unseen(analysis, settings, unseen, told, rate, now)  # candidates are compared by the sample
    counted_on = present if present is not None and present.spec is not None and not unsought else None
    if counted_on is not None and not settings.enriched_share:
        memory = missed(analysis, memory, counted_on, standing, plan, unseen.queries.tolist(), costs)
        plan = with_regret(plan, memory, counted_on)
    proving = partial(may_pay, analysis, now=now, scans=scans, gate=gate) if gate and now else None
    stay = kept if stays is not None else None
    plan, learned, proof = proved(plan, learned, proof, queries[1], proving, stay)
    if settings.enriched_share > 0 and stays is None:  # a layout of its own kind, weighed alone
        own = kept if present is not None and present.spec is not None and present.spec.computed else None
        other, computed = for_reading(analysis, settings, plan, found.weights, blocks, partition, own)
        if other is not None:
            return other, replace(learned, computed=computed), memory
        assert present is not None
        stays, here = present, learned.stored_select
        learned = replace(learned, spec=None, name=KEPT, select=here, before=told, after=learned.standing)
        plan = replace(plan, spec=present.spec, origin=KEPT, target_file_rows=present.target_file_rows)
        plan = replace(plan, notes=(*plan.notes, STAYS), predicted={**plan.predicted, "validation_fraction": here})
        plan = replace(plan, promise=proof.promise(plan, learned.standing, kept, told))
    if analysis.columns and kept is not None and stays is not None:
        useful = useful_statistics(analysis, kept, found.weights, blocks, stays.spec, stays.statistics)
        plan = replace(plan, statistics=useful)
    if present is None or present.spec is None:
        options = candidates_at_first(proof, plan)
        if options and options[0].action == ANOTHER:
            plan = replace(plan, target_file_rows=options[0].target_file_rows, promise=options[0].promise)
        elif plan.spec is not None and not blocks.apart:  # nothing tells sizes apart
            plan = replace(plan, target_file_rows=target_rows(snapshot, settings))
        return replace(plan, candidates=options), learned, replace(memory, drift=None, rivals={}, columns=types)
    if counted_on is not None and settings.enriched_share:
        memory = missed(analysis, memory, counted_on, standing, plan, unseen.queries.tolist(), costs)
    options = candidates_of(proof, plan, learned.standing, kept, present, memory)
    plan = with_regret(replace(plan, candidates=options), memory, present)
    if settings.confirm and proving is not None:
        plan = earlier_ones_proved(plan, proof, queries[1], proving)
    return plan, learned, replace(memory, columns=types)
