"""The queries asked of one table, as stage ``query_log`` hands them on."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from zorder_pipeline.model.wording import counted

from .asked import Asked
from .predicate import Predicate, comparisons, predicate_to_json
from .ranges import NOTHING_TOLD, Boxes, Told, to_boxes
from .schema import TableSchema

__all__ = ["LoggedQuery", "QueryLog", "boxes_of"]

SHOWN, TOLD = 50, 5


@dataclass(frozen=True)
class LoggedQuery:
    """One scan of one table by one logged statement.

    Attributes:
        table: the table's name as the log or the configuration knows it.
        predicate: what the scan filters by; ``And(())`` when it reads everything.
        columns: columns the scan reads, filtered ones included; empty when unknown.
        template: hash of the statement without its literals; equal for statements that differ only in literals.
        timestamp: microseconds since 1970 UTC, or None when the log has no time.
        duration_ms: logged duration, or None; it and what was read are kept in the state for people to ask, and weigh
            nothing: that would feed the present layout back into the next one.
        user: who asked, or None.
        source: file and position in it, for messages.
        zone: session time zone, in which timestamps without an offset are read.
        rows_read, bytes_read: what the scan read, where the log says so.
        partial: something in the predicate could not be known (a truncated literal, relative time without a time, a
            column that the table does not have), so that ``predicate`` is weaker than what was asked.
        batch: number of the ingestion that brought it into the state; None where its log was read there before, or by
            itself.
    """

    table: str
    predicate: Predicate
    columns: tuple[str, ...] = ()
    template: str = ""
    timestamp: int | None = None
    duration_ms: float | None = None
    user: str | None = None
    source: str = ""
    zone: str = "UTC"
    rows_read: int | None = None
    bytes_read: int | None = None
    partial: bool = False
    batch: int | None = None

    @property
    def fingerprint(self) -> str:
        """Hash of table, template and literals: equal for a statement asked again word for word."""
        text = json.dumps([self.table, self.template, predicate_to_json(self.predicate)])
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    @property
    def line(self) -> tuple[str, int | None]:
        """Which line of which file it stands in; a file that was written over has others of another time there."""
        return self.source, self.timestamp

    @property
    def condition(self) -> tuple[Predicate, str]:
        """What it filters by: its predicate, and the time zone in which that is read."""
        return self.predicate, self.zone

    @property
    def usable(self) -> bool:
        """Whether at least one comparison restricts a column."""
        return any(True for _ in comparisons(self.predicate))


@dataclass(frozen=True)
class QueryLog:
    """What ingestion made of a log: N lines = used + ignored + quarantined.

    Attributes:
        queries: one per table scanned by a used statement, in log order (a join of two tables gives two).
        lines: statements seen.
        used: statements from which at least one `LoggedQuery` came.
        ignored: statements that read no table (DDL, SET, INSERT VALUES, ...), by kind.
        quarantined: statements that could not be used, by reason.
        unmatched: statements by the table that they read and that is not known: what a user may want to configure.
        until: when the newest of its lines ran, whatever it read, microseconds since 1970 UTC; None where no more is
            known than the times of the queries.
    """

    queries: tuple[LoggedQuery, ...]
    lines: int
    used: int
    ignored: dict[str, int] = field(default_factory=dict)
    quarantined: dict[str, int] = field(default_factory=dict)
    unmatched: dict[str, int] = field(default_factory=dict)
    until: int | None = None

    @staticmethod
    def merged(parts: Sequence[QueryLog]) -> QueryLog:
        """Several logs as one, in their order."""
        ignored: Counter[str] = Counter()
        quarantined: Counter[str] = Counter()
        unmatched: Counter[str] = Counter()
        for part in parts:
            ignored.update(part.ignored)
            quarantined.update(part.quarantined)
            unmatched.update(part.unmatched)
        return QueryLog(
            queries=tuple(query for part in parts for query in part.queries),
            lines=sum(part.lines for part in parts),
            used=sum(part.used for part in parts),
            ignored=dict(ignored),
            quarantined=dict(quarantined),
            unmatched=dict(unmatched),
            until=max((part.until for part in parts if part.until is not None), default=None),
        )

    def besides(self, other: QueryLog) -> QueryLog:
        """This log without the queries that another one holds, too, as a state does that has read it.

        These are those of the same line, however the two have read it, and those that were asked alike at one moment.
        """
        lines = {query.line for query in self.queries if query.source} & {query.line for query in other.queries}
        held = Counter((query.timestamp, query.fingerprint) for query in other.queries if query.line not in lines)
        kept = []
        for query in self.queries:
            if query.line in lines:
                continue
            if held[key := (query.timestamp, query.fingerprint)]:
                held[key] -= 1
            else:
                kept.append(query)
        twice = min(self.used, len(self.queries) - len(kept))
        return replace(self, queries=tuple(kept), lines=self.lines - twice, used=self.used - twice)

    def to_json(self) -> dict[str, Any]:
        """The object ``zorder ingest --json`` prints: N = U + I + Q, the reasons of I and Q, scans by table."""
        return {
            "lines": self.lines,
            "used": self.used,
            "ignored": sum(self.ignored.values()),
            "quarantined": sum(self.quarantined.values()),
            "reasons": {**self.ignored, **self.quarantined},
            "tables": dict(Counter(query.table for query in self.queries)),
            "unmatched": dict(Counter(self.unmatched).most_common(SHOWN)),
        }

    @property
    def read(self) -> str:
        """The tables that its statements read, the most read first, for a sentence."""
        counts = Counter(query.table for query in self.queries)
        counts.update(self.unmatched)
        told = [f"{name} {counted(count, 'time')}" for name, count in counts.most_common(TOLD)]
        if told:
            return "they read " + ", ".join(told)
        return "they read no table" if self.lines else "no statement is logged"

    def of_table(self, names: Sequence[str]) -> tuple[LoggedQuery, ...]:
        """Queries of the table that any of ``names`` calls, compared without case."""
        wanted = {name.lower() for name in names}
        return tuple(query for query in self.queries if query.table.lower() in wanted)


def boxes_of(
    queries: Sequence[LoggedQuery], schema: TableSchema, *, solved: bool = False, told: Told = NOTHING_TOLD
) -> tuple[Boxes, ...]:
    """The ranges that each query asks for (`zorder_pipeline.model.ranges.to_boxes`), told once for equal conditions.

    A log of a hundred thousand lines mostly repeats itself, and to type a literal takes longer than to find it again.
    """
    asked = Asked.alike([query.condition for query in queries])
    each = [to_boxes(query.predicate, schema, query.zone, solved=solved, told=told) for query in asked.each(queries)]
    return tuple(each[place] for place in asked.which)
