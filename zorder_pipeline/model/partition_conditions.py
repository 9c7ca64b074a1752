"""Conditions on partition columns alone, of which Delta evaluates every one on each partition's values.

What is no range of a column by itself (``month(ds) = 3``, ``CAST(s AS DATE) >= ...``, a text compared with a number) is
said by ranges of the values that there are, once it is known of which it is true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .asked import Asked
from .predicate import And, Comparison, Literal, Opaque, Or, Predicate, comparison_sql, conjuncts
from .ranges import MAX_BOXES, Box, Boxes, Interval, Range, Told, nowhere, to_boxes
from .schema import Column, TableSchema
from .spark_sql import column_sql, value_sql
from .values import ValueType, sort_unique
from .workload import LoggedQuery

__all__ = ["PartitionCondition", "PartitionValues", "partition_conditions", "untold", "untold_in_words"]

MAX_INTERVALS = 1_000
"""Of all columns, beyond which a condition is not told."""
MAX_LISTED = 1_000
"""Constants of a comparison that is evaluated."""
_MOMENT = re.compile(r"[0-9A-Za-z:+/_. -]*")
_TEXTS = {
    "number": re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?"),
    "boolean": re.compile("true|false"),
    "null": re.compile(""),
    "date": _MOMENT,
    "timestamp": _MOMENT,
    "timestamp_ntz": _MOMENT,
}
"""Literals by their kind, as texts that Spark takes for no more than they are."""

Mask = npt.NDArray[np.bool_]
NULL = -1


@dataclass(frozen=True)
class PartitionCondition:
    """A condition on partition columns alone that is no range by itself.

    Attributes:
        condition: the condition.
        columns: the columns that it looks at, by their names in the schema, ascending.
        sql: what Spark can evaluate; "" where nothing is known that may be.
    """

    condition: Comparison | Opaque
    columns: tuple[str, ...]
    sql: str


def partition_conditions(predicate: Predicate, schema: TableSchema, zone: str) -> Iterator[PartitionCondition]:
    """The conditions on partition columns alone that are no ranges, left to right.

    Args:
        zone: session time zone for timestamps without an offset.

    >>> schema = TableSchema((Column("ds", "string", partition=True), Column("x", "int")))
    >>> asked = And(
    ...     (Opaque("function", ("ds",), "LENGTH(ds) = 8"), Comparison("DS", "=", (Literal("number", "20240301"),)))
    ... )
    >>> [found.sql for found in partition_conditions(asked, schema, "UTC")]
    ['LENGTH(ds) = 8', '`ds` = 20240301']
    """
    for leaf in _leaves(predicate):
        names = leaf.columns if isinstance(leaf, Opaque) else (leaf.column,)
        columns = [column for name in names if (column := schema.find(name)) is not None and column.partition]
        if columns and len(columns) == len(names) and to_boxes(leaf, schema, zone, solved=True) == ((),):
            sql = leaf.expression if isinstance(leaf, Opaque) else _sql(leaf, columns[0])
            yield PartitionCondition(leaf, tuple(sorted({column.name for column in columns})), sql)


def _sql(comparison: Comparison, column: Column) -> str:
    """A comparison in Spark SQL, made of nothing that a log holds but numbers and times that are such."""
    values = [_literal(literal) for literal in comparison.literals]
    if comparison.solved or len(values) > MAX_LISTED or "" in values:
        return ""
    return comparison_sql(column_sql(column.parts), comparison.op, values)


def _literal(literal: Literal) -> str:
    """A constant in Spark SQL; "" of what is none of its kind."""
    if literal.kind == "string":
        return value_sql(literal.text, ValueType.parse("string"))
    return literal.to_sql() if literal.kind in _TEXTS and _TEXTS[literal.kind].fullmatch(literal.text) else ""


def untold(queries: Sequence[LoggedQuery], schema: TableSchema, told: Told) -> int:
    """How many queries choose partitions by a condition of which it is not known what it says.

    They count as if it held in all partitions. A condition that stands beside others in a disjunction chooses none
    unless these are of partition columns, too.

    Args:
        told: what is known.
    """
    asked = Asked.alike([query.condition for query in queries])
    left = [_untold(query, schema, told) for query in asked.each(queries)]
    return int(asked.times[left].sum())


def _untold(query: LoggedQuery, schema: TableSchema, told: Told) -> bool:
    for part in conjuncts(query.predicate):
        found = list(partition_conditions(part, schema, query.zone))
        if any((each.condition, query.zone) not in told for each in found):
            names = (n for leaf in _leaves(part) for n in (leaf.columns if isinstance(leaf, Opaque) else [leaf.column]))
            if all((column := schema.find(name)) is not None and column.partition for name in names):
                return True
    return False


def untold_in_words(count: int) -> list[str]:
    """A sentence about so many queries that are `untold`; none without any.

    >>> untold_in_words(1)[0][:60]
    '1 query chooses partitions by conditions that are not unders'
    """
    if not count:
        return []
    chooses, counts = ("query chooses", "counts") if count == 1 else ("queries choose", "count")
    what = f"{count:,} {chooses} partitions by conditions that are not understood"
    return [f"{what} and {counts} as reading all of them: less is read, and can be saved, than is told"]


def _leaves(predicate: Predicate) -> Iterator[Comparison | Opaque]:
    match predicate:
        case And(children) | Or(children):
            for child in children:
                yield from _leaves(child)
        case Comparison() | Opaque():
            yield predicate


@dataclass(frozen=True, eq=False)
class PartitionValues:
    """What there is of some partition columns: each combination of values once.

    Attributes:
        columns: the columns.
        domains: the values of each, ascending, nulls apart.
        codes: places of each combination's values in these, `NULL` for null, ascending, shape (n, columns).
        order: which of the combinations, as they were given, each is, shape (n,).
    """

    columns: tuple[Column, ...]
    domains: tuple[list[Any], ...]
    codes: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]

    @staticmethod
    def of(columns: Sequence[Column], values: Sequence[tuple[npt.NDArray[Any], Mask]]) -> PartitionValues:
        """Combinations of canonical values.

        Args:
            values: of each column the values, shape (n,), and which of them are none but null.
        """
        domains, codes = [], []
        for each, null in values:
            domain = sort_unique(each[~null])
            code = np.full(len(each), NULL, dtype=np.int64)
            code[~null] = np.searchsorted(domain, each[~null])
            domains.append(domain.tolist())
            codes.append(code)
        every = np.stack(codes, axis=1)
        order = np.lexsort(every.T[::-1])
        return PartitionValues(tuple(columns), tuple(domains), every[order], order)

    def __len__(self) -> int:
        return len(self.order)

    def boxes_where(self, chosen: Mask) -> Boxes | None:
        """Ranges of the columns that hold in the chosen combinations and in no other one that there is.

        None where that takes more than `MAX_BOXES` boxes or `MAX_INTERVALS` intervals. Where none is chosen, a box that
        holds nowhere: beside others in a disjunction it is no reason to leave out what they say of other columns.

        Args:
            chosen: of the combinations as they were given, shape (n,).

        >>> days = PartitionValues.of([Column("d", "int")], [(np.array([7, 1, 3, 5]), np.zeros(4, dtype=bool))])
        >>> days.boxes_where(np.array([True, False, False, True]))[0][0].intervals
        (Interval(low=5, high=7, low_open=False, high_open=False),)
        """
        boxes = self._boxes(0, self.codes, chosen[self.order]) or [(nowhere(self.columns[0]),)]
        intervals = sum(len(item.intervals) for box in boxes for item in box)
        return tuple(boxes) if len(boxes) <= MAX_BOXES and intervals <= MAX_INTERVALS else None

    def _boxes(self, place: int, codes: npt.NDArray[np.int64], chosen: Mask) -> list[Box]:
        """The boxes of the columns from ``place`` on; values beside which the others say the same stand in one."""
        if chosen.all():
            return [()]
        if place + 1 == len(self.columns):
            return [(self._range(place, codes[chosen, place]),)] if chosen.any() else []
        beside: dict[tuple[Box, ...], list[int]] = {}
        starts = np.flatnonzero(np.diff(codes[:, place], prepend=NULL - 1))
        for start, end in zip(starts, [*starts[1:], len(codes)], strict=True):
            rest = tuple(self._boxes(place + 1, codes[start:end], chosen[start:end]))
            if rest:
                beside.setdefault(rest, []).append(int(codes[start, place]))
        return [
            (self._range(place, np.array(here, dtype=np.int64)), *box) for rest, here in beside.items() for box in rest
        ]

    def _range(self, place: int, codes: npt.NDArray[np.int64]) -> Range:
        """The values at some places, ascending: neighbours are one interval."""
        column, domain = self.columns[place], self.domains[place]
        known = codes[codes != NULL]
        cuts = np.flatnonzero(np.diff(known) != 1)
        lows, highs = known[np.append(0, cuts + 1)[: len(known)]], known[np.append(cuts, len(known) - 1)[: len(known)]]
        intervals = tuple(Interval(domain[low], domain[high]) for low, high in zip(lows, highs, strict=True))
        return Range(column.name, column.type, intervals, nulls=len(known) < len(codes))
