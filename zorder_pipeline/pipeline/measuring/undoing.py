"""When relayouts were undone, by the table's history: their saving ends there."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, TypeAlias

from zorder_pipeline.errors import TableError
from zorder_pipeline.model.places import is_same_place
from zorder_pipeline.relayout.history import (
    STILL,
    bytes_removed,
    commits_after,
    is_ours,
    layout_given,
    moment_of,
    restored,
    to_version,
    versions_of,
)
from zorder_pipeline.relayout.snapshot import TableSnapshot
from zorder_pipeline.state.entry import Entry
from zorder_pipeline.state.ledger import Ledger

from .standing import standing

if TYPE_CHECKING:
    from pyspark.sql import Row

__all__ = ["ended_at", "note_ends"]

Left: TypeAlias = Callable[[int], float | None]
"""Rows of a relayout that lie by it still at a version; None where that is not known."""
LARGE = 0.25
"""Share of a relayout's bytes that others must have taken out between two commits of ours for that to be looked at."""
MANY = 2_000
"""Commits that take longer to be read again than to note that they were."""


def note_ends(snapshot: TableSnapshot, ledger: Ledger, entries: Sequence[Entry]) -> None:
    """Note in the state which of a table's relayouts were undone since, by a RESTORE or what another wrote anew.

    So are all of a table that was there before. Each commit is looked at once where that takes long: of a table that a
    stream writes, a month has 40,000.
    """
    moved = not all(is_same_place(entry.location, snapshot.location) for entry in entries)
    if moved:
        entries = _elsewhere(snapshot, ledger, entries)
    if len(entries) < 2:  # a table that was made anew is relaid for the first time, or never yet
        ledger.replaced(snapshot.location, snapshot.table_id, snapshot.created_at)
    undecided = [entry for entry in entries if entry.ended_at is None and entry.version < snapshot.version]
    if not undecided:
        return
    looked, known = _looked(snapshot, entries)
    since = {entry.version: looked if entry.version <= known else entry.replaced_version for entry in undecided}
    commits = commits_after(snapshot, min(since.values()))
    if moved or any(row["operation"] == "RESTORE" for row in commits):  # to a moment that is before them, perhaps
        since = {entry.version: entry.replaced_version for entry in undecided}
        commits = commits_after(snapshot, min(since.values()))
    opened = set[int]()

    @cache
    def generations(version: int, layout: str) -> dict[int, int] | None:
        try:
            if version < snapshot.version:
                opened.add(version)
            return (snapshot.at(version) if version < snapshot.version else snapshot).files().generations(layout)
        except TableError:  # Delta's log does not hold it any more
            return None

    def left(layout: str, rows_of: Callable[[Mapping[int, int]], float], version: int) -> float | None:
        found = generations(version, layout)
        return None if found is None else rows_of(found)

    for entry in undecided:
        later = [row for row in commits if int(row["version"]) > since[entry.version]]
        if not any(int(row["version"]) > entry.version for row in later):
            continue
        mine = partial(left, entry.layout_id, standing(entry, entries))
        # nothing else ends one that was followed: a RESTORE has all commits looked at again
        if any(not is_ours(row) and bytes_removed(row) for row in later) and _followed(
            entry, entries, since[entry.version], mine
        ):
            continue
        if (moment := ended_at(entry, later, mine)) is not None:
            ledger.ended(entry, moment)
    if opened or len(commits) > MANY:
        ledger.looked(entries[-1], snapshot.version)


def _elsewhere(snapshot: TableSnapshot, ledger: Ledger, entries: Sequence[Entry]) -> list[Entry]:
    """Entries of a table that lies elsewhere now, as one that was renamed does.

    What was made in its old place meanwhile was taken for its successor: an end that no commit tells is none.
    """
    ledger.moved(snapshot.table_id, snapshot.location)
    ended = [entry.replaced_version for entry in entries if entry.ended_at is not None]
    moments = {moment_of(row) for row in commits_after(snapshot, min(ended))} if ended else set[int]()
    found = []
    for entry in entries:
        end = entry.ended_at
        stands = end is not None and bool(moments) and end > min(moments) and end not in moments
        if stands:
            ledger.stands(entry)
        found.append(replace(entry, ended_at=None) if stands else entry)
    return found


def _followed(entry: Entry, entries: Sequence[Entry], looked: int, left: Left) -> bool:
    """Whether another layout of ours lay in a relayout's place by the version up to which was looked: no undoing."""
    others = {one.layout_id for one in entries if entry.version < one.version <= looked} - {"", entry.layout_id}
    return bool(others) and _is_gone(entry, left(looked))


def _is_gone(entry: Entry, rows: float | None) -> bool:
    return rows is not None and rows < STILL * entry.rows


def _looked(snapshot: TableSnapshot, entries: Sequence[Entry]) -> tuple[int, int]:
    """Up to which version the history was looked at before, and the newest relayout that was known then; -1 if never.

    A version that is not there yet is of a table that was put back since.
    """
    told = ((entry.looked_until, entry.version) for entry in entries if entry.looked_until is not None)
    return max((pair for pair in told if pair[0] <= snapshot.version), default=(-1, -1))


def ended_at(entry: Entry, commits: Sequence[Row], left: Left) -> int | None:
    """When a relayout was undone, microseconds since 1970 UTC; None while it stands.

    Args:
        commits: the table's history, newest first.
    """
    own = versions_of(commits, entry.run, entry.version)
    fate = _Fate(entry, left, min(own, default=entry.replaced_version + 1))
    for row in reversed(commits):
        if int(row["version"]) <= entry.version:
            continue
        to = restored(row, commits)
        if to is not None:
            fate.restore(row, to, by_number=to_version(row) is not None)
        elif is_ours(row):
            fate.commit_of_ours(row)
        else:
            fate.commit_of_others(row)
        fate.newest = row
    fate.told(looked=True)  # the newest files are known
    return None if fate.end is None else moment_of(fate.end)


@dataclass
class _Fate:
    """What became of a relayout, commit by commit, the oldest first.

    Attributes:
        first: version that its first commit made; others may have committed before that, while it was at work.
        end: what undid it, so far.
        followed: what laid the table out by another layout of ours: no undoing, and what comes later undoes that one.
        theirs: what took files out since the last commit of ours; by each the fewer of its rows are left.
        newest: the newest commit.
    """

    entry: Entry
    left: Left
    first: int
    end: Row | None = None
    followed: Row | None = None
    theirs: list[Row] = field(default_factory=list)
    newest: Row | None = None

    def restore(self, row: Row, to: int, by_number: bool) -> None:
        """The table was put back to an earlier version.

        Args:
            by_number: else it was to a moment by the clock of whoever did it, which may be hours from ours: then the
                rows that are left tell.
        """
        self.told()
        undone, again = to < self.first, self.end is not None and self.entry.version <= to < int(self.end["version"])
        rows = None if by_number or not self.entry.layout_id else self.left(int(row["version"]))
        if rows is not None:
            gone = _is_gone(self.entry, rows)
            undone, again = gone and self.followed is None, not gone  # what was followed had lost its rows before
        if undone:
            self.end = self.end or row
        elif again:
            self.end = None  # the RESTORE was taken back itself
        if self.followed is not None and to < int(self.followed["version"]):
            self.followed = None

    def commit_of_ours(self, row: Row) -> None:
        """A relayout or a compaction."""
        self.told()
        other = layout_given(row) not in ("", self.entry.layout_id)
        if self.end is None and self.followed is None and self.entry.layout_id and other and self._gone(row):
            self.followed = row

    def commit_of_others(self, row: Row) -> None:
        """Anything else, of which those count that take files out."""
        if self.entry.layout_id and bytes_removed(row):
            self.theirs.append(row)

    def told(self, looked: bool = False) -> None:
        """Whether the commits of others since the last one of ours undid it.

        Args:
            looked: whatever they took out; else less than `LARGE` is not looked at.
        """
        much = looked or sum(map(bytes_removed, self.theirs)) >= LARGE * self.entry.bytes_rewritten
        possible = self.end is None and self.followed is None
        if possible and much and self.theirs and self._gone(self.newest):
            self.end = self.theirs[min(bisect_left(self.theirs, True, key=self._gone), len(self.theirs) - 1)]
        self.theirs = []

    def _gone(self, row: Row | None) -> bool:
        return row is not None and _is_gone(self.entry, self.left(int(row["version"])))
