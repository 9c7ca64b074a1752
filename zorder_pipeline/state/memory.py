"""The state's table ``drift``: what is remembered of a table from night to night."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from .state_table import StateTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Memories"]

KEPT_DAYS = 30
"""Days that notes stay of which there is a newer one, for people: nothing reads them."""
SCHEMA_VERSION = 1
COLUMNS = ("schema_version INT", "table_id STRING", "noted_at TIMESTAMP", "noted_date DATE", "memory STRING")


class Memories:
    """What is remembered of each table; the newest note counts.

    Args:
        state: folder of the state, on any Hadoop filesystem.
    """

    def __init__(self, spark: SparkSession, state: str) -> None:
        self.table = StateTable(spark, state, "drift", COLUMNS, SCHEMA_VERSION, "noted_date")

    def newest(self, table_id: str) -> dict[str, Any] | None:
        """A table's newest note; None when there is none."""
        from pyspark.sql import functions as F

        rows = self.table.read().where(F.col("table_id") == table_id)
        # first the day: a memory may take hundreds of kilobytes, and there is one of each night
        day = rows.agg(F.max("noted_date")).collect()[0][0]
        rows = rows.where(F.col("noted_date") == F.lit(day)).orderBy(F.col("noted_at").desc())
        found = rows.select("memory").limit(1).collect() if day is not None else []
        return dict(json.loads(found[0]["memory"])) if found else None

    def note(self, table_id: str, memory: Mapping[str, Any]) -> None:
        """Add a note."""
        now = datetime.now(UTC)
        row = {"schema_version": SCHEMA_VERSION, "table_id": table_id, "noted_at": now.isoformat()}
        row |= {"noted_date": now.date().isoformat(), "memory": json.dumps(dict(memory))}
        self.table.append([row])

    def forget(self) -> int:
        """Delete notes older than `KEPT_DAYS` of tables that have a newer one; returns how many rows are gone.

        Nothing as long as none is twice as old, so that a month of them takes one commit.

        Raises:
            LostRaceError: another writer was faster each time.
        """
        from pyspark.sql import functions as F

        if not self.table.exists():
            return 0
        days = self.table.read().groupBy("table_id").agg(F.min("noted_date"), F.max("noted_date")).collect()
        before, early = (datetime.now(UTC).date() - timedelta(days=KEPT_DAYS * times) for times in (1, 2))
        if not any(first < min(last, early) for _, first, last in days):
            return 0
        newest = [{"table_id": name, "noted_date": last} for name, _, last in days if last < before]
        return self.table.delete(before, newest)
