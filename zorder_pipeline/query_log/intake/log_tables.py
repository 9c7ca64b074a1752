"""The state's Delta tables about query logs, as they are written and read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zorder_pipeline.errors import LostRaceError
from zorder_pipeline.model.moments import FIRST
from zorder_pipeline.model.moments import latest as latest_moment
from zorder_pipeline.state.conflicts import lost_races
from zorder_pipeline.state.delta_tables import is_delta_table
from zorder_pipeline.state.erasing import WHOLE_FILES
from zorder_pipeline.state.session_conf import apart
from zorder_pipeline.state.state_table import newer_version

from .known import current

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["PROPERTIES", "SCHEMA_VERSION", "LogTables", "log_conflicts", "lost"]

SCHEMA_VERSION = 1
_INDEXED = {"query_log": "run,query_date,query_timestamp", "quarantine": "run,query_date"}
PROPERTIES = {name: {**WHOLE_FILES, "delta.dataSkippingStatsColumns": of} for name, of in _INDEXED.items()}
"""Of the tables that hold what persons asked: statistics, which Delta keeps past VACUUM, are of those columns alone by
which files are chosen and that tell of nobody."""


class LogTables:
    """``query_log``, ``quarantine`` and ``log_files`` of a state.

    Args:
        state: folder of the state, on any Hadoop filesystem.
    """

    def __init__(self, spark: SparkSession, state: str) -> None:
        self.spark, self.state = spark, state.rstrip("/")
        self._newest: int | None = None

    def path(self, table: str) -> str:
        """Folder of one of the tables."""
        return f"{self.state}/{table}"

    def append(self, name: str, frame: DataFrame, options: dict[str, str] | None = None) -> None:
        """Add rows to one of them, which is made where it is not there.

        Raises:
            LostRaceError: another writer was faster; nothing was added.
        """
        new = not self.exists(name)
        with log_conflicts(self.state), apart(frame, new=new) as rows:
            writer = rows.write.format("delta").mode("append").options(**(options or {}))
            if new:
                writer = writer.options(**PROPERTIES.get(name, {}))
            if new and name == "query_log":
                writer = writer.partitionBy("table_name")
            elif not new and name != "query_log":  # an older quarantine has no users, older files no marks
                writer = writer.option("mergeSchema", "true")
            writer.save(self.path(name))

    def exists(self, name: str) -> bool:
        """Whether one of them was ever written."""
        return is_delta_table(self.spark, self.path(name))

    def has_queries(self) -> bool:
        """Whether there can be queries that count: of a Delta table without rows the version alone is noted."""
        return self.exists("log_files") and self.exists("query_log")

    def read(self, name: str) -> DataFrame:
        """All rows of one of them.

        Raises:
            ZorderError: a newer version of zorder wrote the state.
        """
        frame = self.spark.read.format("delta").load(self.path(name))
        if name == "log_files" and self._version(frame) > SCHEMA_VERSION:
            raise newer_version(self.state, self._version(frame), SCHEMA_VERSION)
        return frame

    def current_files(self) -> DataFrame:
        """The rows of ``log_files`` that count, see `current`."""
        return current(self.read("log_files"))

    def current_queries(self, files: DataFrame) -> DataFrame:
        """The queries of logs that count, each with the ``batch`` it came in by first; a time that none has is null.

        Args:
            files: `current_files`.
        """
        from pyspark.sql import functions as F

        first = F.max(F.when(F.col("replaces").isNull(), F.col("batch")))  # what is read again came in before
        came = files.groupBy("run", "source").agg(first.alias("batch"))
        asked = F.col("query_timestamp")  # states may hold other ones, from before such times were unknown ones
        return (
            self.read("query_log")
            .join(came, ["run", "source"])
            .withColumn("query_timestamp", F.when(asked.between(FIRST, latest_moment()), asked))
        )

    def newest_query(self, files: DataFrame) -> int | None:
        """When the newest query that counts was asked, microseconds since 1970 UTC; None where no time is known.

        Args:
            files: `current_files`.
        """
        from pyspark.sql import functions as F

        last: int | None = files.agg(F.max("watermark")).collect()[0][0]
        if last is not None and last > latest_moment() and self.has_queries():
            last = self.current_queries(files).agg(F.max("query_timestamp")).collect()[0][0]
        return last

    def _version(self, files: DataFrame) -> int:
        """Of the schema that the state was written with; asked once, as each time takes a job."""
        from pyspark.sql import functions as F

        if self._newest is None:
            known = "schema_version" in files.columns  # which it has since there was no other
            self._newest = (files.agg(F.max("schema_version")).collect()[0][0] if known else None) or 1
        return self._newest


@contextlib.contextmanager
def log_conflicts(state: str) -> Iterator[None]:
    """Delta's conflicts as `LostRaceError` that says what became of the log."""
    try:
        with lost_races(state):
            yield
    except LostRaceError as error:
        raise lost(state) from error


def lost(state: str) -> LostRaceError:
    """That another ingestion was faster."""
    return LostRaceError(f"another run wrote into {state} at the same time; nothing was lost or doubled, run it again")
