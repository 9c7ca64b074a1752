"""Expressions that may stand in a key: on no row, of today or later, may one fail a relayout under ANSI rules."""

from __future__ import annotations

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

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
    "Lower Upper Trim Left Right Substring SubstringIndex Concat Replace Reverse Initcap JSONExtract JSONExtractScalar"
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
ROUNDED = (exp.Round, exp.Ceil, exp.Floor)


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
    if isinstance(node, ROUNDED) and (places := node.args.get("decimals")) is not None:
        return not isinstance(places, exp.Literal)  # rounded to hundreds a number may get too large for its type
    given = (node.args.get(name) for name in FIXED.get(type(node), ()))
    return any(argument.find(exp.Column) is not None for argument in given if argument is not None)


def _is_text(node: exp.Expr, schema: TableSchema) -> bool:
    if isinstance(node, exp.Column):
        column = schema.find(".".join(part.name for part in node.parts))
        return column is None or column.value_type.family not in ("integer", "decimal", "float", "date", "timestamp")
    return isinstance(node, TEXTS) or (isinstance(node, exp.Cast) and node.to.this in exp.DataType.TEXT_TYPES)


def _meets_texts(node: exp.Expr) -> bool:
    """Whether nothing casts this text: what it meets are texts, or functions of texts."""
    above = node.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    if above is None or isinstance(above, (*TEXTS, *OF_TEXT, exp.Is, exp.Not, exp.And, exp.Or)):
        return True
    numbers = (item for item in above.iter_expressions() if isinstance(item.unnest(), exp.Neg | exp.Literal))
    others = (item for item in above.iter_expressions() if item.find(exp.Column) and item.unnest() is not node)
    compared = isinstance(
        above, (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between)
    )
    plain = all(isinstance(item.unnest(), exp.Literal) and item.unnest().is_string for item in numbers)
    return compared and plain and not any(True for _ in others)
