"""The file ``STOP`` in the state: an operator's way to stop all relayouts at once, with or without this program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .snapshot import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["StopFile"]


class StopFile:
    """``<state>/STOP``: while it exists, nothing is rewritten; what it says is shown as the reason.

    Args:
        state: folder of the state, on any Hadoop filesystem.
    """

    def __init__(self, spark: SparkSession, state: str) -> None:
        hadoop = jvm(spark).org.apache.hadoop
        self.path = hadoop.fs.Path(f"{state.rstrip('/')}/STOP")
        self.files: Any = self.path.getFileSystem(spark._jsc.hadoopConfiguration())

    def note(self) -> str | None:
        """What the file says; None when there is none."""
        if not self.files.exists(self.path):
            return None
        stream = self.files.open(self.path)
        try:
            return bytes(stream.readNBytes(1000)).decode("utf-8", "replace")
        finally:
            stream.close()

    def set(self, note: str) -> None:
        """Make the file, or say something else in it."""
        stream = self.files.create(self.path, True)
        try:
            stream.write(bytearray(note.encode()))
        finally:
            stream.close()

    def lift(self) -> bool:
        """Remove the file; whether there was one."""
        return bool(self.files.delete(self.path, False))
