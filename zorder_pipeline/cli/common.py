"""What the commands share: their form, their options, where they print, and the Spark session."""

from __future__ import annotations

import atexit
import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
from click.core import ParameterSource
from rich.control import Control
from rich.segment import ControlType
from rich.table import Table
from rich.text import Text

from zorder_pipeline.errors import ZorderError
from zorder_pipeline.model.choices import SAMPLE_ROWS, CommitterName, Dialect, LogFormat

from .numbers import json_line
from .screen import Notices, Screen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zorder_pipeline.pipeline import LearnSettings, LogSource

__all__ = [
    "DIALECTS",
    "LOG_OPTIONS",
    "Payload",
    "Progress",
    "UnfinishedError",
    "alias_option",
    "command",
    "committer_option",
    "err",
    "file_size_options",
    "is_said",
    "learn_settings",
    "leave_no_warehouse",
    "log_options",
    "log_sources",
    "out",
    "print_columns",
    "print_figures",
    "size_options",
    "start_spark",
    "table_option",
]

Payload = dict[str, Any]
"""What a command found, as the JSON object that it prints."""

LOG_OPTIONS = {"log_format": "--log-format", "dialect": "--dialect", "zone": "--time-zone"}
"""How a log is read."""
LIVE = ("trial ", "growing ", "comparing with ")
"""How lines begin that tell how far a search is."""
DIALECTS = click.Choice(get_args(Dialect))


err = Notices(stderr=True)
out = Screen(width=None if sys.stdout.isatty() else 120)


class UnfinishedError(ZorderError):
    """Some of what a command was to do failed; ``payload`` says what became of all of it."""

    def __init__(self, sentence: str, payload: Payload) -> None:
        super().__init__(sentence)
        self.payload = payload


class Progress:
    """Lines on stderr with the seconds since the start; a live line on a terminal."""

    def __init__(self) -> None:
        self.started = time.monotonic()

    def __call__(self, text: str) -> None:
        """Print ``text``; on a terminal a line of `LIVE` is overwritten by the next line, wherever there is one."""
        live = err.is_terminal and text.startswith(LIVE)
        if err.is_terminal:
            err.control(Control((ControlType.ERASE_IN_LINE, 2)))
        line = Text.assemble((f"{time.monotonic() - self.started:6.1f}s", "dim"), f" {text}")
        err.print(line, end="\r" if live else "\n", soft_wrap=True)


def command(function: Callable[..., Payload]) -> click.Command:
    """A command with ``--json``: its result is printed by the function, or as one JSON object on the last line."""

    @functools.wraps(function)
    def run(*args: Any, as_json: bool, **kwargs: Any) -> None:
        _refuse_empty(click.get_current_context())
        out.quiet = as_json
        try:
            payload, failed = function(*args, **kwargs), None
        except UnfinishedError as error:
            payload, failed = error.payload, error
        if as_json:
            print(json_line(payload))
        if failed is not None:
            raise failed

    option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line of stdout.")
    return click.command(name=function.__name__, help=function.__doc__)(option(run))


def _refuse_empty(context: click.Context) -> None:
    """An empty text names nothing: mostly it is a script's variable that was not set."""
    for option in context.command.params:
        value = context.params.get(option.name or "")
        given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if given and (value == "" or (isinstance(value, tuple) and "" in value)):
            name = option.opts[0] if option.opts[0].startswith("-") else option.make_metavar(context)
            raise click.BadParameter("it is empty; give a value, or leave the option out", param_hint=name)


def leave_no_warehouse() -> None:
    """Remove at the end the folder that Spark makes where a command is called, unless something was put there."""
    if not (warehouse := Path("spark-warehouse").absolute()).exists():
        atexit.register(_remove_empty, warehouse)


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def start_spark(app: str, settings: Mapping[str, str] | None = None, *, brief: bool = False) -> SparkSession:
    """A Spark session for the command ``app``.

    Args:
        settings: of Spark, by full name; None takes those of the configuration at hand, but not its master.
        brief: see `zorder_pipeline.spark.brief_conf`.

    Raises:
        ZorderError: Spark cannot be started.
    """
    from zorder_pipeline.spark import brief_conf, session

    from .configured import settings_at_hand

    settings = settings_at_hand() if settings is None else settings
    if brief:
        settings = brief_conf() | dict(settings)
    leave_no_warehouse()
    err.print(f"starting Spark for {app}", style="dim")
    return session(settings, f"zorder {app}")


table_option = click.option("--table", required=True, help="Path or catalog name of the Delta table.")
alias_option = click.option("--alias", "aliases", multiple=True, help="Another name log or state call the table by.")


committer_option = click.option(
    "--committer",
    type=click.Choice(get_args(CommitterName)),
    default="auto",
    show_default=True,
    help="Rewrite by Delta's transaction, or whole partitions by public API, which any Delta version has.",
)


def _zone(_context: click.Context, _option: click.Parameter, value: str) -> str:
    """The value of ``--time-zone``.

    Raises:
        ZorderError: there is no such time zone.
    """
    from zorder_pipeline.config.fields import time_zone_problem

    if problem := time_zone_problem(value):
        raise ZorderError(f"--time-zone must be {problem}, not {value}")
    return value


def log_options(*, required: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options that `log_sources` takes: ``logs``, ``log_format``, ``dialect`` and ``zone``."""
    options = (
        click.option(
            "--time-zone",
            "zone",
            default="UTC",
            show_default=True,
            callback=_zone,
            help="Session time zone of the log.",
        ),
        click.option("--dialect", type=DIALECTS, default="spark", show_default=True, help="SQL dialect of the log."),
        click.option(
            "--log-format",
            type=click.Choice(get_args(LogFormat)),
            default="auto",
            show_default=True,
            help="How the log is written.",
        ),
        click.option("--log", "logs", multiple=True, required=required, help="Query log: a file or a folder."),
    )

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in options:
            function = option(function)
        return function

    return decorate


def is_said(name: str) -> bool:
    """Whether an option of the command that runs was given, and is no default."""
    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def log_sources(paths: Iterable[str], log_format: str, dialect: str, zone: str) -> list[LogSource]:
    """The logs that `log_options` name.

    Raises:
        ZorderError: none is named, and yet it is said how to read it.
    """
    from zorder_pipeline.pipeline import LogSource

    paths = list(paths)
    for name, option in LOG_OPTIONS.items() if not paths else ():
        if is_said(name):
            raise ZorderError(f"{option} means nothing without --log; name a log, or leave it out")
    return [LogSource(path, log_format, dialect, zone) for path in paths]


def file_size_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The size of a file, by rows or bytes, which `learn_settings` takes."""
    rows = click.option("--target-file-rows", type=click.IntRange(1), help="Rows per file to aim for.")
    size = click.option("--target-file-bytes", type=click.IntRange(1024), help="Bytes per file to aim for.")
    return rows(size(function))


def size_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`file_size_options` and the size of the sample."""
    rows = click.IntRange(1000)
    sample = click.option(
        "--sample-rows", type=rows, default=SAMPLE_ROWS, show_default=True, help="Rows to learn from."
    )
    return file_size_options(sample(function))


def learn_settings(target_file_rows: int | None, target_file_bytes: int | None, **others: Any) -> LearnSettings:
    """Settings from `size_options` and others.

    Raises:
        ZorderError: both sizes are given.
    """
    from zorder_pipeline.pipeline import LearnSettings

    if target_file_rows and target_file_bytes:
        raise ZorderError("give --target-file-rows or --target-file-bytes, not both")
    return LearnSettings(target_file_rows=target_file_rows, target_file_bytes=target_file_bytes, **others)


def _print_title(title: str) -> None:
    """A table's own title is wrapped to the table's width, which may be a word."""
    out.print(title, soft_wrap=True, style="italic")


def print_figures(title: str, rows: Iterable[tuple[str, str]]) -> None:
    """Print named figures, one to a line."""
    _print_title(title)
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in rows:
        table.add_row(Text(name, "bold"), Text(value))
    out.print(table)


def print_columns(
    title: str, columns: Iterable[str], rows: Iterable[tuple[str, ...]], *, left: int = 1, best: str | None = None
) -> None:
    """Print a table.

    Args:
        left: so many columns are flush left, the figures after them flush right.
        best: the row whose first cell this is stands out.
    """
    _print_title(title)
    table = Table()
    for place, name in enumerate(columns):
        # a place that is cut off at its end is that of all tables
        table.add_column(Text(name), justify="left" if place < left else "right", overflow="fold")
    for cells in rows:
        table.add_row(*map(Text, cells), style="bold green" if cells[0] == best else None)
    out.print(table)
