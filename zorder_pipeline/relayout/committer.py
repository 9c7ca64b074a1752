"""What replaces the files of a bin: Delta's own transaction, or public API where a session lacks that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .snapshot import TableSnapshot

__all__ = ["Committer", "Replacement", "Written"]


@dataclass(frozen=True)
class Replacement:
    """How the files of a bin are replaced.

    Attributes:
        tags: of each new file, by the number of the partition that writes it; only a transaction can set them.
        columns: what the table's history names as the order of the rows, if it can.
        label: whose commit it is, for the table's history.
        verify: ``counts`` or ``hash``, see `zorder_pipeline.relayout.job.Safety`.
        conf: settings of the session while files are written.
    """

    tags: Sequence[Mapping[str, str]]
    columns: Sequence[str]
    label: str
    verify: str
    conf: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class Written:
    """What a commit did: the version it made, files, bytes and rows of what it replaced and wrote, and a remark."""

    version: int
    files_removed: int
    files_added: int
    bytes_removed: int
    bytes_added: int
    rows: int
    note: str = ""


class Committer(Protocol):
    """One attempt to replace files of a table, in one commit that changes no data."""

    @property
    def current(self) -> TableSnapshot:
        """The table as it is read."""

    @property
    def read_version(self) -> int:
        """The version that is read."""

    def input_rows(self) -> DataFrame:
        """Live rows of the files to replace, with hidden columns that have to be written with them, if any."""

    def replace(self, rows: DataFrame, how: Replacement) -> Written:
        """Write ``rows``, those of `input_rows`, as new files, a partition each, and commit them in place of the old.

        Raises:
            LostRaceError: another writer changed a file that was read; nothing was committed.
            VerificationError: the written rows differ.
            TableError: they could not be written.
        """
