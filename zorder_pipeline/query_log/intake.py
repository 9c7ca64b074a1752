"""What of a log is new: files that were not there, and what was added to those that were, whatever their names are now.

A log is told by its content. One that was renamed, also compressed, goes on where it ended under its old name; what has
come in its place is a log of its own, of which nothing counts that is as old as what was read before: an export that is
written over and over holds old lines among its new ones. Where lines have no times, it counts instead of what was read.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .files import LogFile, is_delta, list_logs, new_delta_files
from .marks import MARKED, Mark, found_among, goes_on
from .parts import Part
from .stored import Known

__all__ = ["Intake", "batches", "find_new", "name_of"]

BATCH_BYTES = 512 << 20
BATCH_FILES = 2_000
SHARE_BYTES = 8 << 20
MAX_SHARES = 16


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
    if before is not None and before.current and before.delta_version is not None:
        newest, added = new_delta_files(path, before.delta_version)
        fresh = [log for log in (_delta_file(path, item) for item in added) if name_of(log.source) not in known]
        return Intake(tuple(Part(log, zone, name_of(path)) for log in fresh), 0, newest)
    version = _delta_version(path)
    logs = list_logs(path, log_format)
    if version is not None:  # OPTIMIZE rewrites its files under other names: together they are one log
        left = [log for log in logs if (one := known.get(name_of(log.source))) is None or not one.current]
        return Intake(tuple(Part(log, zone, name_of(path)) for log in left), len(logs) - len(left), version)
    parts, unchanged, changed = [], 0, []
    for log in logs:
        before = known.get(name_of(log.source))
        if before is None or not _is_same(log, before):
            changed.append(log)
        elif before.current and before.size == log.size:
            unchanged += 1
        else:
            parts += _shares(log, zone, before)
    moved = _moved(path, logs, changed, known) if changed else {}
    still = {one.log for one in moved.values()}
    for log in changed:
        name = name_of(log.source)
        if log in moved:
            parts += _shares(log, zone, moved[log])
        elif (before := known.get(name)) is not None:
            timeless = before.latest is None and before.log not in still
            anew = Known(f"{name}#{uuid.uuid4().hex[:8]}", 0, 0, since=before.latest)
            parts += _shares(log, zone, anew, before.log if timeless else None)
        else:
            parts += _shares(log, zone, Known(name, 0, 0))
    return Intake(tuple(parts), unchanged)


def _is_same(log: LogFile, before: Known) -> bool:
    """Whether a log is what was read under its name before, and what has been added to that."""
    if before.size == log.size or log.kind not in MARKED:
        return True
    return goes_on(log, before.mark) if before.mark is not None else log.size > before.size


def _moved(
    path: str, logs: Sequence[LogFile], changed: Sequence[LogFile], known: Mapping[str, Known]
) -> dict[LogFile, Known]:
    """What changed logs were read as under names below ``path`` under which they do not lie any more."""
    names = {name_of(log.source) for log in logs} - {name_of(log.source) for log in changed}
    folder = name_of(path) + "/"
    left = (one for name, one in known.items() if name not in names and name.startswith(folder))
    gone = {one.mark: one for one in left if one.mark is not None and one.size > 0}
    marks: dict[tuple[int, str], list[Mark]] = {}
    for mark in gone:
        marks.setdefault(mark.key, []).append(mark)
    found = ((log, found_among(log, marks)) for log in changed) if marks else ()
    return {log: gone[mark] for log, mark in found if mark is not None}


def _shares(log: LogFile, zone: str, known: Known, replaces: str | None = None) -> list[Part]:
    """A log, or what was added to it, in shares that are read side by side."""
    count = min(MAX_SHARES, 1 + log.size // SHARE_BYTES) if log.kind == "json" else 1
    part = Part(log, zone, known.log, known.position, since=known.since, replaces=replaces)
    return [replace(part, share=(i, count)) for i in range(count)]


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
