"""Expressions whose values are wide decimals, such as money times a rate: doubles stand for them, made the quick way.

Spark multiplies and divides decimals of more than 18 digits one object at a time; where that can be told, an expression
is computed with doubles and its bounds are widened by all that this may change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from zorder_pipeline.java import has_jvm, java_class

from .expressions import in_catalyst, parsed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, DecimalType

__all__ = ["WIDE_DIGITS", "WideDecimal", "as_double", "wide_decimal"]

_AS_DOUBLE = "CAST({} AS DOUBLE)"
WIDE_DIGITS = 18
"""Digits of a decimal beyond which its unscaled value does not fit 64 bits."""
_RELATIVE = 1e-14
"""What two roundings of each operand, one of their product or quotient and one of the result may change at most is an
eighth of it."""
_MOST_DIGITS = 38
"""Digits of any decimal: a product that has as many may have been cut."""
_WHOLE_DIGITS = 31
"""Digits before the point up to which a quotient overflows no decimal, however it is rounded."""
_EXACT = (exp.Column, exp.Identifier, exp.Dot, exp.Literal, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul)
"""What an operand may be made of: of few digits it is exact, and its text is the same when it is written anew."""


@dataclass(frozen=True)
class Operand:
    """One side of a product or a quotient.

    Attributes:
        tree: the expression, parsed.
        kinds: the types of all of its parts, by their SQL without parentheses.
    """

    tree: exp.Expr
    kinds: Mapping[str, DataType]

    @property
    def kind(self) -> DataType:
        """Its own type."""
        return self.kinds[_written(self.tree.unnest())]


@dataclass(frozen=True)
class WideDecimal:
    """How to aggregate an expression for which `as_double` stands.

    Attributes:
        sql: the expression.
        error: what the double of `value` may be off besides `_RELATIVE` of it; None for the decimal itself.
        operator: ``*`` or ``/`` of what is made with doubles.
        operands: both sides of it.
    """

    sql: str
    error: float | None = None
    operator: str = ""
    operands: tuple[Operand, ...] = ()

    def value(self, spark: SparkSession) -> Column:
        """What to aggregate: the decimal itself, or a double near it."""
        from pyspark.sql import functions as F

        if not self.operands:
            return F.expr(self.sql)
        left, right = (_double(spark, operand) for operand in self.operands)
        return left * right if self.operator == "*" else left / right

    def bounds(self, name: str) -> dict[str, Column]:
        """Lowest and highest value of a column that holds ``sql``, as doubles between which all nearest doubles lie."""
        from pyspark.sql import functions as F

        low, high = F.min(name).cast("double"), F.max(name).cast("double")
        if self.error is None:  # the bound of rounded values is the rounded bound
            return {"low": low, "high": high}
        return {
            "low": low - (F.abs(low) * F.lit(_RELATIVE) + F.lit(self.error)),
            "high": high + (F.abs(high) * F.lit(_RELATIVE) + F.lit(self.error)),
        }


def as_double(sql: str) -> str:
    """The nearest double of a wide decimal: rounding keeps the order of values, but not that two of them differ."""
    return _AS_DOUBLE.format(sql)


def wide_decimal(rows: DataFrame, sql: str) -> WideDecimal | None:
    """How to aggregate what `as_double` made of a wide decimal; None of any other expression."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import DecimalType

    before, after = _AS_DOUBLE.split("{}")
    if not (sql.startswith(before) and sql.endswith(after)):
        return None
    inner = sql.removeprefix(before).removesuffix(after)
    try:  # `CAST(a AS DOUBLE) + CAST(b AS DOUBLE)` begins and ends alike, and what is left of it is no expression
        (kind,) = _types(rows, inner)
    except PySparkException:
        return None
    if not isinstance(kind, DecimalType):
        return None
    return _of_doubles(rows, inner, kind) or WideDecimal(inner, None)


def _of_doubles(rows: DataFrame, sql: str, kind: DecimalType) -> WideDecimal | None:
    """A product or quotient of two exact operands with doubles; None of what is neither, or might overflow."""
    tree = parsed(sql)
    if not isinstance(tree, exp.Mul | exp.Div):
        return None
    if not all(isinstance(node, _EXACT) for side in (tree.left, tree.right) for node in side.walk()):
        return None
    sides = (tree.left, tree.right)
    parts = sorted({_written(part) for side in sides for part in _parts(side)})
    kinds = dict(zip(parts, _types(rows, *parts), strict=True))
    left, right = operands = tuple(Operand(side, kinds) for side in sides)
    of_left, of_right = _digits(left.kind), _digits(right.kind)
    if of_left is None or of_right is None:
        return None
    whole, scale = of_left[0], of_right[1]
    if isinstance(tree, exp.Mul):  # exact
        return WideDecimal(sql, 0.0, "*", operands) if kind.precision < _MOST_DIGITS else None
    if whole + (scale or 0) > min(_WHOLE_DIGITS, kind.precision - kind.scale):
        return None
    return WideDecimal(sql, 10.0**-kind.scale, "/", operands)


def _double(spark: SparkSession, operand: Operand) -> Column:
    """A double near an operand; of a decimal from its digits, as Spark makes an object of each value."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import DecimalType

    if not isinstance(operand.kind, DecimalType) or not has_jvm(spark):
        return F.expr(as_double(_written(operand.tree)))
    return _digits_of(spark, operand.tree, operand.kinds).cast("double") / F.lit(10.0 ** _scale(operand.kind))


def _scale(kind: DataType) -> int:
    """Digits behind the point, of a whole number none."""
    from pyspark.sql.types import DecimalType

    return kind.scale if isinstance(kind, DecimalType) else 0


def _digits_of(spark: SparkSession, tree: exp.Expr, kinds: Mapping[str, DataType]) -> Column:
    """All digits of an exact decimal as one whole number.

    No part of it has more digits than it has itself, so that none of these numbers is too large for 64 bits.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import DecimalType

    tree = tree.unnest()
    kind = kinds[_written(tree)]
    if not isinstance(kind, DecimalType):  # a whole number, which Spark adds up with fewer bits
        return F.expr(_written(tree)).cast("bigint")
    if isinstance(tree, exp.Neg):
        return F.negate(_digits_of(spark, tree.this, kinds))
    if not isinstance(tree, exp.Add | exp.Sub | exp.Mul):
        return _unscaled(spark, _written(tree))
    left, right = (_digits_of(spark, side, kinds) for side in (tree.left, tree.right))
    if isinstance(tree, exp.Mul):
        return left * right
    left, right = (
        digits * F.lit(10**more).cast("bigint")
        if (more := kind.scale - _scale(kinds[_written(side.unnest())]))
        else digits
        for digits, side in ((left, tree.left), (right, tree.right))
    )
    return left + right if isinstance(tree, exp.Add) else left - right


def _unscaled(spark: SparkSession, sql: str) -> Column:
    return in_catalyst(spark, sql, java_class(spark, "org.apache.spark.sql.catalyst.expressions.UnscaledValue"))


def _written(tree: exp.Expr) -> str:
    return tree.sql(dialect="spark")


def _parts(tree: exp.Expr) -> list[exp.Expr]:
    """An operand and what it is computed from, without parentheses."""
    tree = tree.unnest()
    if isinstance(tree, exp.Neg):
        return [tree, *_parts(tree.this)]
    if isinstance(tree, exp.Add | exp.Sub | exp.Mul):
        return [tree, *_parts(tree.left), *_parts(tree.right)]
    return [tree]


def _types(rows: DataFrame, *texts: str) -> list[DataType]:
    from pyspark.sql import functions as F

    return [field.dataType for field in rows.select(*(F.expr(text) for text in texts)).schema.fields]


def _digits(kind: DataType) -> tuple[int, int | None] | None:
    """Digits before and after the point of an operand that a double is near to, no number of the latter for a whole
    number; None of any other operand."""
    from pyspark.sql import types as T

    if isinstance(kind, T.DecimalType):
        return (kind.precision - kind.scale, kind.scale) if kind.precision <= WIDE_DIGITS else None
    return (10, None) if isinstance(kind, T.ByteType | T.ShortType | T.IntegerType) else None
