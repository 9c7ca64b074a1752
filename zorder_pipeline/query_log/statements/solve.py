"""Monotone functions of one column against a constant, solved for the column.

Spark unwraps some casts itself, so those count for every reader. Everything else solved here is marked ``solved``:
Delta's own file selection does not see through ``year(ts) = 2024``, only scans through ``reading/`` do.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sqlglot import exp

from zorder_pipeline.model.predicate import FLIPPED, Comparison, Literal, Or, Predicate, begins_as
from zorder_pipeline.model.schema import Column

from .clock import SPARKS, Clock
from .constants import fold
from .counted import counted_moment
from .days import by_days
from .literals import DOUBLES, MOMENT_TYPES
from .types import Find, is_own_type

__all__ = ["column_behind_cast", "solved"]

MOST_DIGITS, DOUBLE_DIGITS = 38, 15
_FROM_ZERO = (*SPARKS, "snowflake", "bigquery")
"""Dialects in which texts begin at 0 as they do at 1; in DuckDB one character fewer is taken then, in Trino none."""


def column_behind_cast(node: exp.Expr, literal: Literal, find: Find) -> str | None:
    """The column under a widening cast, where Spark's comparison with ``literal`` is one of the column itself."""
    found = find(node.this) if isinstance(node, exp.Cast) else None
    if found is None or found[1] is None or not isinstance(node, exp.Cast) or node.args.get("format"):
        return None
    name, column = found[0], found[1]
    family, to = column.value_type.family, node.to.this
    if is_own_type(column, node.to):
        return name
    if family == "integer" and to in exp.DataType.INTEGER_TYPES:
        return name if _width(to) >= _width(exp.DataType.build(column.type, dialect="spark").this) else None
    if family == "date" and to in MOMENT_TYPES and literal.kind != "string":  # of which the column would drop the time
        return name
    if literal.kind == "number" and _keeps_numbers(column, node.to) and len(literal.text) <= DOUBLE_DIGITS:
        return name
    return None


def _keeps_numbers(column: Column, to: exp.DataType) -> bool:
    """Whether a cast gives every value of the column the same value, or null."""
    family, own = column.value_type.family, exp.DataType.build(column.type, dialect="spark").this
    if to.this in DOUBLES:
        return own == exp.DType.FLOAT or (family == "integer" and _width(own) <= _width(exp.DType.INT))
    if to.this not in (exp.DType.DECIMAL, exp.DType.BIGDECIMAL) or family not in ("integer", "decimal"):
        return False
    sizes = [int(item.name) for item in to.expressions if item.name.isdecimal()]
    return ([*sizes, 10, 0][1] if len(sizes) > 1 else 0) >= column.value_type.scale


def _width(kind: exp.DType) -> int:
    return {"TINYINT": 1, "SMALLINT": 2, "INT": 4, "BIGINT": 8}.get(kind.value, 0)


def solved(left: exp.Expr, op: str, literal: Literal, find: Find, clock: Clock) -> Predicate | None:
    """``left op literal`` as a range of the column in ``left``; None when it is none that can be solved."""
    left = left.unnest()
    for solver in (by_days, counted_moment, _prefix):
        if (told := solver(left, op, literal, find, clock)) is not None:
            return told
    return _linear(left, op, literal, find)


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


def _linear(left: exp.Expr, op: str, literal: Literal, find: Find) -> Predicate | None:
    """``k * column + m`` against a number, exactly, for whole numbers and decimals that Spark need not round."""
    slope, offset, node = Fraction(1), Fraction(0), left
    digits = 0
    clock = Clock()
    while (found := find(node)) is None:
        step = _step(node, clock)
        if step is None:
            return None
        node, factor, shift = step
        slope, offset = slope * factor, offset + slope * shift
        digits += max(len(str(number)) for step in (factor, shift) for number in (step.numerator, step.denominator)) + 1
        if digits > MOST_DIGITS:
            return None
    name, column = found
    if slope == 0 or node is left or column is None or column.value_type.family not in ("integer", "decimal"):
        return None
    if column.value_type.digits + digits > MOST_DIGITS or not _of_its_kind(literal, column):
        return None
    try:
        number = Decimal(literal.text)
        if abs(number.adjusted()) > MOST_DIGITS or len(literal.text) > 2 * MOST_DIGITS:
            return None  # 1e999999999 would be written out
        target = (Fraction(number) - offset) / slope
    except (InvalidOperation, ValueError, OverflowError):
        return None
    if slope < 0:
        op = FLIPPED[op]
    return _bounded(name, op, target, column.value_type.family == "integer")


def _of_its_kind(literal: Literal, column: Column) -> bool:
    """Whether Spark compares without a detour by doubles or strings."""
    if re.search(r"[eE]", literal.text):
        return column.type in ("tinyint", "smallint", "int")
    if literal.kind != "number":  # of '5.5' Spark without ANSI mode makes 5
        return column.value_type.family == "integer" and re.fullmatch(r"\s*[+-]?\d+\s*", literal.text) is not None
    return True


def _step(node: exp.Expr, clock: Clock) -> tuple[exp.Expr, Fraction, Fraction] | None:
    """The next layer of a linear expression: inner node, factor and shift."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        return node.this, Fraction(-1), Fraction(0)
    if not isinstance(node, exp.Add | exp.Sub | exp.Mul):
        return None
    right, left = _number(node.expression, clock), _number(node.this, clock)
    match node:
        case exp.Mul() if right is not None:
            return node.this, right, Fraction(0)
        case exp.Mul() if left is not None:
            return node.expression, left, Fraction(0)
        case exp.Add() if right is not None:
            return node.this, Fraction(1), right
        case exp.Add() if left is not None:
            return node.expression, Fraction(1), left
        case exp.Sub() if right is not None:
            return node.this, Fraction(1), -right
        case exp.Sub() if left is not None:
            return node.expression, Fraction(-1), left
    return None


def _number(node: exp.Expr, clock: Clock) -> Fraction | None:
    literal = fold(node, clock)
    if literal is None or literal.kind != "number" or not re.fullmatch(r"-?[\d.]+", literal.text):
        return None
    return Fraction(Decimal(literal.text)) if len(literal.text) <= MOST_DIGITS else None


def _bounded(name: str, op: str, target: Fraction, whole: bool) -> Predicate | None:
    """``name op target`` with a literal that can be written: a bound that cannot be is moved outward."""
    number = Decimal(target.numerator) / Decimal(target.denominator)
    if Fraction(number) == target and (target.denominator == 1 or not whole):
        return Comparison(name, op, (Literal("number", f"{number:f}"),), derived=True, solved=True)
    if not whole or op in ("<>", "<=>"):
        return None
    if op == "=":
        return Or(())
    if op in (">", ">="):
        return Comparison(name, ">", (Literal("number", str(math.floor(target))),), derived=True, solved=True)
    return Comparison(name, "<", (Literal("number", str(math.ceil(target))),), derived=True, solved=True)
