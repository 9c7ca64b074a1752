"""``zorder report``: a page about one table for people."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

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
from .configured import retention_at_hand, table_at_hand
from .costs import assumed_at_hand
from .states import existing_state_option
from .targets import writable, write_file

if TYPE_CHECKING:
    from zorder_pipeline.pipeline import LearnSettings

__all__ = ["report"]

TRIALS = 200
"""Fewer than a night's, as somebody waits for the page."""


@command
@table_option
@log_options(required=False)
@alias_option
@existing_state_option(": stored queries, and what relayouts promised and did")
@click.option(
    "--trials",
    type=click.IntRange(1),
    help=f"Of the search, made anew. By default {TRIALS}, or as the configuration says whose state --state names.",
)
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
    trials: int | None,
    literals: bool,
    target: str,
) -> Payload:
    """One self-contained HTML page about a table: what is asked, how it lies, what relayouts cost and saved."""
    from zorder_pipeline.report import collect, page

    sources = log_sources(logs, log_format, dialect, zone)
    found = collect(
        start_spark("report"),
        table,
        sources,
        state=state,
        aliases=aliases,
        settings=_as_in_nights(state, table, trials),
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


def _as_in_nights(state: str | None, table: str, trials: int | None) -> LearnSettings:
    """The settings of the nights that write this state, so that the page finds what they would; but it writes nothing,
    so the nights' study stays as it is.
    """
    from zorder_pipeline.pipeline import LearnSettings

    meant = table_at_hand(state, table)
    if meant is None:
        return LearnSettings(trials=trials or TRIALS)
    from zorder_pipeline.assets.settings import learn_settings

    settings = learn_settings(meant)
    return replace(settings, study=None, trials=trials or settings.trials)
