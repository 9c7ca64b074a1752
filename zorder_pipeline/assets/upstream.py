"""The data tables as others write them, read from their Delta logs by delta-rs: no Spark, so sensors can look often."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from zorder_pipeline.config import TableConfig
from zorder_pipeline.errors import TableError
from zorder_pipeline.model.partition_key import partition_key, partition_values
from zorder_pipeline.model.places import local_path
from zorder_pipeline.relayout.history import COMPACTED, OURS

__all__ = ["Upstream", "has_partitions", "look", "missing_partitions"]

LOOKED_AT = 60
"""Commits looked at for the newest that changed data."""
UPKEEP = ("VACUUM START", "VACUUM END")
AS_WRITTEN = ("string", "date", "byte", "short", "integer", "long")
"""Types of partition columns whose values delta-rs names as Spark does."""


@dataclass(frozen=True)
class Upstream:
    """A table as it is now.

    Attributes:
        version: its newest version.
        data_version: its newest version that is neither a relayout or compaction of ours nor a VACUUM: what a layout
            was learned from is out of date when this one changes, not when the layout itself is written.
        relaid_at: time of our newest relayout or compaction among the last commits, milliseconds since 1970, 0 without
            one.
        partitions: keys of its partitions, in order; empty for a table without.
        sizes, written_at: bytes and time (milliseconds since 1970) of its files, shape (files,).
    """

    version: int
    data_version: int
    relaid_at: int
    partitions: tuple[str, ...]
    sizes: np.ndarray
    written_at: np.ndarray

    def new_share(self, since: int) -> float:
        """Share of the table's bytes that was written after ``since``, milliseconds since 1970."""
        total = float(self.sizes.sum())
        return float(self.sizes[self.written_at > since].sum()) / total if total else 0.0


def look(table: TableConfig) -> Upstream:
    """Read a table's Delta log.

    Raises:
        TableError: it is known by its catalog name only, or delta-rs cannot read it.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    if table.location is None:
        raise TableError(f"{table.name} is known by its catalog name only; give its location to have it watched")
    try:
        found = DeltaTable(table.location)
        columns = found.metadata().partition_columns
        history = sorted(found.history(LOOKED_AT), key=lambda commit: -int(commit["version"]))
        parts = found.partitions() if columns else []
        files = pa.table(found.get_add_actions())
    except (DeltaError, OSError) as error:
        reason = (str(error).splitlines() or ["unknown"])[0]
        raise TableError(
            f"delta-rs cannot read {table.location} ({reason}); the nightly run, which uses Spark, checks it"
        ) from error
    ours = [commit for commit in history if str(commit.get("userMetadata") or "").startswith((OURS, COMPACTED))]
    theirs = [c for c in history if c not in ours and c.get("operation") not in UPKEEP]
    newest = theirs[0] if theirs else history[-1]
    return Upstream(
        version=found.version(),
        data_version=int(newest["version"]),
        relaid_at=int(ours[0].get("timestamp") or 0) if ours else 0,
        partitions=tuple(sorted({partition_key(columns, [part[name] for name in columns]) for part in parts})),
        sizes=np.asarray(files["size_bytes"].to_pylist(), dtype=np.float64),
        written_at=np.asarray(files["modification_time"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist()),
    )


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
        columns, parts = found.metadata().partition_columns, found.partitions()
        types = {field.name: str(getattr(field.type, "type", "")) for field in found.schema().fields}
    except (DeltaError, OSError):
        return (), ""  # Spark says what is wrong with it, or reads what delta-rs cannot
    if not columns or any(types[name] not in AS_WRITTEN for name in columns):
        return (), ""
    keys = sorted(partition_key(columns, [part[name] for name in columns]) for part in parts)
    there = {partition_values(key, columns) for key in keys}

    def missing(key: str) -> bool:
        try:
            return partition_values(key, columns) not in there
        except TableError:  # it is of another form
            return True

    form = keys[0] if keys else "/".join(f"{name}=..." for name in columns)
    return tuple(key for key in wanted if missing(key)), f"it has {len(keys):,}, e.g. {form}"


def has_partitions(table: TableConfig) -> bool:
    """Whether Dagster shows the table's partitions: as configured, else whether a local table was made with any.

    Definitions are loaded often and for many tables, so only a local table's first commit is read, up to its schema.
    """
    if table.partitions is not None:
        return table.partitions
    if table.location is None or (local := local_path(table.location)) is None:
        return False
    first = Path(local) / "_delta_log" / f"{0:020d}.json"
    try:
        with first.open(encoding="utf-8") as actions:
            for line in actions:
                if '"metaData"' in line and (made := json.loads(line).get("metaData")):
                    return bool(made.get("partitionColumns"))
    except (OSError, ValueError):
        return False  # no such table yet, or a remote one: `partitions: true` says it
    return False
