"""The query log in the pipeline's state: Delta tables ``query_log``, ``quarantine`` and ``log_files``.

Exactly once: an ingestion writes its rows under a batch number, and the batch counts from the moment in which its row
appears in ``log_files``, one atomic commit with a transaction number of its own. A crash before that leaves rows that
nobody reads and `purge` removes; the files are read again by the next run. Of two ingestions of the same logs at once
one wins, and the other looks again for what is left.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from zorder_pipeline.errors import LostRaceError
from zorder_pipeline.model.places import shown_place
from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.model.wording import counted
from zorder_pipeline.model.workload import QueryLog
from zorder_pipeline.query_log.statements.catalog import Catalog, generation_of

from .intake import Intake, batches, find_new, refuse_to_replace
from .known import KnownLogs, known_logs, name_of, places_of
from .log_tables import SCHEMA_VERSION, lost
from .parts import SCHEMA, Part, worker
from .purging import PurgedTables, days_long
from .stored import RECORD, Record, StoredLog, failed_of, is_moved, names_of, query_of, record_of, version_of
from .tally import Tally
from .turns import TOLD, Turn

__all__ = ["LogStore"]

APP = "zorder-ingest"
MAX_TASKS = 256
TRIES = 5
"""Times that an ingestion looks for what others have left of its logs."""
NUMBERS = 5  # times that it asks for a batch number, which ingestions of other logs may take
LATEST = 500_000
"""Queries of one table that are handed on, the latest ones."""
PLACE = ("run", "source", "position", "query_date")
QUERIES = (
    *(*PLACE, "table_name", "template", "query_timestamp", "duration_ms", "user", "zone", "columns", "predicate"),
    *("rows_read", "bytes_read", "partial", "level"),
)
QUARANTINE = (*PLACE, "user", "reason", "text")


class LogStore(PurgedTables):
    """The state's tables about query logs.

    Args:
        state: folder of the state, on any Hadoop filesystem.
    """

    def ingest(
        self,
        path: str,
        catalog: Catalog,
        *,
        log_format: str = "auto",
        zone: str = "UTC",
        progress: Progress = silent,
        without: Sequence[str] = (),
        adding: bool = False,
    ) -> StoredLog:
        """Read what is new at ``path`` and add it, batch by batch.

        Args:
            without: places below it that are logs of their own.
            adding: replace nothing that was read otherwise, by other tables, views, another dialect or time zone.

        Raises:
            LogError: there is no log, or what is there could only be replaced.
            LostRaceError: others read the same logs at the same time, again and again; nothing was doubled.
        """
        generation, added = generation_of(catalog, zone), list[StoredLog]()
        for tried in range(1, TRIES + 1):
            turn = Turn(path, self._newest_batch())  # before what is known is read: a batch in between is another's
            known, earlier = self._known(generation), len(added)
            intake = find_new(path, log_format, zone, known, without, progress if tried == 1 else silent)
            if adding:
                refuse_to_replace(path, self.state, intake, known)
            try:
                self._add_all(intake, turn, catalog, generation, progress, added)
                break
            except LostRaceError:
                if tried == TRIES:
                    raise
                progress(f"another run read {shown_place(path)} at the same time; looking again for what it left")
        unchanged = max(0, intake.unchanged - sum(one.files for one in added[:earlier]))
        return StoredLog.merged([StoredLog(QueryLog((), 0, 0), unchanged=unchanged), *added])

    def _add_all(
        self, intake: Intake, turn: Turn, catalog: Catalog, generation: str, progress: Progress, added: list[StoredLog]
    ) -> None:
        """Add what is new, batch by batch, and append to ``added`` what each brought.

        Raises:
            LostRaceError: another ingestion of these logs was faster; what was added by then counts.
        """
        path = turn.path
        left = [list(intake.parts)] if intake.at_once and intake.parts else list(batches(intake.parts))
        whole = True
        version = [] if intake.version is None else [version_of(path, intake.table, intake.version)]
        for i, batch in enumerate(left, 1):
            size = sum(part.log.size for part in batch)
            of = shown_place(path)
            progress(f"reading {counted(len(batch), 'log file')} of {of}, {size / 1e6:,.1f} MB")
            last = version if i == len(left) and whole else []
            added.append(self._add(batch, turn, catalog, generation, last, progress))
            whole &= added[-1].files == len(batch)  # what was left of a table is looked for again by its older version
        if not left:
            self._commit(turn, uuid.uuid4().hex, generation, catalog, version)

    def places(self) -> dict[str, str]:
        """Where each table lay when a log was last read with it, as URI by the table's name."""
        return places_of(self.read("log_files")) if self.exists("log_files") else {}

    def scans(self) -> dict[str, int]:
        """How many stored queries scan each table, by the table's name."""
        from pyspark.sql import functions as F

        if not self.has_queries():
            return {}
        counted = self.current_files().select("run", "source").distinct()
        rows = self.read("query_log").join(counted, ["run", "source"]).groupBy("table_name")
        return {row["table_name"]: row["scans"] for row in rows.agg(F.count("*").alias("scans")).collect()}

    def load(self, tables: Sequence[str] | None = None, days: float | None = None) -> QueryLog:
        """The stored queries.

        Args:
            tables: only scans of these tables.
            days: only queries of so many days before the newest one; those without a time always count.
        """
        from pyspark.sql import functions as F
        from pyspark.sql.window import Window

        if not self.has_queries():
            return QueryLog((), 0, 0)
        files = self.current_files()
        rows, last = self.current_queries(files), self.newest_query(files)
        if tables is not None:
            rows = rows.where(F.col("table_name").isin(names_of(tables)))
        if days is not None:
            recent = F.col("query_timestamp") >= (last or 0) - days_long(days)
            rows = rows.where(recent | F.col("query_timestamp").isNull())
        latest = Window.partitionBy("table_name").orderBy(
            F.col("query_timestamp").desc_nulls_last(), "source", "position"
        )
        rows = rows.withColumn("rank", F.row_number().over(latest)).where(F.col("rank") <= LATEST)
        rows = rows.orderBy(F.col("query_timestamp").asc_nulls_first(), "source", "position")
        queries = tuple(
            query_of(row) for batch in rows.drop("rank").toArrow().to_batches() for row in batch.to_pylist()
        )
        counts = [json.loads(row["counts"]) for row in files.select("counts").collect()]
        return replace(Tally.of(counts).log(queries), until=last)

    def _add(
        self,
        parts: list[Part],
        turn: Turn,
        catalog: Catalog,
        generation: str,
        version: list[Record],
        progress: Progress,
    ) -> StoredLog:
        """Read one batch on Spark and commit it, the last one of a Delta table with its version if all was read.

        Nothing of it is committed where rows of a table were rewritten and some could not be read: of these would be
        left out, the next time, what is as old as the newest of the others.
        """
        from pyspark import StorageLevel
        from pyspark.sql import functions as F
        from pyspark.sql.pandas.types import from_arrow_schema

        run = uuid.uuid4().hex
        numbers = self.spark.range(0, len(parts), 1, min(len(parts), MAX_TASKS))
        rows = numbers.mapInArrow(worker(parts, catalog), from_arrow_schema(SCHEMA)).withColumn("run", F.lit(run))
        rows = rows.persist(StorageLevel.DISK_ONLY)
        try:
            for name, kind, columns in (("query_log", "query", QUERIES), ("quarantine", "quarantine", QUARANTINE)):
                self.append(name, rows.where(F.col("kind") == kind).select(*columns))
            done = rows.where(F.col("kind") == "file").select("source", "position", "query_timestamp", "counts", "text")
            counted = [row.asDict() | {"counts": json.loads(row["counts"])} for row in done.collect()]
            shares: dict[str, list[dict[str, Any]]] = {}
            for share in counted:
                shares.setdefault(share["source"], []).append(share)
            moved = {source for source, each in shares.items() if is_moved(each)}
            found = [part for part in parts if part.share[0] == 0 and part.log.source not in moved]
            if moved and any(part.log.delta and part.since is not None for part in parts):
                found = []
            records = [record_of(part, shares[part.log.source]) for part in found]
            self._commit(turn, run, generation, catalog, [*records, *([] if moved else version)])
        finally:
            rows.unpersist()
        failed = failed_of(counted)
        read = {part.log.source for part in found}
        told = [*(share for share in counted if share["source"] in read), *failed.values()]
        for source in sorted(moved):
            gone = f"query log {source} was removed or written anew meanwhile; what is there next time is read then"
            progress(f"{failed[source]['text']}; it is read once it can be" if source in failed else gone)
        total = Tally.of(share["counts"] for share in told)
        return StoredLog(total.log(), dict(total.tables), len(found))

    def _commit(self, turn: Turn, run: str, generation: str, catalog: Catalog, records: list[Record]) -> None:
        """Make a run count: one row per log in ``log_files``, under the next batch number.

        Raises:
            LostRaceError: another ingestion has read logs of this place since it began.
        """
        from pyspark.sql import functions as F

        if not records:
            return
        places = json.dumps(dict(catalog.places), sort_keys=True) if catalog.places else None
        named = [record | {"name": name_of(record["source"]), "places": places} for record in records]
        schema = ", ".join(f"{column} {kind}" for column, kind in RECORD.items())
        for _ in range(NUMBERS):
            if (number := turn.number(self._since(turn.seen))) is None:
                break
            frame = self.spark.createDataFrame(named, schema).select(
                F.lit(number).cast("bigint").alias("batch"),
                F.lit(run).alias("run"),
                F.lit(generation).alias("generation"),
                "*",
                F.lit(SCHEMA_VERSION).alias("schema_version"),
                F.current_timestamp().alias("ingested_at"),
            )
            with contextlib.suppress(LostRaceError):  # an ingestion of other logs may have taken the number
                self.append("log_files", frame, {"txnAppId": APP, "txnVersion": str(number)})
            if self.exists("log_files") and self.read("log_files").where(F.col("run") == run).head(1):
                turn.seen = number  # nobody else's is below it
                return
        raise lost(self.state)

    def _since(self, batch: int) -> list[dict[str, Any]]:
        """What `Turn.number` has to know of later batches."""
        from pyspark.sql import functions as F

        if not self.exists("log_files"):
            return []
        files = self.read("log_files").where(F.col("batch") > batch)
        return [row.asDict() for row in files.select(*(name for name in TOLD if name in files.columns)).collect()]

    def _newest_batch(self) -> int:
        from pyspark.sql import functions as F

        if not self.exists("log_files"):
            return 0
        return int(self.read("log_files").agg(F.max("batch")).collect()[0][0] or 0)

    def _known(self, generation: str) -> KnownLogs:
        return known_logs(self.read("log_files"), generation) if self.exists("log_files") else KnownLogs()
