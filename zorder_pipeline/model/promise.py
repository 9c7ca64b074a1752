"""What a layout promises its table's queries."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Promise"]


@dataclass(frozen=True)
class Promise:
    """What the layout was measured to do on the sample, for queries it was not chosen by.

    Attributes:
        queries: queries in the promise block; 0 when there was no log (a layout given by hand).
        statements: different ones among them, by what they filter; 0 in plans of older versions.
        before: mean share of rows they read as the table lies now, 0 to 1.
        after: mean share under the layout, by the same estimator.
        low, high: 95% bootstrap interval of the saved share (before - after).
        bytes_saved_per_query: mean bytes of the columns a query reads that it no longer has to read.
        bytes_low, bytes_high: its 95% bootstrap interval.
        bytes_before: mean bytes of those columns that a query reads now.
        files_before: mean number of files that a query opens now; files_saved_per_query of them it no longer has to,
            with files_low, files_high as 95% bootstrap interval.
        groups_before, groups_after: mean share of rows in the row groups that a query reads, 0 to 1.
        page_bytes_before, page_bytes_saved_per_query, page_bytes_low, page_bytes_high: as those of bytes, of readers
            that skip Parquet's pages by their index, too; None in plans of older versions.
        enriched_bytes_per_query, enriched_files_per_query: what only readers through `reading/` save on top.
        enriched_bytes_low, enriched_bytes_high, enriched_files_low, enriched_files_high: 95% bootstrap intervals of all
            that these readers save, what others save included, as the same queries tell both; None where they save
            nothing on top, and in plans of older versions.
        enriched_page_bytes_per_query, enriched_page_bytes_low, enriched_page_bytes_high: as those of bytes, of such
            readers that skip pages, too; None where pages are not known, either.
        queries_per_day: rate at which such queries arrive, as observed in the log, or as configured.
        rate_source: ``observed``, ``configured`` or ``assumed``.
    """

    queries: int = 0
    before: float = 1.0
    after: float = 1.0
    low: float = 0.0
    high: float = 0.0
    bytes_saved_per_query: float = 0.0
    queries_per_day: float = 0.0
    rate_source: str = "assumed"
    bytes_low: float = 0.0
    bytes_high: float = 0.0
    bytes_before: float = 0.0
    files_before: float = 0.0
    files_saved_per_query: float = 0.0
    files_low: float = 0.0
    files_high: float = 0.0
    groups_before: float = 1.0
    groups_after: float = 1.0
    enriched_bytes_per_query: float = 0.0
    enriched_files_per_query: float = 0.0
    page_bytes_before: float | None = None
    page_bytes_saved_per_query: float | None = None
    page_bytes_low: float | None = None
    page_bytes_high: float | None = None
    statements: int = 0
    enriched_bytes_low: float | None = None
    enriched_bytes_high: float | None = None
    enriched_files_low: float | None = None
    enriched_files_high: float | None = None
    enriched_page_bytes_per_query: float | None = None
    enriched_page_bytes_low: float | None = None
    enriched_page_bytes_high: float | None = None

    @property
    def proven_on(self) -> int:
        """Different queries that it was proved on."""
        return self.statements or self.queries
