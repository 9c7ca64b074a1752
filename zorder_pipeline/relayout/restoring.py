"""RESTORE of a table, which sees whom it would undo: others may commit after the history was looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from zorder_pipeline.errors import VerificationError
from zorder_pipeline.java import first_line
from zorder_pipeline.state.delta_tables import sql_name
from zorder_pipeline.state.session_conf import set_for_a_while

from .history import USER_METADATA, history_of, labelling, made_as, told_with
from .session_conf import ALL_ROWS, ANY_AGE

if TYPE_CHECKING:
    from .snapshot import TableSnapshot

__all__ = ["restore", "restore_sql"]

RESTORED = "zorder restore"
"""What the user metadata of our RESTOREs begins with; a word of each follows."""
COMMITS_SEARCHED = 100
"""Commits among which ours is sought."""
ANY_TYPE = {"spark.databricks.delta.schema.typeCheck.enabled": "false"}
"""Take back a table whatever types it has (collations, which this Delta lets no new table have): it gets none anew."""


def restore_sql(location: str, version: int) -> str:
    """The statement that brings a version of a table back."""
    return f"RESTORE TABLE {sql_name(location)} TO VERSION AS OF {version}"


def restore(snapshot: TableSnapshot, to_version: int, seen: int) -> str:
    """RESTORE a table, and undo that when it has undone commits that nobody had looked at.

    Args:
        seen: the table's newest version when it was decided to restore it.

    Returns:
        What became of those commits, in words; "" when there were none and the table lies as at ``to_version``.

    Raises:
        VerificationError: it is restored, and the history, which tells of others, could not be read.
    """
    label = _restored(snapshot, to_version)
    try:
        made, replaced = _versions_of(snapshot, label)
    except Exception as error:
        raise VerificationError(
            f"{snapshot.location} was restored to version {to_version}; whether others committed at that moment is not "
            f"known ({first_line(str(error))}): DESCRIBE HISTORY shows it"
        ) from error
    if replaced == seen:
        return ""
    theirs = f"others committed {_versions(seen + 1, replaced)} of {snapshot.location} at that moment"
    again = restore_sql(snapshot.location, replaced)
    if (newest := int(history_of(snapshot, 1)[0]["version"])) != made:
        return (
            f"{theirs}, which version {made} removed, and {_versions(made + 1, newest)} came since: bring back theirs "
            f"from version {replaced}, or run {again}, which removes what came since"
        )
    try:
        undone, read = _versions_of(snapshot, _restored(snapshot, replaced))
    except Exception:
        return f"{theirs}, which version {made} removed: run {again} to bring them back"
    if read == made:
        return f"{theirs}, and version {undone} brought these back"
    return (
        f"{theirs}, and version {undone} brought these back but removed {_versions(made + 1, read)} of others: bring "
        "back theirs from there"
    )


def _restored(snapshot: TableSnapshot, version: int) -> str:
    """RESTORE a table; the label by which its history tells this commit from those of others."""
    label = f"{RESTORED} {uuid4().hex[:12]}"
    with labelling:
        named = {USER_METADATA: told_with(snapshot.spark, label)}
        with set_for_a_while(snapshot.spark, ANY_AGE | ALL_ROWS | ANY_TYPE | named):
            snapshot.spark.sql(restore_sql(snapshot.location, version)).collect()
    return label


def _versions_of(snapshot: TableSnapshot, label: str) -> tuple[int, int]:
    """The version that a RESTORE made, and the one that it replaced. Others may have restored the table right after."""
    restores = [row for row in history_of(snapshot, COMMITS_SEARCHED) if row["operation"] == "RESTORE"]
    row = next((row for row in restores if made_as(row, label)), restores[0])
    return int(row["version"]), int(row["readVersion"])


def _versions(first: int, last: int) -> str:
    return f"version {first}" if first == last else f"versions {first} to {last}"
