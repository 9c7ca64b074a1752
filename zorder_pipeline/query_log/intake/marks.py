"""What tells a log from others whatever it is called: logs are renamed, compressed and begun anew while they grow."""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from zorder_pipeline.errors import LogError

from .files import LogFile
from .kinds import CODECS, rolled_number
from .opening import open_anywhere, open_log

__all__ = ["MARKED", "Mark", "Marks", "found_among", "goes_on", "is_marked", "mark_of", "without_packed_copies"]

SPAN = 4096
"""Bytes at the beginning and at the end that are looked at."""
MARKED = ("json", "csv", "sql", "parquet")
"""Kinds of logs that are one file each."""
READ = 1 << 20
DIGEST = 12


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

    @property
    def key(self) -> tuple[int, str]:
        """What a log's first bytes have to be: how many, and their digest."""
        return min(self.size, SPAN), self.head

    def to_json(self) -> dict[str, Any]:
        """As a plain dict.

        >>> Mark(**Mark("a", "b", 3).to_json())
        Mark(head='a', tail='b', size=3)
        """
        return asdict(self)


def is_marked(log: LogFile) -> bool:
    """Whether a log is one file; rolling event logs have names of their own, and shrink when they are compacted."""
    return log.kind in MARKED or (log.kind == "events" and not any(map(rolled_number, log.parts)))


def mark_of(log: LogFile) -> Mark | None:
    """The mark of a log; None of one that has none: several files, empty or of no known size, or unreadable.

    Nothing is told by no bytes, and HDFS lists a file without any until its first block is full.
    """
    if not is_marked(log) or len(log.parts) != 1 or log.size <= 0:
        return None
    try:
        with open_anywhere(log, log.parts[0]) as stream:
            head = _digest(stream.read_at(min(SPAN, log.size), 0))
            return Mark(head, _digest(stream.read_at(min(SPAN, log.size), max(0, log.size - SPAN))), log.size)
    except (OSError, LogError, pa.ArrowException):
        return None


class Marks:
    """Marks by their `Mark.key`: as many as there are are looked up as fast as one."""

    def __init__(self, marks: Iterable[Mark]) -> None:
        self._by_key: dict[tuple[int, str], list[Mark]] = {}
        for mark in marks:
            self._by_key.setdefault(mark.key, []).append(mark)
        self._lengths = sorted({length for length, _ in self._by_key})

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def remove(self, mark: Mark) -> None:
        """One that is found once only."""
        self._by_key[mark.key].remove(mark)

    def alike(self, head: bytes) -> list[Mark]:
        """Those of logs that begin as a log with this ``head`` does, the longest first."""
        found, digest, start = list[Mark](), hashlib.blake2b(digest_size=DIGEST), 0
        for length in self._lengths[: bisect.bisect_right(self._lengths, len(head))]:
            digest.update(head[start:length])
            start = length
            found += self._by_key.get((length, digest.hexdigest()), ())
        return sorted(found, key=lambda mark: -mark.size)


def goes_on(log: LogFile, mark: Mark) -> bool:
    """Whether a log begins with all that bears ``mark``, as it is or once it is decompressed."""
    return found_among(log, Marks([mark])) is not None


def found_among(log: LogFile, marks: Marks) -> Mark | None:
    """The one of ``marks`` with whose bytes a log begins; the longest if there are several.

    The beginning of the log is read once, whatever their number, and more of it only where that is the same.
    """
    if not is_marked(log) or len(log.parts) != 1:
        return None
    try:
        with open_anywhere(log, log.parts[0]) as stream:
            head = stream.read_at(min(SPAN, max(log.size, 0)), 0)
        found = next((mark for mark in marks.alike(head) if _is_whole(log, mark)), None)
        if found is not None or log.kind == "parquet":
            return found
        with open_log(log, log.parts[0]) as unpacked:
            plain = unpacked.read(SPAN)
        alike = marks.alike(plain) if plain != head else ()
        return next((mark for mark in alike if _unpacks_to(log, mark)), None)
    except (OSError, EOFError, LogError, pa.ArrowException):
        return None


def without_packed_copies(logs: Sequence[LogFile]) -> list[LogFile]:
    """The logs without those that are being compressed, or were so that the plain one of the same name stayed.

    A plain one that begins otherwise has been begun anew since, and is no copy.
    """
    plain = {log.source: log for log in logs}
    stems = {log: log.source.rpartition(".") for log in logs}
    pairs = {log: plain.get(stem) for log, (stem, _, suffix) in stems.items() if f".{suffix}".lower() in CODECS}
    return [log for log in logs if (other := pairs.get(log)) is None or not _begin_alike(log, other)]


def _begin_alike(packed: LogFile, plain: LogFile) -> bool:
    """Whether both begin alike, as far as the one is compressed; in doubt, which is soon over, they do."""
    try:
        with open_anywhere(plain, plain.parts[0]) as stored:
            head = stored.read_at(min(SPAN, max(plain.size, 0)), 0)
        with open_log(packed, packed.parts[0]) as stream:
            unpacked = stream.read(SPAN)
    except (OSError, EOFError, LogError, pa.ArrowException):
        return True
    least = min(len(head), len(unpacked))
    return head[:least] == unpacked[:least] and (least > 0 or not unpacked)


def _is_whole(log: LogFile, mark: Mark) -> bool:
    """Whether the first bytes of a log bear the mark."""
    return log.size >= mark.size and mark_of(replace(log, size=mark.size)) == mark


def _unpacks_to(log: LogFile, mark: Mark) -> bool:
    """Whether the bytes of a log are, once they are decompressed, as ``mark`` says; no more are read than tell."""
    with open_log(log, log.parts[0]) as stream:
        end = stream.read(min(SPAN, mark.size))
        left = mark.size - len(end)
        while left > 0 and (more := stream.read(min(READ, left))):
            end, left = (end + more)[-SPAN:], left - len(more)
    return left <= 0 and _digest(end) == mark.tail


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=DIGEST).hexdigest()
