"""What the commands report: plain data with the JSON form that scripts rely on (design, section 4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["ApplyResult", "Evaluation", "StatisticsResult"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Evaluation:
    """What a log's queries read of a table as it lies, from its own file statistics and Parquet footers.

    Attributes:
        queries: queries evaluated, those without any usable predicate included.
        files, rows: of the table.
        files_per_query, rows_per_query, bytes_per_query: read by each query, shape (queries,).
        matched_per_query: rows that match each query's extracted predicate, shape (queries,); None when not counted.
        row_groups_read_fraction: mean share of row groups a query reads; None when footers could not be read.
        unusable: statements of the log that could not be used.
        version: table version.
        partitions_unknown: queries that choose partitions by a condition that is not understood, and count as reading
            all of them.
    """

    queries: int
    files: int
    rows: int
    files_per_query: Floats
    rows_per_query: Floats
    bytes_per_query: Floats
    matched_per_query: Floats | None
    row_groups_read_fraction: float | None
    unusable: int
    version: int
    partitions_unknown: int = 0

    @property
    def rows_read_fraction(self) -> float:
        """Mean share of the table's rows a query reads."""
        return _mean(self.rows_per_query) / self.rows if self.rows else 0.0

    @property
    def matched_fraction(self) -> float | None:
        """Mean share of the table's rows that match a query; None when not counted."""
        if self.matched_per_query is None:
            return None
        return _mean(self.matched_per_query) / self.rows if self.rows else 0.0

    def to_json(self) -> dict[str, Any]:
        """The object ``zorder evaluate --json`` prints."""
        return {
            "queries": self.queries,
            "files": self.files,
            "rows": self.rows,
            "files_read_mean": _mean(self.files_per_query),
            "rows_read_mean": _mean(self.rows_per_query),
            "rows_read_fraction": self.rows_read_fraction,
            "row_groups_read_fraction": self.row_groups_read_fraction,
            "bytes_read_mean": _mean(self.bytes_per_query),
            "matched_fraction": self.matched_fraction,
            "unusable": self.unusable,
            "partitions_unknown": self.partitions_unknown,
            "version": self.version,
        }


@dataclass(frozen=True)
class ApplyResult:
    """What ``apply`` did.

    Attributes:
        version: table version afterwards.
        decision: ``applied``, ``declined``, ``postponed`` or ``nothing_to_do``.
        reasons: sentences, the deciding one first.
        files_removed, files_added: files the rewrite replaced and wrote.
        bytes_rewritten: bytes of the replaced files.
        rows: rows rewritten.
        skipped_files: files left as they were.
        dry_run: nothing was written; the figures say what would be.
        gate: the gate's figures, when it was asked.
    """

    version: int
    decision: str
    reasons: tuple[str, ...]
    files_removed: int = 0
    files_added: int = 0
    bytes_rewritten: int = 0
    rows: int = 0
    skipped_files: int = 0
    seconds: float = 0.0
    dry_run: bool = False
    gate: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The object ``zorder apply --json`` prints."""
        return {**vars(self), "reasons": list(self.reasons)}


@dataclass(frozen=True)
class StatisticsResult:
    """What gathering statistics of files did.

    Attributes:
        table: location of the table.
        version: table version whose files were looked at.
        features: columns, expressions and predicates that statistics are kept of.
        files: files that were read for it.
        rows_added: statistics added, one per file and feature.
        files_forgotten: files that are gone, whose statistics were deleted.
        seconds: time taken.
    """

    table: str
    version: int
    features: tuple[str, ...]
    files: int
    rows_added: int
    files_forgotten: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """The object ``zorder stats --json`` prints."""
        return {**vars(self), "features": list(self.features)}


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0
