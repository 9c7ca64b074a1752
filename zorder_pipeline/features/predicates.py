"""Predicate candidates: whole conditions that no order of a column serves (seed 004, algorithm 1: P5, P6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from zorder_pipeline.model.predicate import And, Literal, Opaque, Or, Predicate, comparisons, predicate_to_json
from zorder_pipeline.model.ranges import Box, Boxes, Interval, Range, columns_asked, to_boxes
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
        for feature in _features(query.predicate):
            if not _served(feature, schema, chosen):
                found[feature].add(i)
    boxes = {feature: _exact_boxes(feature, schema) for feature in found}
    found = _thinned(found, boxes)
    frequent = sorted(found, key=lambda feature: -len(found[feature]))[:MAX_COMPARED]
    served = {
        feature: found[feature].union(*(found[other] for other in frequent if _stricter(boxes[other], boxes[feature])))
        for feature in frequent
    }
    total = sum(weights) or 1.0
    counted = [(feature, sum(weights[i] for i in where), len(where)) for feature, where in served.items()]
    kept = [PredicateCandidate(item, often, n, often / total) for item, often, n in counted if often / total >= gamma]
    return tuple(sorted(kept, key=lambda candidate: -candidate.frequency))


def _features(predicate: Predicate) -> Iterator[Predicate]:
    """The conjuncts; a disjunction is one of them, whole."""
    if isinstance(predicate, And):
        for child in predicate.children:
            yield from _features(child)
    else:
        yield predicate


def _served(feature: Predicate, schema: TableSchema, chosen: Mapping[str, bool]) -> bool:
    """Whether the order of a chosen column answers the feature, or it is none to cluster by."""
    if isinstance(feature, Opaque):
        return False
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
    return None if _opaque_inside(feature) else to_boxes(feature, schema)


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
            implying = implying | found[feature]
            if i in kept:
                result[feature] = implying
            else:
                del result[feature]
    return result


def _stricter(a: Boxes | None, b: Boxes | None) -> bool:
    """Whether every row that satisfies ``a`` surely satisfies ``b``."""
    if a is None or b is None or a == b or not a:
        return False
    asked = columns_asked([b])
    if not asked.issubset(item.column for box in a for item in box):
        return False
    return all(any(implies(mine, other) for other in b) for mine in a)


def implies(a: Box, b: Box) -> bool:
    """Whether every row that matches ``a`` surely matches ``b``, as boxes; False where it cannot be told.

    A box may be weaker than the predicate it came from, so for predicates this holds only when ``b`` is exact.

    >>> small, large = (Interval(2, 3),), (Interval(1, None),)
    >>> implies((Range("x", "int", small),), (Range("x", "int", large),))
    True
    """
    if any(_empty(item) for item in a):
        return True
    return all(_universal(item) or any(_within(mine, item) for mine in a) for item in b)


def _empty(item: Range) -> bool:
    return not item.nulls and all(_hollow(interval) for interval in item.intervals)


def _universal(item: Range) -> bool:
    return item.nulls and any(interval.low is None and interval.high is None for interval in item.intervals)


def _within(a: Range, b: Range) -> bool:
    if a.column != b.column or (a.nulls and not b.nulls):
        return False
    return all(_hollow(inner) or any(_inside(inner, outer) for outer in b.intervals) for inner in a.intervals)


def _inside(inner: Interval, outer: Interval) -> bool:
    if outer.low is not None:
        if inner.low is None:
            return False
        low, bound = _place(inner.low), _place(outer.low)
        if low < bound or (low == bound and outer.low_open and not inner.low_open):
            return False
    if outer.high is not None:
        if inner.high is None:
            return False
        high, bound = _place(inner.high), _place(outer.high)
        if high > bound or (high == bound and outer.high_open and not inner.high_open):
            return False
    return True


def _hollow(interval: Interval) -> bool:
    if interval.low is None or interval.high is None:
        return False
    low, high = _place(interval.low), _place(interval.high)
    return bool(low > high or (low == high and (interval.low_open or interval.high_open)))


def _place(value: Value | None) -> tuple[Any, ...]:
    """Sort key of a bound: NaN after every other number."""
    return (1,) if isinstance(value, float) and value != value else (0, value)
