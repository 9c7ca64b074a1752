"""The commands about query logs alone: ``zorder ingest`` and ``zorder purge``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from zorder_pipeline.errors import ZorderError
from zorder_pipeline.model.places import local_path, shown_place
from zorder_pipeline.model.wording import counted

from .common import (
    LOG_OPTIONS,
    Payload,
    Progress,
    command,
    is_said,
    log_options,
    log_sources,
    out,
    print_figures,
    start_spark,
)
from .configured import by_hand, configuration_of
from .states import existing_state_option, no_state, writable_state, written

if TYPE_CHECKING:
    from zorder_pipeline.config import PipelineConfig
    from zorder_pipeline.pipeline import LogSource

__all__ = ["ingest", "purge"]


MOST_TABLES = 5
"""Tables whose conditions are printed."""


@command
@log_options()
@click.option(
    "--state",
    callback=writable_state,
    help="Folder of the pipeline's state: what is new in the log is added there, exactly once.",
)
@click.option(
    "--config",
    "config_path",
    type=click.Path(),
    help="tables.yaml whose tables, logs and state are meant; by default the one of DAGSTER_HOME, if --state is its.",
)
def ingest(
    logs: tuple[str, ...], log_format: str, dialect: str, zone: str, state: str | None, config_path: str | None
) -> Payload:
    """Read a query log: how many statements can be used, for which tables, and why the others cannot."""
    from zorder_pipeline import pipeline
    from zorder_pipeline.query_log.insight import FORMS, REASONS, insight

    sources = log_sources(logs, log_format, dialect, zone)
    config = configuration_of(state, config_path)
    if config is not None:
        state = state or written(config.state)
        sources = _as_configured(config, sources)
    if state is None:
        log = pipeline.ingest(sources, progress=Progress())
        payload = log.to_json()
    else:
        spark = start_spark("ingest", None if config_path is None else by_hand(config))
        progress, tables, views = Progress(), None, None
        if config is not None:
            tables, views = pipeline.configured_tables(spark, config, progress), config.views
        beside = [log.path for log in config.query_logs] if config is not None else []
        payload = pipeline.ingest_into(spark, state, sources, tables, views, progress, beside).to_json()
        log = pipeline.stored_log(spark, state)
    names = {query.table for query in log.queries}
    payload["insight"] = {name: insight(log.of_table([name])) for name in sorted(names)}
    print_figures("Query log", [(key, f"{payload[key]:,}") for key in ("lines", "used", "ignored", "quarantined")])
    for title, counts in (
        ("Tables", payload["tables"]),
        ("Reasons", payload["reasons"]),
        ("Tables that are not known", payload["unmatched"]),
    ):
        if counts:
            words = REASONS if title == "Reasons" else {}
            often = sorted(counts.items(), key=lambda item: -item[1])
            print_figures(title, [(name, f"{count:,}  {words.get(name, '')}".rstrip()) for name, count in often])
    same = 0 if state is None else payload["unchanged_files"]
    if not payload["used"] and (payload["lines"] or not same):
        out.print("no statement of this log can be used to learn from")
    whole = "" if state is None else ", in the whole store"
    ranked = sorted(payload["insight"].items(), key=lambda item: -item[1]["queries"])
    for name, found in ranked[:MOST_TABLES]:
        print_figures(f"What is asked of {name}{whole}", [*_forms(found, FORMS), *_habits(found)])
    if len(ranked) > MOST_TABLES:
        others = counted(len(ranked) - MOST_TABLES, "further table")
        out.print(f"{others} not printed: --json tells of all", soft_wrap=True)
    if same:
        out.print(f"{counted(same, 'file')} held nothing new")
    return payload


def _as_configured(config: PipelineConfig, sources: Sequence[LogSource]) -> list[LogSource]:
    """The logs as the configuration reads them; the others as the options say.

    Raises:
        ZorderError: the options say otherwise.
    """
    from zorder_pipeline import pipeline

    found = []
    for source in sources:
        first, *others = pipeline.configured_sources(config, source)
        for name, option in LOG_OPTIONS.items():
            given, told = getattr(source, name), getattr(first, name)
            if given != told and is_said(name):
                raise ZorderError(
                    f"the configuration reads {shown_place(source.path)} with {option} {told}; leave out "
                    f"{option} {given}, or change the log's entry in tables.yaml"
                )
        found += [first, *others]
    return found


def _forms(found: dict[str, Any], forms: dict[str, str]) -> list[tuple[str, str]]:
    return [(f"{form}  {forms[form]}", f"{count:,}") for form, count in found["forms"].items()]


def _habits(found: dict[str, Any]) -> list[tuple[str, str]]:
    levels = ", ".join(f"{name} {count:,}" for name, count in found["levels"].items())
    points = ", ".join(f"{name} {count:,}" for name, count in list(found["comparison_points"].items())[:4])
    rows = [
        ("queries by the level at which they can skip", levels),
        ("distinct values compared with", points or "none"),
    ]
    if found["untimed"]:
        what = "their order is that of the log; what they ask for relative to their time is unknown"
        rows.append(("without a time, or with none that could be read", f"{found['untimed']:,}: {what}"))
    if found["constancy"] is not None and found["forms"]:
        rows.append(("alike in both halves of the log", f"{found['constancy']:.0%}"))
    return rows


@command
@existing_state_option(required=True)
@click.option("--older-than", "days", type=click.IntRange(0), default=90, show_default=True, help="Days to keep.")
@click.option("--user", help="Delete all queries of this user instead, however old.")
def purge(state: str, days: int, user: str | None) -> Payload:
    """Delete old queries from the state, or all of one user, with what was kept of them elsewhere in it."""
    from zorder_pipeline import pipeline

    if user is not None and is_said("days"):
        raise ZorderError("--older-than means nothing with --user, of whom all goes however old; leave one of them out")
    if no_state(state):
        raise ZorderError(
            f"{state} is no state: it holds none of the folders of one, such as query_log; "
            f"name the folder that `state` in tables.yaml names"
        )
    deleted = pipeline.purge(start_spark("purge", brief=True), state, days, user)
    if local_path(state) is None and "query_log" not in deleted and not any(deleted.values()):
        raise ZorderError(f"{state} holds no query_log; name the folder that `state` in tables.yaml names")
    units = dict.fromkeys(("begun", "recorded"), "files")
    lines = [(name, f"{count:,} {units.get(name, 'rows')}") for name, count in deleted.items()]
    print_figures(f"Deleted from {state}", lines)
    if any(deleted.values()):
        out.print("the files that held deleted rows go with VACUUM of these tables, by default a week later")
    if deleted.get("file_stats"):
        out.print("statistics of expressions and predicates are gathered anew by the next relayout, or by zorder stats")
    if user is not None and any(deleted.values()):
        out.print("layouts keep the constants that they cut by; a newly learned one has none of what was deleted")
    return {"deleted": deleted}
