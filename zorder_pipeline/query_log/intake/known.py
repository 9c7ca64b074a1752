"""What the store knows of the logs that it has read: which rows of ``log_files`` count, and where each log goes on."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zorder_pipeline.model.moments import asked_at
from zorder_pipeline.model.places import known_as, local_path, store_named, without_password, without_query

from .marks import Mark
from .stored import DAMAGED, RECORD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

__all__ = ["Known", "KnownLogs", "current", "known_logs", "known_of", "name_of"]
__all__ += ["in_any", "place_of", "places_of", "real_place_of"]

_OLDER = (
    re.compile(r"(abfss?://([^@/]+)@[^/]+/(.+?))(?:\?.*?)?\2/\3(/.*)?", re.IGNORECASE),
    re.compile(r"([^:/]+://(.+?))\?.*?\2(/.*)?"),
)
"""Files as older states have them, in Azure and where the folder has options: its URI, and the path in its store."""


def name_of(source: str) -> str:
    """What identifies a log: wherever it is named from, by whatever password, and an event log keeps its name when its
    application ends.

    >>> name_of("file:/logs/app-1.inprogress"), name_of("s3a://logs/app-1/"), name_of("S3://logs/what?1.sql")
    ('/logs/app-1', 's3://logs/app-1', 's3://logs/what?1.sql')
    >>> name_of("logs/a.sql") == name_of(f"{os.getcwd()}/logs/a.sql")
    True
    """
    local = local_path(source)
    named = store_named(without_password(source)) if local is None else os.path.abspath(local)
    return named.rstrip("/").removesuffix(".inprogress")


def place_of(path: str) -> str:
    """What identifies a place that was given, which may have its options behind it, as `name_of` does what lies there.

    >>> place_of("s3a://logs/app-1?region=x"), place_of("/logs/what?1.sql")
    ('s3://logs/app-1', '/logs/what?1.sql')
    """
    return name_of(without_query(path))


def real_place_of(path: str) -> str:
    """`place_of` where links of this machine lead: one name for all that lead to a place."""
    return place_of(known_as(path))


def in_any(places: Iterable[str]) -> Callable[[str], bool]:
    """Tells of a file or folder whether it is one of some places or lies in one, by whatever link of this machine.

    >>> in_any(["/logs/a", "s3://b/c"])("/logs/a/1.sql"), in_any(["/logs/a"])("/logs/ab.sql")
    (True, False)
    """
    within = tuple(f"{name}/" for place in places for name in {place_of(place), real_place_of(place)})
    return lambda place: f"{name_of(place)}/".startswith(within)


@dataclass(frozen=True)
class Known:
    """The newest record of a log.

    Attributes:
        log: what it is called in the store, whatever its file is called.
        name: of the file that it was read from, see `name_of`.
        size: bytes when it was read last.
        position: last line read.
        current: whether it was read under this configuration; else it is to be read again.
        delta_version: version of a log that is a Delta table.
        watermark: time of its newest query, microseconds since 1970 UTC.
        mark: of what was read.
        since: lines of this time or earlier ones were left out.
        modified: when the file was changed last, microseconds since 1970 UTC.
        table_id: of a log that is a Delta table; "" where it is not known.
        tables: those that it was read for; none where statements' own names count.
        kind: what it was read as; "" where an older state does not tell.
        damaged: where files of an event log broke off, see `zorder_pipeline.query_log.intake.event_lines`.
    """

    log: str
    name: str
    size: int
    position: int
    current: bool = True
    delta_version: int | None = None
    watermark: int | None = None
    mark: Mark | None = None
    since: int | None = None
    modified: int | None = None
    table_id: str = ""
    tables: tuple[str, ...] = ()
    kind: str = ""
    damaged: frozenset[int] = frozenset()

    @property
    def latest(self) -> int | None:
        """Time of the newest query that is known to have been read."""
        return max((time for time in (self.watermark, self.since) if time is not None), default=None)


@dataclass(frozen=True)
class KnownLogs:
    """What is known, by the name of the file and by the name of the log.

    Attributes:
        by_name: what was read last from a file of this name.
        by_log: what was read last of a log; its file may have another name by now, and another log have its name.
    """

    by_name: dict[str, Known] = field(default_factory=dict)
    by_log: dict[str, Known] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[Known]) -> KnownLogs:
        """From records, the oldest first."""
        listed = list(records)
        return cls({one.name: one for one in listed}, {one.log: one for one in listed})

    def below(self, path: str) -> Known | None:
        """Any record of a file below a folder, one of this configuration if there is one."""
        found = [one for name, one in self.by_name.items() if name == path or name.startswith(f"{path}/")]
        return max(found, key=lambda one: one.current, default=None)


def current(files: DataFrame) -> DataFrame:
    """Rows of ``log_files`` that count: of logs that no other replaces, as one does that is read again.

    Of rows that are older than these names, those of each file's newest configuration count.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    for column, kind in RECORD.items():
        if column not in files.columns:  # of an older state
            files = files.withColumn(column, F.lit(None).cast(kind))
    old = F.col("log").isNull()
    of_table = files.where(old & F.col("delta_version").isNotNull()).select("name").distinct().collect()
    within = [F.when(F.col("name").startswith(f"{row['name']}/"), F.lit(row["name"])) for row in of_table]
    newest = F.max_by(F.when(old, F.col("generation")), F.when(old, F.col("batch"))).over(Window.partitionBy("name"))
    files = files.withColumn("newest", newest).where(~old | (F.col("generation") == F.col("newest")))
    replaced = files.select(F.col("replaces").alias("log")).where(F.col("log").isNotNull())
    return files.withColumn("log", F.coalesce("log", *within, "name")).join(replaced, "log", "left_anti")


def known_logs(files: DataFrame, generation: str) -> KnownLogs:
    """What ``log_files`` tells under a configuration; each record has the time of its log's newest query."""
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    newest = F.max("watermark").over(Window.partitionBy("log"))
    rows = current(files).withColumn("watermark", newest).orderBy("batch")
    return KnownLogs.of(known_of(row, generation) for row in rows.collect())


def places_of(files: DataFrame) -> dict[str, str]:
    """Where each table lay when a log was last read with it, by ``log_files``: URI by the table's name."""
    from pyspark.sql import functions as F

    if "places" not in files.columns:  # of an older state
        return {}
    told = files.where(F.col("places").isNotNull()).groupBy("places").agg(F.max("batch").alias("last"))
    found: dict[str, str] = {}
    for row in told.orderBy("last").collect():
        found |= json.loads(row["places"])
    return found


def _asked_at(moment: int | None) -> int | None:
    """A moment of older states, which took some for real that are none."""
    return None if moment is None else asked_at(moment)


def known_of(row: Row, generation: str) -> Known:
    """A row of ``log_files``; older states have other names of what lies in Azure or behind options."""
    name = row["name"]
    if row["kind"] is None and (wrong := next(filter(None, (one.fullmatch(name) for one in _OLDER)), None)):
        name = wrong[1] + (wrong[wrong.re.groups] or "")
    return Known(
        log=row["log"],
        name=name_of(name),
        size=row["size"],
        position=row["position"],
        current=row["generation"] == generation,
        delta_version=row["delta_version"],
        watermark=_asked_at(row["watermark"]),
        mark=None if row["mark"] is None or not (mark := Mark(**json.loads(row["mark"]))).size else mark,
        since=_asked_at(row["since"]),
        modified=row["modified"],
        table_id=row["table_id"] or "",
        tables=tuple(json.loads(row["places"] or "{}")),
        kind=row["kind"] or "",
        damaged=frozenset(json.loads(row["counts"]).get(DAMAGED, ()) if row["kind"] == "events" else ()),
    )
