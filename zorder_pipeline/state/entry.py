"""A relayout as the ledger tells of it: what it promised, did and cost, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zorder_pipeline.model.choices import HORIZON_DAYS
from zorder_pipeline.model.lasting import Lasting

__all__ = ["Entry", "entry_of"]


@dataclass(frozen=True)
class Entry:
    """A row of the ledger as the pipeline uses it.

    Attributes:
        version, replaced_version: the newest that it made, and that which it began with; others may have committed in
            between (`zorder_pipeline.pipeline.measuring.comparing.spans_of`).
        committed_at: microseconds since 1970 UTC.
        files: replaced and written.
        credited: share of the plan's promise that this relayout brings: less than 1 where it rewrote a part.
        promised_before, promised_after: share of the rows that queries were promised to read.
        promised_bytes, promised_files: promised to be saved per query.
        bytes_before, files_before: what a query read then, as the promise tells it; 0 where it does not.
        promised_page_bytes, page_bytes_before: the same of readers that skip by pages; None where it does not tell.
        measured_queries: queries that came after it and were checked; 0 when it was not checked yet.
        measured_before, measured_after: share of the rows that those read before its commits and after them.
        measured_bytes, measured_files, measured_per_day: saved per query, and such queries a day; None where unknown.
        measured_page_bytes: saved per query by readers that skip by pages; None where unknown.
        measured_since, measured_until: when the oldest and the newest of those queries were asked, microseconds since
            1970 UTC; None where unknown.
        gate: the gate's figures; empty when it was not asked.
        ended_at: when a RESTORE or another's rewrite undid it, microseconds since 1970 UTC; None while it stands.
        looked_until: version up to which the table's history tells nothing new of that, for it and earlier ones; None
            where nobody noted one.
        run: what its commits have in common in the table's history; None in rows from before that was noted.
        merged: how many of its rows lay by its layout before, by the generation of their files; None where unknown.
    """

    table_id: str
    location: str
    layout_id: str
    version: int
    replaced_version: int
    committed_at: int
    bytes_rewritten: float
    rows: int
    files: int
    columns: int
    additional: int
    predicates: int
    hashed: bool
    cost_expected: float | None
    cost_low: float | None
    cost_high: float | None
    cost_measured: float
    promise_queries: int
    credited: float
    promised_before: float
    promised_after: float
    promised_low: float
    promised_bytes: float
    promised_files: float
    bytes_before: float
    files_before: float
    queries_per_day: float
    log_watermark: int | None
    measured_queries: int
    measured_before: float
    measured_after: float
    measured_bytes: float | None
    measured_files: float
    measured_per_day: float | None
    gate: Mapping[str, Any]
    ended_at: int | None = None
    promised_page_bytes: float | None = None
    page_bytes_before: float | None = None
    measured_page_bytes: float | None = None
    measured_until: int | None = None
    looked_until: int | None = None
    measured_since: int | None = None
    run: str | None = None
    merged: Mapping[int, int] | None = None

    @property
    def key(self) -> dict[str, Any]:
        """Columns of the ledger that tell its row from all others."""
        return {"table_id": self.table_id, "version": self.version, "run": self.run}

    @property
    def promised(self) -> float:
        """Share of the rows that a query was to read less."""
        return self.promised_whole * self.credited

    @property
    def promised_whole(self) -> float:
        """The same if all that the plan was made for had been rewritten."""
        return self.promised_before - self.promised_after if self.promise_queries else 0.0

    @property
    def horizon_days(self) -> float:
        """Days for which its saving is credited: those that the gate decided it with."""
        return float(self.gate.get("assumptions", {}).get("horizon_days", HORIZON_DAYS))

    @property
    def lasting(self) -> Lasting | None:
        """Share of the plan's promise that it was foretold to bring, day by day; None where no query was to move on."""
        return Lasting.promised(self.gate.get("assumptions", {}).get("lasting"), self.credited)

    def credited_over(self, days: float, since: float = 0.0) -> float:
        """Share of the plan's promise that it was to bring, on average of so many days.

        Args:
            days: 0 for the logged queries themselves.
            since: the first of the days, from the newest logged query on.
        """
        lasting = self.lasting if days > 0 else None
        return self.credited if lasting is None else lasting.over(days, since=since)


def entry_of(row: Mapping[str, Any]) -> Entry:
    """The entry of a row, whose times are microseconds ``moment`` and ``ended``, beside what of its plan is told."""
    promise = json.loads(row["promise"] or "{}")

    def number(name: str) -> float:
        return float(row[name] or 0.0)

    return Entry(
        table_id=row["table_id"],
        location=row["table_location"],
        layout_id=row["layout_id"],
        version=row["version"],
        replaced_version=row["version"] - 1 if row["replaced_version"] is None else row["replaced_version"],
        committed_at=row["moment"],
        bytes_rewritten=number("bytes_rewritten"),
        rows=row["rows"],
        files=row["files_removed"] + row["files_added"],
        columns=row["columns"],
        additional=row["additional"] or 0,
        predicates=row["predicates"] or 0,
        hashed=bool(row["hashed"]),
        cost_expected=row["cost_expected"],
        cost_low=row["cost_low"],
        cost_high=row["cost_high"],
        cost_measured=row["cost_measured"] or row["seconds"] * row["cores"],
        promise_queries=promise.get("queries", 0),
        credited=1.0 if row["credited"] is None else row["credited"],
        promised_before=row["promised_before"],
        promised_after=row["promised_after"],
        promised_low=row["promised_low"],
        promised_bytes=promise.get("bytes_saved_per_query", 0.0),
        promised_files=promise.get("files_saved_per_query", 0.0),
        bytes_before=promise.get("bytes_before", 0.0),
        files_before=promise.get("files_before", 0.0),
        queries_per_day=promise.get("queries_per_day", 0.0),
        log_watermark=row["log_watermark"],
        measured_queries=row["measured_queries"] or 0,
        measured_before=number("measured_before"),
        measured_after=number("measured_after"),
        measured_bytes=row["measured_bytes_saved"],
        measured_per_day=row["measured_per_day"],
        measured_files=number("measured_files_saved"),
        gate=json.loads(row["gate"] or "{}"),
        ended_at=row["ended"],
        promised_page_bytes=promise.get("page_bytes_saved_per_query"),
        page_bytes_before=promise.get("page_bytes_before"),
        measured_page_bytes=row["measured_page_bytes_saved"],
        measured_until=row["measured_until"],
        looked_until=row["looked_until"],
        measured_since=row["measured_since"],
        run=row["run"],
        merged=None if row["merged"] is None else {int(of): rows for of, rows in json.loads(row["merged"]).items()},
    )
