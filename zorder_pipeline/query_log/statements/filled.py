"""Nulls filled with a constant, compared with another one: ``coalesce(a, 0) > 5`` is ``a > 5``."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp

from zorder_pipeline.model.literals import cut_short
from zorder_pipeline.model.predicate import Comparison, Literal, Or, Predicate, as_solved
from zorder_pipeline.model.values import ValueType

from .clock import SPARKS
from .constants import fold
from .context import Context

__all__ = ["OPPOSITE", "filled", "is_filled"]

OPPOSITE: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
}
"""Of what is never null NOT says the opposite."""
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<=>": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_KINDS = {"integer": "number", "decimal": "number", "float": "number", "string": "string", "boolean": "boolean"}
_KINDS |= {"date": "date", "timestamp": "timestamp_ntz", "timestamp_ntz": "timestamp_ntz"}


def is_filled(node: exp.Expr) -> bool:
    """Whether a side of a comparison has its nulls filled."""
    sides = [side.unnest() for side in (node.this, node.args.get("expression")) if isinstance(side, exp.Expr)]
    return any(isinstance(side, exp.Coalesce) for side in sides)


def filled(left: exp.Expr, op: str, literal: Literal, context: Context) -> Predicate | None:
    """``coalesce(column, constant, ...) op literal``; None where it is something else, or Spark casts a side.

    Delta does not see through it, scans through ``reading/`` do.
    """
    if not isinstance(left, exp.Coalesce) or (name := context.column(left.this)) is None or not left.expressions:
        return None
    kind = _KINDS.get(context.family(name))
    values = [fold(item, context.clock) for item in left.expressions]
    if kind is None or any(value is None or value.kind != kind for value in (*values, literal)):
        return None
    told, column, first = context.compared(name, op, (literal,)), context.type_of(name), values[0]
    if told is None or column is None or first is None:
        return None
    if _is_cast(column.value_type, [value for value in values if value is not None], literal, context):
        return None
    own = as_solved(told)
    collated = kind == "string" and column.type != "string"
    holds = collated or _may_hold(first, op, literal)
    return Or((own, as_solved(Comparison(name, "is_null")))) if holds else own


def _is_cast(own: ValueType, fillings: Sequence[Literal], literal: Literal, context: Context) -> bool:
    """Whether Spark casts the column to a type that has no place for all of its values, or may do so."""
    if own.family == "timestamp_ntz":  # of constants that are instants it makes one, too
        return context.clock.dialect in SPARKS
    doubles = own.family in ("integer", "decimal") and any("e" in value.text.lower() for value in fillings)
    return doubles or cut_short((*fillings, literal), own)


def _may_hold(left: Literal, op: str, right: Literal) -> bool:
    """Whether a comparison of two constants of one kind may hold."""
    try:
        a, b = _value(left), _value(right)
    except (InvalidOperation, ValueError):  # as Spark alone reads them
        return True
    if left.kind == "number" and not (a.is_finite() and b.is_finite()):
        return True
    return bool(_COMPARED[op](a, b))


def _value(literal: Literal) -> Any:
    match literal.kind:
        case "number":
            return Decimal(literal.text)
        case "date" | "timestamp_ntz":
            return dt.datetime.fromisoformat(literal.text)
    return literal.text
