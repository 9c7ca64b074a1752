"""What is deleted of the state: by a person's wish, or as it is older than what nights use."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from zorder_pipeline.model.moments import DAY_SECONDS
from zorder_pipeline.query_log.intake.store import LogStore
from zorder_pipeline.query_log.spool import RECORDED, delete_moved
from zorder_pipeline.reading.file_stats import FileStats
from zorder_pipeline.relayout.unrecorded import LONGEST
from zorder_pipeline.state.begun import FOLDER, Beginnings
from zorder_pipeline.state.studies import Studies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["expire", "purge"]


def purge(spark: SparkSession, state: str, days: int, user: str | None = None) -> dict[str, int]:
    """Delete from the state what is older than ``days`` days, or all that ``user`` asked.

    That is: queries, quarantined lines, what the recorder noted, and what searches tried. Statistics of expressions and
    predicates, and searches, do not tell who asked for their constants, so with a user's queries all of them go; the
    next relayout, or `update_statistics`, gathers those statistics that the remaining queries ask for. Notes of
    relayouts that were begun, which hold their plans, go as well, but for those of the last days: what a run has
    committed that was killed before that is not recorded any more.

    Returns:
        Deleted rows by table; of ``recorded`` and ``begun``, files.
    """
    deleted = LogStore(spark, state).purge(days, user)
    deleted |= _files_deleted(spark, state, days, user)
    deleted["studies"] = Studies(spark, state).forget(days if user is None else None)
    return deleted if user is None else deleted | {"file_stats": FileStats(spark, state).purge()}


def expire(spark: SparkSession, state: str, tables: Sequence[str], days: float) -> dict[str, int]:
    """Delete from the state what was asked more than ``days`` days before the newest query, which nights use no more.

    Of whole days, so that it writes once a day at most, or where a log was read again since. Queries without a time
    stay, as they always count; so do those of tables that logs were read for and that are none of ``tables``, which are
    another configuration's. All else goes as by `purge`: queries, quarantined lines, what the recorder noted, and notes
    of relayouts that were begun. What searches tried goes ``days`` days after them.

    Args:
        tables: names of all tables of the configuration.
        days: its ``retention_days``.

    Returns:
        Deleted rows by table, of ``recorded`` and ``begun``, files; nothing of that of which nothing was deleted.

    Raises:
        LostRaceError: another run wrote the same files; what was deleted by then is gone, the rest is not.
    """
    store, deleted = LogStore(spark, state), {"studies": Studies(spark, state).forget(days)}
    if (since := store.kept_since(days)) is not None:
        deleted |= store.expire(since, tables) | _files_deleted(spark, state, (time.time() - since / 1e6) / DAY_SECONDS)
    return {name: count for name, count in deleted.items() if count}


def _files_deleted(spark: SparkSession, state: str, days: float, user: str | None = None) -> dict[str, int]:
    """Files that were deleted of what the recorder noted and of relayouts that were begun, see `purge`."""
    kept = LONGEST if user is not None else max(LONGEST, days * DAY_SECONDS)
    begun = Beginnings(spark, state).purge(kept)
    return {FOLDER: begun, RECORDED: delete_moved(spark, f"{state.rstrip('/')}/{RECORDED}", days, user)}
