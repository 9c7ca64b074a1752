"""The commands about costs: ``zorder calibrate`` and ``zorder savings``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from zorder_pipeline.errors import ZorderError
from zorder_pipeline.model.choices import COPY_BYTES, HORIZON_DAYS
from zorder_pipeline.model.places import shown_place

from .common import Payload, Progress, command, err, out, print_columns, start_spark, table_option
from .configured import configuration_at_hand, state_or_at_hand
from .numbers import FiniteRange
from .states import apart, existing, written
from .targets import writable, write_file

if TYPE_CHECKING:
    from zorder_pipeline.gate.cost import CostModel
    from zorder_pipeline.gate.settings import GateSettings
    from zorder_pipeline.pipeline import PromiseCheck

__all__ = ["assumed_at_hand", "calibrate", "gate_options", "gate_settings", "savings"]

UNITS = {
    "per_job": "a relayout, however small",
    "per_written_file": "a file replaced or written",
    "base": "a GB relaid by one column",
    "per_feature": "... by each further column",
    "per_additional": "... for each other column with statistics",
    "per_predicate": "... for each predicate in the key",
    "per_hash": "... to compare every row (verify: hash)",
    "per_query": "a query, however little it reads",
    "per_opened_file": "a file opened by a query",
    "scan": "a GB read by a query",
}

state_option = click.option(
    "--state",
    help="Folder of the pipeline's state, on any Hadoop filesystem; by default that of the configuration in "
    "ZORDER_CONFIG or DAGSTER_HOME, and without one the folder state here.",
)
price_option = click.option(
    "--price-per-core-hour",
    "price",
    type=FiniteRange(min=0),
    default=0.0,
    help="To state costs and savings in money, too.",
)


def gate_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options about what the gate assumes, which `gate_settings` takes."""
    for option in (
        price_option,
        click.option("--queries-per-day", type=FiniteRange(min=0), help="Expected rate; the log's by default."),
        click.option("--horizon-days", type=FiniteRange(min=0, min_open=True), default=HORIZON_DAYS, show_default=True,
                     help="Days within which the rewrite must pay for itself."),
    ):  # fmt: skip
        function = option(function)
    return function


def gate_settings(horizon_days: float, queries_per_day: float | None, price: float) -> GateSettings:
    """Settings from `gate_options`."""
    from zorder_pipeline.gate.cost import CostModel
    from zorder_pipeline.gate.settings import GateSettings

    costs = CostModel(price_per_core_hour=price)
    return GateSettings(horizon_days=horizon_days, queries_per_day=queries_per_day, costs=costs)


def assumed_at_hand(state: str | None, table: str | None, price: float | None = None) -> CostModel:
    """What is assumed of costs: by the configuration at hand if this is its state, and of a price that is given.

    Args:
        table: name, path or catalog name; None for what holds for all tables.
    """
    from zorder_pipeline.config.costs import costs_of
    from zorder_pipeline.gate.cost import CostModel

    config = configuration_at_hand(state)
    costs = (costs_of(config, table) if config is not None else None) or CostModel()
    return costs if price is None else replace(costs, price_per_core_hour=price)


@command
@table_option
@state_option
@click.option(
    "--copy-bytes",
    type=click.IntRange(1 << 20),
    default=COPY_BYTES,
    show_default=True,
    help="Size of the largest copy.",
)
def calibrate(table: str, state: str | None, copy_bytes: int) -> Payload:
    """Time relayouts and scans on a small copy of the table, to know what they cost here; the table is only read."""
    from zorder_pipeline import pipeline
    from zorder_pipeline.gate.cost import RelayoutWork
    from zorder_pipeline.relayout.snapshot import open_table

    folder = written(apart(state_or_at_hand(state), table), named=state is not None)
    before = assumed_at_hand(folder, table)
    spark = start_spark("calibrate")
    model, timings = pipeline.calibrate(
        spark, table, folder, copy_bytes=copy_bytes, assumed=before, progress=Progress()
    )
    told, assumed = model.to_json(), before.to_json()
    rows = [(meaning, f"{told[name]:,.3g}", f"{assumed[name]:,.3g}") for name, meaning in UNITS.items()]
    print_columns("Core-seconds", ("of", "here", "assumed before"), rows)
    snapshot = open_table(spark, table)
    size, count = float(snapshot.files().bytes.sum()), len(snapshot.files())
    whole = model.relayout(RelayoutWork(size, 3, files=2 * count), snapshot.table_id)
    out.print(
        f"A relayout of the whole table, {size / 1e9:,.3g} GB, by three columns would take {whole.expected:,.0f} "
        f"core-seconds (90% interval {whole.low:,.0f} to {whole.high:,.0f}); kept in {folder}/calibrations",
        soft_wrap=True,
    )
    return {
        "core_seconds": told,
        "measured": len(timings),
        "relayout_noise": model.relayout_fit.noise,
        "scan_noise": model.scan_fit.noise,
        "whole_table": vars(whole),
    }


@command
@state_option
@click.option("--table", help="Only this table: path or catalog name.")
@click.option(
    "--price-per-core-hour",
    "price",
    type=FiniteRange(min=0),
    help="To state costs and savings in money, too; by default that of the configuration at hand, if --state is its.",
)
@click.option(
    "--out", "target", type=click.Path(), callback=writable, help="Also draw promised against measured, as PNG."
)
def savings(state: str | None, table: str | None, price: float | None, target: str | None) -> Payload:
    """What relayouts promised and cost, what became of it, and what they saved by table and month."""
    from zorder_pipeline import pictures, pipeline
    from zorder_pipeline.config.costs import costs_of

    folder = existing(state_or_at_hand(state), named=state is not None)
    spark = start_spark("savings", brief=True)
    config = configuration_at_hand(folder)
    own = None if config is None else partial(costs_of, config)
    books = pipeline.savings(spark, folder, table=table, assumed=assumed_at_hand(folder, table, price), own=own)
    price = books.price_per_core_hour
    of = "" if table is None else f" of {table}"
    if target is not None and not books.checks:
        told = shown_place(folder)
        raise ZorderError(f"{told} holds no relayout{of} to draw; relayouts with --state {told} are noted there")
    if not books.checks:
        out.print(f"no relayout{of} is noted in {shown_place(folder)}", soft_wrap=True)
        return books.to_json()
    if target is not None:  # before anything is printed, which nobody may read to its end
        write_file(target, pictures.promises_kept([check.drawn for check in books.checks]))
    header = ("table", "version", "done", "queries", "promised", "measured", "core-s", "foretold (90%)")
    print_columns("Relayouts: share of the rows that a query reads less", header, map(_line, books.checks), left=1)
    money = ("money",) if price else ()
    rows = [
        (
            *(row.table, row.month, f"{row.relayouts:,}", f"{row.cost:,.0f}", f"{row.saved:z,.0f}"),
            *(f"{row.checked:.0%}", f"{row.net:+z,.0f}", *([f"{row.net / 3600 * price:+z,.2f}"] if price else [])),
        )
        for row in books.months
    ]
    header = ("table", "month", "relayouts", "cost", "saved", "of it measured", "net", *money)
    print_columns("Core-seconds by month", header, rows, left=2)
    for check in books.checks:
        if check.remark:
            out.print(check.remark, soft_wrap=True)
        if check.warning:
            err.print(f"warning: {check.warning}", soft_wrap=True)
    if target is not None:
        out.print(f"drawn to {target}")
    return books.to_json()


def _line(check: PromiseCheck) -> tuple[str, ...]:
    foretold = (
        "" if check.cost_low is None else f"{check.cost_expected:,.1f} ({check.cost_low:,.1f}–{check.cost_high:,.1f})"
    )
    return (
        check.table,
        str(check.version),
        f"{datetime.fromtimestamp(check.committed_at / 1e6, UTC):%Y-%m-%d %H:%M}",
        f"{check.queries:,}",
        "nothing" if check.by_hand else f"{check.promised:z.1%}",
        "not checked yet" if check.measured is None else f"{check.measured:z.1%}{' BROKEN' if check.broken else ''}",
        f"{check.cost:,.1f}",
        foretold,
    )
