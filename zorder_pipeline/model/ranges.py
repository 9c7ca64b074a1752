"""Predicates typed by a table's schema: a disjunction of boxes, each a conjunction of per-column ranges.

Boxes are what every estimator and every file selection of this project works with. Turning a predicate into boxes may
only *weaken* it (an unknown condition becomes TRUE), so that skipping by boxes never drops a row that is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

from .literals import TypedLiteral, cut_short, divides, type_literal
from .predicate import And, Comparison, Opaque, Or, Predicate
from .schema import Column, TableSchema
from .values import Value, ValueType, order_key

__all__ = ["MAX_BOXES", "NOTHING_TOLD", "Box", "Boxes", "Interval", "Range", "Told", "columns_asked", "nowhere"]
__all__ += ["starting_with", "to_boxes"]

MAX_BOXES = 64
"""Of a predicate that would become more boxes those of one column are joined; else it is weakened to its cheaper
conjuncts."""
MAX_APART = 16
"""Intervals of a column that are told apart where several comparisons are joined."""
MOMENTS = {"timestamp", "timestamp_ntz"}


@dataclass(frozen=True)
class Interval:
    """Canonical values from ``low`` to ``high``; None is unbounded. May be empty (low above high)."""

    low: Value | None = None
    high: Value | None = None
    low_open: bool = False
    high_open: bool = False


@dataclass(frozen=True)
class Range:
    """What one box asks of one column.

    Attributes:
        column: the column's name in the schema.
        type: its Spark type name.
        intervals: the column's value lies in one of them; none of them when only nulls match.
        nulls: whether a null matches.
        hull: readers test the intervals as one range from the smallest to the largest bound (Delta's rule for IN).
    """

    column: str
    type: str
    intervals: tuple[Interval, ...]
    nulls: bool = False
    hull: bool = False

    @property
    def tested(self) -> tuple[Interval, ...]:
        """The intervals as a reader of min/max statistics tests them."""
        if not self.hull or len(self.intervals) < 2:
            return self.intervals
        return (_hull(self.intervals),)


def nowhere(column: Column) -> Range:
    """What no row fulfils of a table that ``column`` partitions."""
    return Range(column.name, column.type, ())


def _hull(intervals: Sequence[Interval]) -> Interval:
    """The smallest interval around some, with closed bounds."""
    lows = [interval.low for interval in intervals if interval.low is not None]
    highs = [interval.high for interval in intervals if interval.high is not None]
    low = min(lows, key=order_key) if len(lows) == len(intervals) else None
    high = max(highs, key=order_key) if len(highs) == len(intervals) else None
    return Interval(low, high)


Box = tuple[Range, ...]
Boxes = tuple[Box, ...]
Told = Mapping[tuple[Comparison | Opaque, str], Boxes]
"""What conditions that are no ranges by themselves are known to say in a session's time zone."""
NOTHING_TOLD: Told = {}


def to_boxes(
    predicate: Predicate, schema: TableSchema, zone: str = "UTC", *, solved: bool = False, told: Told = NOTHING_TOLD
) -> Boxes:
    """``predicate`` as boxes over the columns of ``schema``; ``((),)`` is TRUE and ``()`` is FALSE.

    Args:
        zone: session time zone for timestamps without an offset.
        solved: also use comparisons of other columns than those that partition the table that only scans through
            ``reading/`` skip by.
        told: of conditions that are no ranges; the others of these say nothing.

    >>> from zorder_pipeline.model.predicate import Literal
    >>> from zorder_pipeline.model.schema import Column
    >>> to_boxes(Comparison("a", "<", (Literal("number", "5.5"),)), TableSchema((Column("a", "int"),)))
    ((Range(column='a', type='int', intervals=(Interval(low=None, high=5, low_open=False, high_open=False),), \
nulls=False, hull=False),),)
    """
    seen = predicate if solved else _as_written(predicate, schema)
    boxes = tuple(_merged(box) for box in _disjuncts(seen, schema, zone, told))
    parted = boxes if solved else _parted(boxes, frozenset(schema.partition_columns))
    return tuple(box for box in parted if all(item.intervals or item.nulls for item in box))


def _as_written(predicate: Predicate, schema: TableSchema) -> Predicate:
    """The predicate with solved comparisons weakened to TRUE but for those of partition columns, whose values Delta
    evaluates every expression on."""
    match predicate:
        case Comparison(column=name, solved=True):
            column = schema.find(name)
            return predicate if column is not None and column.partition else And(())
        case And(children):
            return And(tuple(_as_written(child, schema) for child in children))
        case Or(children):
            return Or(tuple(_as_written(child, schema) for child in children))
    return predicate


def columns_asked(queries: Iterable[Boxes]) -> set[str]:
    """The columns that queries ask for, told from their boxes."""
    return {item.column for boxes in queries for box in boxes for item in box}


def _parted(boxes: Boxes, partition: frozenset[str]) -> Boxes:
    """Boxes as Delta tests them: what a disjunction says of partition columns, and apart from that what it says of the
    others, so that ``p = 'a' OR x = 5`` says nothing.
    """
    if len(boxes) < 2 or not any(item.column in partition for box in boxes for item in box):
        return boxes
    coarse = _distinct(tuple(item for item in box if item.column in partition) for box in boxes)
    fine = _distinct(tuple(item for item in box if item.column not in partition) for box in boxes)
    if len(coarse) * len(fine) > MAX_BOXES:
        fine = ((),)
    return tuple(left + right for left, right in product(coarse, fine))


def _distinct(boxes: Iterable[Box]) -> Boxes:
    found = tuple(dict.fromkeys(boxes))
    return ((),) if () in found else found


def _disjuncts(predicate: Predicate, schema: TableSchema, zone: str, told: Told) -> Boxes:
    match predicate:
        case Opaque():
            return told.get((predicate, zone), ((),))
        case Comparison():
            found = _range(predicate, schema, zone)
            if found is None:
                return told.get((predicate, zone), ((),))
            return ((found,),) if found.intervals or found.nulls else ()
        case Or(children):
            boxes = tuple(dict.fromkeys(box for child in children for box in _disjuncts(child, schema, zone, told)))
            if () in boxes:
                return ((),)
            if len(boxes) > MAX_BOXES:
                boxes = _joined(boxes)
            return boxes if len(boxes) <= MAX_BOXES else (_around(boxes),)
        case And(children):
            parts = sorted((_disjuncts(child, schema, zone, told) for child in children), key=len)
            boxes = ((),)
            for part in parts:
                fitting = part if len(boxes) * len(part) <= MAX_BOXES else _joined(part)
                if len(boxes) * len(fitting) <= MAX_BOXES:
                    boxes = tuple(left + right for left, right in product(boxes, fitting))
            return boxes


def _joined(boxes: Boxes) -> Boxes:
    """The same boxes, those of a single range each of one column as one: ``a = 1 OR a = 2 OR ...``."""
    alone: dict[str, list[Range]] = {}
    rest: list[Box] = []
    for box in boxes:
        if len(box) == 1:
            alone.setdefault(box[0].column, []).append(box[0])
        else:
            rest.append(box)
    return (*((_either(ranges),) for ranges in alone.values()), *rest)


def _around(boxes: Boxes) -> Box:
    """One box around all: what each of them asks of the same columns."""
    asked = list(dict.fromkeys(item.column for item in boxes[0]))
    common = [column for column in asked if all(any(item.column == column for item in box) for box in boxes)]
    return tuple(_either([next(i for i in box if i.column == column) for box in boxes]) for column in common)


def _either(ranges: Sequence[Range]) -> Range:
    """A range of the values of several, tested as one where these are too many to be tested apart."""
    intervals = tuple(dict.fromkeys(interval for item in ranges for interval in item.tested))
    hull = len(intervals) > MAX_APART
    if hull and any(interval.low is None or interval.high is None for interval in intervals):
        intervals, hull = (_hull(intervals),), False
    return replace(ranges[0], intervals=intervals, nulls=any(item.nulls for item in ranges), hull=hull)


def _merged(box: Box) -> Box:
    """One range per column where single intervals can be intersected without changing any min/max test."""
    single: dict[str, Range] = {}
    rest: list[Range] = []
    for item in dict.fromkeys(box):
        if len(item.intervals) != 1 or item.nulls:
            rest.append(item)
        elif item.column in single:
            both = _intersection(single[item.column].intervals[0], item.intervals[0])
            single[item.column] = replace(item, intervals=(both,), hull=False)
        else:
            single[item.column] = item
    return (*single.values(), *rest)


def _intersection(a: Interval, b: Interval) -> Interval:
    lows = [(order_key(i.low), i.low_open, i.low) for i in (a, b) if i.low is not None]
    highs = [(order_key(i.high), not i.high_open, i.high) for i in (a, b) if i.high is not None]
    _, low_open, low = max(lows, default=(None, False, None))
    _, high_closed, high = min(highs, default=(None, True, None))
    return Interval(low, high, low_open, not high_closed)


def _range(comparison: Comparison, schema: TableSchema, zone: str) -> Range | None:
    """None when the comparison says nothing about an order of the column that Delta could use."""
    column = schema.find(comparison.column)
    if column is None:
        return None
    if comparison.op in ("is_null", "is_not_null"):
        wanted = comparison.op == "is_null"
        return Range(column.name, column.type, () if wanted else (Interval(),), nulls=wanted)
    if not column.value_type.orderable:
        return None
    has_null = any(literal.kind == "null" for literal in comparison.literals)
    if comparison.op == "<=>" and has_null:
        return Range(column.name, column.type, (), nulls=True)
    if has_null and comparison.op != "in":
        return Range(column.name, column.type, ())  # a comparison with NULL is never true
    known = [literal for literal in comparison.literals if literal.kind != "null"]
    if cut_short(known, column.value_type):
        return None
    if comparison.solved and column.value_type.family == "timestamp" and not all(divides(item, zone) for item in known):
        return None
    typed = [type_literal(literal, column.value_type, zone) for literal in known]
    present = [item for item in typed if item is not None]
    if comparison.op == "between" and len(present) == 1:
        half = "<=" if typed[0] is None else ">="
        return Range(column.name, column.type, _intervals(half, present, column.value_type))
    if len(present) < len(typed):
        return None
    if comparison.op in ("in", "not_in"):
        return _listed(comparison, column, present)
    if comparison.op == "starts_with":
        intervals = starting_with(present[0].value)
    else:
        intervals = _intervals(comparison.op, present, column.value_type)
    return Range(column.name, column.type, intervals)


def _listed(comparison: Comparison, column: Column, items: Sequence[TypedLiteral]) -> Range | None:
    """IN and NOT IN: a set where the column partitions the table, else one range, and nothing for NOT IN."""
    points = sorted({item.value for item in items if item.exact}, key=order_key)
    mixed = column.type == "date" and len(set(items)) > 1 and any(item.kind in MOMENTS for item in comparison.literals)
    if mixed and not column.partition:
        return None  # Spark compares all of them as timestamps
    if comparison.op == "in":
        return Range(column.name, column.type, tuple(Interval(p, p) for p in points), hull=not column.partition)
    zeros = {
        literal.text.lstrip().startswith("-")
        for literal, item in zip(comparison.literals, items, strict=True)
        if item.exact and item.value == 0 and column.value_type.family == "float"
    }
    if not column.partition and len(points) + len(zeros) // 2 > 1:  # 0.0 and -0.0 are one value, and still two to Delta
        return None
    bounds = [None, *points, None]
    gaps = tuple(Interval(low, high, low is not None, high is not None) for low, high in pairwise(bounds))
    return Range(column.name, column.type, gaps)


def starting_with(prefix: Value) -> tuple[Interval, ...]:
    """Strings that start with ``prefix``: from it up to, but without, its successor."""
    if not isinstance(prefix, str) or not prefix:
        return (Interval(),)
    for end in range(len(prefix), 0, -1):
        code = ord(prefix[end - 1]) + 1
        if 0xD800 <= code <= 0xDFFF:
            code = 0xE000  # surrogates are no characters
        if code <= 0x10FFFF:
            return (Interval(prefix, prefix[: end - 1] + chr(code), high_open=True),)
    return (Interval(prefix, None),)


def _intervals(op: str, items: Iterable[TypedLiteral], value_type: ValueType) -> tuple[Interval, ...]:
    first, *others = items
    match op:
        case "=" | "<=>":
            return (Interval(first.value, first.value),) if first.exact else ()
        case "<>":
            if not first.exact:
                return (Interval(),)
            return _below(first, False, value_type), _above(first, False, value_type)
        case "<" | "<=":
            return (_below(first, op == "<=", value_type),)
        case ">" | ">=":
            return (_above(first, op == ">=", value_type),)
    low, high = _above(first, True, value_type), _below(others[0], True, value_type)
    return (Interval(low.low, high.high, low.low_open, high.high_open),)


def _below(item: TypedLiteral, closed: bool, value_type: ValueType) -> Interval:
    """Values below the literal (or equal, when ``closed``)."""
    if not value_type.discrete:
        return Interval(None, item.value, high_open=not closed)
    assert isinstance(item.value, int)
    return Interval(None, item.value - 1 if item.exact and not closed else item.value)


def _above(item: TypedLiteral, closed: bool, value_type: ValueType) -> Interval:
    if not value_type.discrete:
        return Interval(item.value, None, low_open=not closed)
    assert isinstance(item.value, int)
    return Interval(item.value if item.exact and closed else item.value + 1, None)
