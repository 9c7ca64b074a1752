"""What is deleted of the state's query log: by a person's wish, by its age, or as it is older than what counts."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from zorder_pipeline.model.moments import EVER, FIRST
from zorder_pipeline.model.values import DAY
from zorder_pipeline.state.erasing import delete_equal, delete_where, set_properties

from .known import places_of
from .log_tables import PROPERTIES, LogTables, log_conflicts
from .stored import names_of

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["PurgedTables", "days_long"]

GRACE = "interval 1 day"  # after which an ingestion without a record was cut off


def days_long(days: float) -> int:
    """So many days in microseconds.

    >>> days_long(1), days_long(1e300) == days_long(1e9)
    (86400000000, True)
    """
    return round(min(days, EVER) * DAY)


@dataclass(frozen=True)
class _Uncounted:
    """Rows of a table that count no more.

    Attributes:
        runs: ingestions of which none counts.
        left: run and source of those whose run has other files that count.
    """

    runs: list[str]
    left: set[tuple[str, str]]


class PurgedTables(LogTables):
    """The tables of which rows are deleted, in one way: Delta's history says nothing of whose they were."""

    def purge(self, days: int, user: str | None = None) -> dict[str, int]:
        """Delete what is older than ``days`` days, or everything that ``user`` asked; returns deleted rows by table.

        A quarantined line that does not say whose it is goes by its age alone, a row that says a day to come by that of
        its ingestion. Rows that count no more go, too: of logs that were read again since or failed, and of ingestions
        that were cut off more than a day ago; one may be at work. Files of deleted rows stay until VACUUM; Delta's
        history says nothing of whose they were, nor where they came from.

        Raises:
            LostRaceError: another run wrote the same files; what was deleted by then is gone, the rest is not.
        """
        from pyspark.sql import functions as F

        deleted: dict[str, int] = {}
        names = [name for name in ("query_log", "quarantine") if self.exists(name)]
        if not names:
            return deleted
        oldest = F.date_sub(F.current_date(), min(days, EVER))
        early = []
        if self.exists("log_files"):  # not after a first ingestion that was cut off
            done = self.read("log_files").where(F.to_date("ingested_at") < oldest).select("run").distinct()
            early = [row["run"] for row in done.collect()]
        for name, uncounted in self._uncounted(names).items():
            condition = F.col("run").isin(uncounted.runs)
            if user is None:
                to_come = F.col("query_date") > F.date_add(F.current_date(), 1)
                condition |= (F.col("query_date") < oldest) | (to_come & F.col("run").isin(early))
            # a quarantine that was written before its lines had users has none to delete
            whose = [(user,)] if user is not None and "user" in self.read(name).columns else []
            deleted[name] = self._erased(name, condition, whose, uncounted.left)
        return deleted

    def _uncounted(self, names: Sequence[str]) -> dict[str, _Uncounted]:
        """What counts no more of some tables, see `purge`."""
        from pyspark.sql import functions as F

        runs, valid = set[str](), set[tuple[str, str]]()
        if self.exists("log_files"):
            runs = {row["run"] for row in self.read("log_files").select("run").distinct().collect()}
            valid = {(row["run"], row["source"]) for row in self.current_files().select("run", "source").collect()}
        alive, found = {run for run, _ in valid}, dict[str, _Uncounted]()
        for name in names:
            newest = F.max("_metadata.file_modification_time") < F.current_timestamp() - F.expr(GRACE)
            written = self.read(name).groupBy("run", "source").agg(newest.alias("late")).collect()
            told = [((row["run"], row["source"]), row["late"]) for row in written]
            dead = {pair for pair, late in told if pair not in valid and (late or pair[0] in runs)}
            left = {pair for pair in dead if pair[0] in alive}
            found[name] = _Uncounted(sorted({run for run, _ in dead} - alive), left)
        return found

    def kept_since(self, days: float) -> int | None:
        """The beginning of the day, in UTC, before which no query counts that has a time; None where none is as old.

        Where no query has a time it is counted from today, for what has a day of its own.

        Args:
            days: as in `LogStore.load`.

        Returns:
            Microseconds since 1970 UTC.
        """
        if not self.exists("log_files"):
            return None
        last = self.newest_query(self.current_files())
        since = (round(time.time() * 1e6) if last is None else last) - days_long(days)
        return since // DAY * DAY if since > FIRST else None

    def expire(self, since: int, tables: Sequence[str]) -> dict[str, int]:
        """Delete the queries that were asked before ``since``, and quarantined lines of earlier days; rows by table.

        What counts no more goes, too, as by `purge`: a file without times that is written over leaves some each night.
        Queries without a time stay, as they always count, and so do those of tables that logs were read for and that
        are none of ``tables``: another configuration has them, which may take older ones. Nothing is written where
        there is nothing to delete.

        Args:
            since: from `kept_since`.
            tables: those of the configuration.

        Raises:
            LostRaceError: another run wrote the same files; what was deleted by then is gone, the rest is not.
        """
        from pyspark.sql import functions as F

        mine = {name.lower() for name in tables}
        others = [name for name in places_of(self.current_files()) if name.lower() not in mine]
        day = F.lit(datetime.fromtimestamp(since / 1e6, UTC).date())
        old = {
            "query_log": F.col("query_timestamp").between(FIRST, since - 1)
            & ~F.col("table_name").isin(names_of(others)),
            "quarantine": F.col("query_date") < day,
        }
        deleted: dict[str, int] = {}
        for name, uncounted in self._uncounted([name for name in old if self.exists(name)]).items():
            rows = old[name] | F.col("run").isin(uncounted.runs)
            if uncounted.left or self.read(name).where(rows).head(1):
                deleted[name] = self._erased(name, rows, left=uncounted.left)
        return deleted

    def _erased(
        self, name: str, condition: Column, whose: Collection[Sequence[str]] = (), left: Collection[Sequence[str]] = ()
    ) -> int:
        """How many rows of a table were deleted.

        Args:
            condition: of what is deleted; names nobody, as Delta's history keeps it.
            whose: users whose rows are deleted, too.
            left: runs and sources whose rows are.
        """
        path = self.path(name)
        with log_conflicts(self.state):
            set_properties(self.spark, path, PROPERTIES[name])
            deleted = delete_equal(self.spark, path, ["user"], whose)
            deleted += delete_equal(self.spark, path, ["run", "source"], left)
            return deleted + delete_where(self.spark, path, condition)
