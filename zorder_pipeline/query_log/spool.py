"""What a recorder spilled: written to the local disk, moved to a folder that every executor sees, deleted there."""

from __future__ import annotations

import contextlib
import os
import re
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from zorder_pipeline.errors import ZorderError
from zorder_pipeline.java import java_class

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

__all__ = ["RECORDED", "any_moved", "delete_moved", "delete_unfinished", "moved_to", "written_as", "written_to"]

RECORDED = "recorded"
"""The folder of the state that they are moved to."""
_NAME = re.compile(r"(_?)(\d+)-\d+-[0-9a-f]+\.jsonl")
"""A spilled file: it has a mark as long as it is copied, and the second since 1970 in which it was written."""
_UNFINISHED = re.compile(r"\d+-\d+-[0-9a-f]+\.tmp")
"""One that is being written, or was when its process ended."""
ABANDONED = 3_600.0
"""Seconds since anything was written to such a file from which on nobody is at it."""


def written_to(spool: Path, lines: Sequence[str]) -> Path:
    """Write lines to a new file of a local folder, which is made where it is missing; returns the file.

    Raises:
        OSError: it cannot be written; nothing of it stays.
    """
    spool.mkdir(parents=True, exist_ok=True)  # whoever cleans up temporary folders may have taken it
    target = spool / f"{int(time.time())}-{os.getpid()}-{uuid.uuid4().hex[:12]}.jsonl"
    scratch = target.with_suffix(".tmp")
    try:
        with open(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")  # for nobody else: plans hold literals
        scratch.replace(target)  # whoever reads the folder sees whole files only
    finally:
        scratch.unlink(missing_ok=True)
    return target


def delete_unfinished(spool: Path) -> None:
    """Delete from a local folder what processes left that were killed while they wrote: it holds literals.

    What another recorder is writing there now stays, and so do files that are none of a recorder's.
    """
    before = time.time() - ABANDONED
    for file in spool.glob("*.tmp"):
        with contextlib.suppress(OSError):  # another one was faster, or it is another user's
            if _UNFINISHED.fullmatch(file.name) and file.stat().st_mtime < before:
                file.unlink()


def moved_to(spark: SparkSession, spool: Path, place: str) -> int:
    """Move the whole files of a local folder to ``place``, on any Hadoop filesystem; returns how many they were.

    A file that is there already was copied by a run that was cut off: it is written again, the same, under its name.
    What was never written to its end is deleted (`delete_unfinished`).

    Raises:
        ZorderError: a file cannot get its name there; it stays in the local folder.
    """
    delete_unfinished(spool)
    path, folder, filesystem = _reached(spark, place)
    files = sorted(spool.glob("*.jsonl"))
    if files:
        filesystem.mkdirs(folder)
        conf = spark.sparkContext._jsc.hadoopConfiguration()
        local = java_class(spark, "org.apache.hadoop.fs.FileSystem").getLocal(conf)
        copy = java_class(spark, "org.apache.hadoop.fs.FileUtil").copy
    for file in files:
        source = path(file.as_uri())
        hidden, target = (path(folder, name) for name in (f"_{file.name}", file.name))
        copy(local, source, filesystem, hidden, False, True, conf)  # as a stream, in which form tables are written, too
        if filesystem.exists(target):
            filesystem.delete(hidden, False)
        elif not filesystem.rename(hidden, target):  # some filesystems say so instead of failing
            raise ZorderError(f"{hidden} could not be renamed to {target}; what was recorded stays in {spool}")
        file.unlink(missing_ok=True)
    return len(files)


def any_moved(spark: SparkSession, place: str) -> bool:
    """Whether there is a folder of files that were moved."""
    _, folder, filesystem = _reached(spark, place)
    return bool(filesystem.exists(folder))


def written_as(spark: SparkSession, place: str) -> str:
    """A folder as the plans of Spark write it, which is how Hadoop names it in whole."""
    _, folder, filesystem = _reached(spark, place)
    return str(filesystem.makeQualified(folder).toString())


def delete_moved(spark: SparkSession, place: str, days: float, user: str | None = None) -> int:
    """Delete the files below a folder that were spilled more than ``days`` days ago, or all of ``user``.

    Whether they have been ingested makes no difference: what was read from them goes, too. Returns how many are gone.
    """
    from pyspark.sql import functions as F

    path, folder, filesystem = _reached(spark, place)
    if not filesystem.exists(folder):
        return 0
    listed, spilled = filesystem.listFiles(folder, True), {}
    while listed.hasNext():
        place = str(listed.next().getPath().toString())
        if name := _NAME.fullmatch(place.rsplit("/", 1)[-1]):
            spilled[place] = name
    before = time.time() - (86_400 * days if user is None else 0)
    # unfinished ones tell nobody's name, and those of a recording at work are a moment old
    gone = {place for place, name in spilled.items() if (user is None or name[1]) and int(name[2]) < before}
    whole = [place for place, name in spilled.items() if not name[1]]
    if user is not None and whole:
        event, asker = F.get_json_object("value", "$.Event"), F.get_json_object("value", "$.User")
        begun = spark.read.text(whole).where((event == "SparkListenerApplicationStart") & (asker == user))
        asked = {str(row[0]) for row in begun.select("_metadata.file_name").distinct().collect()}
        gone |= {place for place in whole if place.rsplit("/", 1)[-1] in asked}
    return sum(bool(filesystem.delete(path(place), False)) for place in gone)


def _reached(spark: SparkSession, place: str) -> tuple[JavaObject, JavaObject, JavaObject]:
    """Hadoop's class of paths, a folder as one, and the filesystem that has it."""
    path = java_class(spark, "org.apache.hadoop.fs.Path")
    folder = path(place)
    return path, folder, folder.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
