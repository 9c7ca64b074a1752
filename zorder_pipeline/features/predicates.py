"""Predicate candidates: whole conditions that no order of a column serves (seed 004, algorithm 1: P5, P6)."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from itertools import accumulate
from typing import Any, TypeAlias

from zorder_pipeline.model.literals import type_literal
from zorder_pipeline.model.predicate import (
    And,
    Comparison,
    Literal,
    Opaque,
    Or,
    Predicate,
    comparisons,
    conjuncts,
    predicate_to_json,
)
from zorder_pipeline.model.ranges import MAX_BOXES, Box, Boxes, Interval, Range, to_boxes
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.values import Value
from zorder_pipeline.model.workload import LoggedQuery

from .candidates import GAMMA, MIN_MAX_OPS, Candidate
from .expressions import compared_with

__all__ = ["PredicateCandidate", "implies", "predicate_candidates"]

MAX_COMPARED = 200
"""Predicates among which implications are looked for, the most frequent ones."""
THRESHOLDS = 4
"""Of the constants that one thing is compared with on one side, so many are tried as predicates."""

_Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class PredicateCandidate:
    """A whole predicate that might be worth a one-bit feature (SOP), because no order of a column serves it.

    Attributes:
        predicate: one `Comparison` or `Opaque`; may hold literals, so hide them where it is shown.
        frequency, queries, share: of the queries that contain it, as in `Candidate`.
    """

    predicate: Predicate
    frequency: float
    queries: int
    share: float

    def to_json(self, redact: bool = False) -> dict[str, Any]:
        """JSON-ready form; with ``redact`` without literals."""
        told: dict[str, Any] = {"sql": self.predicate.to_sql(redact)}
        told |= {} if redact else {"predicate": predicate_to_json(self.predicate)}
        return {**told, "frequency": self.frequency, "queries": self.queries, "share": self.share}


def predicate_candidates(
    queries: Sequence[LoggedQuery],
    weights: Sequence[float],
    schema: TableSchema,
    candidates: Sequence[Candidate],
    *,
    gamma: float = GAMMA,
) -> tuple[PredicateCandidate, ...]:
    """Predicates that no key column serves, most frequent first (P5, P6).

    These are conditions without min/max form, comparisons of a column that is not chosen, and disjunctions across
    columns; comparisons that the statement only implies, and those of partition columns, do not count. A query that
    asks for something stricter is served by a weaker predicate, too (x > 5 implies x > 3), so it counts for both. Of
    many constants on one side of the same column or expression a few are tried, the weakest condition among them: it
    serves constants that were never asked for.

    Args:
        gamma: weighted share of the queries that must contain the predicate, or one that implies it.
    """
    chosen = {candidate.column: candidate.chosen for candidate in candidates}
    found: dict[Predicate, set[int]] = defaultdict(set)
    for i, query in enumerate(queries):
        for feature in conjuncts(query.predicate):
            if not _served(feature, schema, chosen):
                found[feature].add(i)
    boxes = {feature: _exact_boxes(feature, schema) for feature in found}
    found = _thinned(found, boxes)
    frequent = sorted(found, key=lambda feature: -len(found[feature]))[:MAX_COMPARED]
    where = [found[feature] for feature in frequent]  # each pair by place: a hash goes through all literals of a list
    numbers: dict[Boxes | None, int] = {}
    alike = [numbers.setdefault(boxes[feature], len(numbers)) for feature in frequent]
    asked = [_prepared(boxes[feature]) for feature in frequent]
    served = [
        here.union(*(where[j] for j, a in enumerate(asked) if alike[j] != alike[i] and _stricter(a, asked[i])))
        for i, here in enumerate(where)
    ]
    total = sum(weights) or 1.0
    counted = [
        (feature, sum(weights[i] for i in where), len(where)) for feature, where in zip(frequent, served, strict=True)
    ]
    kept = [PredicateCandidate(item, often, n, often / total) for item, often, n in counted if often / total >= gamma]
    return tuple(sorted(kept, key=lambda candidate: -candidate.frequency))


def _served(feature: Predicate, schema: TableSchema, chosen: Mapping[str, bool]) -> bool:
    """Whether the order of a chosen column answers the feature, or it is none to cluster by."""
    if isinstance(feature, Opaque):
        looked_at = [schema.find(name) for name in feature.columns]
        return bool(looked_at) and all(column is not None and column.partition for column in looked_at)
    leaves = list(comparisons(feature))
    columns = {schema.find(leaf.column) for leaf in leaves}
    if None in columns or any(leaf.derived for leaf in leaves):
        return True
    known = [column for column in columns if column is not None]
    if any(column.partition for column in known):
        return True
    if isinstance(feature, Or) and (len(known) > 1 or _opaque_inside(feature)):
        return False
    return all(chosen.get(column.name, False) for column in known) and all(leaf.op in MIN_MAX_OPS for leaf in leaves)


def _opaque_inside(predicate: Predicate) -> bool:
    if isinstance(predicate, And | Or):
        return any(_opaque_inside(child) for child in predicate.children)
    return isinstance(predicate, Opaque)


def _exact_boxes(feature: Predicate, schema: TableSchema) -> Boxes | None:
    """The feature as boxes where they say all of it, an expression standing for a column; None otherwise."""
    if isinstance(feature, Opaque):
        return _compared_boxes(feature.expression)
    if _opaque_inside(feature) or _parts(feature) > MAX_BOXES:
        return None
    return to_boxes(feature, schema) if all(_told(leaf, schema) for leaf in comparisons(feature)) else None


def _parts(predicate: Predicate) -> int:
    """Boxes that it becomes where none are joined."""
    match predicate:
        case And(children):
            return math.prod(map(_parts, children))
        case Or(children):
            return sum(map(_parts, children))
    return 1


def _told(leaf: Comparison, schema: TableSchema) -> bool:
    """Whether a comparison is known as a range with nothing left out, such as one end of a BETWEEN."""
    column = schema.find(leaf.column)
    if column is None or to_boxes(leaf, schema) == ((),):
        return False
    known = (literal for literal in leaf.literals if literal.kind != "null")
    return all(type_literal(literal, column.value_type) is not None for literal in known)


def _compared_boxes(text: str) -> Boxes | None:
    """An expression compared with numbers or dates, as a box.

    >>> _compared_boxes("MONTH(ts) > 3")[0][0].intervals
    (Interval(low=Decimal('3'), high=None, low_open=True, high_open=False),)
    """
    found = compared_with(text) if text else None
    if found is None or len({literal.kind for literal in found[2]}) != 1:
        return None
    subject, op, literals = found
    values = [_constant(literal) for literal in literals]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    match op:
        case ">" | ">=":
            intervals = [Interval(known[0], None, low_open=op == ">")]
        case "<" | "<=":
            intervals = [Interval(None, known[0], high_open=op == "<")]
        case "between":
            intervals = [Interval(known[0], known[1])]
        case _:
            intervals = [Interval(value, value) for value in known]
    return ((Range(subject, literals[0].kind, tuple(intervals)),),)


def _constant(literal: Literal) -> Any:
    """A number or a day in an order of its own; None for what is neither."""
    try:
        match literal.kind:
            case "number":
                return Decimal(literal.text)
            case "date":
                return date.fromisoformat(literal.text).toordinal()
    except (InvalidOperation, ValueError):
        pass
    return None


def _thinned(found: Mapping[Predicate, set[int]], boxes: Mapping[Predicate, Boxes | None]) -> dict[Predicate, set[int]]:
    """``found``, of many conditions that bound the same thing on the same side only `THRESHOLDS`, the weakest included.

    Those that are left get the queries of all that imply them.
    """
    sides: dict[tuple[str, str, bool], list[tuple[Interval, Predicate]]] = defaultdict(list)
    for feature in found:
        match boxes[feature]:
            case ((Range(column, kind, (Interval(low, high) as bound,), False),),) if (low is None) != (high is None):
                sides[column, kind, high is None].append((bound, feature))
    result = dict(found)
    for (_, _, from_below), bounds in sides.items():
        if len(bounds) <= THRESHOLDS:
            continue
        if from_below:
            bounds.sort(key=lambda item: (_place(item[0].low), item[0].low_open), reverse=True)
        else:
            bounds.sort(key=lambda item: (_place(item[0].high), not item[0].high_open))
        kept = {i * (len(bounds) - 1) // (THRESHOLDS - 1) for i in range(THRESHOLDS)}
        implying: set[int] = set()
        for i, (_, feature) in enumerate(bounds):  # the strictest first
            implying |= found[feature]
            if i in kept:
                result[feature] = set(implying)
            else:
                del result[feature]
    return result


@dataclass(frozen=True)
class _Asked:
    """A range, made ready to be held against many others.

    Attributes:
        everything: whether every value and a null match.
        lows: sort keys of the lower bounds of its intervals, ascending; those without a value in them are left out.
        highs: of the upper bounds, each beside its lower one.
        reach: the largest of ``highs`` up to each place.
        points: the values, where all intervals are single ones; else None.
    """

    column: str
    nulls: bool
    everything: bool
    lows: tuple[_Key, ...]
    highs: tuple[_Key, ...]
    reach: tuple[_Key, ...]
    points: frozenset[_Key] | None

    @classmethod
    def of(cls, item: Range) -> _Asked:
        keyed = [(_low(interval), _high(interval)) for interval in item.intervals]
        kept = sorted((low, high) for low, high in keyed if not _hollow(low, high))
        lows, highs = tuple(low for low, _ in kept), tuple(high for _, high in kept)
        points = frozenset(lows) if all(low[1:2] == high[1:2] != () for low, high in kept) else None
        everything = item.nulls and any(interval.low is None and interval.high is None for interval in item.intervals)
        return cls(item.column, item.nulls, everything, lows, highs, tuple(accumulate(highs, max)), points)


def _prepared(boxes: Boxes | None) -> tuple[tuple[_Asked, ...], ...] | None:
    return None if boxes is None else tuple(tuple(_Asked.of(item) for item in box) for box in boxes)


def _stricter(a: Sequence[Sequence[_Asked]] | None, b: Sequence[Sequence[_Asked]] | None) -> bool:
    """Whether every row that satisfies ``a`` surely satisfies ``b``."""
    if not a or b is None:
        return False
    asked = {item.column for box in b for item in box}
    if not asked.issubset(item.column for box in a for item in box):
        return False
    return all(any(_implies(mine, other) for other in b) for mine in a)


def implies(a: Box, b: Box) -> bool:
    """Whether every row that matches ``a`` surely matches ``b``, as boxes; False where it cannot be told.

    A box may be weaker than the predicate it came from, so for predicates this holds only when ``b`` is exact.

    >>> small, large = (Interval(2, 3),), (Interval(1, None),)
    >>> implies((Range("x", "int", small),), (Range("x", "int", large),))
    True
    """
    return _implies([_Asked.of(item) for item in a], [_Asked.of(item) for item in b])


def _implies(a: Sequence[_Asked], b: Sequence[_Asked]) -> bool:
    if any(not item.nulls and not item.lows for item in a):
        return True
    return all(item.everything or any(_within(mine, item) for mine in a) for item in b)


def _within(a: _Asked, b: _Asked) -> bool:
    """Whether a null matches ``b`` if one matches ``a``, and each interval of ``a`` lies in one of ``b``."""
    if a.column != b.column or (a.nulls and not b.nulls):
        return False
    if not a.lows or not b.lows:
        return not a.lows
    if a.points is not None and b.points is not None:
        return a.points <= b.points
    if len(b.lows) == 1:
        return b.lows[0] <= a.lows[0] and a.reach[-1] <= b.highs[0]
    begun = ((bisect_right(b.lows, low), high) for low, high in zip(a.lows, a.highs, strict=True))
    return all(n and high <= b.reach[n - 1] for n, high in begun)


def _low(interval: Interval) -> _Key:
    """Sort key of a lower bound: none first, and of two with one value the closed one."""
    return (0,) if interval.low is None else (1, _place(interval.low), interval.low_open)


def _high(interval: Interval) -> _Key:
    """Sort key of an upper bound: none last, and of two with one value the open one first."""
    return (2,) if interval.high is None else (1, _place(interval.high), not interval.high_open)


def _hollow(low: _Key, high: _Key) -> bool:
    """Whether no value lies between two bounds."""
    if len(low) == 1 or len(high) == 1:
        return False
    return bool(low[1] > high[1] or (low[1] == high[1] and (low[2] or not high[2])))


def _place(value: Value | None) -> _Key:
    """Sort key of a bound: NaN after every other number."""
    return (1,) if isinstance(value, float) and value != value else (0, value)
