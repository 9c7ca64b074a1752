"""What the state keeps of logs, from its rows and into them: counts, records of files, queries."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from zorder_pipeline.model.places import shown_place
from zorder_pipeline.model.predicate import predicate_from_json
from zorder_pipeline.model.workload import LoggedQuery, QueryLog

from .tally import Tally

if TYPE_CHECKING:
    from .delta_table import Version
    from .parts import Part

__all__ = ["DAMAGED", "NOTHING", "RECORD", "Record", "StoredLog", "failed_of", "is_moved", "names_of", "query_of"]
__all__ += ["record_of", "version_of"]

Record = dict[str, Any]
"""What ``log_files`` keeps of a log, by the names in `RECORD`; what is left out is null."""
RECORD = {
    "name": "string",
    "log": "string",
    "source": "string",
    "size": "bigint",
    "position": "bigint",
    "delta_version": "bigint",
    "watermark": "bigint",
    "counts": "string",
    "mark": "string",
    "since": "bigint",
    "replaces": "string",
    "modified": "bigint",
    "table_id": "string",
    "places": "string",
    "kind": "string",
}
"""Its columns and their types; rows of older states have no ``kind``."""
NOTHING = Tally().to_json()
DAMAGED = "damaged"
"""Beside the counts of an event log: where files of it broke off."""
"""Counts of a log of which nothing was read."""


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


def record_of(part: Part, shares: Sequence[dict[str, Any]]) -> Record:
    """What ``log_files`` keeps of the log of a part, from what was counted in each of its shares."""
    counts = [share["counts"] for share in shares]
    times = (share["query_timestamp"] for share in shares)
    damaged = sorted({place for item in counts for place in item.get(DAMAGED, ())})
    return {
        "log": part.name,
        "source": part.log.source,
        "size": part.log.size,
        "position": max(share["position"] for share in shares),
        "watermark": max((time for time in times if time is not None), default=None),
        "counts": json.dumps(Tally.of(counts).to_json() | ({DAMAGED: damaged} if damaged else {})),
        "mark": next((json.dumps(item["mark"]) for item in counts if item["mark"]), None),
        "since": part.since,
        "replaces": part.replaces,
        "modified": part.log.modified,
        "kind": part.log.kind,
    }


def version_of(path: str, log: str, version: Version) -> Record:
    """What ``log_files`` keeps of a log that is a Delta table, beside the records of its files."""
    source = shown_place(path).rstrip("/")
    told: Record = {"log": log, "source": source, "size": 0, "position": 0, "counts": json.dumps(NOTHING)}
    return told | {"delta_version": version.number, "table_id": version.table_id, "kind": "delta"}


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
        batch=row["batch"],
    )


def names_of(tables: Iterable[str]) -> list[str]:
    """Under which names the queries of tables are stored: statements that name theirs themselves in lower case.

    >>> names_of(["Orders", "sales"])
    ['Orders', 'orders', 'sales']
    """
    return sorted({name for table in tables for name in (table, table.lower())})


def failed_of(shares: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The first share of each log that could not be read, which one of them may have been alone."""
    failed = [share for share in shares if "unreadable_file" in share["counts"]["quarantined"]]
    return {share["source"]: share for share in reversed(failed)}


def is_moved(shares: Sequence[dict[str, Any]]) -> bool:
    """Whether a log was renamed while it was read, so that its shares are of two files, or could not be read."""
    marks = {json.dumps(share["counts"]["mark"]) for share in shares}
    return len(marks) > 1 or any("moved" in share["counts"] for share in shares)
