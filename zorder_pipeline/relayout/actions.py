"""The actions of a commit, which stay in the JVM: as frames, with our tags, and counted."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .sessions import encoders

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["actions_frame", "actions_summary", "removals", "tagged", "typed_actions"]

PART = r"part-(\d+)-[^/]*$"
"""Spark names a file by the partition that wrote it."""


def actions_frame(spark: SparkSession, files: JavaObject) -> DataFrame:
    """AddFile actions, a Scala sequence, as a frame of their own columns."""
    from pyspark.sql import DataFrame

    rows = spark._jsparkSession.createDataset(files, encoders(spark).addFileEncoder())
    return DataFrame(rows.toDF(), spark)


def typed_actions(frame: DataFrame, encoder: JavaObject) -> JavaObject:
    """A Java list of a frame's rows as objects of the encoder's class."""
    return getattr(frame._jdf, "as")(encoder).collectAsList()


def tagged(files: DataFrame, tags: Sequence[Mapping[str, str]]) -> DataFrame:
    """AddFile actions with further tags, which say that they change no data.

    Args:
        tags: of each file, by the number of the partition that wrote it; a file of another name is left without them.
    """
    from pyspark.sql import functions as F

    number = F.regexp_extract("path", PART, 1).try_cast("int")
    own = F.get(F.from_json(F.lit(json.dumps([dict(item) for item in tags])), "array<map<string,string>>"), number)
    none = F.create_map().cast("map<string,string>")
    both = F.map_concat(F.coalesce(F.col("tags"), none), F.coalesce(own, none))
    return files.withColumns({"tags": both, "dataChange": F.lit(False)})


def removals(files: DataFrame) -> DataFrame:
    """RemoveFile actions of files, from their AddFile actions, which say that they change no data."""
    from pyspark.sql import functions as F

    return files.select(
        "path",
        F.lit(int(time.time() * 1000)).cast("bigint").alias("deletionTimestamp"),
        F.lit(False).alias("dataChange"),
        F.lit(True).alias("extendedFileMetadata"),
        "partitionValues",
        "size",
        "tags",
        "deletionVector",
        "baseRowId",
        "defaultRowCommitVersion",
        "stats",
        "backReference",
    )


def actions_summary(actions: DataFrame) -> tuple[int, int, int]:
    """Number, rows and bytes of AddFile actions."""
    rows = actions.select("size", "stats").collect()
    counted = sum(json.loads(row["stats"])["numRecords"] for row in rows)
    return len(rows), counted, sum(row["size"] for row in rows)
