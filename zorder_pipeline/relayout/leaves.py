"""Leaf columns of a Delta table: their logical path, and the physical one that files and statistics use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from zorder_pipeline.model.schema import Column
from zorder_pipeline.model.spark_sql import column_sql
from zorder_pipeline.model.values import ValueType

if TYPE_CHECKING:
    from pyspark.sql.types import StructField, StructType

__all__ = ["Leaf", "distinct_names", "indexed_paths", "leaves_of", "physical_name", "physical_of", "stats_paths"]

FIRST = 32
"""Leaves that Delta keeps statistics of unless the table says otherwise."""
TYPE_TEXT = "__CHAR_VARCHAR_TYPE_STRING"
"""In a column's metadata: its type as it was declared, where that has a CHAR or VARCHAR."""
_CHAR = re.compile(r"(?<!var)char\(")


@dataclass(frozen=True)
class Leaf:
    """A leaf column.

    Attributes:
        path: its logical path.
        physical: its path in files and statistics.
        column: its schema entry.
        stored: where files keep it and as what, as text: of a column with the same text the same values are read.
        from_float: whether a FLOAT was widened to this DOUBLE.
        padded: whether it is a CHAR, which Spark pads while it reads, as it does what a CHAR is compared with.
    """

    path: tuple[str, ...]
    physical: tuple[str, ...]
    column: Column
    stored: str
    from_float: bool = False
    padded: bool = False


def leaves_of(
    struct: StructType,
    partitions: Sequence[str],
    indexed: set[tuple[str, ...]],
    path: tuple[str, ...] = (),
    physical: tuple[str, ...] = (),
    padded: bool = False,
) -> Iterator[Leaf]:
    """Every leaf column of a schema, in its order.

    Of type CHAR only those that partition the table have an order: Delta tests no statistics by what is asked of a
    column that is padded while it is read.

    Args:
        partitions: names of the partition columns.
        indexed: physical paths of the leaves that have min/max statistics.
        path, physical: where ``struct`` itself is.
        padded: whether the column that it lies in has a CHAR somewhere, which Spark notes of the whole alone.
    """
    from pyspark.sql.types import StructType

    for item in struct.fields:
        here, under = (*path, item.name), (*physical, physical_name(item))
        char = padded or _CHAR.search((item.metadata or {}).get(TYPE_TEXT, "")) is not None
        if isinstance(item.dataType, StructType):
            yield from leaves_of(item.dataType, partitions, indexed, here, under, char)
            continue
        name = item.dataType.simpleString()
        partition = not path and item.name in partitions
        kind = ValueType("char") if char and not partition else ValueType.parse(name)
        stats = partition or (under in indexed and kind.delta_min_max)
        column = Column.at(here, kind.name, partition, stats)
        changes = (item.metadata or {}).get("delta.typeChanges", ())
        from_float = name == "double" and any(change.get("fromType") == "float" for change in changes)
        yield Leaf(here, under, column, f"{_unmistakable(under)} {_whole_type(item)}", from_float, char)


def _unmistakable(path: tuple[str, ...]) -> str:
    """A path as text: one with a dot in a name is not that of a field of a struct."""
    return column_sql(path) if any("." in part for part in path) else ".".join(path)


def _whole_type(item: StructField) -> str:
    """The type with what its text does not say: the length of a CHAR, where an array's structs keep their fields."""
    from pyspark.sql.types import ArrayType, MapType

    told = [item.dataType.simpleString(), (item.metadata or {}).get(TYPE_TEXT, "")]
    if isinstance(item.dataType, ArrayType | MapType):
        told.append(item.dataType.json())
    return " ".join(filter(None, told))


def indexed_paths(struct: StructType, partitions: Sequence[str], properties: Mapping[str, str]) -> set[tuple[str, ...]]:
    """Paths of the leaves that Delta keeps statistics of, by the table's properties: the first 32 unless they say else.

    Args:
        struct: the schema; without column mapping its names are those of the files.
        partitions: names of the partition columns.
    """
    paths = [leaf.path for leaf in leaves_of(struct, partitions, set()) if leaf.path[0] not in partitions]
    if named := properties.get("delta.dataSkippingStatsColumns"):
        chosen = [tuple(part.strip("`") for part in re.findall(r"`[^`]*`|[^.`]+", name)) for name in _listed(named)]
        return {path for path in paths if any(path[: len(name)] == name for name in chosen)}
    most = int(properties.get("delta.dataSkippingNumIndexedCols", FIRST))
    return set(paths if most < 0 else paths[:most])


def _listed(names: str) -> list[str]:
    """Names between commas, which may stand in backquotes."""
    return [name.strip() for name in re.findall(r"(?:`[^`]*`|[^,`])+", names)]


def distinct_names(leaves: Sequence[Leaf]) -> tuple[Leaf, ...]:
    """The leaves, where a name with a dot that also reads as another path is given in backquotes."""
    told = Counter(leaf.column.name.lower() for leaf in leaves)

    def named(leaf: Leaf) -> Leaf:
        name = leaf.column.name
        if told[name.lower()] < 2:
            return leaf
        return replace(leaf, column=replace(leaf.column, name=_unmistakable(leaf.path)))

    return tuple(map(named, leaves))


def physical_name(item: StructField) -> str:
    """Name of a field in files and statistics: another than the logical one under column mapping."""
    return str((item.metadata or {}).get("delta.columnMapping.physicalName", item.name))


def physical_of(struct: StructType, name: str) -> str:
    """Name of a top-level column in files and statistics."""
    return next(physical_name(item) for item in struct.fields if item.name == name)


def stats_paths(stats: StructType, kind: str = "minValues") -> set[tuple[str, ...]]:
    """Paths of the leaves under ``<kind>`` in the type of a file's statistics."""
    from pyspark.sql.types import StructType

    def walk(struct: StructType, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for item in struct.fields:
            if isinstance(item.dataType, StructType):
                yield from walk(item.dataType, (*path, item.name))
            else:
                yield (*path, item.name)

    if kind not in stats.names:
        return set()
    inner = stats[kind].dataType
    return set(walk(inner, ())) if isinstance(inner, StructType) else set()
