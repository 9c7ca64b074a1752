"""What the program says when it is interrupted, or Java fails."""

import io
from types import SimpleNamespace

import click
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from rich.console import Console

from zorder_pipeline.cli import entry
from zorder_pipeline.errors import ZorderError
from zorder_pipeline.java import reason_in, reason_of
from zorder_pipeline.spark import session


@pytest.mark.parametrize(
    ("notes", "told"),
    [((), "what was not committed by then is undone"), (("version 1 of t was committed",), "version 1 of t was")],
)
def test_an_interruption_is_told_with_what_the_step_says_of_itself(
    monkeypatch: pytest.MonkeyPatch, notes: tuple[str, ...], told: str
) -> None:
    def interrupted(**_: object) -> None:
        error = KeyboardInterrupt()
        for note in notes:
            error.add_note(note)
        raise click.exceptions.Abort from error

    page = io.StringIO()
    monkeypatch.setattr(entry.zorder, "main", interrupted)
    monkeypatch.setattr(entry, "err", Console(file=page))
    with pytest.raises(SystemExit) as caught:
        entry.main()
    assert caught.value.code == entry.INTERRUPTED
    said = " ".join(page.getvalue().split())
    assert told in said
    assert ("is undone" in said) == (not notes)


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
