"""What a rewrite is asked to do, how carefully, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.progress import Progress, silent
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.spark_sql import column_sql

from .committer import Committer
from .file_list import FileList
from .snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["BIN_BYTES", "ROW_GROUP", "Arranged", "Job", "RelayoutResult", "Safety", "by_partition"]

BIN_BYTES = 100 << 30
"""Bytes of input that are committed at a time, as far as whole partitions allow."""
ROW_GROUP = 128 << 20
"""Bytes of a row group where nobody sets its size."""


@dataclass(frozen=True)
class Arranged:
    """Rows on their way to new files.

    Attributes:
        rows: the input rows, with the column `FILE` (from 0 on) and whatever ``by`` names.
        files: number of files.
        by: SQL expressions that rows are sorted by inside a file.
        tags: AddFile tags per file.
    """

    rows: DataFrame
    files: int
    by: Sequence[str]
    tags: Sequence[Mapping[str, str]]


def by_partition(rows: DataFrame, partitions: Sequence[str]) -> list[str]:
    """SQL expressions that rows are sorted by so that those of one partition lie together, as Delta writes them.

    Rows that are not sorted by the partition columns first are sorted anew by them, which keeps no other order.
    """
    return [text for name in partitions for text in _in_order_of(name, rows)]


def _in_order_of(name: str, rows: DataFrame) -> list[str]:
    """0.0 and -0.0 are two partitions, and sort as equal."""
    column = column_sql((name,))
    floating = rows.schema[name].dataType.simpleString() in ("float", "double")
    return [column, f"CAST({column} AS STRING)"] if floating else [column]


class Job(Protocol):
    """What is rewritten and how: by a layout (`clustering`), or as it lies into larger files (`compaction`)."""

    @property
    def label(self) -> str:
        """Whose commit it is, for the table's history."""

    @property
    def layout_id(self) -> str:
        """The layout that rows are laid out by; "" where they are only merged."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the layout, for the table's history."""

    def refuse_unless_fits(self, schema: TableSchema, *, changed: bool) -> None:
        """Check that what the table has become has the columns that rows are ordered by.

        Args:
            changed: its schema is not the one that was checked last.

        Raises:
            PlanError: it has not.
        """

    def select(self, snapshot: TableSnapshot, where: str | None) -> npt.NDArray[np.int64]:
        """Indices of the files to rewrite, where ``where`` is a condition on partition columns."""

    def expected_files(self, snapshot: TableSnapshot, chosen: npt.NDArray[np.int64]) -> int:
        """How many files the chosen ones will become, about."""

    def arrange(
        self, committer: Committer, files: FileList, chosen: npt.NDArray[np.int64], rows: DataFrame
    ) -> Arranged:
        """Give each of ``rows``, those of the ``chosen`` ones of ``files``, its new file."""


@dataclass(frozen=True)
class RelayoutResult:
    """What a relayout did (or, in a dry run, would do).

    Attributes:
        version: table version afterwards.
        files_removed, files_added: files replaced and written.
        bytes_rewritten, bytes_added: bytes of the replaced and of the written files.
        rows: rows rewritten.
        skipped_files: live files left as they were.
        committed: whether a new version was made.
        seconds: time taken.
        run: the word in the table's history that its commits have in common; "" of none.
        held: why it was stopped before its last bin, "" when it was not.
        merged: how many of the rows lay by the layout before, by the generation of their files.
    """

    version: int
    files_removed: int
    files_added: int
    bytes_rewritten: int
    bytes_added: int
    rows: int
    skipped_files: int
    committed: bool
    seconds: float
    run: str = ""
    held: str = ""
    merged: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Safety:
    """How a rewrite is checked, cut into commits, and stopped.

    Attributes:
        verify: ``counts`` compares rows read and written; ``hash`` also a hash of their content, read back.
        row_group_bytes: size of row groups; None leaves it to the session and the table.
        bloom_filters: columns of which each row group gets a Bloom filter.
        bin_bytes: see `zorder_pipeline.relayout.select.bins_of`.
        hold: asked before each bin; a sentence stops the run there, and what was committed stays.
        progress: is told what is being done.
        begun: is told before the first bin what the run's commits will have in common.
        kept: is told after each bin but the last what it has committed so far, as it may not live to tell.
    """

    verify: str = "counts"
    row_group_bytes: int | None = None
    bloom_filters: Sequence[str] = ()
    bin_bytes: int = BIN_BYTES
    hold: Callable[[], str | None] | None = None
    progress: Progress = field(default=silent)
    begun: Callable[[str], None] = field(default=silent)
    kept: Callable[[RelayoutResult], None] = field(default=lambda _: None)
