"""The commands of an operator: ``zorder approve`` and ``zorder stop``."""

from __future__ import annotations

import getpass
import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from zorder_pipeline.errors import ZorderError

from .common import Payload, command, out, print_columns, start_spark
from .configured import state_of

if TYPE_CHECKING:
    from zorder_pipeline.model.approval import Request

__all__ = ["approve", "stop"]

config_option = click.option("--config", "config_path", type=click.Path(), help="tables.yaml: its state and Spark.")
state_option = click.option("--state", help="Folder of the state; by default the one of tables.yaml.")


@command
@state_option
@config_option
@click.option("--table", help="Approve the plan that waits for this table (name or path); without it, list all.")
@click.option("--plan", "plan_id", help="Only if this is the plan that waits.")
@click.option("--reject", is_flag=True, help="Reject it instead: for gate.approval_days nothing like it is proposed.")
@click.option("--by", help="Who says so; the name of the user by default.")
def approve(
    state: str | None, config_path: str | None, table: str | None, plan_id: str | None, reject: bool, by: str | None
) -> Payload:
    """Plans that wait for a person: list them, approve or reject one; the next run carries an approved one out."""
    from zorder_pipeline import pipeline

    if table is None and (plan_id is not None or reject):
        raise ZorderError("say which table is meant: --table NAME")
    folder, settings = state_of(state, config_path)
    spark = start_spark("approve", settings, brief=True)
    if table is not None:
        found = pipeline.answer_request(spark, folder, table, plan_id, reject=reject, by=by or getpass.getuser())
        then = (
            "nothing like it is proposed for gate.approval_days"
            if reject
            else "the next run carries it out, if it still fits"
        )
        out.print(f"plan {found.plan_id} of {found.table} is {found.status} by {found.by}: {then}", soft_wrap=True)
        return found.to_json()
    waiting = pipeline.waiting_requests(spark, folder)
    columns = ("table", "plan", "what", "status", "asked", "why")
    if not waiting:
        out.print("no plan waits for a person")
        return {"plans": []}
    print_columns("Plans that wait", columns, [_cells(request) for request in waiting], left=6)
    return {"plans": [request.to_json() for request in waiting]}


@command
@state_option
@config_option
@click.option("--note", default="", help="Shown to everybody as the reason.")
@click.option("--lift", is_flag=True, help="Go on again.")
def stop(state: str | None, config_path: str | None, note: str, lift: bool) -> Payload:
    """Stop all relayouts at once, also one that is running (before its next bin of partitions); --lift goes on."""
    from zorder_pipeline import pipeline

    if lift and note:
        raise ZorderError("--note means nothing with --lift; leave one of them out")
    folder, settings = state_of(state, config_path)
    spark = start_spark("stop", settings | {"spark.master": "local[1]"}, brief=True)  # no cluster is waited for
    if lift:
        there = pipeline.lift_stop(spark, folder)
        out.print("relayouts go on" if there else "nothing was stopped")
        return {"stopped": False, "was_stopped": there}
    pipeline.stop_all(spark, folder, note)
    given = ["--state", state] if state is not None else ["--config", config_path] if config_path is not None else []
    same = "".join(f" {shlex.quote(word)}" for word in given)
    out.print(f"all relayouts are stopped by {folder}/STOP; zorder stop{same} --lift goes on", soft_wrap=True)
    return {"stopped": True}


def _cells(request: Request) -> tuple[str, ...]:
    asked = datetime.fromtimestamp(request.asked_at / 1e6, UTC)
    why = request.reasons[0] if request.reasons else ""
    return (
        request.table,
        request.plan_id,
        request.plan.action or "layout",
        request.status,
        f"{asked:%Y-%m-%d %H:%M}",
        why,
    )
