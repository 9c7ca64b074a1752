"""Moving spilled files from the local disk to a folder that every executor sees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["moved_to"]


def moved_to(spark: SparkSession, spool: Path, place: str) -> int:
    """Move the whole files of a local folder to ``place``, on any Hadoop filesystem; returns how many they were.

    A file that is there already was copied by a run that was cut off: it is written again, the same, under its name.
    """
    java = spark._jvm
    assert java is not None
    folder = java.org.apache.hadoop.fs.Path(place)
    filesystem = folder.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    files = sorted(spool.glob("*.jsonl"))
    if files:
        filesystem.mkdirs(folder)
    for file in files:
        source = java.org.apache.hadoop.fs.Path(file.as_uri())
        hidden, target = (java.org.apache.hadoop.fs.Path(folder, name) for name in (f"_{file.name}", file.name))
        filesystem.copyFromLocalFile(False, True, source, hidden)
        if filesystem.exists(target):
            filesystem.delete(hidden, False)
        else:
            filesystem.rename(hidden, target)
        file.unlink(missing_ok=True)
    return len(files)
