"""Delta's conflicts between writers, however a session tells them, as `LostRaceError`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from zorder_pipeline.errors import LostRaceError, TableError
from zorder_pipeline.java import first_line

__all__ = ["conflict", "insist", "lost_races"]

Made = TypeVar("Made")
TRIES = 5
"""Times that a change is tried against other writers."""

CONNECT = re.compile(r"\(io\.delta\.exceptions\.(\w+)\)")
"""How Spark Connect begins to tell an exception of Delta's, whose class it does not know."""


@contextlib.contextmanager
def lost_races(location: str) -> Iterator[None]:
    """Turn Delta's conflict exceptions into `LostRaceError`, failed constraints into `TableError`."""
    import delta.exceptions  # noqa: F401 - importing it makes Delta's conflicts arrive as Python exceptions
    from py4j.protocol import Py4JJavaError

    try:
        yield
    except Exception as error:
        if name := conflict(error):
            raise LostRaceError(_race(location, name)) from error
        if isinstance(error, Py4JJavaError):
            raise TableError(f"{location} could not be written: {first_line(str(error.java_exception))}") from error
        raise


def conflict(error: Exception) -> str:
    """The class by which Delta says that another writer was faster; "" of any other failure."""
    from py4j.protocol import Py4JJavaError

    if isinstance(error, Py4JJavaError):
        name, kinds = error.java_exception.getClass().getName(), ("Concurrent", "AssertionError", "MetadataChanged")
    else:
        found = CONNECT.match(str(error))
        name = found.group(1) if found else type(error).__name__
        kinds = ("Concurrent", "MetadataChanged", "ProtocolChanged")
    return name if any(kind in name for kind in kinds) else ""


def insist(location: str, change: Callable[[], Made]) -> Made:
    """Try a change again when another writer was faster; what it gives.

    Raises:
        LostRaceError: another one was faster each time.
        TableError: it is refused.
    """
    for _ in range(TRIES - 1):
        with contextlib.suppress(LostRaceError), lost_races(location):
            return change()
    with lost_races(location):
        return change()


def _race(location: str, name: str) -> str:
    kind = name.rsplit(".", 1)[-1].removesuffix("Exception")
    return f"another writer changed files of {location} meanwhile ({kind}); nothing was committed, run it again"
