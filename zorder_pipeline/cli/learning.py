"""The commands that write plan.json: ``zorder learn`` from a log, ``zorder layout`` by hand."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args

import click

from zorder_pipeline.errors import PlanError, ZorderError
from zorder_pipeline.model.choices import TRIALS, Cost, Sampler

from .common import (
    Payload,
    Progress,
    UnfinishedError,
    alias_option,
    command,
    committer_option,
    learn_settings,
    log_options,
    log_sources,
    out,
    print_columns,
    size_options,
    start_spark,
    table_option,
)
from .configured import half_life_at_hand, retention_at_hand
from .numbers import FiniteRange
from .states import existing_state_option
from .targets import out_option, study_storage

if TYPE_CHECKING:
    from zorder_pipeline.model.plan import Plan

__all__ = ["layout", "learn"]


def bloom_option(default: str) -> Callable[..., Any]:
    """The columns of which new files get Bloom filters."""
    say = "Columns, with commas between, that new files get Parquet's Bloom filters of; or none"
    chosen = "" if default == "none" else ", or auto: those of look-ups that no order leads to"
    return click.option(
        "--bloom-filters", default=default, show_default=True, callback=_filtered, help=f"{say}{chosen}."
    )


def _filtered(_context: click.Context, option: click.Parameter, value: str) -> tuple[str, ...] | None:
    """The columns that are named.

    Raises:
        ZorderError: one has no name.
    """
    if value in ("none", option.default):
        return () if value == "none" else None
    names = [name.strip() for name in _COMMA.split(value)]
    if not all(names):
        raise ZorderError(f"--bloom-filters {value!r} names a column without a name; give names, e.g. order_id,email")
    return tuple(name[1:-1] if len(name) > 2 and name[0] == name[-1] == "`" else name for name in names)


@command
@table_option
@log_options(required=False)
@alias_option
@existing_state_option(", whose stored queries count, too; with --log those that both hold count once")
@click.option("--trials", type=click.IntRange(1), default=TRIALS, show_default=True, help="Layouts to evaluate.")
@click.option(
    "--seconds",
    type=FiniteRange(0, min_open=True),
    help="Time budget of learning: search, trees and baselines, but not the analysis and the proof.",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True)
@click.option(
    "--sampler",
    type=click.Choice(get_args(Sampler)),
    default="moves",
    show_default=True,
    help="What proposes layouts: moves on the bits alone, or half of the trials by an Optuna sampler.",
)
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Threads that evaluate layouts.")
@click.option(
    "--study",
    metavar="PATH_OR_URL",
    callback=study_storage,
    help="Keep the Optuna study in a journal file or a database (sqlite:///…, postgresql://…), and go on with it.",
)
@click.option(
    "--cost",
    type=click.Choice(get_args(Cost)),
    default="rows",
    show_default=True,
    help="Judge layouts by rows read, by rows x filtered columns, or by bytes of the read columns and files opened.",
)
@click.option(
    "--half-life-days",
    type=FiniteRange(0, min_open=True),
    help="Age at which a query counts half; by default that of the configuration at hand, if --state is its.",
)
@click.option(
    "--confirm/--no-confirm", default=True, show_default=True, help="Prove the promise on all rows, not on the sample."
)
@click.option(
    "--enriched-share",
    type=FiniteRange(0, 1),
    default=0.0,
    show_default=True,
    help="Share of the scans through zorder_pipeline.scan; above 0 a layout by predicates is sought, too.",
)
@bloom_option("auto")
@click.option(
    "--warm", type=click.Path(), help="An earlier plan.json, whose order of bits the search starts from, too."
)
@size_options
@committer_option
@out_option
def learn(
    table: str,
    logs: tuple[str, ...],
    log_format: str,
    dialect: str,
    zone: str,
    aliases: tuple[str, ...],
    state: str | None,
    warm: str | None,
    target: str,
    committer: str,
    **options: Any,
) -> Payload:
    """Learn the row order that lets the logged queries skip most, and write it to plan.json."""
    from zorder_pipeline import pipeline
    from zorder_pipeline.model.plan import read_plan, write_plan
    from zorder_pipeline.pipeline.table_log import refuse_unasked

    earlier = read_plan(warm) if warm else None
    if options["half_life_days"] is None:
        options["half_life_days"] = half_life_at_hand(state, table)
    settings, study = learn_settings(**options), options["study"]
    sources = log_sources(logs, log_format, dialect, zone)
    refuse_unasked(sources, state)
    plan = pipeline.learn(
        start_spark("learn"),
        table,
        sources,
        state=state,
        aliases=aliases,
        days=retention_at_hand(state),
        settings=settings,
        warm=earlier,
        committer=committer,
        progress=Progress(),
    )
    unwritten = None
    try:
        write_plan(plan, target)  # before anything is printed, which nobody may read to its end
    except PlanError as error:  # what was found is told all the same
        unwritten = str(error)
    ours = "this plan"
    shares = {**plan.baselines, ours: plan.predicted["validation_fraction"]}
    apart = (
        "queries asked after those of the search" if plan.promise.queries else "the log's few queries, none kept back"
    )
    print_columns(
        f"Share of rows read by {apart}",
        ("layout", "share"),
        [(name, f"{shares[name]:.1%}") for name in sorted(shares, key=shares.__getitem__)],
        best=ours,
    )
    if study and plan.trials:
        where = study if "://" not in study else "URL"  # a URL may hold a password
        out.print(f"the study is kept; look at it with: optuna-dashboard {where}", soft_wrap=True)
    found = _told(plan, "" if unwritten else target, _applied_by(table, target, committer))
    if unwritten:
        raise UnfinishedError(unwritten, found)
    return found


@command
@table_option
@click.option("--bits", required=True, help="Bits per column, most significant first, e.g. ship:9,part:4.")
@click.option("--encoding", type=click.Choice(["rank", "bits"]), default="rank", show_default=True)
@click.option(
    "--curve", type=click.Choice(["interleave", "gray", "hilbert", "sequence"]), default="interleave", show_default=True
)
@bloom_option("none")
@size_options
@committer_option
@out_option
def layout(table: str, bits: str, encoding: str, curve: str, target: str, committer: str, **sizes: Any) -> Payload:
    """Write a plan for a layout given by hand."""
    from zorder_pipeline import pipeline
    from zorder_pipeline.model.plan import write_plan
    from zorder_pipeline.pipeline.learning.by_hand import refuse_impossible_bits

    settings = learn_settings(**sizes)
    allocation = _bits(bits)
    refuse_impossible_bits(allocation, encoding, curve)
    plan = pipeline.layout_by_hand(
        start_spark("layout"),
        table,
        allocation,
        encoding=encoding,
        curve=curve,
        settings=settings,
        committer=committer,
    )
    write_plan(plan, target)
    return _told(plan, target, _applied_by(table, target, committer, "--force"))


_COMMA = re.compile(r",(?=(?:[^`]*`[^`]*`)*[^`]*$)")
"""A comma that stands in no backquotes: after it they come in pairs."""


def _bits(text: str) -> dict[str, int]:
    """Bits by column from ``ship:9,part:4``; a name with a comma in it stands in backquotes.

    Raises:
        ZorderError: the text is of another form, or names a column twice.
    """
    result: dict[str, int] = {}
    for part in _COMMA.split(text):
        name, _, count = part.rpartition(":")
        if not name.strip() or not count.strip().isdecimal() or not int(count):
            raise ZorderError(f"--bits {text!r}: {part!r} is not column:bits with at least one bit, e.g. ship:9,part:4")
        if name.strip() in result:
            raise ZorderError(f"--bits {text!r} names {name.strip()} twice; give each column its bits once")
        result[name.strip()] = int(count)
    return result


def _applied_by(table: str, target: str, committer: str, *further: str) -> str:
    """The command that applies a plan, to be pasted into a shell.

    >>> _applied_by("/lake/my table", "plan.json", "public")
    "zorder apply --table '/lake/my table' --plan plan.json --committer public"
    """
    other = () if committer == "auto" else ("--committer", committer)
    return shlex.join(("zorder", "apply", "--table", table, "--plan", target, *other, *further))


def _told(plan: Plan, target: str, next_step: str) -> Payload:
    """Say what is in plan.json, and what to do with it where it could be written."""
    from zorder_pipeline import pipeline
    from zorder_pipeline.model.candidate import COMPACTION

    for sentence in pipeline.in_words(plan):
        out.print(sentence, soft_wrap=True)
    idle = plan.spec is None and not plan.candidates and plan.action != COMPACTION
    then = "there is nothing to apply" if idle else f"apply it with: {next_step}"
    if target:
        out.print(f"plan {plan.plan_id} written to {target}; {then}", soft_wrap=True)
    return pipeline.describe(plan)
