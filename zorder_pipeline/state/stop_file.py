"""The file ``STOP`` in the state: an operator's way to stop all relayouts at once, with or without this program."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from zorder_pipeline.java import has_jvm, java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["StopFile"]

LONGEST = 1000
"""Bytes of it that are shown."""


class StopFile:
    """``<state>/STOP``: while it exists, nothing is rewritten; what it says is shown as the reason.

    Args:
        state: folder of the state, on any Hadoop filesystem.
    """

    def __init__(self, spark: SparkSession, state: str) -> None:
        self.spark, self.place = spark, f"{state.rstrip('/')}/STOP"

    def note(self) -> str | None:
        """What the file says; None when there is none."""
        if not has_jvm(self.spark):
            return self._read()
        if not self._files.exists(self._path):
            return None
        stream = self._files.open(self._path)
        try:
            return bytes(stream.readNBytes(LONGEST)).decode("utf-8", "replace")
        finally:
            stream.close()

    def set(self, note: str) -> None:
        """Make the file, or say something else in it."""
        stream = self._files.create(self._path, True)
        try:
            stream.write(bytearray(note.encode()))
        finally:
            stream.close()

    def lift(self) -> bool:
        """Remove the file; whether there was one."""
        return bool(self._files.delete(self._path, False))

    def _read(self) -> str | None:
        """`note` by public API."""
        from pyspark.errors import PySparkException

        try:
            found = self.spark.read.format("binaryFile").load(self.place).select("content").collect()
        except PySparkException as error:
            if "PATH_NOT_FOUND" not in str(error):
                raise
            return None
        return bytes(found[0]["content"][:LONGEST]).decode("utf-8", "replace")

    @cached_property
    def _path(self) -> Any:
        return java_class(self.spark, "org.apache.hadoop.fs.Path")(self.place)

    @cached_property
    def _files(self) -> Any:
        return self._path.getFileSystem(self.spark._jsc.hadoopConfiguration())
