"""Statistics of files beyond what Delta keeps: what they are kept of, and what is known of each file (seed 004, 4.1.3).

A *feature* is a column, an expression over columns, or a whole predicate. Min/max of a predicate (false is 0, true is
1) say whether no row, some rows or all rows of a file satisfy it, so all three are zones in the same sense.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from zorder_pipeline.errors import PlanError

from .plain import checked
from .predicate import VARIABLE
from .schema import Column, TableSchema
from .values import Value
from .zone_map import ColumnZones

__all__ = ["BLOOM_BITS", "BLOOM_FAMILIES", "BloomFilters", "Feature", "FeatureStats", "bloom_place", "rounded"]
__all__ += ["shown", "widened"]

BLOOM_BITS = 1 << 15
"""Bits of a file's Bloom filter, which has one hash function: 1,000 values leave 3% false answers, 8 leave 0.02%."""
BLOOM_FAMILIES = frozenset({"integer", "date", "timestamp", "string"})
"""Types whose equality is that of their canonical values' texts."""
Kind = Literal["column", "expression", "predicate"]


@dataclass(frozen=True)
class Feature:
    """What statistics are kept of.

    Attributes:
        name: what predicates are matched with: a column's name, or the expression or predicate in normalised SQL.
        kind: ``column``, ``expression`` or ``predicate``.
        type: Spark type name of its value, ``boolean`` for a predicate.
        sql: how Spark evaluates it on a row of the table; rebuilt from parsed trees, never pasted from a log.
        columns: the columns it looks at.
        equality: whether values are looked up by equality, so that a Bloom filter is kept.
        weight: weighted number of the log's queries that ask for it.
        zone: the session time zone that ``sql`` was written for; empty when it is the same under all.
    """

    name: str
    kind: Kind
    type: str
    sql: str
    columns: tuple[str, ...]
    equality: bool = False
    weight: float = 0.0
    zone: str = ""

    def to_json(self) -> dict[str, Any]:
        """JSON-ready form; `from_json` is its inverse."""
        return dict(vars(self)) | {"columns": list(self.columns)}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Feature:
        """The feature that `to_json` wrote.

        Raises:
            MALFORMED: the data is no feature, see `zorder_pipeline.model.plain`.
            PlanError: Spark would not evaluate the text that stands there.
        """
        if data["kind"] != "column" and VARIABLE in data["sql"]:
            raise PlanError(f"a statistic of the plan holds {VARIABLE}, which Spark replaces; learn it again")
        return checked(Feature(**{**data, "columns": tuple(data["columns"])}))


@dataclass(frozen=True)
class BloomFilters:
    """Bloom filters of n files by their set bits: dense ones of ten thousand files would take 40 MB a feature.

    Attributes:
        ends: where the files of each bit end in ``files``, those of bit 0 first; shape (BLOOM_BITS,).
        files: numbers of the files that have a bit set, those of each bit together.
    """

    ends: npt.NDArray[np.int64]
    files: npt.NDArray[np.int32]

    @staticmethod
    def of(bits: npt.NDArray[np.integer[Any]], files: npt.NDArray[np.integer[Any]]) -> BloomFilters:
        """Of bits that are set, and the file of each.

        >>> BloomFilters.of(np.array([3, 9, 9]), np.array([0, 0, 4])).having(9).tolist()
        [0, 4]
        """
        order = np.argsort(bits, kind="stable")
        return BloomFilters(np.cumsum(np.bincount(bits, minlength=BLOOM_BITS)), files[order].astype(np.int32))

    def having(self, place: int) -> npt.NDArray[np.int32]:
        """Numbers of the files in whose filter a bit is set."""
        return self.files[self.ends[place - 1] if place else 0 : self.ends[place]]


@dataclass(frozen=True)
class FeatureStats:
    """What is known of one feature in each of n files.

    Attributes:
        feature: the feature.
        zones: min/max and nulls; unknown where nothing was gathered.
        rows: rows the statistics were taken over, shape (n,); 0 where nothing was gathered.
        bloom: Bloom filters of the files; None when no file has one.
        filtered: which files have a Bloom filter, shape (n,).
    """

    feature: Feature
    zones: ColumnZones
    rows: npt.NDArray[np.int64]
    bloom: BloomFilters | None = None
    filtered: npt.NDArray[np.bool_] | None = None


def bloom_place(value: Value) -> int:
    """The bit of a canonical value in a Bloom filter; Spark computes the same from ``crc32(CAST(value AS STRING))``.

    >>> bloom_place("AIR"), bloom_place(10471)
    (31345, 29640)
    """
    text = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else str(value).encode()
    return zlib.crc32(text) % BLOOM_BITS


def rounded(op: str, of_type: str) -> str:
    """An operator as it is asked of a feature's values: a double stands for a decimal, too, and larger means no less.

    >>> rounded("<", "double"), rounded("<", "int")
    ('<=', '<')
    """
    return {"<": "<=", ">": ">="}.get(op, op) if of_type in ("double", "float") else op


def shown(name: str, kind: str, columns: Sequence[str], key: str) -> str:
    """The name of an expression or predicate without its literals, which may be personal data.

    Args:
        key: what nobody knows who sees the name: else a list of all names there are would tell whose it is.

    >>> shown("c LIKE '%Jane%'", "predicate", ["c"], "Guess me")
    '<predicate over c, dbbd>'
    """
    text = name.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=2, key=hashlib.blake2b(key.encode()).digest()).hexdigest()
    return f"<{' over '.join(filter(None, (kind, ', '.join(columns))))}, {digest}>"


def widened(
    schema: TableSchema, features: Sequence[Feature], key: str | None = None
) -> tuple[TableSchema, dict[Feature, str]]:
    """``schema`` with a column for every expression and predicate, and the name of each feature's column there.

    Names of columns are looked up without case, so features that differ by case alone get names that do not.

    Args:
        key: with it the names tell no literal, see `shown`.
    """
    taken = {column.name.lower() for column in schema.columns}
    names: dict[Feature, str] = {}
    added: list[Column] = []
    for feature in features:
        if feature.kind == "column":
            names[feature] = feature.name
            continue
        name = feature.name if key is None else shown(feature.name, feature.kind, feature.columns, key)
        while name.lower() in taken:
            name += " "
        taken.add(name.lower())
        names[feature] = name
        added.append(Column(name, feature.type))
    return TableSchema((*schema.columns, *added)), names
