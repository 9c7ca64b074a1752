"""What tells a log from others whatever it is called: logs are renamed, compressed and begun anew while they grow."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO

import pyarrow as pa

from zorder_pipeline.errors import LogError

from .files import LogFile, open_anywhere, open_log

__all__ = ["Mark", "goes_on", "mark_of"]

SPAN = 4096
"""Bytes at the beginning and at the end that are looked at."""
MARKED = ("json", "csv", "sql", "parquet")
"""Kinds of logs that are one file; event logs have names of their own, and shrink when they are compacted."""
READ = 1 << 20


@dataclass(frozen=True)
class Mark:
    """The first ``size`` bytes of a log, as it was when it was read.

    Attributes:
        head, tail: digests of the first and last `SPAN` of these bytes.
        size: their number, as they are stored.
    """

    head: str
    tail: str
    size: int

    def to_json(self) -> dict[str, Any]:
        """As a plain dict.

        >>> Mark(**Mark("a", "b", 3).to_json())
        Mark(head='a', tail='b', size=3)
        """
        return asdict(self)


def mark_of(log: LogFile) -> Mark | None:
    """The mark of a log; None of one that has none: several files, of no size that is known, or unreadable."""
    if log.kind not in MARKED or len(log.parts) != 1 or log.size < 0:
        return None
    try:
        with open_anywhere(log, log.parts[0]) as stream:
            head = _digest(stream.read_at(min(SPAN, log.size), 0))
            return Mark(head, _digest(stream.read_at(min(SPAN, log.size), max(0, log.size - SPAN))), log.size)
    except (OSError, LogError, pa.ArrowException):
        return None


def goes_on(log: LogFile, mark: Mark) -> bool:
    """Whether a log begins with all that bears ``mark``, as it is or once it is decompressed."""
    if log.kind not in MARKED or len(log.parts) != 1:
        return False
    if log.size >= mark.size:
        before = LogFile(log.source, log.kind, log.parts, mark.size)
        if mark_of(before) == mark:
            return True
    if log.kind == "parquet":
        return False
    try:
        with open_log(log, log.parts[0]) as stream:
            return _unpacks_to(stream, mark)
    except (OSError, EOFError, LogError, pa.ArrowException):
        return False


def _unpacks_to(stream: BinaryIO, mark: Mark) -> bool:
    """Whether the bytes of ``stream`` begin as ``mark`` says; no more are read than tell."""
    end = stream.read(min(SPAN, mark.size))
    if _digest(end) != mark.head:
        return False
    left = mark.size - len(end)
    while left > 0 and (more := stream.read(min(READ, left))):
        end, left = (end + more)[-SPAN:], left - len(more)
    return left <= 0 and _digest(end) == mark.tail


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=12).hexdigest()
