"""The state's Delta tables about query logs, as they are written and read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zorder_pipeline.errors import LostRaceError
from zorder_pipeline.state.conflicts import lost_races
from zorder_pipeline.state.delta_tables import is_delta_table
from zorder_pipeline.state.erasing import WHOLE_FILES
from zorder_pipeline.state.session_conf import apart
from zorder_pipeline.state.state_table import newer_version

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

    def read(self, name: str) -> DataFrame:
        """All rows of one of them.

        Raises:
            ZorderError: a newer version of zorder wrote the state.
        """
        frame = self.spark.read.format("delta").load(self.path(name))
        if name == "log_files" and self._version(frame) > SCHEMA_VERSION:
            raise newer_version(self.state, self._version(frame), SCHEMA_VERSION)
        return frame

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
