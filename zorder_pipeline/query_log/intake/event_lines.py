"""The lines of Spark event logs: one per execution, told by the place of the event that ended it."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterator

from zorder_pipeline.query_log.events.plan_scans import TypesOf
from zorder_pipeline.query_log.events.spark_events import executions

from .files import LogFile
from .kinds import COMPACT, rolled_number
from .opening import open_log
from .records import RAW, LogLine

__all__ = ["event_lines", "still_damaged"]

PER_FILE = 10**10
"""What positions in the files of a rolling event log are apart: there are fewer lines in one."""
MAX_EVENT = 256_000_000
"""Bytes of an event: plans of thousands of columns are long."""
SKIPPED = 1 << 20
BROKEN = "damaged_file"


def event_lines(log: LogFile, after: int, types_of: TypesOf, damaged: Collection[int] = ()) -> Iterator[LogLine]:
    """The executions of an event log; of a rolling one a position tells the file, too, as compacting drops lines.

    Args:
        damaged: where files broke off that were read before. One that was copied anew is read on from there.
    """
    before: list[int] = []
    count = 0

    def raw_lines() -> Iterator[bytes | Exception]:
        nonlocal count
        for part in log.parts:
            before.append(count)
            try:
                for raw in _lines_of(log, part):
                    count += 1
                    yield raw
            except (OSError, EOFError) as error:
                count += 1
                yield error

    for found in executions(raw_lines(), types_of):
        part = bisect.bisect_left(before, found.position) - 1
        rolled = rolled_number(log.parts[part])
        position = found.position - before[part] + rolled * PER_FILE
        as_told = found.position if 0 < after < PER_FILE else position  # a state that is older than these positions
        anew = not log.parts[part].endswith(COMPACT) and _passed(position, found.damage == BROKEN, damaged)
        if as_told <= after and not anew:
            continue
        yield LogLine(
            log.source,
            position,
            execution=found,
            timestamp=found.timestamp,
            duration_ms=found.duration_ms,
            user=found.user,
            rows_read=found.rows_read,
            bytes_read=found.bytes_read,
            failed=found.failed,
            reason=found.damage,
            raw=found.description[:RAW] if found.damage else "",
        )


def still_damaged(damaged: Collection[int], line: LogLine) -> frozenset[int]:
    """Where files of a log break off, once a line of it was read.

    >>> still_damaged({20000000007}, LogLine("log", 20000000009))
    frozenset()
    """
    new = {line.position} if line.reason == BROKEN else set[int]()
    left = (one for one in damaged if not _passed(line.position, bool(new), [one]))
    return frozenset({*left, *new})


def _passed(position: int, broken: bool, damaged: Collection[int]) -> bool:
    """Whether a line lies behind a place where its file broke off; ``broken`` for one that tells of such a place."""
    return any(one // PER_FILE == position // PER_FILE and one + broken <= position for one in damaged)


def _lines_of(log: LogFile, part: str) -> Iterator[bytes]:
    """The lines of one file; one that is too long is cut, and so malformed if it is of an event that is read."""
    with open_log(log, part) as stream:
        while raw := stream.readline(MAX_EVENT):
            whole = len(raw) < MAX_EVENT or raw.endswith(b"\n")
            yield raw if whole else raw[:SKIPPED] + b"\n"
            while not whole:
                rest = stream.readline(SKIPPED)
                whole = not rest or rest.endswith(b"\n")
