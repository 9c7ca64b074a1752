"""The last step: rewrite the files that the plan wants elsewhere, when the gate approves."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from zorder_pipeline.errors import LostRaceError, NoPartitionError, RecordError
from zorder_pipeline.gate.decision import postponed
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.java import reason_of
from zorder_pipeline.model.approval import DONE
from zorder_pipeline.model.decision import APPROVE, DECLINE, Decision
from zorder_pipeline.model.partition_key import partition_values, partitions_condition
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.model.spark_sql import bracketed
from zorder_pipeline.pipeline.judging.approving import as_answered
from zorder_pipeline.pipeline.judging.judge import hold_now, judge_table, why_held
from zorder_pipeline.pipeline.judging.judgements import ANY, NONE, OWN, Judgement, Rules
from zorder_pipeline.pipeline.judging.previews import job_of, preview, result_of
from zorder_pipeline.pipeline.reading.kept_statistics import keep_statistics
from zorder_pipeline.relayout.job import RelayoutResult, Safety
from zorder_pipeline.relayout.rewrite import rewrite
from zorder_pipeline.relayout.snapshot import AUTO, open_table
from zorder_pipeline.state.approvals import Approvals

from .booking import Booking
from .relayout_settings import RelayoutSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["applied", "apply", "carry_out", "dry_result"]

DONE_BEFORE = "what was approved is done already: no file is left that it would rewrite"
GONE_SINCE = "nothing is left to do: the approved partitions are no longer in the table"


def apply(
    spark: SparkSession,
    table: str,
    plan: Plan,
    *,
    where: str | None = None,
    full: bool = False,
    dry_run: bool = False,
    force: bool = False,
    gate: GateSettings | None = None,
    rules: Rules | None = None,
    verify: str = "counts",
    row_group_bytes: int | None = None,
    committer: str = AUTO,
    state: str | None = None,
    progress: Progress | None = None,
) -> ApplyResult:
    """Rewrite the files that ``plan`` wants elsewhere, when the gate approves: `judge_table`, then `carry_out`.

    Args:
        where: condition on partition columns; only those partitions are touched.
        full: rewrite files that already lie by this layout, too.
        dry_run: decide and say what would be done.
        force: do the plan's own choice without asking the gate; only the kill switch still stops it.
        rules, verify, row_group_bytes, committer, state, progress: see `RelayoutSettings`.

    Raises:
        PlanError: the plan does not fit the table.
        UnsupportedTableError: the table has a feature under which it may not be rewritten.
        LostRaceError: another writer changed the files meanwhile; nothing was committed.
        VerificationError: the written rows differ, or could not be compared; says what is committed.
        RecordError: it is committed and could not be recorded in ``state``.
    """
    settings = RelayoutSettings(rules or Rules(), verify, row_group_bytes, committer, state, progress or silent)
    return applied(
        spark, table, plan, settings, where=where, full=full, dry_run=dry_run, force=force, gate=gate, approvals=OWN
    )


def applied(
    spark: SparkSession,
    table: str,
    plan: Plan,
    settings: RelayoutSettings,
    *,
    where: str | None = None,
    full: bool = False,
    dry_run: bool = False,
    force: bool = False,
    gate: GateSettings | None = None,
    approvals: str = ANY,
) -> ApplyResult:
    """`apply` by settings that belong together; ``approvals`` see `judge_table`."""
    if force:  # of which it is booked all the same what it saves where, and for how long
        plan, gate = plan.alone, replace(gate or GateSettings(), enabled=False)
    judged = judge_table(
        spark, table, plan, name=settings.name, gate=gate, rules=settings.rules, state=settings.state, where=where,
        full=full, verify=settings.verify, committer=settings.committer, asking=not dry_run,
        approvals=NONE if force else approvals,
    )  # fmt: skip
    if force:
        settings = replace(settings, rules=replace(settings.rules, blackouts=()))
        if judged.preview.files_removed and judged.decision.cause != "stopped":
            told = (f"{'would be ' if dry_run else ''}applied without asking the gate (--force)",)
            forced = replace(judged.decision, verdict=APPROVE, cause="gate_off", reasons=told)
            if (hold := hold_now(spark, settings.state, settings.rules)) is not None:
                forced = postponed(replace(forced, reasons=()), hold.cause, hold.why)
            judged = replace(judged, decision=forced)
    return carry_out(spark, judged, settings, where=where, full=full, dry_run=dry_run)


def carry_out(
    spark: SparkSession,
    judged: Judgement,
    settings: RelayoutSettings | None = None,
    *,
    where: str | None = None,
    full: bool = False,
    dry_run: bool = False,
) -> ApplyResult:
    """Do what was decided about a table; without an approval this only says why not.

    The kill switch, the blackout windows and what people said of an approved plan are looked at again before each bin
    of partitions.

    Args, Raises: see `apply`.
    """
    settings = settings or RelayoutSettings()
    state = settings.state
    judged = judged if state is None else as_answered(spark, state, judged)
    decision, plan = judged.decision, judged.plan
    if not decision.approved:
        return _told(judged, judged.preview.version, dry_run)
    snapshot = open_table(spark, judged.table, committer=settings.committer)
    plan = plan.as_called(snapshot.asked_schema)
    plan.refuse_unless_fits(snapshot.table_id, snapshot.schema)

    chosen = plan.partitions if judged.partitions is None else judged.partitions
    whole = where is None and judged.partitions is None
    if chosen:
        types = snapshot.partition_types
        these = partitions_condition([partition_values(key, list(types)) for key in chosen], types)
        where = these if where is None else f"{bracketed(where)} AND {bracketed(these)}"
    try:
        if dry_run:
            tried = rewrite(snapshot, job_of(plan, full), where=where, dry_run=True)  # refuses what the rewrite would
            if not tried.files_removed:
                return _done_before(decision, tried, dry_run)
            return _told(judged, judged.preview.version, dry_run)
        would = preview(snapshot, plan, where=where, full=full)
    except NoPartitionError:  # deleted since: others write between the judgement and this
        if not chosen:
            raise
        left = ApplyResult(snapshot.version, "nothing_to_do", (GONE_SINCE,), skipped_files=len(snapshot.files()))
        return replace(left, dry_run=dry_run, gate=_nothing_new(decision, GONE_SINCE).to_json())
    said = judged.said
    books: Booking | None = None
    if state is not None:
        books = Booking(state, snapshot, plan, would, judged, settings.verify, settings.progress)

    hold = partial(_why_not_on, spark, judged, settings)
    safety = Safety(
        settings.verify, settings.row_group_bytes, plan.bloom_filters, hold=hold, progress=settings.progress
    )
    if books is not None:
        safety = replace(safety, begun=books.begin, kept=books.keep)
    try:
        done = rewrite(snapshot, job_of(plan, full), where=where, safety=safety)
    except LostRaceError:  # after any other failure a commit may come yet
        if books is not None:
            books.close()
        raise
    if books is not None:
        if done.committed:
            _entered(books, judged, done, whole)
        books.close()
    if not done.committed and not done.held:
        return _done_before(decision, done)
    reasons = (done.held, *decision.reasons) if done.held else decision.reasons
    return replace(result_of(done, "applied" if done.committed else "postponed", reasons), gate=said)


def _why_not_on(spark: SparkSession, judged: Judgement, settings: RelayoutSettings) -> str | None:
    """Why what was approved is not to go on, asked before each bin; None where it is."""
    state = settings.state
    if (why := why_held(spark, state, settings.rules)) is not None or state is None:
        return why
    now = as_answered(spark, state, judged).decision
    return None if now.approved else now.reasons[0]


def _entered(books: Booking, judged: Judgement, done: RelayoutResult, whole: bool) -> None:
    """Enter what was committed into the state: the relayout, that an approved plan is done, the new files' statistics.

    Args:
        whole: all that the plan is for was rewritten, not some of its partitions.

    Raises:
        RecordError: the relayout could not be recorded.
    """
    snapshot, state, say = books.snapshot, books.state, books.progress
    if failed := books.record(done):
        raise RecordError(failed)
    if judged.request is not None and not done.held and whole:
        try:
            Approvals(snapshot.spark, state).settle(judged.request, DONE)
        except Exception as error:  # it is committed; the next night sees that the request is done
            say(f"that the approved plan is done could not be noted in {state} ({reason_of(error)})")
    keep_statistics(snapshot, books.plan, state, say)


def dry_result(judged: Judgement) -> ApplyResult:
    """The decision as the result of a dry run."""
    return _told(judged, judged.preview.version, True)


def _done_before(decision: Decision, done: RelayoutResult, dry_run: bool = False) -> ApplyResult:
    """That nothing is left of what was approved."""
    said = _nothing_new(decision, DONE_BEFORE)
    return replace(result_of(done, "nothing_to_do", said.reasons), dry_run=dry_run, gate=said.to_json())


def _nothing_new(decision: Decision, why: str) -> Decision:
    return replace(decision, verdict=DECLINE, cause="nothing_new", reasons=(why,))


def _told(judged: Judgement, version: int, dry_run: bool) -> ApplyResult:
    """The decision about what was not done."""
    decision, would = judged.decision, judged.preview
    if judged.outcome == "nothing_to_do":
        skipped = would.files_removed + would.skipped_files
        said = decision.to_json()
        return ApplyResult(
            version, "nothing_to_do", decision.reasons, skipped_files=skipped, dry_run=dry_run, gate=said
        )
    approved = decision.approved
    return ApplyResult(
        version=version,
        decision="applied" if approved else judged.outcome,
        reasons=decision.reasons,
        files_removed=would.files_removed if approved else 0,
        files_added=would.files_added if approved else 0,
        bytes_rewritten=would.bytes_rewritten if approved else 0,
        rows=would.rows if approved else 0,
        skipped_files=would.skipped_files + (0 if approved else would.files_removed),
        dry_run=dry_run,
        gate=decision.to_json(),
    )
