"""What the state keeps of logs, from its rows and into them: counts, records of files, queries."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from zorder_pipeline.model.predicate import predicate_from_json
from zorder_pipeline.model.workload import LoggedQuery, QueryLog

from .marks import Mark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from .parts import Part

__all__ = ["RECORD", "Known", "Record", "StoredLog", "current", "known_of", "log_of", "query_of", "record_of"]

Record = tuple[str, str, int, int, int | None, int | None, str, str | None, int | None, str | None]
"""What ``log_files`` keeps of a log."""
RECORD = (
    "log string, source string, size bigint, position bigint, delta_version bigint, watermark bigint, counts string, "
    "mark string, since bigint, replaces string"
)
"""The same as Spark's schema."""


@dataclass(frozen=True)
class Known:
    """What the store knows of a log.

    Attributes:
        log: what it is called in the store, whatever its file is called.
        size: bytes when it was read last.
        position: last line read; 0 where it was read under another configuration, and is to be read again.
        current: whether it was read under this configuration.
        delta_version: version of a log that is a Delta table.
        watermark: time of its newest query, microseconds since 1970 UTC.
        mark: of what was read.
        since: lines of this time or earlier ones were left out.
    """

    log: str
    size: int
    position: int
    current: bool = True
    delta_version: int | None = None
    watermark: int | None = None
    mark: Mark | None = None
    since: int | None = None

    @property
    def latest(self) -> int | None:
        """Time of the newest query that is known to have been read."""
        return max((time for time in (self.watermark, self.since) if time is not None), default=None)


@dataclass(frozen=True)
class StoredLog:
    """What one ingestion added.

    Attributes:
        log: its counts; queries are in the store, not here.
        tables: scans added by table.
        files: log files read.
        unchanged: log files in which nothing was new.
    """

    log: QueryLog
    tables: dict[str, int] = field(default_factory=dict)
    files: int = 0
    unchanged: int = 0

    @staticmethod
    def merged(parts: Sequence[StoredLog]) -> StoredLog:
        """Several ingestions as one."""
        tables = sum((Counter(part.tables) for part in parts), Counter[str]())
        log = QueryLog.merged([part.log for part in parts])
        return StoredLog(log, dict(tables), sum(p.files for p in parts), sum(p.unchanged for p in parts))

    def to_json(self) -> dict[str, Any]:
        """As `QueryLog.to_json`, with the files."""
        counts = self.log.to_json() | {"tables": self.tables}
        return counts | {"files": self.files, "unchanged_files": self.unchanged}


def record_of(part: Part, counted: Sequence[Any]) -> Record:
    """What ``log_files`` keeps of the log of a part, from the rows of all its shares."""
    rows = [row for row in counted if row["source"] == part.log.source]
    total = log_of([json.loads(row["counts"]) for row in rows], ())
    tables = sum((Counter(json.loads(row["counts"])["tables"]) for row in rows), Counter[str]())
    kept: dict[str, Any] = {"lines": total.lines, "used": total.used, "unmatched": total.unmatched}
    kept |= {"ignored": total.ignored, "quarantined": total.quarantined}
    watermark = max((row["query_timestamp"] for row in rows if row["query_timestamp"] is not None), default=None)
    position = max(row["position"] for row in rows)
    mark = next((json.dumps(found) for row in rows if (found := json.loads(row["counts"])["mark"])), None)
    counts = json.dumps(kept | {"tables": dict(tables)})
    read = (part.name, part.log.source, part.log.size, position, None, watermark, counts, mark)
    return *read, part.since, part.replaces


def current(files: DataFrame) -> DataFrame:
    """Rows of ``log_files`` of each log since it was last read from the beginning, under its newest generation.

    What was read of it under an older configuration does not count, also when that one has come back since; nor does
    what another log replaces.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    for column, kind in (("log", "string"), ("mark", "string"), ("since", "bigint"), ("replaces", "string")):
        if column not in files.columns:  # of a state that is older than these
            files = files.withColumn(column, F.lit(None).cast(kind))
    old = files.where(F.col("log").isNull())
    tables = [row["name"] for row in old.where("delta_version IS NOT NULL").select("name").distinct().collect()]
    within = [F.when(F.col("name").startswith(f"{table}/"), F.lit(table)) for table in tables]
    files = files.withColumn("log", F.coalesce("log", *within, "name"))
    replaced = files.select(F.col("replaces").alias("log")).where(F.col("log").isNotNull())
    files = files.join(replaced, "log", "left_anti")
    of_log = Window.partitionBy("log")
    files = files.withColumn("newest", F.max_by("generation", "batch").over(of_log))
    other = F.max(F.when(F.col("generation") != F.col("newest"), F.col("batch"))).over(of_log)
    return files.withColumn("before", F.coalesce(other, F.lit(0))).where(F.col("batch") > F.col("before"))


def known_of(row: Row, generation: str) -> Known:
    """A row of ``log_files``; what was read under another generation is to be read again."""
    current = row["generation"] == generation
    return Known(
        log=row["log"],
        size=row["size"],
        position=row["position"] if current else 0,
        current=current,
        delta_version=row["delta_version"],
        watermark=row["watermark"],
        mark=None if row["mark"] is None else Mark(**json.loads(row["mark"])),
        since=row["since"],
    )


def query_of(row: dict[str, Any]) -> LoggedQuery:
    """The query of a row of ``query_log``."""
    return LoggedQuery(
        table=row["table_name"],
        predicate=predicate_from_json(json.loads(row["predicate"])),
        columns=tuple(row["columns"] or ()),
        template=row["template"] or "",
        timestamp=row["query_timestamp"],
        duration_ms=row["duration_ms"],
        user=row["user"],
        source=f"{row['source']}:{row['position']}",
        zone=row["zone"] or "UTC",
        rows_read=row["rows_read"],
        bytes_read=row["bytes_read"],
        partial=bool(row["partial"]),
    )


def log_of(totals: Iterable[dict[str, Any]], queries: tuple[LoggedQuery, ...]) -> QueryLog:
    """A log from the counts of its parts."""
    ignored: Counter[str] = Counter()
    quarantined: Counter[str] = Counter()
    unmatched: Counter[str] = Counter()
    lines = used = 0
    for item in totals:
        lines += item["lines"]
        used += item["used"]
        ignored.update(item["ignored"])
        quarantined.update(item["quarantined"])
        unmatched.update(item["unmatched"])
    return QueryLog(queries, lines, used, dict(ignored), dict(quarantined), unmatched=dict(unmatched))
