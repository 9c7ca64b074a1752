"""The data tables as others write them, read from their Delta logs by delta-rs: no Spark, so sensors can look often."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from zorder_pipeline.config import TableConfig
from zorder_pipeline.errors import TableError
from zorder_pipeline.model.partition_key import partition_key, partition_values
from zorder_pipeline.model.places import local_path
from zorder_pipeline.relayout.history import MAINTENANCE, bytes_added, labelled_by_us, run_of

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["NEVER", "Relaid", "Upstream", "has_partitions", "look", "missing_partitions"]

RECENT = 60
"""Newest commits that are always looked at."""
FURTHER, FURTHEST = 1000, 10_000
"""Commits looked at by one who wants all and has not looked before, and by anyone at most."""
LATEST = -2
"""Says to `look` that the last few commits do."""
AS_WRITTEN = ("string", "date", "byte", "short", "integer", "long")
"""Types of partition columns whose values delta-rs names as Spark does."""
TOLD = re.compile(r"\d{20}\.(json|checkpoint\.([^.]+\.){0,2}(json|parquet))")
"""Files of a Delta log in which a table's metadata can stand: commits, and checkpoints of any form."""


@dataclass(frozen=True)
class Relaid:
    """Our newest relayout or compaction of a table; zeros where there is none.

    Attributes:
        at: when its last bin was committed, milliseconds since 1970.
        read_at: when the version was committed that it began with: what came later is new, but for its own files.
        bytes: of the files that it wrote.
    """

    at: int = 0
    read_at: int = 0
    bytes: int = 0


NEVER = Relaid()


@dataclass(frozen=True)
class Upstream:
    """A table as it is now.

    Attributes:
        table_id: another one when it was dropped and made anew.
        version: its newest version.
        data_version: its newest version that is neither a relayout or compaction of ours nor mere maintenance, such as
            a VACUUM: what a layout was learned from is out of date when this one changes, not when the layout itself is
            written.
        relaid: our newest relayout or compaction among the commits looked at.
        partitions: keys of its partitions, in order; empty for a table without.
        sizes, written_at: bytes and time (milliseconds since 1970) of its files, shape (files,).
    """

    table_id: str
    version: int
    data_version: int
    relaid: Relaid
    partitions: tuple[str, ...]
    sizes: np.ndarray
    written_at: np.ndarray

    @property
    def state(self) -> str:
        """What Dagster takes for its version: the table and that of its data."""
        return f"{self.table_id[:8]}-{self.data_version}"

    def new_share(self, since: int) -> float:
        """Share of the table's bytes that others wrote after ``since``, milliseconds since 1970.

        delta-rs does not tell which files are ours: of those written while our newest relayout ran its bytes are not.
        """
        total, relaid = float(self.sizes.sum()), self.relaid
        later = self.written_at > max(since, relaid.at)
        meanwhile = (self.written_at > max(since, relaid.read_at)) & (self.written_at <= relaid.at)
        others = max(0.0, float(self.sizes[meanwhile].sum()) - relaid.bytes)
        return (float(self.sizes[later].sum()) + others) / total if total else 0.0


def look(table: TableConfig, seen: int = LATEST) -> Upstream:
    """Read a table's Delta log.

    Args:
        seen: version at which the table was looked at before, -1 if never: all commits since are looked at.

    Raises:
        TableError: it is known by its catalog name only, or delta-rs cannot read it.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    if table.location is None:
        raise TableError(f"{table.name} is known by its catalog name only; give its location to have it watched")
    try:
        found = DeltaTable(table.location)
        made = found.metadata()
        history = _history(found, seen)
        partitions = _partitions(found)
        files = pa.table(found.get_add_actions())
    except (DeltaError, OSError) as error:
        reason = (str(error).splitlines() or ["unknown"])[0]
        raise TableError(
            f"delta-rs cannot read {table.location} ({reason}); the nightly run, which uses Spark, checks it"
        ) from error
    ours = [commit for commit in history if labelled_by_us(commit.get("userMetadata"))]
    versions = [int(commit["version"]) for commit in history]  # none where commits do not say what they did
    newest = next((int(commit["version"]) for commit in history if _changed_data(commit)), min(versions, default=None))
    return Upstream(
        table_id=str(made.id),
        version=found.version(),
        data_version=found.version() if newest is None else newest,
        relaid=_relaid(history, ours),
        partitions=partitions,
        sizes=np.asarray(files["size_bytes"].to_pylist(), dtype=np.float64),
        written_at=np.asarray(files["modification_time"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist()),
    )


def _relaid(history: Sequence[Mapping[str, Any]], ours: Sequence[Mapping[str, Any]]) -> Relaid:
    """Our newest relayout, all of its bins; of one that does not tell what it read and wrote, when it was committed.

    Args:
        history: commits, newest first.
        ours: those of them that are ours.
    """
    if not ours:
        return NEVER
    at, bins = _time_of(ours[0]), _bins(ours)
    read = [int(version) for commit in bins if (version := commit.get("readVersion")) is not None]
    written = [size for commit in bins if (size := bytes_added(commit.get("operationMetrics"))) is not None]
    if min(len(read), len(written)) < len(bins):
        return Relaid(at, at)
    read_at = next((_time_of(commit) for commit in history if int(commit["version"]) <= min(read)), at)
    return Relaid(at, read_at, sum(written))


def _time_of(commit: Mapping[str, Any]) -> int:
    return int(commit.get("timestamp") or 0)


def _partitions(found: DeltaTable) -> tuple[str, ...]:
    """Keys of a table's partitions, in order; the null of what is no text may be written as the empty text."""
    columns = found.metadata().partition_columns
    if not columns:
        return ()
    texts = {field.name for field in found.schema().fields if getattr(field.type, "type", "") in ("string", "binary")}
    told = (
        [part[name] if name in texts or part[name] != "" else None for name in columns] for part in found.partitions()
    )
    return tuple(sorted({partition_key(columns, values) for values in told}))


def _history(found: DeltaTable, seen: int) -> list[dict[str, Any]]:
    """The newest commits, newest first: those since ``seen``, one that changed data, what our newest relayout read."""
    since = {LATEST: 0, -1: FURTHER}.get(seen, found.version() - seen)
    limit = min(FURTHEST, max(RECENT, since))
    while True:
        commits = sorted(found.history(limit), key=lambda commit: -int(commit["version"]))
        enough = any(map(_changed_data, commits)) and _reach_back(commits)
        if len(commits) < limit or limit == FURTHEST or enough:
            return commits
        limit = min(FURTHEST, limit * 8)  # a relayout may have come in many commits


def _reach_back(commits: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the version is among the commits that our newest relayout among them began with."""
    ours = [commit for commit in commits if labelled_by_us(commit.get("userMetadata"))]
    read = [int(commit["readVersion"]) for commit in _bins(ours) if commit.get("readVersion") is not None]
    return not read or int(commits[-1]["version"]) <= min(read)


def _bins(ours: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The commits of the newest relayout among ours, newest first."""
    return [commit for commit in ours if run_of(commit) == run_of(ours[0])]


def _changed_data(commit: Mapping[str, Any]) -> bool:
    return not labelled_by_us(commit.get("userMetadata")) and commit.get("operation") not in MAINTENANCE


def missing_partitions(table: TableConfig, wanted: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Which of the ``wanted`` keys are no partition of a table, and in words which ones there are.

    Nothing is said to be missing where only Spark can tell, or where delta-rs may name the values otherwise.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    if table.location is None:
        return (), ""
    try:
        found = DeltaTable(table.location)
        columns, keys = found.metadata().partition_columns, _partitions(found)
        types = {field.name: str(getattr(field.type, "type", "")) for field in found.schema().fields}
    except (DeltaError, OSError):
        return (), ""  # Spark says what is wrong with it, or reads what delta-rs cannot
    if not columns or any(types[name] not in AS_WRITTEN for name in columns):
        return (), ""
    there = {partition_values(key, columns) for key in keys}

    def missing(key: str) -> bool:
        try:
            return partition_values(key, columns) not in there
        except TableError:  # it is of another form
            return True

    form = keys[0] if keys else "/".join(f"{name}=..." for name in columns)
    return tuple(key for key in wanted if missing(key)), f"it has {len(keys):,}, e.g. {form}"


def has_partitions(table: TableConfig) -> bool:
    """Whether Dagster shows the table's partitions: as configured, else whether a local table has any.

    Definitions are loaded often and for many tables, so no table is opened for it, as delta-rs reads the names of all
    of its files for that: only what its log says of the table itself is read.
    """
    if table.partitions is not None:
        return table.partitions
    if table.location is None or (local := local_path(table.location)) is None:
        return False
    return bool(_newest_metadata(Path(local) / "_delta_log").get("partitionColumns"))


def _newest_metadata(log: Path) -> Mapping[str, Any]:
    """What a Delta log says of its table, which a commit does that changes it, and each checkpoint; {} without any."""
    try:
        names = [name for name in os.listdir(log) if TOLD.fullmatch(name)]
    except OSError:
        return {}  # no such table yet
    for name in sorted(names, reverse=True):  # of a version the commit comes before the checkpoint
        try:
            if (found := _metadata_in(log / name)) is not None:
                return found
        except (OSError, ValueError):  # removed meanwhile, or not whole: an earlier one tells
            continue
    return {}


def _metadata_in(file: Path) -> Mapping[str, Any] | None:
    """The metadata in a commit or a checkpoint; None without any."""
    if file.suffix == ".parquet":
        from pyarrow import parquet

        with parquet.ParquetFile(file) as actions:
            columns = actions.read(columns=["metaData"]).columns
        rows = [row for column in columns for row in column.drop_null().to_pylist()]
    else:
        with file.open(encoding="utf-8") as lines:
            rows = [json.loads(line).get("metaData") for line in lines if '"metaData"' in line]
    return next((row for row in rows if row), None)
