"""Some files of a snapshot as Spark's readers take them: the JVM's part of `reading`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from zorder_pipeline.java import nothing

from .snapshot import TableSnapshot

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

__all__ = ["ChosenFiles"]


class ChosenFiles:
    """Files of one snapshot for whoever asks often: its actions stay in the JVM's memory, no job looks for them."""

    def __init__(self, snapshot: TableSnapshot) -> None:
        self.snapshot = snapshot
        self._add_files = snapshot.add_files.in_order()

    def index(self, paths: Sequence[str]) -> JavaObject:
        """A file index of some files, by their paths as in the snapshot's list of files."""
        snapshot = self.snapshot
        actions = self._add_files.of(paths)
        frame = snapshot.jlog.createDataFrame(snapshot.jsnapshot, actions, False, nothing(snapshot.spark))
        return frame.queryExecution().analyzed().collectLeaves().apply(0).relation().location()
