"""Whether a table's log is still the one that a snapshot was read from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zorder_pipeline.java import java_class

from .snapshot import TableSnapshot

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

__all__ = ["is_same_log"]

TOLERANCE = 1000
"""Milliseconds; MinIO and Ceph tell these of a file that is listed, and whole seconds of one that is asked for."""


def is_same_log(snapshot: TableSnapshot) -> bool:
    """Ask once more whether the newest entry of the log that a snapshot was read from is still there.

    A table that was dropped and made anew has a log that Delta would add ours to, with a gap before it. Of an entry
    that a catalog keeps until it is moved to the log nothing is known, which counts as the same.
    """
    segment = snapshot.jsnapshot.logSegment()
    entries = segment.deltas()
    if not entries.isEmpty():
        newest = entries.last()
        return newest.getPath().getParent().getName() != "_delta_log" or _is_as_listed(snapshot, newest)
    # A checkpoint is all that was read, of the version's entry only the time is known. Others may write that checkpoint
    # once more, or clean up the entry: one of both is enough.
    path = java_class(snapshot.spark, "org.apache.hadoop.fs.Path")(segment.logPath(), f"{snapshot.version:020}.json")
    if _is_there(snapshot, path, segment.lastCommitFileModificationTimestamp()):
        return True
    parts = segment.checkpointProvider().topLevelFiles()
    return not parts.isEmpty() and _is_as_listed(snapshot, parts.last())


def _is_as_listed(snapshot: TableSnapshot, listed: JavaObject) -> bool:
    return _is_there(snapshot, listed.getPath(), listed.getModificationTime(), int(listed.getLen()))


def _is_there(snapshot: TableSnapshot, path: JavaObject, modified: int, length: int | None = None) -> bool:
    """Whether a file has this time of its last change, in milliseconds, and this length, if that is known."""
    try:
        found = path.getFileSystem(snapshot.jlog.newDeltaHadoopConf()).getFileStatus(path)
        same = length is None or int(found.getLen()) == length
        return same and abs(int(found.getModificationTime()) - int(modified)) < TOLERANCE
    except Exception:
        return False
