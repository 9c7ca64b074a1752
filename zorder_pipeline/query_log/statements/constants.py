"""Constant expressions folded to one literal: casts, arithmetic, intervals, and time relative to the query."""

from __future__ import annotations

import datetime as dt
import operator
from decimal import Decimal
from itertools import islice

from sqlglot import exp
from sqlglot.errors import SqlglotError

from zorder_pipeline.model.predicate import Literal

from .clock import IN_SECONDS, Clock
from .epochs import with_epochs
from .literals import MOMENT_TYPES, computed, plain
from .relative import called, moment, with_moments

__all__ = ["constant", "fold"]

VARYING = (exp.Column, exp.Select, exp.AggFunc, exp.Parameter, exp.Placeholder, exp.Rand)
MOST_NODES = 200
ORDERED = exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE
COUNTED_IN = {"timestamp_seconds": 1_000_000, "timestamp_millis": 1_000, "timestamp_micros": 1}
"""Microseconds of what a moment is counted in."""


def fold(node: exp.Expr, clock: Clock) -> Literal | None:
    """A constant expression as one literal; None when it is none, or not one that can be folded."""
    node = node.unnest()
    if (found := plain(node)) is not None:
        return found
    if node.find(*VARYING) or next(islice(node.walk(), MOST_NODES, None), None) is not None:
        return None
    try:
        at = _extreme(node, clock) if isinstance(node, exp.Least | exp.Greatest) else moment(node, clock)
        if at is not None:
            return _shown(at)
        if (instant := _instant(node, clock)) is not None:
            return instant
        told = with_moments(with_epochs(node, clock), clock)
        return None if told.find(exp.Anonymous) else computed(told)
    except (SqlglotError, ValueError, OverflowError, ArithmeticError, AttributeError, TypeError, LookupError):
        return None


def _extreme(node: exp.Expr, clock: Clock) -> dt.date | None:
    """``least`` or ``greatest`` of dates; None of anything else."""
    found = [fold(part, clock) for part in (node.this, *node.expressions)]
    days = [dt.date.fromisoformat(literal.text) for literal in found if literal is not None and literal.kind == "date"]
    if len(days) < len(found):
        return None
    return min(days) if isinstance(node, exp.Least) else max(days)


def _shown(at: dt.date) -> Literal:
    if isinstance(at, dt.datetime):
        return Literal("timestamp_ntz", at.isoformat(sep=" "))
    return Literal("date", at.isoformat())


def _instant(node: exp.Expr, clock: Clock) -> Literal | None:
    """A moment that is told in UTC, whatever the session's zone is."""
    given: exp.Expr | None = None
    span = COUNTED_IN["timestamp_seconds"]
    match node:
        case exp.Anonymous(expressions=[one]) if called(node) in COUNTED_IN:
            given, span = one, COUNTED_IN[called(node)]
        case exp.Cast() if clock.dialect in IN_SECONDS and node.to.this in MOMENT_TYPES - {exp.DType.TIMESTAMPNTZ}:
            given = node.this
        case exp.UnixToTime() if not any(value for name, value in node.args.items() if name != "this"):
            given = node.this
    count = None if given is None else computed(given)
    if count is None or count.kind != "number" or not count.text.removeprefix("-").isdecimal():
        return None
    at = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=int(count.text) * span)
    return Literal("timestamp", at.isoformat(sep=" ") + "Z")


def constant(node: exp.Expr, clock: Clock) -> Literal | None:
    """What a comparison of constants comes to, a boolean or null; None where it is none, or that is not known."""
    if not isinstance(node, ORDERED | exp.NullSafeEQ | exp.Is) or node.find(*VARYING):
        return None
    left, right = fold(node.this, clock), fold(node.expression, clock)
    if left is None or right is None:
        return None
    if isinstance(node, exp.Is | exp.NullSafeEQ) and "null" in (left.kind, right.kind):
        return Literal("boolean", "true" if left.kind == right.kind else "false")
    if "null" in (left.kind, right.kind):
        return Literal("null")
    if left.kind != right.kind or left.kind not in ("number", "string") or isinstance(node, exp.Is):
        return None
    if left.kind == "string" and not isinstance(node, exp.EQ | exp.NEQ | exp.NullSafeEQ):
        return None
    one, other = ((Decimal(side.text) if side.kind == "number" else side.text) for side in (left, right))
    if any(isinstance(side, Decimal) and not side.is_finite() for side in (one, other)):
        return None  # NaN equals itself in Spark, and is larger than any number
    truth: bool = {
        exp.LT: operator.lt, exp.LTE: operator.le, exp.GT: operator.gt, exp.GTE: operator.ge, exp.NEQ: operator.ne,
    }.get(type(node), operator.eq)(one, other)  # fmt: skip
    return Literal("boolean", "true" if truth else "false")
