"""Relayouts that are committed and not recorded, as their process was killed in between: recorded by the next one.

Without it the plan by which the table lies would be lost: what comes in could not be laid out by it any more, its
promise would not be checked, and what it cost and saved would be in no account.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from zorder_pipeline.errors import TableError
from zorder_pipeline.java import reason_of
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.state.begun import Beginnings, Begun
from zorder_pipeline.state.ledger import Ledger

from .history import commits_after, moment_of, rewrote, run_of

if TYPE_CHECKING:
    from pyspark.sql import Row

    from .snapshot import TableSnapshot

__all__ = ["record_late"]

LONGEST = 7 * 24 * 3600.0
"""Seconds after which a relayout that has committed nothing more is none that is still at work."""


def record_late(snapshot: TableSnapshot, state: str, say: Progress = silent) -> None:
    """Record in the state what relayouts committed that ended before they could do so.

    One that is at work is recorded as far as it has come, and looked for again: it may end so, too. A commit that
    came after its run had given it up for lost is found like that as well.

    Args:
        snapshot: the table as it is now.
        state: folder of the state.
    """
    beginnings = Beginnings(snapshot.spark, state)
    noted = list(beginnings.of_table(snapshot.table_id))
    commits: list[Row] | None = None
    for begun in noted:
        try:
            if commits is None:
                commits = _relayouts_since(snapshot, min(each.version for each in noted))
            last = _look_for(snapshot, state, begun, commits, say)
            if time.time() - last > LONGEST:
                beginnings.forget(begun)
        except Exception as error:  # the books are no reason to let a table lie
            say(f"what an earlier run committed could not be recorded in {state} ({reason_of(error)})")


def _relayouts_since(snapshot: TableSnapshot, version: int) -> list[Row]:
    """Commits of our relayouts after a version, newest first."""
    return [row for row in commits_after(snapshot, version) if rewrote(row)]


def _look_for(snapshot: TableSnapshot, state: str, begun: Begun, commits: Sequence[Row], say: Progress) -> float:
    """Record what a relayout committed and nobody recorded; when it did anything last, seconds since 1970 UTC.

    Args:
        commits: relayouts of ours since it was begun, newest first.
    """
    mine = [row for row in commits if run_of(row) == begun.run]
    if not mine:
        return begun.begun_at
    ledger = Ledger(snapshot.spark, state)
    recorded = ledger.newest_of(snapshot.table_id, begun.run)
    if unknown := [str(row["version"]) for row in reversed(mine) if int(row["version"]) > recorded]:
        _record(snapshot, ledger, begun, mine)
        say(f"version {', '.join(unknown)} was committed by a run that had not recorded that; it is recorded now")
    return moment_of(mine[0]) / 1e6


def _record(snapshot: TableSnapshot, ledger: Ledger, begun: Begun, commits: Sequence[Row]) -> None:
    """Enter a relayout into the ledger by the table's history.

    Args:
        commits: its commits, newest first.
    """
    done = {"files_removed": 0, "files_added": 0, "bytes_rewritten": 0, "rows": 0}
    layout = begun.plan.spec.layout_id if begun.plan.spec else ""
    merged: Counter[int] | None = Counter()
    for row in commits:
        figures, generations = _figures(snapshot, int(row["version"]), layout)
        for name, count in figures.items():
            done[name] += count
        merged = None if merged is None or generations is None else merged + Counter(generations)
    ended, work = moment_of(commits[0]) / 1e6, dict(begun.work)
    work["credited"] *= min(1.0, done["bytes_rewritten"] / max(1, begun.bytes))
    known: dict[str, Any] = done | {"seconds": max(0.0, ended - begun.begun_at), "run": begun.run, "merged": merged}
    version, moment = int(commits[0]["version"]), datetime.fromtimestamp(ended, UTC)
    ledger.record(begun.plan, layout, version, known, begun.gate, work, moment)


def _figures(snapshot: TableSnapshot, version: int, layout: str) -> tuple[dict[str, int], dict[int, int] | None]:
    """What a commit replaced and wrote, by the files before and after it; nothing where Delta's log lacks one.

    Beside it how many rows of what it replaced lay by a layout, by generation; None where that is not known.
    """
    try:
        old, new = (snapshot.at(number).files() for number in (version - 1, version))
    except TableError:
        return {}, None
    gone, come = old.replaced_by(new)
    figures = {
        "files_removed": int(gone.sum()),
        "files_added": int(come.sum()),
        "bytes_rewritten": int(old.bytes[gone].sum()),
        "rows": int(new.rows[come].sum()),
    }
    return figures, old.generations(layout, np.flatnonzero(gone))
