"""Parquet files as a Delta table, for a first look at one's own data: written by delta-rs, without Spark."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zorder_pipeline.errors import TableError
from zorder_pipeline.model.partition_key import NULL
from zorder_pipeline.model.places import lies_in

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Imported", "refuse_target", "table_from_parquet"]

BATCH = 8_192
"""Rows that are handed on together."""
INDEXED, USUAL, STATISTICS = "delta.dataSkippingNumIndexedCols", 32, 200
"""The property of how many leaf columns Delta keeps statistics, how many without it, and in a table made here."""


@dataclass(frozen=True)
class Imported:
    """What a new table was made of.

    Attributes:
        rows: how many it has.
        partition_by: the columns it is partitioned by.
    """

    rows: int
    partition_by: tuple[str, ...]


def table_from_parquet(sources: Sequence[str | Path], target: str | Path, partition_by: Sequence[str] = ()) -> Imported:
    """Copy Parquet files into a new Delta table, rows nearly in the order of the files.

    delta-rs reads and writes on all cores, and rows of some `BATCH` near each other change places.

    As in Spark a column in the paths (``ds=2026-01-01``) is a column of the table, also if the files have one of that
    name; unlike there the table has every column that some file has, and statistics of the first `STATISTICS` columns,
    not of 32: whoever looks at a table for the first time does not know which of its columns these are.

    Args:
        sources: files, or folders of files.
        target: the table's folder, see `refuse_target`. It is not left behind where no table is made.
        partition_by: columns to partition by; by default those in the paths. An empty text in them becomes null, as
            where Spark writes it.

    Raises:
        TableError: the folder is refused, there is nothing to read, it belongs to a table that keeps a list of its
            files, the files do not go together, Delta has no such type, or a partition would be one of Hive's null.
    """
    import pyarrow as pa
    from deltalake import DeltaTable, write_deltalake
    from deltalake.exceptions import DeltaError

    refuse_target(sources, target)
    try:
        data, from_paths = _rows_of(sources)
        names = data.schema.names
        if lacking := [name for name in partition_by if name not in names]:
            raise TableError(f"there is no column {lacking[0]}; the files have {', '.join(names)}")
        parted = tuple(partition_by) or from_paths
        if set(parted) == set(names):
            raise TableError(
                f"{', '.join(names)} {'are' if len(names) > 1 else 'is'} all that there is, and Delta wants a column "
                f"that a table is not partitioned by; name fewer with --partition-by"
            )
        with _made(Path(target)):
            write_deltalake(
                str(target),
                data.scanner(columns=_partitioned(data, partition_by), batch_size=BATCH).to_reader(),
                mode="error",
                partition_by=list(parted) or None,
                configuration={INDEXED: str(STATISTICS)} if _leaves(data.schema) > USUAL else None,
            )
        rows = int(sum(pa.table(DeltaTable(str(target)).get_add_actions())["num_records"].to_pylist()))
        return Imported(rows, parted)
    except (DeltaError, pa.ArrowException, OSError) as error:
        reason = (str(error).splitlines() or ["unknown"])[0]
        raise TableError(f"{', '.join(map(str, sources))} cannot be made a Delta table: {reason}") from error


def refuse_target(sources: Sequence[str | Path], target: str | Path) -> None:
    """Refuse a folder for a new table where files of others would become part of it, or its files a part of theirs.

    Raises:
        TableError: the folder holds something already, or it is, holds or lies in one of the sources.
    """
    folder = Path(target)
    if (folder / "_delta_log").exists():
        raise TableError(f"{target} holds a Delta table already; name another folder, or use it with --table")
    for source in sources:
        if lies_in(str(source), str(target)):
            raise TableError(
                f"the new table's folder {target} is or holds {source}, of which it is to be made, and VACUUM would "
                f"delete that; name another HOME, or give the table another name with --name"
            )
        if lies_in(str(target), str(source)):
            raise TableError(
                f"the new table's folder {target} lies in {source}, of which it is to be made, and whoever reads that "
                f"would read each row twice; name another HOME"
            )
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise TableError(
            f"{target} is there already, and no empty folder; name another HOME, give the table another name with "
            f"--name, or remove what an earlier try has left there"
        )


@contextlib.contextmanager
def _made(folder: Path) -> Iterator[None]:
    """A new table's folder, which goes again if the block fails, unless it was there before."""
    if folder.exists():
        yield
        return
    folder.mkdir(parents=True)
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _partitioned(data: Any, partition_by: Sequence[str]) -> dict[str, Any]:
    """The columns, with null in the place of empty texts that the table is partitioned by: no path tells these apart.

    Raises:
        TableError: a text is what paths have for null.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = {name: pc.field(name) for name in data.schema.names}
    for name in partition_by:
        kind = data.schema.field(name).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            continue
        if data.count_rows(filter=pc.field(name) == NULL):
            raise TableError(f"column {name} has the text {NULL}, which is null in a path; partition by another column")
        columns[name] = pc.if_else(pc.field(name) == "", pa.scalar(None, kind), pc.field(name))
    return columns


def _rows_of(sources: Sequence[str | Path]) -> tuple[Any, tuple[str, ...]]:
    """The rows as a pyarrow dataset, and which of its columns come from paths."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    from .parquet_files import as_spark_reads, columns_together, parquet_files, path_columns

    files = parquet_files([Path(source) for source in sources])
    if not files:
        raise TableError(f"no Parquet file in {', '.join(map(str, sources))}; name others")
    parts, disk, fragments = path_columns(files), LocalFileSystem(), []
    # INT96 as nanoseconds would end in 2262, and begin again in 1677
    form = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))
    for place, file in enumerate(files):
        said = [
            pc.field(name) == values[place] if values[place].is_valid else pc.field(name).is_null()
            for name, values in parts.items()
        ]
        expression = reduce(and_, said) if said else None
        fragments.append(form.make_fragment(str(file.path), disk, partition_expression=expression))
    schema = columns_together(
        [(file.path, as_spark_reads(each)) for file, each in zip(files, fragments, strict=True)], besides=parts
    )
    for name, values in parts.items():
        schema = schema.append(pa.field(name, values.type))
    _refuse_unknown_types(schema)
    return ds.FileSystemDataset(fragments, schema, form, disk), tuple(parts)


def _leaves(fields: Iterable[pa.Field]) -> int:
    """Columns as Delta counts them for statistics: each field of a struct is one, an array or a map is one."""
    import pyarrow as pa

    return sum(_leaves(item.type) if pa.types.is_struct(item.type) else 1 for item in fields)


def _refuse_unknown_types(schema: pa.Schema) -> None:
    import pyarrow as pa
    from deltalake import Schema

    for field in schema:
        try:
            Schema.from_arrow(pa.schema([field]))
        except Exception as error:  # delta-rs has no class of its own for it
            raise TableError(
                f"column {field.name} is {field.type}, which Delta has no type for; write it as another in the files"
            ) from error
