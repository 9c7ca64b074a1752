"""What the program says when it is interrupted, or Java fails."""

import errno
import io
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from rich.console import Console

from zorder_pipeline import cli
from zorder_pipeline.cli import common, entry
from zorder_pipeline.cli.screen import Notices
from zorder_pipeline.errors import ZorderError
from zorder_pipeline.java import reason_in, reason_of
from zorder_pipeline.spark import session


@pytest.mark.parametrize("wrapped", [click.exceptions.Abort, partial(SystemError, "returned with an exception set")])
@pytest.mark.parametrize(
    ("notes", "told"),
    [
        ((), "what was not committed by then is no part of any table"),
        (("version 1 of t was committed",), "version 1 of t was"),
    ],
)
def test_an_interruption_is_told_with_what_the_step_says_of_itself(
    monkeypatch: pytest.MonkeyPatch, notes: tuple[str, ...], told: str, wrapped: Callable[[], BaseException]
) -> None:
    def interrupted(**_: object) -> None:
        error = KeyboardInterrupt()
        for note in notes:
            error.add_note(note)
        raise wrapped() from error

    page = io.StringIO()
    monkeypatch.setattr(entry.zorder, "main", interrupted)
    monkeypatch.setattr(entry, "err", Console(file=page))
    with pytest.raises(SystemExit) as caught:
        entry.main()
    assert caught.value.code == entry.INTERRUPTED
    said = " ".join(page.getvalue().split())
    assert told in said
    assert ("is no part of any table" in said) == (not notes)


def test_sigterm_is_told_like_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled: list[int] = []

    def spark_s(number: int, _: object) -> None:  # the handler that a session sets
        cancelled.append(number)
        raise KeyboardInterrupt

    def ended(**_: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    page, before = io.StringIO(), signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(entry.zorder, "main", ended)
    monkeypatch.setattr(entry, "err", Console(file=page, width=200))
    for interrupt in (spark_s, signal.SIG_IGN):
        kept = signal.signal(signal.SIGINT, interrupt)
        try:
            with pytest.raises(SystemExit) as caught:
                entry.main()
        finally:
            signal.signal(signal.SIGINT, kept)
        assert caught.value.code == entry.TERMINATED
    assert page.getvalue().count("zorder: interrupted; ") == 2
    assert cancelled == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is before


def test_sigterm_is_told_as_such_whoever_handles_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster puts a handler of its own in its place, and raises what a Ctrl-C raises, too."""

    def stopped(number: int, _: object) -> None:
        raise KeyboardInterrupt

    def in_a_step(received: signal.Signals) -> None:
        signal.signal(signal.SIGTERM, stopped)
        signal.raise_signal(received)

    monkeypatch.setattr(entry, "err", Console(file=io.StringIO()))
    kept = signal.signal(signal.SIGINT, stopped)  # a process that was started in the background ignores it
    try:
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGTERM, 143)):
            monkeypatch.setattr(entry.zorder, "main", lambda received=number, **_: in_a_step(received))
            with pytest.raises(SystemExit) as caught:
                entry.main()
            assert caught.value.code == code
    finally:
        signal.signal(signal.SIGINT, kept)


ZORDER = [sys.executable, "-m", "zorder_pipeline"]


def test_a_stdout_that_takes_nothing_is_told_in_a_sentence() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([*ZORDER, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "zorder: stdout cannot be written: no space left on device\n")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_is_no_reason_to_fail(closed: str, tmp_path: Path) -> None:
    (tmp_path / "log.sql").write_text("SELECT a FROM t WHERE a = 1;\n")
    words = shlex.join([*ZORDER, "ingest", "--log", str(tmp_path / "log.sql"), "--json"])
    done = subprocess.run(f"{words} {closed}", shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("text", "live"),
    [
        ("trial 20 of 600: training queries read 20.00% of the rows", True),
        ("growing tree: 12 of about 500 files cut", True),
        ("comparing with qd-tree, layout 14 of 15", True),
        ("committed version 5", False),
    ],
)
def test_lines_that_tell_how_far_a_search_is_overwrite_each_other(
    text: str, live: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(common, "err", Notices(file=terminal, force_terminal=True))
    common.Progress()(text)
    assert terminal.getvalue().endswith("\r" if live else "\n")


def test_progress_that_nobody_reads_stops_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A relayout tells that it committed before it writes that down."""

    class Gone(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(common, "err", Notices(file=Gone()))
    progress = common.Progress()
    progress("committed version 5")
    progress("written down")


@pytest.mark.parametrize(
    "words",
    [
        ("ingest", "--log", ""),
        ("ingest", "--log", "a", "--log", ""),
        ("layout", "--table", "t", "--bits", "a:3", "--out", ""),
        ("stop", "--state", ""),
        ("report", "--table", "", "--out", "r.html"),
    ],
)
def test_an_empty_text_names_nothing(words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a script's variable that is not set: the folder of the call, or the root, would be taken for it."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(entry.zorder, words)
    assert done.exit_code == 2
    assert "is empty; give a value" in " ".join(done.output.split())
    assert not list(tmp_path.iterdir())


class _JavaError(Py4JJavaError):  # type: ignore[misc]
    """A failure of Java's, as py4j tells it."""

    def __init__(self) -> None:
        root = SimpleNamespace(getCause=lambda: None, getMessage=lambda: "No space left\non this device")
        self.java_exception = SimpleNamespace(getCause=lambda: root)

    def __str__(self) -> str:
        return "An error occurred while calling o55.collect.\n: org.apache.spark.SparkException: Job aborted"


def test_a_failure_of_java_is_told_by_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    def failed(**_: object) -> None:
        raise _JavaError

    page = io.StringIO()
    monkeypatch.setattr(entry.zorder, "main", failed)
    monkeypatch.setattr(entry, "err", Console(file=page))
    monkeypatch.delenv("ZORDER_DEBUG", raising=False)
    with pytest.raises(SystemExit) as caught:
        entry.main()
    assert caught.value.code == entry.UNEXPECTED
    assert "JavaError: No space left (set ZORDER_DEBUG" in " ".join(page.getvalue().split())


def test_a_session_that_java_refuses_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: object) -> None:
        raise _JavaError

    monkeypatch.setattr(SparkSession, "getActiveSession", staticmethod(lambda: None))
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", refused)
    with pytest.raises(ZorderError, match=r"^Spark could not be started \(No space left\); check"):
        session()


CALL = "py4j.protocol.Py4JJavaError: An error occurred while calling o55.collect.\n"
ABORTED = "org.apache.spark.SparkException: Job aborted\n\tat a.B.c(D.scala:1)\n"
WORKER = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "x.py", line 3, in read
    yield

zlib.error: Error -3: invalid distance
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{CALL}: {ABORTED}", "Job aborted"),
        (f"{CALL}: {ABORTED}Caused by: java.io.IOException: No space left\n\tat a.B.c(D.scala:1)\n", "No space left"),
        (f"{CALL}: {ABORTED}Caused by: java.lang.OutOfMemoryError\n", "OutOfMemoryError"),
        (CALL, CALL.strip()),
        (WORKER, "zlib.error: Error -3: invalid distance"),
        ("the table is gone\nmore", "the table is gone"),
        ("", "no message"),
    ],
)
def test_what_failed_is_found_in_what_spark_says(text: str, reason: str) -> None:
    assert reason_in(text) == reason
    assert reason_of(RuntimeError(text)) == reason


def test_commands_load_no_library_that_draws() -> None:
    """It takes a second of each, also of those that draw nothing."""
    code = "import sys, zorder_pipeline.pipeline, zorder_pipeline.cli; print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_character_that_a_terminal_has_not_ends_no_command(tmp_path: Path) -> None:
    (tmp_path / "log.sql").write_text("SELECT * FROM `kühe` WHERE a = 1;\n", encoding="utf-8")
    words = [sys.executable, "-m", "zorder_pipeline", "ingest", "--log", str(tmp_path / "log.sql")]
    done = subprocess.run(words, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
    assert rb"k\xfche" in done.stdout


def test_an_interruption_while_the_commands_load_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "zorder_pipeline.cli.entry":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "zorder_pipeline.cli.entry")
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "zorder: interrupted; nothing was begun\n"
