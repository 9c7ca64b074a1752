"""Expressions that may stand in a key: on no row, of today or later, may one fail a relayout under ANSI rules."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from zorder_pipeline.model.predicate import REPEATED_GROUP
from zorder_pipeline.model.schema import TableSchema

__all__ = ["never_failing"]

TRIED: dict[type[exp.Expr], str] = {
    exp.Add: "try_add",
    exp.Sub: "try_subtract",
    exp.Mul: "try_multiply",
    exp.Div: "try_divide",
    exp.Mod: "try_mod",
}
"""Arithmetic, and what gives null where it gives an error."""
_LOGIC = (
    "Column Paren And Or Not EQ NEQ NullSafeEQ NullSafeNEQ LT LTE GT GTE Is In Between Coalesce If Case Greatest Least"
)
_TEXTS = (
    "Lower Upper Trim Left Right Substring SubstringIndex Concat DPipe Replace Reverse Initcap "
    "JSONExtract JSONExtractScalar"
)
_OF_TEXT = "Like ILike RegexpLike Length StartsWith EndsWith Contains StrPosition Cast TryCast"
_OTHERS = """Year Quarter Month Week WeekOfYear Day DayOfWeek DayOfMonth DayOfYear Hour Minute Second Extract DateTrunc
    TimestampTrunc TsOrDsToDate Date DateDiff LastDay Ceil Floor Round Sign Sqrt Ln BitwiseAnd BitwiseOr BitwiseXor"""


def _named(names: str) -> tuple[type[exp.Expr], ...]:
    return tuple(found for name in names.split() if (found := getattr(exp, name, None)) is not None)


LOGIC, TEXTS, OF_TEXT = _named(_LOGIC), _named(_TEXTS), _named(_OF_TEXT)
KNOWN = (*LOGIC, *TEXTS, *OF_TEXT, *_named(_OTHERS), *TRIED)
FIXED: dict[type[exp.Expr], tuple[str, ...]] = {
    **dict.fromkeys((exp.Like, exp.ILike, exp.RegexpLike, exp.Left, exp.Right), ("expression",)),
    exp.Substring: ("start", "length"),
    exp.SubstringIndex: ("count",),
    exp.StrPosition: ("position",),
}
"""Arguments that fail by some values: a pattern that is none, a place that is no INT."""
LAZY = _named("Coalesce If Case")
"""What looks at some of its operands on some rows only: of a constant in it a sample does not tell that it fails."""
PLAIN = _named("Literal Neg Boolean Null Paren Identifier")
_TYPES = exp.DataType.Type
_BITS = {_TYPES.TINYINT: 8, _TYPES.SMALLINT: 16, _TYPES.INT: 32, _TYPES.BIGINT: 64}
_WHOLE, _NUMBER = re.compile(r"-?\d+"), re.compile(r"-?\d+(\.\d+)?([Ee][+-]?\d+)?")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?")
_COMPARED = _named("EQ NEQ NullSafeEQ NullSafeNEQ LT LTE GT GTE In Between")


def never_failing(sql: str, schema: TableSchema) -> str | None:
    """The expression, or one that is null where it would fail; None where it is not known how to write that.

    >>> from zorder_pipeline.model.schema import Column
    >>> schema = TableSchema((Column("a", "int"), Column("c", "string")))
    >>> [never_failing(text, schema) for text in ("a / 2 > 3", "CAST(c AS INT) > 5", "c LIKE '%x%'", "c > 5")]
    ['TRY_DIVIDE(a, 2) > 3', 'TRY_CAST(c AS INT) > 5', "c LIKE '%x%'", None]
    """
    try:
        tree = parse_one(sql, read="spark")
        varying = [node for node in tree.walk() if node.find(exp.Column) and not isinstance(node, exp.Identifier)]
        if not all(isinstance(node, KNOWN) for node in varying):
            return None
        if any(_may_fail(node) for node in varying):
            return None
        if not all(_meets_texts(node) for node in varying if _is_text(node, schema)):
            return None
        if not all(_safe_in_branches(node, schema) for node in varying if isinstance(node, LAZY)):
            return None
        risky = [node for node in varying if type(node) in TRIED or isinstance(node, exp.Cast)]
        if not risky:
            return sql  # as it is written: constants of it may have no other spelling
        for node in reversed(risky):  # from within
            if isinstance(node, exp.Cast):
                node.set("safe", True)
                continue
            tried = exp.Anonymous(this=TRIED[type(node)], expressions=[node.this, node.expression])
            tree = tried if node is tree else tree
            node.replace(tried)
        return tree.sql(dialect="spark")
    except (SqlglotError, ValueError, RecursionError):
        return None


def _may_fail(node: exp.Expr) -> bool:
    """Whether an argument that fails by some values is another one on each row: of a constant the sample tells."""
    places = node.args.get("decimals")
    if isinstance(node, exp.Ceil | exp.Floor) and places is not None:
        return True  # Spark makes decimals of floating-point numbers, which large ones do not fit
    if isinstance(node, exp.Round) and places is not None:
        return not isinstance(places, exp.Literal)  # rounded to hundreds a number may get too large for its type
    if isinstance(node, exp.RegexpLike) and REPEATED_GROUP.search(str(node.expression.name)):
        return True
    given = (node.args.get(name) for name in FIXED.get(type(node), ()))
    return any(argument.find(exp.Column) is not None for argument in given if argument is not None)


def _is_text(node: exp.Expr, schema: TableSchema) -> bool:
    if isinstance(node, exp.Column):
        column = schema.lying(tuple(part.name for part in node.parts))
        return column is None or column.value_type.family not in ("integer", "decimal", "float", "date", "timestamp")
    if isinstance(node, LAZY) and not _is_branch(node):
        return any(_is_text(value, schema) or _is_string(value) for value in _values(node))
    return isinstance(node, TEXTS) or (isinstance(node, exp.Cast) and node.to.this in exp.DataType.TEXT_TYPES)


def _values(node: exp.Expr) -> list[exp.Expr]:
    """What an expression of `LAZY` may be, without parentheses."""
    if isinstance(node, exp.Case):
        found = [*(branch.args.get("true") for branch in node.args["ifs"]), node.args.get("default")]
    elif isinstance(node, exp.If):
        found = [node.args.get("true"), node.args.get("false")]
    else:
        found = [node.this, *node.expressions]
    return [value.unnest() for value in found if value is not None]


def _is_string(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _is_branch(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.If) and isinstance(node.parent, exp.Case)


def _safe_in_branches(node: exp.Expr, schema: TableSchema) -> bool:
    """Whether the constants in an expression of `LAZY` are written out, and a string among them meets texts only."""
    casts = [item for item in node.find_all(exp.Cast) if _is_value(item)]
    known = {id(inner) for item in casts for inner in item.walk()}
    known |= {id(inner) for item in node.find_all(exp.DataType) for inner in item.walk()}
    constants = [item for item in node.walk() if not item.find(exp.Column) and id(item) not in known]
    if not all(isinstance(item, PLAIN) or _is_branch(item) for item in constants):
        return False
    return all(_meets_its_like(item, schema) for item in constants if _is_string(item))


def _is_value(node: exp.Cast) -> bool:
    """Whether this is a constant written as a cast of its text, and there is such a value."""
    literal = node.this.this if isinstance(node.this, exp.Neg) else node.this.unnest()
    if not isinstance(literal, exp.Literal):
        return False
    text, kind = literal.name, node.to.this
    try:
        if kind in _BITS:
            return bool(_WHOLE.fullmatch(text)) and abs(int(text)) < 1 << (_BITS[kind] - 1)
        if kind in (_TYPES.DOUBLE, _TYPES.FLOAT):
            return bool(_NUMBER.fullmatch(text)) and math.isfinite(float(text))
        if kind == _TYPES.DECIMAL:
            digits, scale = (int(size.name) for size in node.to.expressions)
            return bool(_NUMBER.fullmatch(text)) and abs(Decimal(text)) < Decimal(10) ** (digits - scale) - 1
        if kind in (_TYPES.DATE, _TYPES.TIMESTAMPTZ, _TYPES.TIMESTAMPNTZ):
            return bool(_MOMENT.fullmatch(text)) and bool(dt.datetime.fromisoformat(text))
    except (ValueError, ArithmeticError):
        return False
    return False


def _meets_its_like(text: exp.Expr, schema: TableSchema) -> bool:
    """Whether a string constant need not be cast."""
    node, above = text, text.parent
    while isinstance(above, exp.Paren):
        node, above = above, above.parent
    case = above.parent if isinstance(above, exp.If) else None
    if isinstance(case, exp.Case):
        if node.arg_key == "true":
            others = _values(case)
        else:  # CASE value WHEN constant
            others = [case.this.unnest()] if case.this is not None else []
    elif isinstance(above, LAZY):
        others = _values(above)
    elif isinstance(above, _COMPARED):
        others = [item.unnest() for item in above.iter_expressions()]
    else:
        return isinstance(above, (*TEXTS, *OF_TEXT)) and not isinstance(above, exp.Cast)
    return bool(others) and all(_is_string(o) or isinstance(o, exp.Null) or _is_text(o, schema) for o in others)


def _meets_texts(node: exp.Expr) -> bool:
    """Whether nothing casts this text: what it meets are texts, or functions of texts."""
    above = node.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    if above is None or isinstance(above, (*TEXTS, *OF_TEXT, exp.Is, exp.Not, exp.And, exp.Or)):
        return True
    compared = [item.unnest() for item in above.iter_expressions()]
    constants = [item for item in compared if not item.find(exp.Column)]
    alone = len(compared) == len(constants) + 1
    return isinstance(above, _COMPARED) and alone and all(map(_is_text_constant, constants))


def _is_text_constant(node: exp.Expr) -> bool:
    """Whether a constant is a text, to whose type no text has to be cast."""
    cast = isinstance(node, exp.Cast) and node.to.this in exp.DataType.TEXT_TYPES
    return _is_string(node) or isinstance(node, exp.Null) or cast
