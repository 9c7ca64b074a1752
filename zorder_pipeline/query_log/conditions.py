"""SQL conditions as predicate trees over one table's columns; what cannot be said becomes weaker, never stronger."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from zorder_pipeline.model.predicate import And, Comparison, Literal, Opaque, Or, Predicate

from .constants import DATE_TYPES, Clock, fold

__all__ = ["TRUE", "Context", "condition"]

TRUE = And(())
Resolve = Callable[[exp.Column], str | None]
"""The column's name when it belongs to the table in question, else None."""

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NullSafeEQ: "<=>",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
FLIPPED = {"=": "=", "<=>": "<=>", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<", "is_null": "is_not_null"}
NEGATED |= {"is_not_null": "is_null", "in": "not_in"}
MAX_IN = 10_000
DATE_CASTS = (exp.TsOrDsToDate, exp.Date)


@dataclass
class Context:
    """What a condition is read with.

    Attributes:
        resolve: see `Resolve`.
        clock: when the statement ran, for relative time.
    """

    resolve: Resolve
    clock: Clock


def condition(node: exp.Expr, context: Context, negated: bool = False) -> Predicate:
    """``node`` as far as it restricts the table's rows; `TRUE` when it says nothing about it."""
    node = node.unnest()
    if node.args.get("negate"):  # NOT LIKE and its kin are one node
        node = node.copy()
        node.set("negate", None)
        negated = not negated
    match node:
        case exp.Not():
            return condition(node.this, context, not negated)
        case exp.And() | exp.Or():
            parts = [condition(part, context, negated) for part in node.flatten()]
            if isinstance(node, exp.And) != negated:
                kept = [part for part in parts if part != TRUE]
                return kept[0] if len(kept) == 1 else And(tuple(kept))
            return TRUE if TRUE in parts else Or(tuple(parts))
        case exp.Boolean():
            return TRUE if bool(node.this) != negated else Or(())
    found = _atom(node, context)
    if found is None:
        return _opaque(node, context)
    return _negation(found, node, context) if negated else found


def _negation(found: Predicate, node: exp.Expr, context: Context) -> Predicate:
    """NOT of an atom; a null compares as unknown on both sides, so it stays excluded."""
    if isinstance(found, Comparison):
        if found.op in NEGATED:
            return Comparison(found.column, NEGATED[found.op], found.literals, found.derived)
        if found.op == "between" and not found.derived:
            low, high = found.literals
            return Or((Comparison(found.column, "<", (low,)), Comparison(found.column, ">", (high,))))
    return _opaque(node, context)


def _opaque(node: exp.Expr, context: Context) -> Predicate:
    columns = [context.resolve(column) for column in node.find_all(exp.Column)]
    mine = tuple(dict.fromkeys(name for name in columns if name is not None))
    return Opaque(type(node).__name__.lower(), mine) if mine else TRUE


def _atom(node: exp.Expr, context: Context) -> Predicate | None:
    if type(node) in COMPARISONS:
        return _comparison(node.this, COMPARISONS[type(node)], node.expression, context)
    column = _column(node.this, context) if isinstance(node.this, exp.Expr) else None
    match node:
        case exp.Column() if (name := context.resolve(node)) is not None:  # a bare boolean column
            return Comparison(name, "=", (Literal("boolean", "true"),))
        case exp.Between():
            low, high = fold(node.args["low"], context.clock), fold(node.args["high"], context.clock)
            if low is not None and high is not None and column is not None:
                return Comparison(column, "between", (low, high))
            parts = [
                _comparison(node.this, op, bound, context)
                for op, bound in ((">=", node.args["low"]), ("<=", node.args["high"]))
            ]
            known = tuple(part for part in parts if part is not None)
            return And(known) if len(known) == 2 else known[0] if known else None
        case exp.In() if column is not None and node.expressions and not node.args.get("query"):
            if len(node.expressions) > MAX_IN:
                return None
            values = [fold(item, context.clock) for item in node.expressions]
            present = tuple(value for value in values if value is not None)
            return Comparison(column, "in", present) if len(present) == len(values) else None
        case exp.Is() if column is not None and isinstance(node.expression, exp.Null):
            return Comparison(column, "is_null")
        case exp.Is() if column is not None and isinstance(node.expression, exp.Boolean):
            truth = "true" if node.expression.this else "false"
            return Comparison(column, "<=>", (Literal("boolean", truth),))
        case exp.Like() if column is not None:
            return _like(node, column)
        case exp.StartsWith() if column is not None:
            prefix = fold(node.expression, context.clock)
            return Comparison(column, "starts_with", (prefix,)) if prefix and prefix.kind == "string" else None
    return None


def _like(node: exp.Like, column: str) -> Predicate | None:
    if node.args.get("escape") or not (isinstance(node.expression, exp.Literal) and node.expression.is_string):
        return None
    pattern = node.expression.this
    if "\\" in pattern:
        return None
    prefix = re.split(r"[%_]", pattern, maxsplit=1)[0]
    if prefix == pattern:
        return Comparison(column, "=", (Literal("string", pattern),))
    if not prefix:
        return None
    starts = Comparison(column, "starts_with", (Literal("string", prefix),), derived=pattern != prefix + "%")
    return starts if pattern == prefix + "%" else And((starts, Opaque("like", (column,))))


def _comparison(left: exp.Expr, op: str, right: exp.Expr, context: Context) -> Predicate | None:
    literal = fold(right, context.clock)
    if literal is None:
        literal, left, op = fold(left, context.clock), right, FLIPPED[op]
    if literal is None:
        return None
    left = left.unnest()
    if (name := _column(left, context)) is not None:
        return Comparison(name, op, (literal,))
    return _solved(left, op, literal, context)


def _solved(left: exp.Expr, op: str, literal: Literal, context: Context) -> Predicate | None:
    """A monotone function of the column against a constant, as a range of the column itself."""
    if isinstance(left, exp.Year) and literal.kind == "number" and literal.text.isdigit():
        name = _column(_without_date_cast(left.this), context)
        year = int(literal.text)
        if name is not None and 1 <= year < 9999:
            return _period(name, op, dt.date(year, 1, 1), dt.date(year + 1, 1, 1))
    if isinstance(left, exp.TimestampTrunc | exp.DateTrunc) and literal.kind in ("string", "date", "timestamp_ntz"):
        name, unit = _column(left.this, context), str(left.args.get("unit") or "").strip("'").upper()
        start = _day(literal)
        if name is not None and start is not None and (end := _unit_end(start, unit)) is not None:
            return _period(name, op, start, end)
    if (inner := _without_date_cast(left)) is not left:
        name, day = _column(inner, context), _day(literal)
        if name is not None and day is not None and day < dt.date(9999, 12, 31):
            return _period(name, op, day, day + dt.timedelta(days=1))
    if isinstance(left, exp.Left | exp.Substring) and op == "=" and literal.kind == "string":
        name = _column(left.this, context)
        start, length = left.args.get("start"), left.args.get("length") or left.args.get("expression")
        whole = isinstance(left, exp.Left) or (isinstance(start, exp.Literal) and start.this in ("0", "1"))
        counted = isinstance(length, exp.Literal) and length.this.isdigit() and len(literal.text) == int(length.this)
        if name is not None and whole and counted:
            return Comparison(name, "starts_with", (literal,), derived=True)
    return None


def _period(name: str, op: str, start: dt.date, end: dt.date) -> Predicate | None:
    """``f(column) op v`` where f maps exactly the days from ``start`` up to ``end`` to v."""
    first, after = Literal("date", start.isoformat()), Literal("date", end.isoformat())
    match op:
        case "=" | "<=>":
            parts = (Comparison(name, ">=", (first,), True), Comparison(name, "<", (after,), True))
            return And(parts)
        case "<":
            return Comparison(name, "<", (first,), True)
        case "<=":
            return Comparison(name, "<", (after,), True)
        case ">":
            return Comparison(name, ">=", (after,), True)
        case ">=":
            return Comparison(name, ">=", (first,), True)
    return None


def _unit_end(start: dt.date, unit: str) -> dt.date | None:
    """The first day after the unit that begins at ``start``; None when no such unit begins there."""
    match unit:
        case "DAY" | "DD":
            return start + dt.timedelta(days=1)
        case "WEEK" if start.weekday() == 0:
            return start + dt.timedelta(days=7)
        case "MONTH" | "MM" | "MON" if start.day == 1:
            return (start + dt.timedelta(days=32)).replace(day=1)
        case "QUARTER" if start.day == 1 and start.month in (1, 4, 7, 10):
            return (start + dt.timedelta(days=95)).replace(day=1)
        case "YEAR" | "YYYY" | "YY" if start.day == 1 and start.month == 1:
            return start.replace(year=start.year + 1)
    return None


def _day(literal: Literal) -> dt.date | None:
    match = re.fullmatch(r"(\d{4}-\d{2}-\d{2})(?:[T ]00:00(?::00(?:\.0+)?)?)?", literal.text.strip())
    try:
        return dt.date.fromisoformat(match.group(1)) if match else None
    except ValueError:
        return None


def _without_date_cast(node: exp.Expr) -> exp.Expr:
    node = node.unnest()
    to_date = isinstance(node, DATE_CASTS) and not node.args.get("format") and not node.args.get("zone")
    if isinstance(node, exp.Cast):  # Spark's CAST is parsed as TRY_CAST
        to_date = node.to.this in DATE_TYPES
    inner = node.this
    return inner.unnest() if to_date and isinstance(inner, exp.Expr) else node


def _column(node: exp.Expr, context: Context) -> str | None:
    node = node.unnest()
    return context.resolve(node) if isinstance(node, exp.Column) else None
