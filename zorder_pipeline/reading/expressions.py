"""The text of an expression as a tree, and as a column that Spark is told of in its own terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from zorder_pipeline.java import java_class

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import Column, SparkSession

__all__ = ["in_catalyst", "parsed", "unqualified"]


def parsed(sql: str) -> exp.Expr | None:
    """An expression's tree; None of a text that is none, or is nested too deep.

    >>> type(parsed("a + 1")).__name__, parsed("a +"), parsed("(" * 3000 + "a" + ")" * 3000)
    ('Add', None, None)
    """
    try:
        return sqlglot.parse_one(sql, dialect="spark")
    except (SqlglotError, ValueError, RecursionError):
        return None


def unqualified(sql: str) -> str:
    """An expression with its columns called by their own names alone; "" of a text that is none.

    >>> unqualified("contains(`spark_catalog`.delta.`/data/t`.s, 't.s')"), unqualified("(month(t.ds) = 3)")
    ("CONTAINS(`s`, 't.s')", '(MONTH(`ds`) = 3)')
    """
    if (tree := parsed(sql)) is None:
        return ""
    named = tree.transform(lambda node: exp.column(node.this.name, quoted=True) if type(node) is exp.Column else node)
    return named.sql(dialect="spark")


def in_catalyst(spark: SparkSession, sql: str, make: Callable[[JavaObject], JavaObject]) -> Column:
    """A column of what ``make`` makes of an expression, both as Spark's own: what it has, but no SQL for.

    Args:
        spark: a classic session.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.classic.column import Column as Classic

    columns = java_class(spark, "org.apache.spark.sql.classic.ExpressionUtils")
    return Classic(columns.column(make(columns.expression(F.expr(sql)._jc))))
