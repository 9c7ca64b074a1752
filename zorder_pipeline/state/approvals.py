"""The state's table ``approvals``: plans that wait for a person, and what was said to them."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from zorder_pipeline.errors import PlanError, ZorderError
from zorder_pipeline.model.approval import APPROVED, PENDING, REJECTED, Request
from zorder_pipeline.model.places import local_path
from zorder_pipeline.model.plan import Plan

from .state_table import StateTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Approvals"]

SCHEMA_VERSION = 1
ANSWERS = (APPROVED, REJECTED)
"""What a person says; all else comes of nights."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS = (
    *("schema_version INT", "table_id STRING", "table_name STRING", "plan_id STRING", "event STRING"),
    *("event_at TIMESTAMP", "event_date DATE", "by STRING", "table_version BIGINT", "reasons STRING", "plan STRING"),
)


class Approvals:
    """Requests for approval, an event per line: asked, approved, rejected, done or withdrawn.

    Args:
        state: folder of the state, on any Hadoop filesystem.
    """

    def __init__(self, spark: SparkSession, state: str) -> None:
        self.table = StateTable(spark, state, "approvals", COLUMNS, SCHEMA_VERSION, "event_date")

    def ask(self, name: str, plan: Plan, reasons: tuple[str, ...], version: int) -> None:
        """Put a plan to a person; that comes after all that was said of the table before, whatever the clocks say."""
        said = max((_newest_moment(request) for request in self.all(plan.table_id)), default=0)
        told = {"reasons": json.dumps(reasons), "plan": json.dumps(plan.to_json()), "table_version": version}
        key = {"table_id": plan.table_id, "table_name": name, "plan_id": plan.plan_id}
        self._note(PENDING, {**key, **told}, after=said)

    def settle(self, request: Request, event: str, by: str = "") -> None:
        """Note what became of a request: an answer, or its end, unless a person has answered since it was read."""
        now = self.as_it_is(request) if event not in ANSWERS else None
        if now is not None and now.status in ANSWERS and _newest_moment(now) > _newest_moment(request):
            return
        key = {"table_id": request.table_id, "table_name": request.table, "plan_id": request.plan_id}
        self._note(event, {**key, "by": by}, after=_newest_moment(request))

    def as_it_is(self, request: Request) -> Request | None:
        """A request that was read before, with what was said of it since; None when it is no longer there."""
        return next((one for one in self.all(request.table_id) if one.plan_id == request.plan_id), None)

    def newest(self, table_id: str) -> Request | None:
        """A table's newest request; None when there never was one, or an older version of the code wrote it."""
        return max(self.all(table_id), key=lambda request: request.asked_at, default=None)

    def waiting(self) -> list[Request]:
        """Each table's newest request, as far as it is pending, or approved but not yet done; oldest first.

        A table that was made anew has another id: what was asked of the one before it, at its place, is over.
        """
        waiting: list[Request] = []
        newer: set[str] = set()
        for request in reversed(self.all()):
            known = {request.table_id, *_located(request)}
            if newer.isdisjoint(known) and request.status in (PENDING, APPROVED):
                waiting.append(request)
            newer |= known
        return waiting[::-1]

    def answer(self, table: str, plan_id: str | None, event: str, by: str) -> Request:
        """Approve or reject the plan that waits for a table: ``event`` is `APPROVED` or `REJECTED`.

        Args:
            table: its configured name, or its location. No part of it: another table may be called so.
            plan_id: which plan is meant; None for the one that waits.

        Raises:
            ZorderError: no such plan waits.
        """
        waiting = self.waiting()
        mine = [request for request in waiting if {table.rstrip("/"), *_places(table)} & _names(request)]
        if not mine:
            listed = ", ".join(f"{request.table} ({request.plan_id})" for request in waiting)
            others = f"; waiting: {listed}" if listed else ", nor one of any other table"
            raise ZorderError(f"no plan of {table} waits for approval{others}")
        request = mine[-1]
        if plan_id is not None and plan_id != request.plan_id:
            raise ZorderError(
                f"plan {plan_id} of {table} does not wait any more; plan {request.plan_id} does: look at it with "
                "zorder approve before you approve it"
            )
        if request.status == APPROVED and event == APPROVED:
            return request
        self.settle(request, event, by)
        return self.newest(request.table_id) or request

    def all(self, table_id: str | None = None) -> list[Request]:
        """Every request ever made, or those of one table, oldest first."""
        from pyspark.sql import functions as F

        rows = self.table.read().withColumn("moment", F.unix_micros("event_at")).orderBy("moment")
        if table_id is not None:
            rows = rows.where(F.col("table_id") == table_id)
        found: dict[tuple[str, str], Request] = {}
        for row in rows.collect():
            key = (row["table_id"], row["plan_id"])
            if row["event"] == PENDING:
                found.pop(key, None)  # asked again: it is the newest now
                if (asked := _request(row.asDict())) is not None:
                    found[key] = asked
            elif key in found:
                old = found[key]
                settled = {"status": row["event"], "settled_at": row["moment"], "by": row["by"] or old.by}
                found[key] = Request(**{**vars(old), **settled})
        return sorted(found.values(), key=lambda request: request.asked_at)

    def _note(self, event: str, values: dict[str, Any], after: int = 0) -> None:
        """Add an event; it comes after a moment (microseconds since 1970), whatever the writers' clocks say."""
        least = EPOCH + timedelta(microseconds=after + 1)
        now = max(datetime.now(UTC), least)
        row = {"schema_version": SCHEMA_VERSION, "event": event, "event_at": now.isoformat(), **values}
        self.table.append([row | {"event_date": now.date().isoformat()}])


def _newest_moment(request: Request) -> int:
    """When anything was said of a request last, microseconds since 1970 UTC."""
    return max(request.asked_at, request.settled_at or 0)


def _names(request: Request) -> set[str]:
    return {request.table.rstrip("/"), *_located(request)}


def _located(request: Request) -> set[str]:
    location = request.plan.table.rstrip("/")
    return {location, *_places(location)}


def _places(table: str) -> set[str]:
    """A table's folder as an absolute path, if it lies on this machine and is not a mere name."""
    local = local_path(table)
    return {os.path.abspath(local)} if local is not None and "/" in local else set()


def _request(row: dict[str, Any]) -> Request | None:
    try:
        plan = Plan.from_json(json.loads(row["plan"]))
    except PlanError:  # written by another version of this code: as if it had not been asked
        return None
    return Request(
        table=row["table_name"],
        table_id=row["table_id"],
        plan=plan,
        status=PENDING,
        asked_at=row["moment"],
        reasons=tuple(json.loads(row["reasons"] or "[]")),
        version=row["table_version"] or 0,
        asked_as=row["plan_id"] or "",
    )
