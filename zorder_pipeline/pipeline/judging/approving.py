"""What an operator says to the pipeline: yes or no to a plan that waits, stop, and go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zorder_pipeline.model.approval import APPROVED, REJECTED, Request
from zorder_pipeline.state.approvals import Approvals
from zorder_pipeline.state.stop_file import StopFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["answer_request", "lift_stop", "stop_all", "waiting_requests"]


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
