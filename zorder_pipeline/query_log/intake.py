"""What of a log is new: files that were not there, and what was added to those that were."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .files import LogFile, is_delta, list_logs, new_delta_files
from .parts import Part

__all__ = ["Intake", "Known", "batches", "find_new", "name_of"]

BATCH_BYTES = 512 << 20
BATCH_FILES = 2_000
SHARE_BYTES = 8 << 20
MAX_SHARES = 16


@dataclass(frozen=True)
class Known:
    """What the store knows of a log.

    Attributes:
        size: bytes when it was read last.
        position: last line read.
        delta_version: version of a log that is a Delta table.
    """

    size: int
    position: int
    delta_version: int | None = None


@dataclass(frozen=True)
class Intake:
    """What is to be read.

    Attributes:
        unchanged: logs in which nothing is new.
        delta_version: newest version of a log that is a Delta table.
    """

    parts: tuple[Part, ...]
    unchanged: int = 0
    delta_version: int | None = None


def find_new(path: str, log_format: str, zone: str, known: Mapping[str, Known]) -> Intake:
    """What of the logs at ``path`` is not in ``known`` (by `name_of`).

    Raises:
        LogError: there is no log, or a Delta table's history does not reach back to what is known.
    """
    before = known.get(name_of(path))
    if before is not None and before.delta_version is not None:
        version, added = new_delta_files(path, before.delta_version)
        fresh = [log for log in (_delta_file(path, item) for item in added) if name_of(log.source) not in known]
        return Intake(tuple(Part(log, zone) for log in fresh), 0, version)
    parts, unchanged = [], 0
    for log in list_logs(path, log_format):
        before = known.get(name_of(log.source))
        if before is not None and before.size == log.size:
            unchanged += 1
        else:
            after = before.position if before is not None else 0
            shares = min(MAX_SHARES, 1 + log.size // SHARE_BYTES) if log.kind == "json" else 1
            parts += [Part(log, zone, after, (i, shares)) for i in range(shares)]
    return Intake(tuple(parts), unchanged, _delta_version(path))


def batches(parts: tuple[Part, ...]) -> Iterator[list[Part]]:
    """Parts in groups of bounded size, each of which is committed on its own."""
    batch: list[Part] = []
    size = 0
    for part in parts:
        whole = part.share[0] == 0  # the shares of a log are committed together
        if batch and whole and (size + part.log.size > BATCH_BYTES or len(batch) >= BATCH_FILES):
            yield batch
            batch, size = [], 0
        batch.append(part)
        size += part.log.size // part.share[1]
    if batch:
        yield batch


def name_of(source: str) -> str:
    """What identifies a log: an event log keeps its name when its application ends.

    >>> name_of("file:/logs/app-1.inprogress")
    '/logs/app-1'
    """
    return re.sub(r"^file:/+", "/", source).rstrip("/").removesuffix(".inprogress")


def _delta_file(table: str, path: str) -> LogFile:
    prefix = re.match(r"[a-z0-9]+://[^/]*", table)
    return LogFile((prefix.group() if prefix else "") + path, "parquet", (path,), -1)


def _delta_version(path: str) -> int | None:
    from deltalake import DeltaTable

    return DeltaTable(path).version() if is_delta(path) else None
