"""Sums and products of a column against numbers, as ranges of the column: ``x + 1 < 5`` holds where ``x < 4`` does.

No reader skips by these ranges, as Spark may overflow where they do not. They tell which rows match, and no more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sqlglot import exp
from sqlglot.errors import SqlglotError

from zorder_pipeline.model.predicate import FLIPPED, And, Comparison, Literal, Opaque, Or, Predicate
from zorder_pipeline.model.schema import Column, TableSchema

from .bounded import one_in
from .clock import Clock
from .conditions import COMPARISONS
from .constants import fold
from .filled import OPPOSITE

__all__ = ["sums_in"]

MOST_DIGITS, MOST_LISTED = 38, 200
_CLOCK = Clock()


def sums_in(predicate: Predicate, schema: TableSchema) -> Iterator[tuple[Opaque, Predicate]]:
    """The conditions on sums and products in a predicate, each with the ranges of its column where it holds.

    >>> condition = Opaque("function", ("x",), "2 * x + 1 BETWEEN 3 AND 8")
    >>> [told.to_sql() for _, told in sums_in(condition, TableSchema((Column("x", "int"),)))]
    ['x >= 1 AND x < 4']
    """
    if isinstance(predicate, And | Or):
        for child in predicate.children:
            yield from sums_in(child, schema)
    elif isinstance(predicate, Opaque) and predicate.expression and len(predicate.columns) == 1:
        try:
            node = one_in(predicate.expression, "spark")
        except (SqlglotError, ValueError, RecursionError):
            return
        if (told := _told(node.unnest(), schema)) is not None:
            yield predicate, told


def _told(node: exp.Expr, schema: TableSchema) -> Predicate | None:
    match node:
        case exp.Not():
            inner = node.this.unnest()
            turned = OPPOSITE.get(type(inner))
            return _compared(inner.this, COMPARISONS[turned], inner.expression, schema) if turned is not None else None
        case exp.Between():
            bounds = ((">=", node.args["low"]), ("<=", node.args["high"]))
            parts = [_compared(node.this, op, bound, schema) for op, bound in bounds]
            known = tuple(part for part in parts if part is not None)
            return And(known) if len(known) == len(parts) else None
        case exp.In() if 0 < len(node.expressions) <= MOST_LISTED:
            parts = [_compared(node.this, "=", item, schema) for item in node.expressions]
            known = tuple(part for part in parts if part is not None)
            return Or(known) if len(known) == len(parts) else None
    return _compared(node.this, COMPARISONS[type(node)], node.expression, schema) if type(node) in COMPARISONS else None


def _compared(left: exp.Expr, op: str, right: exp.Expr, schema: TableSchema) -> Predicate | None:
    """``k * column + m`` against a number, exactly, for whole numbers and decimals that Spark need not round."""
    literal = fold(right, _CLOCK)
    if literal is None and (literal := fold(left, _CLOCK)) is not None:
        left, op = right, FLIPPED[op]
    if literal is None:
        return None
    slope, offset, node = Fraction(1), Fraction(0), left.unnest()
    digits = 0
    while not isinstance(node, exp.Column):
        step = _step(node)
        if step is None:
            return None
        inner, factor, shift = step
        node = inner.unnest()
        slope, offset = slope * factor, offset + slope * shift
        digits += max(len(str(number)) for step in (factor, shift) for number in (step.numerator, step.denominator)) + 1
        if digits > MOST_DIGITS:
            return None
    column = schema.find(".".join(part.name for part in node.parts))
    if slope == 0 or column is None or column.value_type.family not in ("integer", "decimal"):
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
    return _bounded(column.name, FLIPPED[op] if slope < 0 else op, target, column.value_type.family == "integer")


def _of_its_kind(literal: Literal, column: Column) -> bool:
    """Whether Spark compares without a detour by doubles or strings."""
    if re.search(r"[eE]", literal.text):
        return column.type in ("tinyint", "smallint", "int")
    if literal.kind != "number":  # of '5.5' Spark without ANSI mode makes 5
        return column.value_type.family == "integer" and re.fullmatch(r"\s*[+-]?\d+\s*", literal.text) is not None
    return True


def _step(node: exp.Expr) -> tuple[exp.Expr, Fraction, Fraction] | None:
    """The next layer of a linear expression: inner node, factor and shift."""
    if isinstance(node, exp.Neg):
        return node.this, Fraction(-1), Fraction(0)
    if not isinstance(node, exp.Add | exp.Sub | exp.Mul):
        return None
    right, left = _number(node.expression), _number(node.this)
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


def _number(node: exp.Expr) -> Fraction | None:
    literal = fold(node, _CLOCK)
    if literal is None or literal.kind != "number" or not re.fullmatch(r"-?[\d.]+", literal.text):
        return None
    return Fraction(Decimal(literal.text)) if len(literal.text) <= MOST_DIGITS else None


def _bounded(name: str, op: str, target: Fraction, whole: bool) -> Predicate | None:
    """``name op target`` with a literal that can be written: a bound that cannot be is moved outward."""
    number = Decimal(target.numerator) / Decimal(target.denominator)
    if Fraction(number) == target and (target.denominator == 1 or not whole):
        return Comparison(name, op, (Literal("number", f"{number:f}"),))
    if not whole or op in ("<>", "<=>"):
        return None
    if op == "=":
        return Or(())
    if op in (">", ">="):
        return Comparison(name, ">", (Literal("number", str(math.floor(target))),))
    return Comparison(name, "<", (Literal("number", str(math.ceil(target))),))
