"""Putting a table back to how it lay before our last relayout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zorder_pipeline.errors import LostRaceError, TableError
from zorder_pipeline.java import reason_of
from zorder_pipeline.state.conflicts import lost_races

from .history import MAINTENANCE, history_of, newest_relayout, operation_of, taken_back
from .restoring import restore
from .snapshot import AUTO, TableSnapshot, open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Rollback", "rollback"]


@dataclass(frozen=True)
class Rollback:
    """A rollback that was done: to which version, and the version that made."""

    restored_version: int
    version: int


def rollback(spark: SparkSession, table: str, to_version: int | None = None, *, committer: str = AUTO) -> Rollback:
    """RESTORE the table to the version before our last relayout, or to ``to_version``.

    Delta records a RESTORE as a change of data: streams and the change feed see the rows of the files again.

    Args:
        committer: see `open_table`.

    Raises:
        TableError: there is no relayout of ours, or newer commits changed data that a rollback would lose.
        LostRaceError: others committed while the table was restored; says what became of their commits.
        VerificationError: the table was restored, and whether others committed meanwhile is not known.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    snapshot = open_table(spark, table, committer=committer)
    if to_version is None:
        to_version = _before_last_relayout(snapshot)
    elif not 0 <= to_version < snapshot.version:
        below = f"it must be below {snapshot.version}, the table's newest version, and not below 0"
        raise TableError(f"version {to_version} of {snapshot.location} is none to go back to: {below}")
    try:
        with lost_races(snapshot.location):
            raced = restore(snapshot, int(to_version), snapshot.version)
    except (PySparkException, Py4JJavaError) as error:
        why = reason_of(error)
        gone = "VACUUM has removed files of it" if "Not all files" in why else why
        raise TableError(
            f"version {to_version} of {snapshot.location} cannot be restored: {gone}; the table lies as it did"
        ) from error
    if raced:
        raise LostRaceError(f"the rollback to version {to_version} did not last: {raced}; run it again")
    return Rollback(to_version, snapshot.newest().version)


def _before_last_relayout(snapshot: TableSnapshot) -> int:
    """The version before our newest relayout (all of its bins), when nothing but maintenance came after its first."""
    commits = history_of(snapshot)
    bins = newest_relayout(commits)
    if not bins:
        raise TableError(
            f"{snapshot.location} has no relayout of ours to take back; give --to-version for another version"
        )
    if (back := taken_back(commits)) is not None:
        raise TableError(
            f"our last relayout of {snapshot.location} is already taken back by version {back.version}; give "
            "--to-version for another version"
        )
    for row in commits:
        version = int(row["version"])
        if version > bins[-1] and version not in bins and row["operation"] not in MAINTENANCE:
            what = operation_of(row) or "a commit"
            raise TableError(
                f"{what} at version {version} came after our relayout began and would be lost; give --to-version if "
                "that is what you want"
            )
    return bins[-1] - 1
