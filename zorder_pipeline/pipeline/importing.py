"""Parquet files as a Delta table, for a first look at one's own data: written by delta-rs, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from zorder_pipeline.errors import TableError

__all__ = ["table_from_parquet"]


def table_from_parquet(sources: Sequence[str | Path], target: str | Path, partition_by: Sequence[str] = ()) -> int:
    """Copy Parquet files into a new Delta table, rows in the order of the files; returns how many rows.

    Args:
        sources: files, or folders of files.
        target: the table's folder; it must not hold a table yet.
        partition_by: columns to partition by.

    Raises:
        TableError: there is nothing to read, the files do not go together, or there is a table already.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds
    from deltalake import DeltaTable, write_deltalake
    from deltalake.exceptions import DeltaError

    files = [str(file) for source in sources for file in _files(Path(source))]
    if not files:
        raise TableError(f"no Parquet file in {', '.join(map(str, sources))}; name files that end in .parquet")
    if (Path(target) / "_delta_log").exists():
        raise TableError(f"{target} holds a Delta table already; name another folder, or use it with --table")
    try:
        data = ds.dataset(files, format="parquet")
        if lacking := [name for name in partition_by if name not in data.schema.names]:
            raise TableError(f"there is no column {lacking[0]}; the files have {', '.join(data.schema.names)}")
        reader = data.scanner().to_reader()
        write_deltalake(str(target), reader, mode="error", partition_by=list(partition_by) or None)
        return int(sum(pa.table(DeltaTable(str(target)).get_add_actions())["num_records"].to_pylist()))
    except (DeltaError, pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        reason = (str(error).splitlines() or ["unknown"])[0]
        raise TableError(f"{', '.join(map(str, sources))} cannot be made a Delta table: {reason}") from error


def _files(source: Path) -> list[Path]:
    return sorted(source.rglob("*.parquet")) if source.is_dir() else [source]
