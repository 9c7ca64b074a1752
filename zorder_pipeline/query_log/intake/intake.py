"""What of a log is new: files that were not there, and what was added to those that were, whatever their names are now.

A log is told by its content. One that was renamed, also compressed, goes on where it ended under its old name; what has
come in its place is a log of its own. Where what was there has no other name now, the file was written over, as exports
are that hold old lines among new ones: then nothing counts that is as old as what was read before, and lines without
times, as those of a .sql file, count instead of those that were read.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from zorder_pipeline.errors import LogError
from zorder_pipeline.model.places import shown_place, without_password
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.query_log.spool import RECORDED

from .delta_table import Version, files_since
from .files import LogFile, delta_log, delta_logs, is_delta, list_logs, siblings_of
from .kinds import can_be_told, kind_named
from .known import Known, KnownLogs, in_any, name_of, place_of
from .marks import MARKED, Marks, found_among, goes_on, is_marked, without_packed_copies
from .opening import open_anywhere
from .parts import Part

__all__ = ["Intake", "batches", "find_new", "refuse_to_replace"]

BATCH_BYTES = 512 << 20
BATCH_FILES = 2_000
SHARE_BYTES = 8 << 20
MAX_SHARES = 16
END = 256
"""Bytes of a script's end that tell whether its last statement has one; of a compressed one they do not."""


@dataclass(frozen=True)
class Intake:
    """What is to be read.

    Attributes:
        unchanged: logs in which nothing is new.
        table: what a log that is a Delta table is called in the store.
        version: its newest one.
        at_once: all of it is committed together, with the version: what is left out goes by what was read before.
    """

    parts: tuple[Part, ...]
    unchanged: int = 0
    table: str = ""
    version: Version | None = None
    at_once: bool = False


def find_new(
    path: str,
    log_format: str,
    zone: str,
    known: KnownLogs,
    without: Sequence[str] = (),
    progress: Progress = silent,
) -> Intake:
    """What of the logs at ``path`` is not in ``known``.

    Args:
        without: places below it that are logs of their own.
        progress: told of what is no log, and of what cannot be told from what was read.

    Raises:
        LogError: there is no log, or a Delta table cannot be read.
    """
    if is_delta(path):
        before = known.by_name.get(place_of(path))
        if before is None or not before.current or before.delta_version is None:
            return _whole_table(path, zone, known)
        return _grown(path, zone, before, Version(before.table_id, before.delta_version), known, progress)
    logs = without_packed_copies(list_logs(path, log_format, in_any(without), progress))
    parts, unchanged, changed = [], 0, []
    for log in logs:
        before = known.by_name.get(name_of(log.source))
        log = _as_it_was(log, before)
        if before is None or not _is_same(log, before):
            changed.append(log)
        elif before.current and before.size == log.size and not _is_of_another_kind(path, log, before):
            unchanged += 1
        else:
            parts += _further(path, log, zone, before)
    moved = _moved(path, logs, changed, known) if changed else {}
    still = {one.log for one in moved.values()}
    for log in changed:
        name = name_of(log.source)
        before = known.by_name.get(name)
        if log in moved:
            parts += _further(path, log, zone, moved[log])
        elif before is None:
            parts += _shares(Part(log, zone, name))
        elif before.log in still:
            parts += _shares(Part(log, zone, _anew(name)))
        else:
            # without times nothing tells old lines from new
            replaces = before.log if before.latest is None and not _is_rotated(path, log, before) else None
            parts += _shares(Part(log, zone, _anew(name), since=before.latest, replaces=replaces))
    return Intake(tuple(parts), unchanged)


def refuse_to_replace(path: str, state: str, intake: Intake, known: KnownLogs) -> None:
    """Refuse to add statements by their own names to what was read for tables, and to read again what was read.

    Raises:
        LogError: that is so.
    """
    recorded = f"{place_of(state)}/{RECORDED}/"
    logs = [one for one in known.by_log.values() if not one.name.startswith(recorded)]
    if tables := sorted({table for one in logs for table in one.tables}):
        others = f" and {len(tables) - 1} more" if len(tables) > 1 else ""
        raise LogError(
            f"the logs in the state {shown_place(state)} were read for the tables of a configuration ({tables[0]}"
            f"{others}); name it by --config or ZORDER_CONFIG, or ingest into a state of its own"
        )
    before = [known.by_name.get(name_of(part.log.source)) for part in intake.parts]
    before += [known.by_log.get(part.replaces) for part in intake.parts if part.replaces is not None]
    if any(one is not None and not one.current for one in before):
        raise LogError(
            f"query log {shown_place(path)} was read into {shown_place(state)} for other tables, or with other views "
            "or another dialect or time zone, and would replace what is stored; read it as before (--config, "
            "--dialect, --time-zone), or ingest into a state of its own"
        )


def _grown(path: str, zone: str, before: Known, since: Version, known: KnownLogs, progress: Progress) -> Intake:
    """What a Delta table has got since a version; where rows were rewritten that have no times, all that it has."""
    added = files_since(path, since)
    if added.gap or added.vacuumed:
        progress(_over_a_gap(path, since, vacuumed=added.vacuumed, timed=before.latest is not None))
    if added.rewritten and before.latest is None:
        return _whole_table(path, zone, known, anew=True)
    new = [Part(delta_log(path, file), zone, before.log) for file in added.new]
    rewritten = [Part(delta_log(path, file), zone, before.log, since=before.latest) for file in added.rewritten]
    left = [part for part in (*new, *rewritten) if name_of(part.log.source) not in known.by_name]
    if not left and added.version.number == since.number:
        return Intake(())
    return Intake(tuple(left), 0, before.log, added.version, at_once=True)


def _over_a_gap(path: str, since: Version, *, vacuumed: bool, timed: bool) -> str:
    """What counts of a Delta table that has lost commits, or files, since it was read, and what does not."""
    kept = "deletedFileRetentionDuration" if vacuumed else "logRetentionDuration"
    lost = (
        f"VACUUM has removed files that were added after version {since.number}, up to which it was read, and that "
        "OPTIMIZE had merged"
        if vacuumed
        else f"its Delta log no longer goes back to version {since.number}, up to which it was read"
    )
    late = "what is later than the newest query read before counts, and what was added late, with a time before that, "
    what = f"{late}is left out" if timed else "all that it holds counts instead of what was read before"
    return (
        f"query log {shown_place(path)}: {lost}; {what}; raise the log table's delta.{kept} if nights may pause for so "
        "long"
    )


def _whole_table(path: str, zone: str, known: KnownLogs, *, anew: bool = False) -> Intake:
    """All files of a Delta table that were not read yet; together they are one log, as their rows change files.

    Args:
        anew: read again what was read, which counts no more then.
    """
    version, logs = delta_logs(path)
    names = {name_of(log.source) for log in logs}
    before, name, replaces = known.below(place_of(path)), place_of(path), None
    if before is not None:
        read = {one.name for one in known.by_name.values() if one.current and one.log == before.log}
        anew |= not before.current or bool(read - names - {place_of(path)})  # cut off, and rows have moved since
        name, replaces = (_anew(name), before.log) if anew else (before.log, None)
    left = [log for log in logs if anew or (one := known.by_name.get(name_of(log.source))) is None or not one.current]
    parts = tuple(Part(log, zone, name, replaces=replaces) for log in left)
    return Intake(parts, len(logs) - len(left), name, version)


def _is_same(log: LogFile, before: Known) -> bool:
    """Whether a log is what was read under its name before, and what has been added to that."""
    if not is_marked(log) or (before.size == log.size and before.modified in (None, log.modified)):
        return True
    return goes_on(log, before.mark) if before.mark is not None else log.size >= before.size


def _moved(path: str, logs: Sequence[LogFile], changed: Sequence[LogFile], known: KnownLogs) -> dict[LogFile, Known]:
    """What changed logs were read as under names below ``path`` under which they do not lie any more.

    Each log is found once; nothing is told by one of which no line was read, as by the header of a CSV file.
    """
    names = {name_of(log.source) for log in logs} - {name_of(log.source) for log in changed}
    folder = place_of(path) + "/"
    below = (one for one in known.by_log.values() if one.name.startswith(folder))
    left = (one for one in below if one.name not in names or known.by_name[one.name] is not one)
    gone = {one.mark: one for one in left if one.mark is not None and one.position > 0}
    marks = Marks(gone)
    found: dict[LogFile, Known] = {}
    for log in changed if marks else ():
        if (told := found_among(log, marks)) is not None:
            found[log] = gone[told]
            marks.remove(told)
    return found


def _is_rotated(path: str, log: LogFile, before: Known) -> bool:
    """Whether what was read of a log that is named alone lies beside it now; below a folder `_moved` has found it."""
    if name_of(log.source) != place_of(path) or before.mark is None or not before.position:
        return False
    return any(goes_on(one, before.mark) for one in siblings_of(path, log))


def _anew(name: str) -> str:
    """What a log is called in the store where another one has the name of its file."""
    return f"{name}#{uuid.uuid4().hex[:8]}"


def _further(path: str, log: LogFile, zone: str, before: Known) -> list[Part]:
    """What was added to a log; all of it where it is to be read again, and then it replaces what was read."""
    clean = before.log == without_password(before.log)  # older states have passwords in what logs are called
    if before.current and clean and not _is_of_another_kind(path, log, before) and not _ends_open(log, before):
        after, since, damaged = before.position, before.since, before.damaged
        return _shares(Part(log, zone, before.log, after, since=since, mark=before.mark, damaged=damaged))
    return _shares(Part(log, zone, _anew(name_of(log.source)), since=before.since, replaces=before.log))


def _is_of_another_kind(path: str, log: LogFile, before: Known) -> bool:
    """Whether a log was read as something else, so that its positions were other ones.

    Older states do not tell. Theirs went by the name; what that does not tell was JSON, but of a file that is named
    alone, which is read once more.
    """
    if before.kind or log.kind not in MARKED:
        return before.kind not in ("", log.kind)
    named = kind_named(log.source)
    return named != log.kind and (named is not None or name_of(log.source) == place_of(path))


def _as_it_was(log: LogFile, before: Known | None) -> LogFile:
    """The log as what it was read before, if it cannot be looked at just now: its kind is a guess then."""
    if before is None or before.kind in ("", log.kind) or can_be_told(log.filesystem, log.parts[0]):
        return log
    return replace(log, kind=before.kind)


def _ends_open(log: LogFile, before: Known) -> bool:
    """Whether what was read of a script ended in a statement that may have been part of a longer one."""
    if log.kind != "sql" or not before.position or log.size == before.size:
        return False
    try:
        with open_anywhere(log, log.parts[0]) as stream:
            size = min(END, before.size)
            return not stream.read_at(size, before.size - size).strip(b"\0 \t\r\n").endswith(b";")
    except (OSError, LogError, pa.ArrowException):
        return False


def _shares(part: Part) -> list[Part]:
    """A part in shares that are read side by side."""
    count = min(MAX_SHARES, 1 + part.log.size // SHARE_BYTES) if part.log.kind == "json" else 1
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
