"""When relayouts were undone, by the table's history: their saving ends there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from zorder_pipeline.errors import TableError
from zorder_pipeline.relayout.history import STILL, history_of, is_ours, moment_of, restored
from zorder_pipeline.relayout.snapshot import TableSnapshot
from zorder_pipeline.state.ledger import Entry, Ledger

if TYPE_CHECKING:
    from pyspark.sql import Row

__all__ = ["ended_at", "note_ends"]

LARGE = 0.25
"""An OPTIMIZE of fewer of a relayout's bytes has not undone it, whatever it compressed them to."""


def note_ends(snapshot: TableSnapshot, ledger: Ledger, entries: Sequence[Entry]) -> None:
    """Note in the state which of a table's relayouts were undone since, by a RESTORE or another's OPTIMIZE."""
    standing = [entry for entry in entries if entry.ended_at is None and entry.version < snapshot.version]
    if not standing:
        return
    since = min(entry.replaced_version for entry in standing)
    commits = history_of(snapshot, snapshot.version - since + 1)

    @cache
    def left(version: int, layout: str) -> int | None:
        try:
            files = snapshot.at(version).files()
        except TableError:  # Delta's log does not hold it any more
            return None
        return int(files.rows[files.lies_by(layout)].sum())

    for entry in standing:
        if (moment := ended_at(entry, commits, left)) is not None:
            ledger.ended(entry.table_id, entry.version, moment)


def ended_at(entry: Entry, commits: Sequence[Row], left: Callable[[int, str], int | None]) -> int | None:
    """When a relayout was undone, microseconds since 1970 UTC; None while it stands.

    Args:
        commits: the table's history, newest first.
        left: rows that lie by a layout at a version; None where that is not known.
    """
    end: Row | None = None
    for row in reversed(commits):
        version, to = int(row["version"]), restored(row, commits)
        if version <= entry.version:
            continue
        if to is not None and to <= entry.replaced_version:
            end = end or row
        elif to is not None and end is not None and entry.version <= to < int(end["version"]):
            end = None  # the RESTORE was taken back itself
        elif end is None and row["operation"] == "OPTIMIZE" and not is_ours(row) and entry.layout_id:
            removed = float((row["operationMetrics"] or {}).get("numRemovedBytes", 0))
            rows = left(version, entry.layout_id) if removed >= LARGE * entry.bytes_rewritten else None
            end = row if rows is not None and rows < STILL * entry.rows else None
    return None if end is None else moment_of(end)
