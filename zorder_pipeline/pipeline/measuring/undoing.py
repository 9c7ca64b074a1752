"""When relayouts were undone, by the table's history: their saving ends there."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from zorder_pipeline.errors import TableError
from zorder_pipeline.relayout.history import (
    STILL,
    bytes_removed,
    commits_after,
    is_ours,
    layout_given,
    moment_of,
    restored,
)
from zorder_pipeline.relayout.snapshot import TableSnapshot
from zorder_pipeline.state.entry import Entry
from zorder_pipeline.state.ledger import Ledger

if TYPE_CHECKING:
    from pyspark.sql import Row

__all__ = ["ended_at", "note_ends"]

LARGE = 0.25
"""Share of a relayout's bytes that others must have taken out between two commits of ours for that to be looked at."""
MANY = 2_000
"""Commits that take longer to be read again than to note that they were."""


def note_ends(snapshot: TableSnapshot, ledger: Ledger, entries: Sequence[Entry]) -> None:
    """Note in the state which of a table's relayouts were undone since, by a RESTORE or what another wrote anew.

    So are all of a table that was there before. Each commit is looked at once where that takes long: of a table that a
    stream writes, a month has 40,000.
    """
    if len(entries) < 2:  # a table that was made anew is relaid for the first time, or never yet
        ledger.replaced(snapshot.location, snapshot.table_id, snapshot.created_at)
    standing = [entry for entry in entries if entry.ended_at is None and entry.version < snapshot.version]
    if not standing:
        return
    looked, known = _looked(snapshot, entries)
    since = {entry.version: looked if entry.version <= known else entry.replaced_version for entry in standing}
    commits = commits_after(snapshot, min(since.values()))
    if any(row["operation"] == "RESTORE" for row in commits):  # to a moment that is before them, perhaps
        since = {entry.version: entry.replaced_version for entry in standing}
        commits = commits_after(snapshot, min(since.values()))
    opened = set[int]()

    @cache
    def left(version: int, layout: str) -> int | None:
        try:
            if version < snapshot.version:
                opened.add(version)
            files = (snapshot.at(version) if version < snapshot.version else snapshot).files()
        except TableError:  # Delta's log does not hold it any more
            return None
        return int(files.rows[files.lies_by(layout)].sum())

    for entry in standing:
        later = [row for row in commits if int(row["version"]) > since[entry.version]]
        if (moment := ended_at(entry, later, left)) is not None:
            ledger.ended(entry.table_id, entry.version, moment)
    if opened or len(commits) > MANY:
        ledger.looked(entries[-1].table_id, entries[-1].version, snapshot.version)


def _looked(snapshot: TableSnapshot, entries: Sequence[Entry]) -> tuple[int, int]:
    """Up to which version the history was looked at before, and the newest relayout that was known then; -1 if never.

    A version that is not there yet is of a table that was put back since.
    """
    told = ((entry.looked_until, entry.version) for entry in entries if entry.looked_until is not None)
    return max((pair for pair in told if pair[0] <= snapshot.version), default=(-1, -1))


def ended_at(entry: Entry, commits: Sequence[Row], left: Callable[[int, str], int | None]) -> int | None:
    """When a relayout was undone, microseconds since 1970 UTC; None while it stands.

    Args:
        commits: the table's history, newest first.
        left: rows that lie by a layout at a version; None where that is not known.
    """
    end: Row | None = None
    followed: Row | None = None  # by another layout of ours, which is no undoing; what comes later undoes that one
    theirs: list[Row] = []  # what took files out since our last commit: by each the fewer rows lie by a layout
    before: Row | None = None

    def gone(row: Row) -> bool:
        rows = left(int(row["version"]), entry.layout_id)
        return rows is not None and rows < STILL * entry.rows

    def follows(row: Row) -> bool:
        return bool(entry.layout_id) and layout_given(row) not in ("", entry.layout_id) and gone(row)

    def ended_by_them(looked: bool) -> Row | None:
        much = looked or sum(map(bytes_removed, theirs)) >= LARGE * entry.bytes_rewritten
        if before is None or followed is not None or not much:
            return None
        return theirs[min(bisect_left(theirs, True, key=gone), len(theirs) - 1)] if theirs and gone(before) else None

    for row in reversed(commits):
        if int(row["version"]) <= entry.version:
            continue
        to = restored(row, commits)
        if to is not None or is_ours(row):
            end, theirs = end or ended_by_them(looked=False), []
            if to is None:
                if followed is None and end is None and follows(row):
                    followed = row
            else:
                if to <= entry.replaced_version:
                    end = end or row
                elif end is not None and entry.version <= to < int(end["version"]):
                    end = None  # the RESTORE was taken back itself
                if followed is not None and to < int(followed["version"]):
                    followed = None
        elif entry.layout_id and bytes_removed(row):
            theirs.append(row)
        before = row
    end = end or ended_by_them(looked=True)  # the newest files are known
    return None if end is None else moment_of(end)
