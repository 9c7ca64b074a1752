"""``zorder report``: a page about one table for people."""

from __future__ import annotations

import click

from .common import (
    Payload,
    Progress,
    alias_option,
    command,
    log_options,
    log_sources,
    out,
    start_spark,
    table_option,
)
from .configured import retention_at_hand
from .costs import assumed_at_hand
from .states import existing_state_option
from .targets import writable, write_file

__all__ = ["report"]


@command
@table_option
@log_options(required=False)
@alias_option
@existing_state_option(": stored queries, and what relayouts promised and did")
@click.option("--trials", type=click.IntRange(1), default=200, show_default=True, help="Of the search, made anew.")
@click.option("--literals", is_flag=True, help="Show values of queries and of the table, which can be personal data.")
@click.option("--out", "target", required=True, type=click.Path(), callback=writable, help="The HTML file to write.")
def report(
    table: str,
    logs: tuple[str, ...],
    log_format: str,
    dialect: str,
    zone: str,
    aliases: tuple[str, ...],
    state: str | None,
    trials: int,
    literals: bool,
    target: str,
) -> Payload:
    """One self-contained HTML page about a table: what is asked, how it lies, what relayouts cost and saved."""
    from zorder_pipeline.pipeline import LearnSettings
    from zorder_pipeline.report import collect, page

    sources = log_sources(logs, log_format, dialect, zone)
    found = collect(
        start_spark("report"),
        table,
        sources,
        state=state,
        aliases=aliases,
        settings=LearnSettings(trials=trials),
        literals=literals,
        assumed=assumed_at_hand(state, table),
        days=retention_at_hand(state),
        progress=Progress(),
    )
    content = page(found).encode()
    write_file(target, content)
    out.print(found.lead, soft_wrap=True)
    out.print(f"written to {target}", soft_wrap=True)
    sections = [section.title for section in found.sections]
    return {"file": target, "lead": found.lead, "sections": sections, "bytes": len(content)}
