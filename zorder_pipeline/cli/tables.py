"""The commands about a table as it lies: ``zorder apply``, ``compact``, ``evaluate``, ``inspect`` and ``rollback``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args

import click

from zorder_pipeline.errors import ZorderError
from zorder_pipeline.model.choices import Verify
from zorder_pipeline.model.wording import counted

from .common import (
    Payload,
    Progress,
    alias_option,
    command,
    committer_option,
    err,
    file_size_options,
    learn_settings,
    log_options,
    log_sources,
    out,
    print_columns,
    print_figures,
    start_spark,
    table_option,
)
from .configured import kill_switch, retention_at_hand
from .costs import assumed_at_hand, gate_options, gate_settings
from .states import apart, existing, existing_state_option, writable_state, written

if TYPE_CHECKING:
    from zorder_pipeline.model.plan import Plan
    from zorder_pipeline.model.results import ApplyResult

__all__ = ["apply", "compact", "evaluate", "inspect", "rollback", "stats"]


def rewrite_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What every rewrite can be told."""
    options = (
        click.option("--where", help="Condition on partition columns, e.g. \"ds = '2026-01-01'\"."),
        click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing."),
        click.option("--verify", type=click.Choice(get_args(Verify)), default="counts", show_default=True),
        click.option(
            "--row-group-bytes",
            type=click.IntRange(4096),
            help="Size of the new files' Parquet row groups; Spark's and the table's own setting by default.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@command
@table_option
@click.option("--plan", "plan_path", required=True, type=click.Path(), help="plan.json from zorder learn or layout.")
@click.option("--full", is_flag=True, help="Rewrite files that already lie by this layout, too.")
@click.option("--force", is_flag=True, help="Do not ask the gate whether it pays.")
@rewrite_options
@committer_option
@click.option("--state", help="Folder of the pipeline's state: knows what relayouts cost here, and notes this one.")
@gate_options
def apply(
    table: str, plan_path: str, horizon_days: float, queries_per_day: float | None, price: float, **options: Any
) -> Payload:
    """Rewrite the files that the plan wants elsewhere, if that pays, in a Delta transaction per bin of partitions."""
    from zorder_pipeline import pipeline
    from zorder_pipeline.model.candidate import COMPACTION
    from zorder_pipeline.model.plan import read_plan

    plan = read_plan(plan_path)
    if options["state"] is not None:
        (existing if options["dry_run"] else written)(apart(options["state"], table))
    gate = gate_settings(horizon_days, queries_per_day, price)
    rules, settings = kill_switch()
    spark = start_spark("apply", settings)
    result = pipeline.apply(spark, table, plan, gate=gate, rules=rules, progress=Progress(), **options)
    action = str(result.gate.get("action", ""))
    return _told(table, result, _merged(plan, result) if action == COMPACTION else "") | {"action": action}


@command
@table_option
@file_size_options
@rewrite_options
@existing_state_option(": zorder stop stops this, too")
def compact(
    table: str, target_file_rows: int | None, target_file_bytes: int | None, state: str | None, **options: Any
) -> Payload:
    """Merge small files and drop deleted rows; the order of the rows, and what lies by a layout, stay as they are."""
    from zorder_pipeline import pipeline

    size = learn_settings(target_file_rows, target_file_bytes)
    rules, settings = kill_switch()
    spark = start_spark("compact", settings)
    result = pipeline.compact(spark, table, settings=size, rules=rules, state=state, progress=Progress(), **options)
    return _told(table, result)


def _merged(plan: Plan, result: ApplyResult) -> str:
    """What became of a plan when merging files gained more; "" where nothing was done."""
    if result.decision != "applied":
        return ""
    done, not_done = ("would be", "would not be") if result.dry_run else ("were", "was not")
    return f"small files {done} merged" + (f"; the plan's layout {not_done} applied" if plan.spec is not None else "")


def _told(table: str, result: ApplyResult, became: str = "") -> Payload:
    """Print what a rewrite did.

    Args:
        became: what it is called when that is not the decision.
    """
    would = result.dry_run and result.decision == "applied"
    print_figures(
        f"{table}: {became or ('would be applied' if would else result.decision.replace('_', ' '))}",
        [
            ("files removed", f"{result.files_removed:,}"),
            ("files added", f"{result.files_added:,}"),
            ("files left alone", f"{result.skipped_files:,}"),
            ("rows rewritten", f"{result.rows:,}"),
            ("bytes rewritten", f"{result.bytes_rewritten:,}"),
            ("table version", str(result.version)),
        ],
    )
    for reason in result.reasons:
        out.print(f"- {reason}", soft_wrap=True)
    return result.to_json()


@command
@table_option
@log_options(required=False)
@alias_option
@existing_state_option(": also check what relayouts promised, by later queries; without --log by its stored ones")
def evaluate(
    table: str,
    logs: tuple[str, ...],
    log_format: str,
    dialect: str,
    zone: str,
    aliases: tuple[str, ...],
    state: str | None,
) -> Payload:
    """What the logged queries read of the table as it lies now, from its own statistics and Parquet footers."""
    from zorder_pipeline import pipeline
    from zorder_pipeline.model.partition_conditions import untold_in_words
    from zorder_pipeline.pipeline.table_log import refuse_unasked

    sources = log_sources(logs, log_format, dialect, zone)
    refuse_unasked(sources, state)
    asked: dict[str, Any] = {"aliases": aliases, "days": retention_at_hand(state)}
    spark, checks = start_spark("evaluate", brief=True), []
    stored = None if sources else state
    found = pipeline.evaluate(spark, table, sources, state=stored, progress=Progress(), **asked)
    payload = found.to_json()
    if state is not None:
        costs = assumed_at_hand(state, table)
        checks = pipeline.check_promises_by_log(spark, state, table, sources, **asked, assumed=costs)
        payload["promises"] = [vars(check) | {"warning": check.warning} for check in checks]
    groups = payload["row_groups_read_fraction"]
    print_figures(
        f"{table}: what {counted(found.queries, 'query')} read",
        [
            ("files", f"{payload['files_read_mean']:,.1f} of {found.files:,}"),
            ("rows", f"{payload['rows_read_mean']:,.0f} of {found.rows:,} ({payload['rows_read_fraction']:.2%})"),
            ("row groups", "unknown" if groups is None else f"{groups:.2%}"),
            ("bytes", f"{payload['bytes_read_mean']:,.0f}"),
            ("rows that match", f"{payload['matched_fraction']:.3%}"),
            ("unusable statements", f"{found.unusable:,}"),
        ],
    )
    for said in untold_in_words(found.partitions_unknown):
        err.print(f"warning: {said}", soft_wrap=True)
    for check in checks:
        if check.kept is not None:
            out.print(
                f"version {check.version} promised {check.promised:.1%} of the rows less and saves "
                f"{check.measured:.1%} ({counted(check.queries, 'query')})",
                soft_wrap=True,
            )
        if check.warning:
            err.print(f"warning: {check.warning}", soft_wrap=True)
    return payload


@command
@table_option
@committer_option
def inspect(table: str, committer: str) -> Payload:
    """Files, layouts and tags of a table, and how much its files overlap per column."""
    from zorder_pipeline import pipeline

    payload = pipeline.inspect(start_spark("inspect", brief=True), table, committer=committer)
    key_overlap = payload["key_overlap"]
    print_figures(
        f"{payload['table']} at version {payload['version']}",
        [
            ("files", f"{payload['files']:,}"),
            ("rows", f"{payload['rows']:,}"),
            ("bytes", f"{payload['bytes']:,}"),
            *((("partitioned by", ", ".join(parted)),) if (parted := payload["partition_columns"]) else ()),
            *((("deleted by vectors", counted(gone, "row")),) if (gone := payload["deletion_vector_rows"]) else ()),
            ("clustered by us", f"{payload['clustered_fraction']:.1%} of the rows"),
            *((f"layout {name}", counted(count, "file")) for name, count in payload["layouts"].items()),
            ("generations that overlap", f"{payload['generations']:,} at most in a partition"),
            ("our files that hold a key", "unknown" if key_overlap is None else f"{key_overlap:.1f} on average"),
        ],
    )
    files = max(1, payload["files"])
    print_columns(
        "Overlap: files that a look-up of one value would read, on average",
        ("column", "files", "share"),
        [(column, f"{depth:,.1f}", f"{depth / files:.1%}") for column, depth in payload["overlap_depth"].items()],
    )
    if payload["unsupported"] is not None:
        out.print(f"it may not be rewritten: {payload['unsupported']}", soft_wrap=True)
    return payload


@command
@table_option
@click.option(
    "--to-version", type=click.IntRange(0), help="Version to restore; the one before our last relayout by default."
)
@committer_option
def rollback(table: str, to_version: int | None, committer: str) -> Payload:
    """Put the table back to how it lay before our last relayout.

    That is Delta's RESTORE: streams and the change feed see the rows of its files again.
    """
    from zorder_pipeline.relayout.rollback import rollback as restore

    payload = vars(restore(start_spark("rollback", brief=True), table, to_version, committer=committer))
    out.print(
        f"{table} lies again as at version {payload['restored_version']}; that is now version {payload['version']}"
    )
    return payload


@command
@table_option
@log_options(required=False)
@alias_option
@click.option(
    "--state",
    required=True,
    callback=writable_state,
    help="Folder of the pipeline's state, which keeps the statistics; its queries count without --log and --plan.",
)
@click.option("--plan", "plan_path", type=click.Path(), help="A plan.json that names what statistics to keep.")
def stats(
    table: str,
    logs: tuple[str, ...],
    log_format: str,
    dialect: str,
    zone: str,
    aliases: tuple[str, ...],
    state: str,
    plan_path: str | None,
) -> Payload:
    """Gather what zorder_pipeline.scan skips files by: statistics of expressions and predicates, of every file."""
    from zorder_pipeline import pipeline
    from zorder_pipeline.model.plan import read_plan

    if plan_path and aliases and not logs:
        raise ZorderError("--alias means nothing with --plan and without --log; name a log, or leave it out")
    apart(state, table)
    features = read_plan(plan_path).statistics if plan_path else ()
    if plan_path and not features and not logs:
        raise ZorderError(
            f"{plan_path} names no statistics to gather: Delta keeps those that its queries need; name a log with "
            "--log, or leave --plan out to go by the state's queries"
        )
    found = pipeline.update_statistics(
        start_spark("stats"),
        table,
        state,
        log_sources(logs, log_format, dialect, zone),
        aliases=aliases,
        features=features,
        days=retention_at_hand(state),
        progress=Progress(),
    )
    print_figures(
        f"{table}: statistics for scans through zorder_pipeline",
        [
            ("columns, expressions and predicates", f"{len(found.features):,}"),
            ("files read", f"{found.files:,}"),
            ("statistics added", f"{found.rows_added:,}"),
            ("files forgotten", f"{found.files_forgotten:,}"),
            ("seconds", f"{found.seconds:,.1f}"),
        ],
    )
    return found.to_json()
