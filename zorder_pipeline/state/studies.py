"""The state's table ``studies``: a snapshot of each night's search, which outlives the machine that searched."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from zorder_pipeline.model.moments import EVER

from .state_table import StateTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["KeptStudy", "Studies"]

SCHEMA_VERSION = 1
COLUMNS = (
    *("schema_version INT", "table_id STRING", "table_location STRING", "study STRING", "searched_at TIMESTAMP"),
    *("search_date DATE", "search STRING", "cost STRING", "trials BIGINT", "best DOUBLE", "seconds DOUBLE"),
    "history STRING",
)


@dataclass(frozen=True)
class KeptStudy:
    """What is told of a search without its trials.

    Attributes:
        study: its name.
        searched_at: when it ended, microseconds since 1970 UTC.
        cost: what its values are, see `zorder_pipeline.model.choices.Cost`.
        trials: layouts that were evaluated.
        best: lowest value.
        seconds: time taken by learning.
    """

    study: str
    searched_at: int
    cost: str
    trials: int
    best: float
    seconds: float


class Studies:
    """Searches by table.

    Args:
        state: folder of the state, on any Hadoop filesystem.
    """

    def __init__(self, spark: SparkSession, state: str) -> None:
        self.table = StateTable(spark, state, "studies", COLUMNS, SCHEMA_VERSION, "search_date")

    def keep(self, table_id: str, location: str, search: str, found: KeptStudy, history: Mapping[str, Any]) -> None:
        """Add a search; the same one a second time adds nothing.

        Args:
            search: equal for searches that find the same.
            history: its trials.
        """
        from pyspark.sql import functions as F

        # no name of a transaction: Delta would keep those of all nights of all tables
        if self._of(table_id).where(F.col("search") == search).head(1):
            return
        now = datetime.fromtimestamp(found.searched_at / 1e6, UTC)
        row = {"schema_version": SCHEMA_VERSION, "table_id": table_id, "table_location": location, "search": search}
        row |= vars(found) | {"searched_at": now.isoformat(), "search_date": now.date().isoformat()}
        self.table.append([row | {"history": json.dumps(dict(history))}])

    def kept(self, table_id: str, day: date | None = None) -> list[KeptStudy]:
        """A table's searches, the newest first.

        Args:
            day: of this day in UTC alone.
        """
        from pyspark.sql import functions as F

        names = [name for name in KeptStudy.__dataclass_fields__ if name != "searched_at"]
        rows = self._of(table_id, day).select(*names, F.unix_micros("searched_at").alias("searched_at"))
        return [KeptStudy(**row.asDict()) for row in rows.orderBy(F.col("searched_at").desc()).collect()]

    def history(self, table_id: str, searched_at: int) -> dict[str, Any]:
        """The trials of one of `kept`."""
        from pyspark.sql import functions as F

        day = datetime.fromtimestamp(searched_at / 1e6, UTC).date()
        rows = self._of(table_id, day).where(F.unix_micros("searched_at") == searched_at)
        (row,) = rows.select("history").collect()
        return dict(json.loads(row["history"]))

    def forget(self, days: float | None) -> int:
        """Delete the searches of more than ``days`` days ago, with None all; returns how many.

        Raises:
            LostRaceError: another writer was faster each time.
        """
        from pyspark.sql import functions as F

        before = datetime.now(UTC).date() - timedelta(days=min(days, EVER) if days is not None else -1)
        if not self.table.exists() or not self.table.read().where(F.col("search_date") < F.lit(before)).head(1):
            return 0
        return self.table.delete(before, ())

    def _of(self, table_id: str, day: date | None = None) -> DataFrame:
        from pyspark.sql import functions as F

        rows = self.table.read().where(F.col("table_id") == table_id)
        return rows if day is None else rows.where(F.col("search_date") == F.lit(day))
