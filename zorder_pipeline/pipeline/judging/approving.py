"""What an operator says to the pipeline: yes or no to a plan that waits, stop, and go on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from zorder_pipeline.gate.decision import postponed
from zorder_pipeline.model.approval import APPROVED, DONE, REJECTED, WITHDRAWN, Request
from zorder_pipeline.model.decision import DECLINE
from zorder_pipeline.state.approvals import Approvals
from zorder_pipeline.state.stop_file import StopFile

from .judgements import Judgement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["answer_request", "as_answered", "lift_stop", "stop_all", "waiting_requests"]


def waiting_requests(spark: SparkSession, state: str) -> list[Request]:
    """Plans that wait for a person, and approved ones that are not done yet; oldest first."""
    return Approvals(spark, state).waiting()


def answer_request(
    spark: SparkSession, state: str, table: str, plan_id: str | None = None, *, reject: bool = False, by: str = ""
) -> Request:
    """Approve, or reject, the plan that waits for a table; the next run carries an approved one out, if it still fits.

    Args:
        table: its configured name, or its location.
        plan_id: which plan is meant; None for the one that waits.

    Raises:
        ZorderError: no such plan waits.
    """
    return Approvals(spark, state).answer(table, plan_id, REJECTED if reject else APPROVED, by)


def as_answered(spark: SparkSession, state: str, judged: Judgement) -> Judgement:
    """A judgement of a plan that a person approved, as it is after what was said of it since; any other as it is."""
    request, decision = judged.request, judged.decision
    if request is None or not decision.approved:
        return judged
    now = Approvals(spark, state).as_it_is(request)
    status, plan = WITHDRAWN if now is None else now.status, f"plan {request.plan_id}"
    if status in (APPROVED, DONE):  # of one that is done nothing is left, which the relayout itself finds
        return judged
    if now is not None and status == REJECTED:
        why = f"{plan} was rejected by {now.by or 'a person'} after it was judged"
        return replace(
            judged, decision=replace(decision, verdict=DECLINE, cause="rejected", reasons=(why, *decision.reasons))
        )
    why = f"{plan} was approved when it was judged, and is {status} now: zorder approve lists what waits"
    return replace(judged, decision=postponed(decision, "awaiting_approval", why))


def stop_all(spark: SparkSession, state: str, note: str = "") -> None:
    """Stop all relayouts: none begins, and one that runs stops before its next bin of partitions.

    Args:
        note: shown as the reason; without one, what an earlier stop says stays.
    """
    file = StopFile(spark, state)
    if note or file.note() is None:
        file.set(note)


def lift_stop(spark: SparkSession, state: str) -> bool:
    """Take `stop_all` back; whether it was in force."""
    return StopFile(spark, state).lift()
