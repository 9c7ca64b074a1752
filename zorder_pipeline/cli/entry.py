"""All commands as one program, and what becomes of their errors."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

import click

from zorder_pipeline import __version__
from zorder_pipeline.connectors import no_connector
from zorder_pipeline.errors import ZorderError
from zorder_pipeline.java import reason_of

from . import INTERRUPTED
from .common import err
from .costs import calibrate, savings
from .explaining import explain
from .learning import layout, learn
from .logs import ingest, purge
from .operators import approve, stop
from .report import report
from .runs import bench, demo, metrics, run, ui
from .start import init
from .studies import study
from .tables import apply, compact, evaluate, inspect, rollback, stats
from .triage import triage

__all__ = ["main", "zorder"]

UNEXPECTED, TERMINATED = 70, 143
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def zorder() -> None:
    """Learn from the queries really asked how a Delta table should lie, prove that it pays, rewrite what needs it."""


for _each in (
    demo,
    init,
    run,
    ingest,
    triage,
    learn,
    layout,
    calibrate,
    apply,
    compact,
    evaluate,
    inspect,
    rollback,
    approve,
    stop,
    savings,
    stats,
    study,
    explain,
    purge,
    report,
    metrics,
    bench,
    ui,
):
    _each.short_help = (_each.help or "").partition("\n\n")[0]  # click would cut it after some words
    zorder.add_command(_each)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    """As after Ctrl-C: jobs are cancelled, what was not committed is undone, and one sentence says so."""
    interrupt = signal.getsignal(signal.SIGINT)
    if callable(interrupt):
        interrupt(number, frame)
    raise KeyboardInterrupt


@contextlib.contextmanager
def _terminable() -> Iterator[Callable[[], bool]]:
    """SIGTERM, by which services and schedulers end a program, does what Ctrl-C does.

    Yields:
        whether SIGTERM was received. Python itself notes signals on a pipe, whatever handlers were put in the place of
        this one: Dagster gives SIGTERM that of SIGINT in each step of a run, and again after it.
    """
    seen, noted = os.pipe()
    for end in (seen, noted):
        os.set_blocking(end, False)
    before, others = signal.signal(signal.SIGTERM, _terminate), signal.set_wakeup_fd(noted, warn_on_full_buffer=False)

    def terminated() -> bool:
        with contextlib.suppress(BlockingIOError):
            return signal.SIGTERM in os.read(seen, 4096)
        return False

    try:
        yield terminated
    finally:
        signal.set_wakeup_fd(others)
        signal.signal(signal.SIGTERM, before)
        os.close(seen)
        os.close(noted)


def main() -> None:
    """Entry point: every expected error is one sentence on stderr and a non-zero exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")  # a character that a terminal has not ends no command
    with _terminable() as terminated:
        _run(terminated)


def _run(terminated: Callable[[], bool]) -> None:
    try:
        zorder.main(prog_name="zorder", standalone_mode=False)
    except ZorderError as error:
        _fail(str(error), 1)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(error.exit_code)
    except (click.exceptions.Abort, KeyboardInterrupt) as error:
        stopped = error.__cause__ if isinstance(error, click.exceptions.Abort) else error
        _interrupted(stopped or error, terminated)
    except click.ClickException as error:
        _fail(error.format_message(), error.exit_code)
    except Exception as error:
        if isinstance(error, SystemError) and isinstance(error.__cause__, KeyboardInterrupt):
            _interrupted(error.__cause__, terminated)  # it came while compiled code was called
        if os.environ.get("ZORDER_DEBUG"):
            raise
        if (missing := no_connector(error)) is not None:
            _fail(missing, 1)
        if isinstance(error, OSError) and error.errno in FULL and error.filename is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python would try once more at its end
            _fail(f"stdout cannot be written: {(error.strerror or str(error)).lower()}", 1)
        _fail(f"unexpected {type(error).__name__}: {reason_of(error)} (set ZORDER_DEBUG=1 for the trace)", UNEXPECTED)


def _interrupted(error: BaseException, terminated: Callable[[], bool]) -> NoReturn:
    notes = getattr(error, "__notes__", ())  # what an interrupted step says of itself
    told = " ".join(notes) or "what was not committed by then is no part of any table, and the same command goes on"
    _fail(f"interrupted; {told}", TERMINATED if terminated() else INTERRUPTED)


def _fail(sentence: str, code: int) -> NoReturn:
    err.print(f"zorder: {' '.join(sentence.split())}", soft_wrap=True)
    sys.exit(code)
