"""What a first look at a table found: is it worth a layout, and what to do where we may not rewrite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["TableTriage"]


@dataclass(frozen=True)
class TableTriage:
    """One table of ``zorder triage``. Shares are of the table's rows, means over its logged queries.

    Attributes:
        table: name in the log, or as given.
        location: its folder; None when it could not be opened.
        queries: scans of it in the log; ``filtered`` of them compare a column.
        files, rows, bytes: of its newest version.
        read_now: share of the rows that a query reads as the table lies.
        bound: share that no layout can beat: the rows that match, or the smallest file.
        learned: share under a quickly learned layout, on queries asked after those of the search.
        baseline, baseline_read: the best layout a person would pick, and the share it reads.
        columns: columns worth clustering by, the most useful first.
        saved_bytes_per_day: bytes that queries would not read any more, at the rate seen in the log.
        advice: sentences, the most important one first.
        statements: SQL for platforms on which we may not rewrite.
        problem: why nothing can be said.
    """

    table: str
    location: str | None = None
    queries: int = 0
    filtered: int = 0
    files: int = 0
    rows: int = 0
    bytes: int = 0
    read_now: float | None = None
    bound: float | None = None
    learned: float | None = None
    baseline: str | None = None
    baseline_read: float | None = None
    columns: tuple[str, ...] = ()
    saved_bytes_per_day: float = 0.0
    advice: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    problem: str | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in vars(self).items()}
