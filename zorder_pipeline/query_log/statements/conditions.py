"""SQL conditions as predicate trees over one table's columns; what cannot be said becomes weaker, never stronger."""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp

from zorder_pipeline.model.like_patterns import beginning_of
from zorder_pipeline.model.predicate import FLIPPED, And, Comparison, Literal, Opaque, Or, Predicate, as_solved

from .clock import SPARKS
from .constants import constant, fold
from .context import Context
from .expressions import means_another, rebuilt
from .filled import OPPOSITE, filled, is_filled
from .literals import DOUBLES, MOMENT_TYPES
from .relative import NOW, called
from .rows import equal_rows, listed_rows
from .solve import column_behind_cast, solved
from .together import told_together

__all__ = ["TRUE", "condition"]

TRUE = And(())

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NullSafeEQ: "<=>",
    exp.EqualNull: "<=>",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<", "is_null": "is_not_null"}
NEGATED |= {"is_not_null": "is_null", "in": "not_in", "not_in": "in"}
MAX_IN, MAX_SOLVED = 5_000, 200
SQL_LIKE_SIMPLE = re.compile(r"[^_%]+%[^_%]*")
"""Patterns that Spark's optimizer turns into StartsWith (and EndsWith), which Delta's statistics answer."""


def condition(node: exp.Expr, context: Context, negated: bool = False) -> Predicate:
    """``node`` as far as it restricts the table's rows; `TRUE` when it says nothing about it."""
    node = _plainly(node.unnest())
    if (node.this if isinstance(node, exp.Escape) else node).args.get("negate"):  # NOT LIKE and its kin are one node
        node = node.copy()
        (node.this if isinstance(node, exp.Escape) else node).set("negate", None)
        negated = not negated
    match node:
        case exp.Not():
            return condition(node.this, context, not negated)
        case exp.And() | exp.Or():
            parts = [condition(part, context, negated) for part in node.flatten()]
            if isinstance(node, exp.And) != negated:
                if not negated:
                    parts += told_together(list(node.flatten()), context)
                kept = [inner for part in parts for inner in (part.children if isinstance(part, And) else (part,))]
                return kept[0] if len(kept) == 1 else And(tuple(kept))
            either = [inner for part in parts for inner in (part.children if isinstance(part, Or) else (part,))]
            return TRUE if TRUE in parts else Or(tuple(either))
        case exp.Boolean():
            return TRUE if bool(node.this) != negated else Or(())
        case exp.Null():
            return Or(())
        case exp.EQ() | exp.NEQ() if (asked := _asked_whether(node)) is not None:
            return condition(asked[0], context, negated == asked[1])
    if (truth := constant(node, context.clock)) is not None:
        return TRUE if truth.kind == "boolean" and (truth.text == "true") != negated else Or(())
    found = _atom(node, context)
    if found is None:
        bounds = _bounds(node, context) if isinstance(node, exp.Between) else None
        return _opaque(node, context, negated) if bounds is None else condition(bounds, context, negated)
    return _negation(found, node, context) if negated else found


def _asked_whether(node: exp.Expr) -> tuple[exp.Expr, bool] | None:
    """The condition in ``(a > 5) = true`` or ``<> false``, and whether it is to be true; None of anything else."""
    sides = [node.this.unnest(), node.expression.unnest()]
    for inner, other in (sides, sides[::-1]):
        if isinstance(other, exp.Boolean) and isinstance(inner, exp.Predicate | exp.Connector | exp.Not):
            return inner, bool(other.this) == isinstance(node, exp.EQ)
    return None


def _plainly(node: exp.Expr) -> exp.Expr:
    """The same condition as it is written more often: lists in UNNEST or ANY as IN, ``isnull(a)`` as IS NULL."""
    match node:
        case exp.In(args={"unnest": exp.Unnest(expressions=[exp.Array(expressions=items)])}):
            return exp.In(this=node.this.copy(), expressions=[item.copy() for item in items])
        case exp.EQ() if isinstance(node.expression, exp.Any) and isinstance(node.expression.this.unnest(), exp.Array):
            items = node.expression.this.unnest().expressions
            return exp.In(this=node.this.copy(), expressions=[item.copy() for item in items])
        case exp.Anonymous(expressions=[inner]) if called(node) in ("isnull", "isnotnull"):
            null = exp.Is(this=inner.copy(), expression=exp.Null())
            return null if called(node) == "isnull" else exp.Not(this=null)
    return node


def _negation(found: Predicate, node: exp.Expr, context: Context) -> Predicate:
    """NOT of an atom; a null compares as unknown on both sides, so it stays excluded."""
    if isinstance(node, exp.Coalesce):
        return filled(node, "=", Literal("boolean", "false"), context) or _opaque(node, context, negated=True)
    turned = OPPOSITE.get(type(node))
    if turned is not None and (is_filled(node) or _is_solved(found)):  # which may say less than the statement does
        return condition(turned(this=node.this.copy(), expression=node.expression.copy()), context)
    if is_filled(node):
        return _opaque(node, context, negated=True)
    if isinstance(found, Comparison):
        if found.op == "<=>":
            if found.literals[0].kind == "null":
                return Comparison(found.column, "is_not_null")
            unequal = Comparison(found.column, "<>", found.literals, found.derived, found.solved)
            return Or((_plain_boolean(unequal), Comparison(found.column, "is_null")))
        if found.op in ("=", "<>") and found.literals[0].kind == "boolean":
            return _plain_boolean(Comparison(found.column, NEGATED[found.op], found.literals))
        if found.op in NEGATED:
            return Comparison(found.column, NEGATED[found.op], found.literals, found.derived, found.solved)
        if found.op == "between" and not found.derived:
            low, high = found.literals
            return Or((Comparison(found.column, "<", (low,)), Comparison(found.column, ">", (high,))))
    return _opaque(node, context, negated=True)


def _is_solved(found: Predicate) -> bool:
    """Whether it is made of comparisons that were solved for their column, and of nothing else."""
    if isinstance(found, And | Or):
        return all(map(_is_solved, found.children))
    return isinstance(found, Comparison) and found.solved


def _plain_boolean(found: Comparison) -> Comparison:
    """``flag <> true`` as ``flag = false``."""
    if found.op != "<>" or found.literals[0].kind != "boolean":
        return found
    other = "false" if found.literals[0].text == "true" else "true"
    return Comparison(found.column, "=", (Literal("boolean", other),))


def _opaque(node: exp.Expr, context: Context, negated: bool) -> Predicate:
    columns = [context.resolve(column) for column in node.find_all(exp.Column)]
    mine = tuple(dict.fromkeys(name for name in columns if name is not None))
    if not mine or None in columns or node.find(exp.Query) is not None:
        return TRUE  # a join, not a filter
    calls = {called(call) for call in node.find_all(exp.Anonymous)}
    if node.find(exp.Parameter, exp.Placeholder, exp.CurrentDate, exp.CurrentTimestamp) or NOW & calls:
        context.clock.missed = True
    whole = exp.Not(this=exp.Paren(this=node.copy())) if negated else node
    return Opaque(_form(node, len(mine)), mine, _in_spark(whole, context))


def _in_spark(node: exp.Expr, context: Context) -> str:
    """The condition in Spark SQL, "" where it has none of the same meaning."""
    if context.clock.dialect not in SPARKS and means_another(node):
        return ""
    if context.clock.dialect == "hive" and node.find(exp.TimeToStr) is not None:
        return ""  # whose YYYY, the year of a week, is not told from yyyy
    return rebuilt(node, context.path)


def _form(node: exp.Expr, columns: int) -> str:
    if type(node) in COMPARISONS and columns > 1:
        return "column_comparison"
    return "function" if type(node) in COMPARISONS or isinstance(node, exp.Between) else type(node).__name__.lower()


def _atom(node: exp.Expr, context: Context) -> Predicate | None:
    if type(node) in COMPARISONS:
        return _comparison(node.this, COMPARISONS[type(node)], node.expression, context)
    column = context.column(node.this) if isinstance(node.this, exp.Expr) else None
    match node:
        case exp.Column() if (name := context.column(node)) is not None:  # a bare boolean column
            return Comparison(name, "=", (Literal("boolean", "true"),))
        case exp.Coalesce():  # a condition by itself
            return filled(node, "=", Literal("boolean", "true"), context)
        case exp.Between() if column is not None and not node.args.get("symmetric"):
            low, high = fold(node.args["low"], context.clock), fold(node.args["high"], context.clock)
            return context.compared(column, "between", (low, high)) if low is not None and high is not None else None
        case exp.In() if node.expressions and not node.args.get("query"):
            return _in(node, column, context)
        case exp.NullSafeNEQ():
            found = _comparison(node.this, "<>", node.expression, context)
            if isinstance(found, Comparison) and found.literals[0].kind != "null":
                return Or((found, Comparison(found.column, "is_null")))
            return None
        case exp.Is() if column is not None and isinstance(node.expression, exp.Null):
            return Comparison(column, "is_null")
        case exp.Is() if column is not None and isinstance(node.expression, exp.Boolean):
            truth = "true" if node.expression.this else "false"
            return Comparison(column, "<=>", (Literal("boolean", truth),))
        case exp.Like() if column is not None and context.family(column) in ("string", ""):
            return _like(node, column, context)
        case exp.Escape(this=exp.Like(this=liked) as like, expression=exp.Literal(this=escape)):
            column = context.column(liked)
            text = column is not None and context.family(column) in ("string", "") and len(escape) == 1
            return _pattern(node, like.expression, column, context, escape) if column is not None and text else None
        case exp.StartsWith() if column is not None:
            prefix = fold(node.expression, context.clock)
            return Comparison(column, "starts_with", (prefix,)) if prefix and prefix.kind == "string" else None
    return None


def _bounds(node: exp.Between, context: Context) -> exp.And | None:
    """BETWEEN as two comparisons, of which one may be told alone; None where none of them is."""
    if node.args.get("symmetric"):
        return None
    bounds = [(exp.GTE, node.args["low"]), (exp.LTE, node.args["high"])]
    told = [_comparison(node.this, COMPARISONS[kind], bound, context) for kind, bound in bounds]
    least, most = (kind(this=node.this.copy(), expression=bound.copy()) for kind, bound in bounds)
    return exp.And(this=least, expression=most) if told != [None, None] else None


def _in(node: exp.In, column: str | None, context: Context) -> Predicate | None:
    if len(node.expressions) > MAX_IN:
        return None
    if _is_moment_of_dates(node.this, context):
        return None
    if column is None and not isinstance(node.this, exp.Tuple) and len(node.expressions) <= MAX_SOLVED:
        parts = [_comparison(node.this, "=", item, context) for item in node.expressions]
        known = tuple(part for part in parts if part is not None)
        if len(known) < len(parts):
            return None
        # Spark sees through the cast of a number in a list, and through others in a single comparison alone
        of_a_number = isinstance(node.this, exp.Cast) and node.this.to.this in exp.DataType.NUMERIC_TYPES
        return known[0] if len(known) == 1 else Or(known if of_a_number else tuple(map(as_solved, known)))
    if column is None:
        return listed_rows(node, context)
    values = [fold(item, context.clock) for item in node.expressions]
    present = tuple(value for value in values if value is not None)
    return context.compared(column, "in", present) if len(present) == len(values) else None


def _is_moment_of_dates(node: exp.Expr, context: Context) -> bool:
    """Whether it makes times of a column of dates, which no reader sees through in a list."""
    return (
        isinstance(node, exp.Cast)
        and node.to.this in MOMENT_TYPES
        and (name := context.column(node.this)) is not None
        and context.family(name) == "date"
    )


def _like(node: exp.Like, column: str, context: Context) -> Predicate | None:
    if isinstance(node.expression, exp.Any):  # LIKE ANY ('a%', 'b%')
        items = node.expression.this
        each = items.expressions if isinstance(items, exp.Tuple) else []
        parts = [_like(exp.Like(this=node.this.copy(), expression=item.copy()), column, context) for item in each]
        known = tuple(part for part in parts if part is not None)
        return Or(known) if known and len(known) == len(parts) else None
    return None if node.args.get("escape") else _pattern(node, node.expression, column, context)


def _pattern(node: exp.Expr, told: exp.Expr, column: str, context: Context, escape: str = "") -> Predicate | None:
    """LIKE by what its pattern begins with, where it is a constant; without ESCAPE what has backslashes is left."""
    literal = fold(told, context.clock)
    if literal is None or literal.kind != "string" or (not escape and "\\" in literal.text):
        return None
    pattern = literal.text
    begins = beginning_of(pattern, escape)
    if begins is None:
        return None
    plain = not escape or escape not in pattern  # Spark makes comparisons of no others
    found = Comparison(column, begins.op, (Literal("string", begins.text),))
    if plain and begins.whole:
        return found
    simple = plain and SQL_LIKE_SIMPLE.fullmatch(pattern) is not None
    return And((replace(found, derived=True, solved=not simple), Opaque("like", (column,), _in_spark(node, context))))


def _comparison(left: exp.Expr, op: str, right: exp.Expr, context: Context) -> Predicate | None:
    literal = fold(right, context.clock)
    if literal is None and (literal := fold(left, context.clock)) is not None:
        left, op = right, FLIPPED[op]
    if literal is None:
        return equal_rows(left, op, right, context)
    left = left.unnest()
    if (name := context.column(left)) is not None:
        return context.compared(name, op, (literal,))
    if (name := column_behind_cast(left, literal, context.typed)) is not None:
        return context.compared(name, op, (literal,), as_double=isinstance(left, exp.Cast) and left.to.this in DOUBLES)
    if literal.kind == "null":
        return None
    if (told := filled(left, op, literal, context)) is not None:
        return told
    return solved(left, op, literal, context.typed, context.clock)
