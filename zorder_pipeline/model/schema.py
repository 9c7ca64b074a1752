"""What the stages need to know of a table's columns."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from .values import ValueType

__all__ = ["Column", "TableSchema"]


@dataclass(frozen=True)
class Column:
    """A leaf column.

    Attributes:
        name: logical name; a dotted path for a field of a struct (a dot inside a name is written as it is: lookups go
            by the whole path).
        type: Spark simple type name.
        partition: whether the table is partitioned by it.
        delta_stats: whether Delta keeps min/max for it (its type has them and it is among the indexed columns).
        path: its path where a part of it has a dot in it, else empty: then the dots of its name tell it.
    """

    name: str
    type: str
    partition: bool = False
    delta_stats: bool = True
    path: tuple[str, ...] = ()

    @classmethod
    def at(cls, path: tuple[str, ...], of_type: str, partition: bool = False, delta_stats: bool = True) -> Column:
        """The column of a path.

        >>> Column.at(("s", "x"), "int").name, Column.at(("user.name",), "string").parts
        ('s.x', ('user.name',))
        """
        dotted = any("." in part for part in path)
        return cls(".".join(path), of_type, partition, delta_stats, path if dotted else ())

    @property
    def parts(self) -> tuple[str, ...]:
        """Its path: itself, or the structs that it lies in and itself."""
        return self.path or tuple(self.name.split("."))

    @property
    def value_type(self) -> ValueType:
        """The parsed type."""
        return ValueType.parse(self.type)


@dataclass(frozen=True)
class TableSchema:
    """A table's leaf columns in order; look-ups ignore case, as Spark does by default.

    Attributes:
        columns: the leaf columns.
        former: names that columns were called by before they were renamed, each with the name of today; none is the
            name of a column that there is.

    >>> TableSchema((Column("Id", "bigint"),)).find("ID").type
    'bigint'
    >>> TableSchema((Column("customer", "bigint"),), (("cust", "customer"),)).called("Cust").name
    'customer'
    """

    columns: tuple[Column, ...]
    former: tuple[tuple[str, str], ...] = ()

    def find(self, name: str) -> Column | None:
        """The column called ``name`` (case ignored), or None."""
        return self._named.get(name.lower()) or self._named.get(name.replace("`", "").lower())

    def called(self, name: str) -> Column | None:
        """The column that is called ``name`` (case ignored), or was before it was renamed; None without one."""
        return self.find(name) or self._formerly.get(name.replace("`", "").lower())

    def lying(self, path: tuple[str, ...]) -> Column | None:
        """The column of a path (case ignored), or None."""
        return self._lying.get(tuple(part.lower() for part in path))

    def holds(self, name: str) -> bool:
        """Whether there is a column of that name, be it a struct of such leaves."""
        return self.find(name) is not None or any(c.name.lower().startswith(name.lower() + ".") for c in self.columns)

    @cached_property
    def _named(self) -> dict[str, Column]:
        """The first column of each name, in lower case."""
        return {column.name.lower(): column for column in reversed(self.columns)}

    @cached_property
    def _lying(self) -> dict[tuple[str, ...], Column]:
        """The first column of each path, in lower case."""
        return {tuple(part.lower() for part in column.parts): column for column in reversed(self.columns)}

    @cached_property
    def _formerly(self) -> dict[str, Column]:
        known = {old.lower(): self.find(now) for old, now in self.former}
        return {old: column for old, column in known.items() if column is not None}

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Names of the partition columns, in schema order."""
        return tuple(column.name for column in self.columns if column.partition)

    @property
    def fingerprint(self) -> str:
        """Hash of names, types and partitioning: a plan made for another schema is refused by it."""
        text = json.dumps([[c.name, c.type, c.partition] for c in self.columns])
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
