"""What became of the lines of a log, counted: line by line as they are read, and part by part as they were stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from zorder_pipeline.model.workload import LoggedQuery, QueryLog

if TYPE_CHECKING:  # the assets load this module, and need no parser of SQL
    from zorder_pipeline.query_log.statements.sql import Unusable

__all__ = ["Tally"]


class Tally:
    """Counts of lines: all = used + ignored + quarantined.

    Attributes:
        lines: all that were seen.
        used: those with queries.
        ignored, quarantined: the others by reason.
        tables: scans by table.
        unmatched: lines by the table that they read and that is not known.
    """

    def __init__(self) -> None:
        self.lines = self.used = 0
        self.ignored, self.quarantined, self.tables, self.unmatched = (Counter[str]() for _ in range(4))

    @staticmethod
    def of(stored: Iterable[Mapping[str, Any]]) -> Tally:
        """The sum of what `to_json` gave of several."""
        total = Tally()
        for counts in stored:
            total.lines += counts["lines"]
            total.used += counts["used"]
            for name, counter in total._by_name.items():
                counter.update(counts[name])
        return total

    def add(self, found: list[LoggedQuery] | Unusable) -> None:
        """Count a line by its queries, or by the reason why it has none."""
        self.lines += 1
        if isinstance(found, list):
            self.used += 1
            self.tables.update(query.table for query in found)
        else:
            (self.ignored if found.ignored else self.quarantined)[found.reason] += 1
            self.unmatched.update(found.tables)

    def log(self, queries: tuple[LoggedQuery, ...] = ()) -> QueryLog:
        """The log of these counts, with its queries where they are at hand."""
        ignored, quarantined, unmatched = (dict(one) for one in (self.ignored, self.quarantined, self.unmatched))
        return QueryLog(queries, self.lines, self.used, ignored, quarantined, unmatched)

    def to_json(self) -> dict[str, Any]:
        """JSON-ready form."""
        counts: dict[str, Any] = {"lines": self.lines, "used": self.used}
        return counts | {name: dict(counter) for name, counter in self._by_name.items()}

    @property
    def _by_name(self) -> dict[str, Counter[str]]:
        names = ("ignored", "quarantined", "tables", "unmatched")
        return {name: getattr(self, name) for name in names}
