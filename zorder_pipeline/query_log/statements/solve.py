"""Monotone functions of one column against a constant, solved for the column.

Spark unwraps some casts itself, so those count for every reader. Everything else solved here is marked ``solved``:
Delta's own file selection does not see through ``year(ts) = 2024``, only scans through ``reading/`` do.
"""

from __future__ import annotations

from sqlglot import exp

from zorder_pipeline.model.predicate import Literal, Predicate, begins_as
from zorder_pipeline.model.values import ValueType

from .clock import SPARKS, Clock
from .counted import counted_moment
from .days import by_days
from .literals import DOUBLES, MOMENT_TYPES
from .types import Find, is_own_type

__all__ = ["column_behind_cast", "solved"]

DOUBLE_DIGITS = 15
_FROM_ZERO = (*SPARKS, "snowflake", "bigquery")
"""Dialects in which texts begin at 0 as they do at 1; in DuckDB one character fewer is taken then, in Trino none."""


def column_behind_cast(node: exp.Expr, literal: Literal, find: Find) -> str | None:
    """The column under a widening cast, where Spark's comparison with ``literal`` is one of the column itself."""
    found = find(node.this) if isinstance(node, exp.Cast) else None
    if found is None or found[1] is None or not isinstance(node, exp.Cast) or node.args.get("format"):
        return None
    name, column = found[0], found[1]
    own, to = column.value_type, node.to.this
    if is_own_type(column, node.to):
        return name
    if own.family == "date" and to in MOMENT_TYPES and literal.kind != "string":  # of which it would drop the time
        return name
    wider = _number_type(node.to)
    if wider is None or not own.widens_to(wider):
        return None
    exact = wider.family == "integer" or (literal.kind == "number" and len(literal.text) <= DOUBLE_DIGITS)
    return name if exact else None


def _number_type(to: exp.DataType) -> ValueType | None:
    """The type of numbers that one is in Spark; None of others."""
    if to.this in (exp.DType.DECIMAL, exp.DType.BIGDECIMAL):
        sizes = [int(item.name) for item in to.expressions if item.name.isdecimal()]
        precision, scale = [*sizes, *(10, 0)[len(sizes) :]]
        return ValueType(f"decimal({precision},{scale})")
    if to.this in DOUBLES:
        return ValueType("double")
    return ValueType.parse(to.this.value) if to.this in exp.DataType.INTEGER_TYPES else None


def solved(left: exp.Expr, op: str, literal: Literal, find: Find, clock: Clock) -> Predicate | None:
    """``left op literal`` as a range of the column in ``left``; None when it is none that can be solved."""
    left = left.unnest()
    for solver in (by_days, counted_moment, _prefix):
        if (told := solver(left, op, literal, find, clock)) is not None:
            return told
    return None


def _prefix(left: exp.Expr, op: str, literal: Literal, find: Find, clock: Clock) -> Predicate | None:
    if not isinstance(left, exp.Left | exp.Substring) or op != "=" or literal.kind != "string" or not literal.text:
        return None
    found = find(left.this)
    start, length = left.args.get("start"), left.args.get("length") or left.args.get("expression")
    first = ("0", "1") if clock.dialect in _FROM_ZERO else ("1",)
    whole = isinstance(left, exp.Left) or (isinstance(start, exp.Literal) and start.this in first)
    size = int(length.this) if isinstance(length, exp.Literal) and length.this.isdecimal() else None
    if found is None or not whole or size is None or (found[1] is not None and found[1].value_type.family != "string"):
        return None
    return begins_as(found[0], literal.text, size, derived=True)
