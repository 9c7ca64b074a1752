"""What Java prints while Spark starts: kept for the sentence that says why it did not, and shown nowhere else."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import select
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from .java import first_line
from .launch_conf import on_command_line

__all__ = ["JavaErrors", "launching", "why_java_ended"]

MOST = 1 << 20
"""Bytes that are kept of what is printed before a session is ready: the newest, where Java says why it ends."""
CHUNK = 1 << 16
SECONDS_TO_END = 2.0
"""What the rest of a JVM's output is waited for when it, or we, end."""
RAISED = re.compile(
    r'^\s*(?:Exception in thread "[^"]*" |Caused by: )?(?:[\w$]+\.)+(?P<name>[\w$]*(?:Exception|Error))'
    r"(?:: (?P<said>.*\S))?",
    re.MULTILINE,
)
ASIDE = re.compile(
    r"WARNING|Picked up |Error occurred during initialization|\d\d/\d\d/\d\d |Setting default log level|To adjust|"
    r"Using Spark|\s|:: |$"
)
"""How lines begin that are no reason: warnings, Spark's and Ivy's reports, stack traces."""


class JavaErrors:
    """What a JVM prints, read by a thread of ours: kept until the session is ready, then passed on to our own.

    It goes to stderr, the descriptor 2 of the moment: Dagster puts a file of each step in its place.

    Attributes:
        end: the descriptor that the JVM writes to; ours is to be closed once the JVM has it.
    """

    def __init__(self) -> None:
        self._from, self.end = os.pipe()
        self._kept, self._ready = bytearray(), threading.Event()
        self._reader = threading.Thread(target=self._read, name="zorder-java-stderr", daemon=True)
        self._reader.start()
        atexit.register(self._drain)

    def ready(self) -> None:
        """Forget what was printed so far, and pass on what comes."""
        self._drain()
        self._ready.set()

    def ended(self) -> str:
        """What a JVM printed that has ended."""
        self._reader.join(SECONDS_TO_END)
        return self._kept.decode(errors="replace")

    def _read(self) -> None:
        while chunk := os.read(self._from, CHUNK):
            if self._ready.is_set():
                self._kept.clear()
                with contextlib.suppress(OSError):  # it is read on even where nobody hears it: Java would stand still
                    while chunk:
                        chunk = chunk[os.write(2, chunk) :]
            else:
                self._kept += chunk
                del self._kept[:-MOST]
        os.close(self._from)

    def _drain(self) -> None:
        """Wait until the thread, which ends with the program, has read what was printed before."""
        until = time.monotonic() + SECONDS_TO_END
        with contextlib.suppress(OSError, ValueError):
            while self._reader.is_alive() and time.monotonic() < until and select.select([self._from], [], [], 0)[0]:
                time.sleep(0.01)


@contextlib.contextmanager
def launching() -> Iterator[list[JavaErrors]]:
    """Have the JVM that Spark launches inside write to a `JavaErrors`, which the list then holds.

    Settings that may be secrets are kept off its command line (`on_command_line`): pyspark gives the context all of
    them once the JVM is there.

    Whether one is launched at all, and with what settings, is pyspark's to know (there may be a gateway already, or a
    server of Spark Connect), so its own call is given the parameter that it has for this.
    """
    from pyspark import SparkConf

    context: Any = import_module("pyspark.core.context")
    found: list[JavaErrors] = []
    launch = context.launch_gateway

    def launched(conf: Any = None) -> Any:
        errors = JavaErrors()
        found.append(errors)
        given = dict(conf.getAll()) if conf is not None else {}
        told = SparkConf(loadDefaults=False).setAll(list(on_command_line(given).items()))
        try:  # what is wrong with its memory Java tells on stdout
            return launch(told, {"stdout": errors.end, "stderr": errors.end})
        finally:
            os.close(errors.end)

    context.launch_gateway = launched
    try:
        yield found
    finally:
        context.launch_gateway = launch
        for errors in found:
            errors.ready()


def why_java_ended(printed: str) -> str | None:
    """The reason in what a JVM printed before it ended; None without one.

    >>> why_java_ended('Exception in thread "main" a.b.SparkException: Could not parse Master URL\\n\\tat a.b(C:1)\\n')
    'Could not parse Master URL'
    >>> why_java_ended("WARNING: x\\nInvalid maximum heap size: -Xmxlots\\nError: Could not create the Java VM.\\n")
    'Invalid maximum heap size: -Xmxlots'
    """
    if raised := list(RAISED.finditer(printed)):
        return first_line(raised[-1]["said"] or raised[-1]["name"])
    return next((first_line(line) for line in printed.splitlines() if not ASIDE.match(line)), None)
