"""``zorder triage``: which tables are worth a layout, and what to do where we may not rewrite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zorder_pipeline.model.wording import counted

from .common import (
    Payload,
    Progress,
    UnfinishedError,
    command,
    log_options,
    log_sources,
    out,
    print_columns,
    start_spark,
)
from .configured import retention_at_hand
from .states import existing_state_option
from .targets import writable, write_file

if TYPE_CHECKING:
    from zorder_pipeline.model.triage import TableTriage

__all__ = ["triage"]


@command
@log_options(required=False)
@click.option("--table", "tables", multiple=True, help="Path or catalog name; by default every table the log names.")
@existing_state_option(", whose stored queries count, too")
@click.option("--picture", type=click.Path(), callback=writable, help="Also draw the tables, as a PNG file.")
def triage(
    logs: tuple[str, ...],
    log_format: str,
    dialect: str,
    zone: str,
    tables: tuple[str, ...],
    state: str | None,
    picture: str | None,
) -> Payload:
    """Look at tables without writing anything: what skips now, what a layout could save, and plain advice."""
    from zorder_pipeline import pipeline

    sources = log_sources(logs, log_format, dialect, zone)
    days = retention_at_hand(state)
    found = pipeline.triage(start_spark("triage"), sources, tables, state=state, days=days, progress=Progress())
    known = [item for item in found if item.problem is None]
    if picture is not None and known:
        write_file(picture, _drawn(known), "--picture")  # before anything is printed, which nobody may read to its end
    columns = ("table", "queries", "MB", "files", "read now", "learned", "at best", "saves MB a day", "cluster by")
    if known:
        print_columns("Tables, the one with most to gain first", columns, [_cells(item) for item in known])
    for item in known:
        out.print(f"\n{item.table}", style="bold", soft_wrap=True)
        liquid = any(" CLUSTER BY " in statement for statement in item.statements)
        for sentence in (*item.advice, *item.statements):
            instead = "or, where it is not to be liquid: " if liquid and sentence.startswith("OPTIMIZE ") else ""
            out.print(f"- {instead}{sentence}", soft_wrap=True)
    if not found:
        out.print("the log names no table")
    if unknown := [item for item in found if item.problem is not None]:
        out.print("\nNothing to say of" if known else "Nothing to say of", style="bold")
        for item in unknown:
            out.print(f"- {item.table} ({counted(item.queries, 'query')}): {item.problem}", soft_wrap=True)
    payload = {"tables": [item.to_json() for item in found]}
    if picture is not None and not known:
        raise UnfinishedError(f"{picture} was not written: there is no table to draw", payload)
    if picture is not None:
        out.print(f"\npicture written to {picture}", soft_wrap=True)
    return payload


def _cells(item: TableTriage) -> tuple[str, ...]:
    return (
        _short(item.table),
        f"{item.queries:,}",
        f"{item.bytes / 1e6:,.1f}",
        f"{item.files:,}",
        _percent(item.read_now),
        _percent(item.learned),
        _percent(item.bound),
        f"{item.saved_bytes_per_day / 1e6:,.1f}",
        ", ".join(item.columns[:3]),
    )


def _short(table: str) -> str:
    """A catalog name as it is, of a path the folder."""
    return table.rstrip("/").rsplit("/", 1)[-1]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _drawn(items: list[TableTriage]) -> bytes:
    from zorder_pipeline import pictures

    return pictures.tables_to_gain(
        [(_short(item.table), item.read_now or 0.0, item.learned or 0.0, item.bound or 0.0) for item in items]
    )
