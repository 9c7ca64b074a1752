"""Putting a table back to how it lay before our last relayout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zorder_pipeline.errors import LostRaceError, TableError

from .failures import lost_races
from .history import history_of, rewrote
from .restoring import restore
from .snapshot import AUTO, TableSnapshot, open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Rollback", "rollback"]

MAINTENANCE = ("VACUUM START", "VACUUM END", "SET TBLPROPERTIES", "COMPUTE STATS")


@dataclass(frozen=True)
class Rollback:
    """A rollback that was done: to which version, and the version that made."""

    restored_version: int
    version: int


def rollback(spark: SparkSession, table: str, to_version: int | None = None, *, committer: str = AUTO) -> Rollback:
    """RESTORE the table to the version before our last relayout, or to ``to_version``.

    Args:
        committer: see `open_table`.

    Raises:
        TableError: there is no relayout of ours, or newer commits changed data that a rollback would lose.
        LostRaceError: others committed while the table was restored; says what became of their commits.
    """
    snapshot = open_table(spark, table, committer=committer)
    if to_version is None:
        to_version = _before_last_relayout(snapshot)
    elif to_version >= snapshot.version:
        raise TableError(f"version {to_version} is not before the table's newest version {snapshot.version}")
    with lost_races(snapshot.location):
        raced = restore(snapshot, int(to_version), snapshot.version)
    if raced:
        raise LostRaceError(f"the rollback to version {to_version} did not last: {raced}; run it again")
    return Rollback(to_version, snapshot.newest().version)


def _before_last_relayout(snapshot: TableSnapshot) -> int:
    """The version before our newest relayout (all of its bins), when nothing but maintenance came after it."""
    found: int | None = None
    for row in history_of(snapshot):
        if rewrote(row):
            found = int(row["version"]) - 1
        elif row["operation"] in MAINTENANCE:
            continue
        elif found is not None:
            break
        else:
            raise TableError(
                f"{row['operation']} at version {row['version']} came after our relayout and would be lost; "
                "give --to-version if that is what you want"
            )
    if found is None:
        raise TableError(
            f"{snapshot.location} has no relayout of ours to take back; give --to-version for another version"
        )
    return found
