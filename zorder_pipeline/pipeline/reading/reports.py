"""What scans and statements read of their tables, and which statistic excluded the rest: for people and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from zorder_pipeline.model.predicate import Or
from zorder_pipeline.model.wording import counted
from zorder_pipeline.reading.prune import Excluded
from zorder_pipeline.relayout.snapshot import TableSnapshot

from .choosing import Chosen, Reading

__all__ = ["RelationReport", "StatementReport", "of_reading", "of_relation", "unread"]

_WORDS = {
    "partition": "the partition column",
    "delta": "Delta's min/max of",
    "column": "min/max and nulls of",
    "expression": "min/max of the expression",
    "bloom": "the Bloom filter of",
    "predicate": "the truth of the predicate",
    "unsure": "bounds that Delta alone takes for sure, of",
}


def _lines(report: RelationReport) -> list[str]:
    """What is read, which statistic excluded the rest, and by what it was asked."""
    read = f"{counted(report.files, 'file')}, {counted(report.rows, 'row')}"
    if report.files_read is not None:
        read = f"{report.files_read:,} of {counted(report.files, 'file')}"
        read += f", {report.rows_read:,} of {counted(report.rows, 'row')}"
        read += f" (Delta alone: {counted(report.delta_files_read or 0, 'file')})"
    lines = [f"{report.table} at version {report.version}: {read}"]
    lines += [
        f"  {counted(item.files, 'file')} excluded by {_WORDS[item.kind]} {item.name}" for item in report.excluded
    ]
    return lines if report.asked is None else [*lines, f"  asked: {report.asked}"]


@dataclass(frozen=True)
class RelationReport:
    """What a scan or a statement reads of a table, and why not more, or why nobody knows.

    Attributes:
        table: location of the table.
        version: the version that is read.
        files, rows, bytes: of that version.
        files_read, rows_read, bytes_read: of the files that are read; None where Delta's own selection decides about
            them by conditions that are not known.
        delta_files_read: files that Delta's own selection would read; None where that is not known.
        excluded: files by the first statistic that excluded them.
        asked: the conditions by which files were chosen, in SQL; None where none are known.
        left_to_delta: why Delta's own selection decides what is read; None where it does not.
    """

    table: str
    version: int
    files: int
    rows: int
    bytes: int
    files_read: int | None
    rows_read: int | None
    bytes_read: int | None
    delta_files_read: int | None
    excluded: tuple[Excluded, ...]
    asked: str | None
    left_to_delta: str | None

    def __str__(self) -> str:
        left = [f"  left to Delta: {self.left_to_delta}"] if self.left_to_delta is not None else []
        return "\n".join([*_lines(self), *left])

    def to_json(self) -> dict[str, Any]:
        """JSON-ready form: the attributes, those of ``excluded`` as an object each."""
        return {**asdict(self), "excluded": [asdict(item) for item in self.excluded]}


@dataclass(frozen=True)
class StatementReport:
    """What `zorder_pipeline.sql` reads of each Delta table of a statement, and why not more.

    Attributes:
        relations: in the order of Spark's plan; a table that is read in two places is there twice, unless both are
            one relation to Spark, as a common table expression is.
        left_to_spark: why the statement is left to Spark as it is, without pinned versions; None where it is not.
    """

    relations: tuple[RelationReport, ...]
    left_to_spark: str | None

    def __str__(self) -> str:
        left = [f"left to Spark: {self.left_to_spark}"] if self.left_to_spark is not None else []
        return "\n".join([*left, *map(str, self.relations)])

    def to_json(self) -> dict[str, Any]:
        """JSON-ready form: the attributes, each relation an object of its own."""
        return {"relations": [each.to_json() for each in self.relations], "left_to_spark": self.left_to_spark}


def of_reading(reading: Reading, unread: Sequence[RelationReport]) -> StatementReport:
    """What a statement is read by.

    Args:
        unread: its tables, should it be left to Spark.
    """
    if reading.left is not None:
        return StatementReport(tuple(unread), reading.left)
    return StatementReport(tuple(map(of_relation, reading.chosen)), None)


def unread(snapshot: TableSnapshot, why: str) -> RelationReport:
    """A table of which it is not known what is read."""
    return RelationReport(**_whole(snapshot), **_nothing_known(), left_to_delta=why)


def of_relation(chosen: Chosen) -> RelationReport:
    """What is read of one table."""
    known, files = chosen.known, chosen.known.snapshot.files()
    if chosen.asked is None:
        return unread(known.snapshot, chosen.why or "")
    told = known.told(chosen.asked)
    there = [known.in_partitions(one, told) for one in chosen.asked]
    deltas = [delta & here for delta, here in zip(chosen.delta, there, strict=True)]
    by_delta = np.logical_or.reduce(deltas)
    mask = by_delta if chosen.mask is None else chosen.mask & np.logical_or.reduce(there)
    excluded = known.tests.excluded_from_all(
        [(known.boxes(one, told), delta) for one, delta in zip(chosen.asked, deltas, strict=True)]
    )
    others = len(files) - int(mask.sum()) - sum(item.files for item in excluded)
    if others > 0:  # what is left to Delta it may leave out by bounds that we do not trust
        excluded += (Excluded("unsure", "its columns", others),)
    asked = dict.fromkeys(chosen.asked)
    return RelationReport(
        **_whole(known.snapshot),
        files_read=int(mask.sum()),
        rows_read=int(files.rows[mask].sum()),
        bytes_read=int(files.bytes[mask].sum()),
        delta_files_read=int(by_delta.sum()),
        excluded=excluded,
        asked=(Or(tuple(asked)) if len(asked) > 1 else chosen.asked[0]).to_sql(),
        left_to_delta=chosen.why,
    )


def _whole(snapshot: TableSnapshot) -> dict[str, Any]:
    files = snapshot.files()
    return {
        "table": snapshot.location,
        "version": snapshot.version,
        "files": len(files),
        "rows": int(files.rows.sum()),
        "bytes": int(files.bytes.sum()),
    }


def _nothing_known() -> dict[str, Any]:
    names = ("files_read", "rows_read", "bytes_read", "delta_files_read", "asked")
    return {**dict.fromkeys(names), "excluded": ()}
