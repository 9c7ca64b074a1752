"""What a table's own history says about relayouts: which were ours, and whether another job undoes them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from zorder_pipeline.state.delta_tables import sql_name

from .snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

__all__ = ["COMPACTED", "LOOKED_AT", "MAINTENANCE", "METRICS", "OURS", "STILL", "USER_METADATA", "TakenBack"]
__all__ += [
    "bytes_added",
    "bytes_removed",
    "commits_after",
    "history_of",
    "is_ours",
    "labelled_by_us",
    "labelling",
    "layout_given",
]
__all__ += ["layout_written", "made_as", "moment_of", "newest_relayout", "operation_of", "restored", "rewrote"]
__all__ += ["run_of", "spans", "taken_back", "to_version", "told_with", "undone_by", "versions_of"]

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
METRICS = {"spark.databricks.delta.history.metricsEnabled": "true"}
"""The history tells what our commits wrote, whatever the session keeps of its own: it is credited and learned from."""

labelling = threading.Lock()
"""Two commits of a session at once would take each other's label for the session's own."""

OURS = "zorder layout "
"""What the user metadata of our commits begins with; the layout's id and a word of the run follow, by public API one of
the commit, too."""
COMPACTED = "zorder compaction"
"""The same of our compactions, which keep the layouts' files in their order; a word of the run follows."""
MAINTENANCE = ("VACUUM START", "VACUUM END", "COMPUTE STATS")
"""Operations that change neither data nor layout."""
LOOKED_AT = 60
"""Newest commits that are looked at where the state does not say where to begin."""
ZONES = timedelta(hours=26)
"""How far the clocks of two places are apart at most."""
LONG = 1_000
"""Commits that take so long to be read that what the state tells is taken instead, where it does."""
TIMES = 2
"""Relayouts that another job must have undone before it is named."""
REWRITES = ("DELETE", "MERGE", "OPTIMIZE", "REORG", "UPDATE")
"""Operations that may take files out of a table."""
ADDED_BYTES = ("numAddedBytes", "numOutputBytes")
"""Metrics of what a rewrite of ours wrote, by Delta's transaction and by public API."""
REMOVED_BYTES = ("numRemovedBytes", "numTargetBytesRemoved")
REMOVED = (
    *("numRemovedFiles", "numTargetFilesRemoved", "num_removed_files", "numFilesRemoved"),
    *("numDeletionVectorsAdded", "numTargetDeletionVectorsAdded"),
)
"""Metrics of what a commit took out of a table, by Delta and by delta-rs."""
STILL = 0.5
"""Share of the rows of a relayout that must still lie by its layout for it not to be undone."""


def history_of(snapshot: TableSnapshot, limit: int | None = None) -> list[Row]:
    """The table's commits, newest first; the ``limit`` newest ones."""
    newest = "" if limit is None else f" LIMIT {limit}"
    found = snapshot.spark.sql(f"DESCRIBE HISTORY {sql_name(snapshot.location)}{newest}").collect()
    return sorted(found, key=lambda row: -int(row["version"]))


def commits_after(snapshot: TableSnapshot, version: int) -> list[Row]:
    """The table's commits after a version up to that of the snapshot, newest first; all with version -1."""
    limit = snapshot.version - version
    if version < 0:  # by a limit Delta would try to open each entry since version 0, also those that are gone: millions
        found = history_of(snapshot)
    else:
        found = history_of(snapshot, limit) if limit > 0 else []
        if found and (late := int(found[0]["version"]) - snapshot.version) > 0:  # they came since it was opened
            found = history_of(snapshot, limit + 2 * late + LOOKED_AT)
    return [row for row in found if version < int(row["version"]) <= snapshot.version]


def operation_of(row: Row) -> str:
    """What a commit did; "" where it does not say so, as Delta's protocol leaves that to the writer."""
    return row["operation"] or ""


def told_with(spark: SparkSession, label: str) -> str:
    """The user metadata of a commit of ours: its label, by which we know it again, and after it the session's own."""
    return f"{label} {spark.conf.get(USER_METADATA, None) or ''}".rstrip()


def made_as(row: Row, label: str) -> bool:
    """Whether a commit has this label."""
    return f"{row['userMetadata'] or ''} ".startswith(f"{label} ")


def is_ours(row: Row) -> bool:
    """Whether a commit is a relayout or a compaction of ours."""
    return labelled_by_us(row["userMetadata"])


def labelled_by_us(metadata: object) -> bool:
    """The same by a commit's user metadata, whoever read them."""
    return str(metadata or "").startswith((OURS, COMPACTED))


def layout_written(row: Row) -> str:
    """Id of the layout that a commit by public API gave its files; "" for any other commit."""
    layout, own = _label(row)
    return layout if row["operation"] == "WRITE" and own and is_ours(row) else ""


def layout_given(row: Row) -> str:
    """Id of the layout that a rewrite of ours gave its files; "" for any other commit, and where files were merged."""
    return _label(row)[0] if rewrote(row) and str(row["userMetadata"]).startswith(OURS) else ""


def _label(row: Row) -> tuple[str, str]:
    """What the label of a relayout of ours tells: its layout, and what follows it."""
    layout, _, own = str(row["userMetadata"] or "").removeprefix(OURS).partition(" ")
    return layout, own


def rewrote(row: Row) -> bool:
    """Whether a commit is a rewrite of ours: the session may have set our label for another's commit, too."""
    return is_ours(row) and (row["operation"] == "OPTIMIZE" or bool(layout_written(row)))


def bytes_removed(row: Row) -> float:
    """Bytes of the files that a commit took out of the table; infinite where it may have, and does not say how many.

    Rows that a deletion vector hides are taken out, too.
    """
    told, asked = row["operationMetrics"] or {}, row["operationParameters"] or {}
    if size := max(float(told.get(name) or 0) for name in REMOVED_BYTES):
        return size
    some = any(float(told.get(name) or 0) > 0 for name in REMOVED)
    may = operation_of(row) in ("", *REWRITES) or asked.get("mode") == "Overwrite"
    return math.inf if some or (not told and may) else 0


def bytes_added(metrics: Mapping[str, Any] | None) -> int | None:
    """Bytes of the files that a rewrite of ours wrote, by its commit's metrics; None where they do not say so."""
    told = metrics or {}
    found = next((told[name] for name in ADDED_BYTES if name in told), None)
    return None if found is None else int(found)


def run_of(row: Row | Mapping[str, Any]) -> str:
    """What the bins of one relayout have in common in the history: their label, without a commit's own word."""
    words = str(row["userMetadata"] or "").split(" ")
    return " ".join(words[: 4 if words[1:2] == ["layout"] else 3])


def versions_of(commits: Sequence[Row], run: str | None, until: int) -> list[int]:
    """Versions up to ``until`` that one relayout made, one for each of its bins; none where its run is not known."""
    return [int(row["version"]) for row in commits if int(row["version"]) <= until and run_of(row) == run]


def spans(versions: Sequence[int]) -> list[tuple[int, int]]:
    """The versions before and after some commits, of those between which nobody else committed together.

    >>> spans([12, 8, 7])
    [(6, 8), (11, 12)]
    """
    made = set(versions)
    first, last = ([v for v in sorted(made) if v + beside not in made] for beside in (-1, 1))
    return [(begin - 1, end) for begin, end in zip(first, last, strict=True)]


def _bytes_laid_out(row: Row) -> int:
    """Bytes that a commit wrote in a layout of ours, 0 where it does not say so or merged files alone."""
    laid_out = str(row["userMetadata"] or "").startswith(OURS)
    return (bytes_added(row["operationMetrics"]) or 0) if laid_out else 0


@dataclass(frozen=True)
class TakenBack:
    """A RESTORE that took our newest relayout back.

    Attributes:
        relaid, version: versions of the relayout and of the RESTORE.
        moment: of the RESTORE, microseconds since 1970 UTC.
        who: did it, as far as the history tells.
    """

    relaid: int
    version: int
    moment: int
    who: str

    @property
    def why(self) -> str:
        """What that means, in words."""
        return (
            f"version {self.version} (RESTORE by {self.who}) took our relayout of version {self.relaid} back, so "
            "nothing is rewritten until a person says so"
        )


def restored(row: Row, commits: Sequence[Row], apart: timedelta = timedelta()) -> int | None:
    """The version that a RESTORE brought back; None for another commit, and where that cannot be told.

    Args:
        commits: the table's history, for a RESTORE to a moment; of one before the first of these, the version before.
        apart: how much earlier the moment may be than it reads here: it is told in the time zone of who did it.
    """
    if row["operation"] != "RESTORE":
        return None
    if (number := to_version(row)) is not None:
        return number
    asked = row["operationParameters"] or {}
    try:
        moment = datetime.fromisoformat(asked.get("timestamp") or "").replace(tzinfo=None) - apart
    except ValueError:
        return None
    before = min(int(one["version"]) for one in commits) - 1
    return max((int(one["version"]) for one in commits if one["timestamp"] <= moment), default=before)


def to_version(row: Row) -> int | None:
    """The version that a RESTORE was told by its number; None for one to a moment, and for another commit."""
    told = str((row["operationParameters"] or {}).get("version") or "")
    return int(told) if row["operation"] == "RESTORE" and told.isdigit() else None


def moment_of(row: Row) -> int:
    """When a commit was made, microseconds since 1970 UTC."""
    return int(row["timestamp"].timestamp() * 1e6)


def newest_relayout(commits: Sequence[Row]) -> list[int]:
    """Versions that our newest relayout made, one for each of its bins, newest first; none without one."""
    newest = next((row for row in commits if rewrote(row)), None)
    if newest is None:
        return []
    return [int(row["version"]) for row in commits if rewrote(row) and run_of(row) == run_of(newest)]


def taken_back(commits: Sequence[Row], gone_anyway: bool = False) -> TakenBack | None:
    """The RESTORE by which our newest relayout is gone; None when it stands, or there was none.

    Args:
        commits: the table's history, newest first, from before that relayout on.
        gone_anyway: no file of it is left, so that a RESTORE to a moment counts that some time zone has before it,
            unless another commit may have taken the files out.
    """
    apart = ZONES if gone_anyway else timedelta()
    bins = newest_relayout(commits)
    if not bins:
        return None
    stands: dict[int, bool] = {}  # a RESTORE may itself be taken back
    gone: Row | None = None
    for row in reversed(commits):
        version, to = int(row["version"]), restored(row, commits, apart)
        if version <= bins[0]:
            continue
        if apart and to is None and bytes_removed(row):
            apart = timedelta()
        if to is not None:
            still = stands.get(to, to >= bins[-1])
            gone = None if still else gone or row
        stands[version] = gone is None
    if gone is None:
        return None
    who = gone["userName"] or gone["engineInfo"] or "somebody"
    return TakenBack(bins[0], int(gone["version"]), moment_of(gone), who)


def undone_by(snapshot: TableSnapshot, known: Callable[[], tuple[int | None, int]] = lambda: (None, 0)) -> str | None:
    """A sentence that names the job which keeps undoing our layouts, or None.

    That is: at least twice another OPTIMIZE (auto-compaction is one) came after a relayout of ours, and less than half
    of what our largest wrote lies by one now, in bytes: of rows the history of an OPTIMIZE tells nothing. Answering
    each with a rewrite would go on for ever.

    Args:
        known: a version from which on the history is looked at, besides the newest commits, which may all be of one
            hour where a stream writes; None where nobody knows one. And rows that the largest relayout since then
            wrote: where half of them lie by one, a long history is not looked at. Asked only where the history is.
    """
    files = snapshot.files()
    ours, rows = int(files.rows[~files.lies_by("")].sum()), int(files.rows.sum())
    if snapshot.version < 2 * TIMES or ours >= STILL * rows:
        return None  # its history, which takes a job, need not be asked
    undone: list[Row] = []
    relaid = False
    written: dict[str, int] = {}
    first, largest = known()
    newer = 0 if first is None else snapshot.version - first + 1
    if newer > LONG and largest and ours >= STILL * min(rows, largest):
        return None
    for row in reversed(history_of(snapshot, max(LOOKED_AT, newer))):
        if is_ours(row):
            relaid = relaid or bool(layout_given(row))  # merging files gives none that could be undone
            written[run_of(row)] = written.get(run_of(row), 0) + _bytes_laid_out(row)
        elif row["operation"] == "OPTIMIZE" and relaid:
            undone.append(row)
            relaid = False
    lying, size = int(files.bytes[~files.lies_by("")].sum()), int(files.bytes.sum())
    if len(undone) < TIMES or lying >= STILL * min(size, max(written.values()) or size):
        return None
    last = undone[-1]
    automatic = (last["operationParameters"] or {}).get("auto") == "true"
    who = "auto-compaction" if automatic else f"OPTIMIZE of {last['userName'] or last['engineInfo'] or 'another job'}"
    versions = ", ".join(str(row["version"]) for row in undone[-3:])
    return (
        f"another job keeps undoing the layout: {who} rewrote its files at versions {versions}; stop that job or "
        "leave the table to it (--force relays it all the same)"
    )
