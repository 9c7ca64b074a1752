"""Moving spilled files from the local disk to a folder that every executor sees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from zorder_pipeline.errors import ZorderError
from zorder_pipeline.java import java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["moved_to"]


def moved_to(spark: SparkSession, spool: Path, place: str) -> int:
    """Move the whole files of a local folder to ``place``, on any Hadoop filesystem; returns how many they were.

    A file that is there already was copied by a run that was cut off: it is written again, the same, under its name.

    Raises:
        ZorderError: a file cannot get its name there; it stays in the local folder.
    """
    path = java_class(spark, "org.apache.hadoop.fs.Path")
    folder = path(place)
    filesystem = folder.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    files = sorted(spool.glob("*.jsonl"))
    if files:
        filesystem.mkdirs(folder)
    for file in files:
        source = path(file.as_uri())
        hidden, target = (path(folder, name) for name in (f"_{file.name}", file.name))
        filesystem.copyFromLocalFile(False, True, source, hidden)
        if filesystem.exists(target):
            filesystem.delete(hidden, False)
        elif not filesystem.rename(hidden, target):  # some filesystems say so instead of failing
            raise ZorderError(f"{hidden} could not be renamed to {target}; what was recorded stays in {spool}")
        file.unlink(missing_ok=True)
    return len(files)
