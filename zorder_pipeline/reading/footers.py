"""Row groups as their Parquet footers describe them: zone maps one level below files, and bytes per column."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from zorder_pipeline.model.places import filesystem_of, is_uri
from zorder_pipeline.model.values import ValueType, canonical_array
from zorder_pipeline.model.zone_map import ColumnZones, ZoneMap

__all__ = ["ARROW_TYPES", "Bounds", "Footers", "Place", "column_shares", "file_column_bytes", "opener"]
__all__ += ["out_of_reach", "page_indexed", "places_of", "read_footers", "row_groups", "zones_of"]

Place = tuple[tuple[str, ...], str]
"""A column's physical path in the files, and its Spark type."""
Bounds = tuple[Any, Any, int]
"""Smallest and largest value of a block, None where unknown, and its nulls, -1 where unknown."""

THREADS = 16
FORGOTTEN = 600.0
"""Seconds after which a folder that was out of reach is tried again: asking a store in vain takes some."""
_OUT_OF_REACH: dict[str, float] = {}
ARROW_TYPES = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", "UTC"),
}


@dataclass(frozen=True)
class Footers:
    """Parquet footers of files, in the files' order; None where a footer could not be read."""

    metadata: tuple[pq.FileMetaData | None, ...]

    @property
    def complete(self) -> bool:
        """Whether every footer was read."""
        return all(item is not None for item in self.metadata)


def read_footers(location: str, paths: Sequence[str]) -> Footers:
    """Footers of a Delta table's files.

    Args:
        location: URI of the table's folder.
        paths: as in AddFile actions: URL-encoded, relative to the folder or absolute.
    """
    inside = [path for path in paths if not is_uri(path)]
    if out_of_reach(location):
        return Footers((None,) * len(paths))
    try:
        there = opener(location)
        with there(inside[0]) if inside else nullcontext():
            pass
    except FileNotFoundError:
        pass  # VACUUM may have removed some
    except (OSError, pa.ArrowException):  # no filesystem of pyarrow's, or no credentials for it
        _OUT_OF_REACH[location.rstrip("/")] = time.monotonic() + FORGOTTEN
        return Footers((None,) * len(paths))

    def one(path: str) -> pq.FileMetaData | None:
        try:
            with there(path) as file:
                return pq.read_metadata(file)
        except (OSError, pa.ArrowException):
            return None

    with ThreadPoolExecutor(THREADS) as pool:
        return Footers(tuple(pool.map(one, paths)))


def out_of_reach(location: str) -> bool:
    """Whether the files of a folder could not be reached a short while ago: another try may wait for minutes."""
    return time.monotonic() < _OUT_OF_REACH.get(location.rstrip("/"), 0.0)


def opener(location: str) -> Callable[[str], pa.NativeFile]:
    """What opens a Delta table's files by their paths as in AddFile actions; it raises OSError where it cannot.

    Args:
        location: URI of the table's folder.

    Raises:
        OSError: pyarrow cannot reach the folder's filesystem.
    """
    root, base = filesystem_of(location)

    def opened(path: str) -> pa.NativeFile:
        if is_uri(path):
            filesystem, place = filesystem_of(unquote(path))
        else:
            filesystem, place = root, f"{base.rstrip('/')}/{unquote(path)}"
        return filesystem.open_input_file(place)

    return opened


def row_groups(footers: Footers, columns: Mapping[str, Place]) -> tuple[ZoneMap, npt.NDArray[np.int64]]:
    """Zone maps of all row groups, and the file each belongs to.

    Args:
        columns: by column name, its physical path in the files and its Spark type.
    """
    file: list[int] = []
    rows: list[int] = []
    size: list[int] = []
    bounds: dict[str, list[Bounds]] = {name: [] for name in columns}
    for number, metadata in enumerate(footers.metadata):
        if metadata is None:
            continue
        places = places_of(metadata, columns)
        for index in range(metadata.num_row_groups):
            group = metadata.row_group(index)
            file.append(number)
            rows.append(group.num_rows)
            size.append(group.total_byte_size)
            for name, place in places.items():
                bounds[name].append(_bounds(group, place))
    zones = {name: zones_of(bounds[name], columns[name][1]) for name in columns}
    return ZoneMap(np.array(rows, dtype=np.int64), np.array(size, dtype=np.int64), zones), np.array(
        file, dtype=np.int64
    )


def places_of(metadata: pq.FileMetaData, columns: Mapping[str, Place]) -> dict[str, int | None]:
    """Number of each column in a file; None of one that was added after it.

    Args:
        columns: see `row_groups`.
    """
    there = {path: i for i, path in enumerate(_leaf_paths(metadata))}
    return {name: there.get(path) for name, (path, _) in columns.items()}


def _leaf_paths(metadata: pq.FileMetaData) -> list[tuple[str, ...]]:
    """Where each column of a file stands: of a name with dots its path as a text is also that of a field."""
    written = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    if not any("." in path for path in written):
        return [(path,) for path in written]
    try:
        found = [path for field in metadata.schema.to_arrow_schema() for path in _leaves(field)]
    except (pa.ArrowException, ValueError):  # a type that Arrow does not have
        found = []
    known = len(found) == len(written) and all(
        path == own[0] or path.startswith(f"{own[0]}.") for path, own in zip(written, found, strict=True)
    )
    return found if known else [tuple(path.split(".")) for path in written]


def _leaves(field: pa.Field) -> Iterator[tuple[str, ...]]:
    """The columns in which Parquet keeps a field, in their order."""
    kind = field.type
    inner = [kind.field(i) for i in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    if pa.types.is_map(kind):
        inner = [kind.key_field, kind.item_field]
    if not inner:
        yield (field.name,)
    for child in inner:
        yield from ((field.name, *path) for path in _leaves(child))


def _bounds(group: Any, place: int | None) -> Bounds:
    if place is None:
        return None, None, -1  # the column was added later: Spark asks nothing of it
    statistics = group.column(place).statistics
    if statistics is None:
        return None, None, -1
    nulls = statistics.null_count if statistics.has_null_count else -1
    if not statistics.has_min_max:
        return None, None, nulls
    try:
        return statistics.min, statistics.max, nulls
    except (ValueError, OverflowError):  # a text, or a day outside the years 1 to 9999, that Python does not have
        return None, None, nulls


def zones_of(bounds: Iterable[Bounds], type_name: str) -> ColumnZones:
    """Zones of a column of a Spark type from its blocks' bounds as Python values."""
    value_type = ValueType.parse(type_name)
    lows, highs, nulls = zip(*bounds, strict=True) if bounds else ((), (), ())
    arrow = ARROW_TYPES.get(type_name)
    if value_type.family == "decimal":
        precision, scale = type_name.removeprefix("decimal(").rstrip(")").split(",")
        arrow = pa.decimal128(int(precision), int(scale))
    counts = np.array(nulls, dtype=np.int64)
    try:
        low, has_low = canonical_array(pa.array(lows, arrow), value_type)
        high, has_high = canonical_array(pa.array(highs, arrow), value_type)
    except (pa.ArrowException, ValueError, TypeError):  # a file written before the column's type was widened
        blank = np.zeros(len(counts), dtype=value_type.numpy_dtype)
        return ColumnZones(blank, blank, np.zeros(len(counts), dtype=np.bool_), counts)
    return ColumnZones(low, high, has_low & has_high, counts)


def page_indexed(footers: Footers, columns: Mapping[str, Place]) -> frozenset[str] | None:
    """Columns that have a page index in some of the files: Spark's INT96 has none, and not all writers make one.

    Args:
        columns: see `row_groups`.

    Returns:
        None where no footer was read.
    """
    found, read = set[str](), [item for item in footers.metadata if item is not None]
    for metadata in read:
        places = places_of(metadata, {name: place for name, place in columns.items() if name not in found})
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)] if places else []
        for name, at in places.items():
            if at is not None and any(group.column(at).has_column_index for group in groups):
                found.add(name)
    return frozenset(found) if read else None


def file_column_bytes(footers: Footers, names: Mapping[str, str]) -> dict[str, npt.NDArray[np.float64]]:
    """Compressed bytes of each top-level column in each file, shape (files,); 0 where a footer could not be read.

    Args:
        names: column name by its physical top-level name.
    """
    sizes: dict[str, npt.NDArray[np.float64]] = {}
    for number, metadata in enumerate(footers.metadata):
        if metadata is None:
            continue
        tops = [names.get(path[0], path[0]) for path in _leaf_paths(metadata)]
        for group in (metadata.row_group(i) for i in range(metadata.num_row_groups)):
            for i, name in enumerate(tops):
                found = sizes.setdefault(name, np.zeros(len(footers.metadata)))
                found[number] += group.column(i).total_compressed_size
    return sizes


def column_shares(footers: Footers, names: Mapping[str, str]) -> dict[str, float]:
    """Share of the files' compressed bytes by top-level column.

    Args:
        names: column name by its physical top-level name.
    """
    total = {name: float(sizes.sum()) for name, sizes in file_column_bytes(footers, names).items()}
    whole = sum(total.values())
    return {name: size / whole for name, size in total.items()} if whole else {}
