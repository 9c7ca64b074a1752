"""Predicate candidates: whole conditions that no order of a column serves (seed 004, algorithm 1: P5, P6)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

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
from zorder_pipeline.model.ranges import MAX_BOXES, Boxes, Interval, Range, to_boxes
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.workload import LoggedQuery

from .candidates import GAMMA, MIN_MAX_OPS, Candidate
from .expressions import compared_with
from .implication import prepared, sort_key, stricter

__all__ = ["PredicateCandidate", "predicate_candidates"]

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
        for feature in conjuncts(query.predicate):
            if not _served(feature, schema, chosen):
                found[feature].add(i)
    boxes = {feature: _exact_boxes(feature, schema) for feature in found}
    found = _thinned(found, boxes)
    frequent = sorted(found, key=lambda feature: -len(found[feature]))[:MAX_COMPARED]
    where = [found[feature] for feature in frequent]  # each pair by place: a hash goes through all literals of a list
    numbers: dict[Boxes | None, int] = {}
    alike = [numbers.setdefault(boxes[feature], len(numbers)) for feature in frequent]
    asked = [prepared(boxes[feature]) for feature in frequent]
    served = [
        here.union(*(where[j] for j, a in enumerate(asked) if alike[j] != alike[i] and stricter(a, asked[i])))
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
            bounds.sort(key=lambda item: (sort_key(item[0].low), item[0].low_open), reverse=True)
        else:
            bounds.sort(key=lambda item: (sort_key(item[0].high), not item[0].high_open))
        kept = {i * (len(bounds) - 1) // (THRESHOLDS - 1) for i in range(THRESHOLDS)}
        implying: set[int] = set()
        for i, (_, feature) in enumerate(bounds):  # the strictest first
            implying |= found[feature]
            if i in kept:
                result[feature] = set(implying)
            else:
                del result[feature]
    return result
