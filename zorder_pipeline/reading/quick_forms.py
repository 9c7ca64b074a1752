"""Predicates as bits of numbers, in forms with the same result that Spark evaluates in a fraction of the time.

Its own search for a text goes byte by byte, and Java's, which it can be told to call, by vectors. A decimal that is
written as a text is compared object by object, one that comes from an interval as a whole number of 64 bits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from zorder_pipeline.java import has_jvm, java_class, scala_object, sequence

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["BITS_EACH", "PREDICATES_EACH", "contained", "predicate_bits", "quick_decimals"]

BITS_EACH, PREDICATES_EACH = 3, 21
"""Bits of a predicate in a number (true, false, null: whether a row is so), and predicates of one number."""
_DECIMAL = re.compile(r"CAST\(CAST\('(-?\d{1,12}\.\d{1,7})' AS DECIMAL\(38, ([0-6])\)\) AS decimal\((\d{1,2}),\2\)\)")
"""A literal as `zorder_pipeline.model.spark_sql.value_sql` writes it, one zero too long, of what an interval can be."""
_MOST_DIGITS = 18
"""Digits of a decimal that fits 64 bits."""
_OTHER_INTERVALS = "spark.sql.legacy.interval.enabled"
"""Sessions with intervals that are no numbers."""
_CONTAINS = re.compile(r"%([\x20-\x24\x26\x28-\x5b\x5d\x5e\x60-\x7e]+)%")
"""A pattern of ASCII alone without wildcards, escapes and quotes inside: no byte of it is part of another character,
and texts that are no UTF-8 keep theirs when they become Java's."""


def predicate_bits(rows: DataFrame, predicates: Sequence[str]) -> dict[str, Column]:
    """Numbers, by name, with `BITS_EACH` bits of each predicate: 1 for true, 2 for false and 4 for null."""
    from pyspark.sql import Column
    from pyspark.sql import functions as F

    found: dict[str, Column] = {}
    searched = contained(rows, predicates)
    others = str(rows.sparkSession.conf.get(_OTHER_INTERVALS, "false")).lower() == "true"
    quick = str if others else quick_decimals
    for start in range(0, len(predicates), PREDICATES_EACH):
        places = {BITS_EACH * j: sql for j, sql in enumerate(predicates[start : start + PREDICATES_EACH])}
        texts = [  # shifts are spared the checks of ANSI
            f"shiftleft(coalesce(shiftright(2L, CAST(({quick(sql)}) AS INT)), 4L), {place})"
            for place, sql in places.items()
            if sql not in searched
        ]
        parts = [F.expr(" | ".join(texts))] if texts else []
        two, null = F.lit(2).cast("bigint"), F.lit(4).cast("bigint")
        for place, sql in places.items():
            if sql in searched:
                bits = F.coalesce(F.call_function("shiftright", two, searched[sql].cast("int")), null)
                parts.append(F.call_function("shiftleft", bits, F.lit(place)))
        found[f"bits_{start // PREDICATES_EACH}"] = reduce(Column.bitwiseOR, parts)
    return found


def quick_decimals(sql: str) -> str:
    """The predicate with its decimal literals made from intervals, whose microseconds are whole numbers.

    >>> quick_decimals("d >= CAST(CAST('0.080' AS DECIMAL(38, 2)) AS decimal(15,2))")
    "d >= CAST(INTERVAL '0.08' SECOND AS decimal(15,2))"
    >>> quick_decimals("d >= CAST(CAST('0.080' AS DECIMAL(38, 2)) AS decimal(38,2))")
    "d >= CAST(CAST('0.080' AS DECIMAL(38, 2)) AS decimal(38,2))"
    """

    def quick(found: re.Match[str]) -> str:
        text, scale, precision = found.group(1)[:-1].rstrip("."), found.group(2), int(found.group(3))
        if precision > _MOST_DIGITS or found.group(1)[-1] != "0":
            return found.group(0)
        return f"CAST(INTERVAL '{text}' SECOND AS decimal({precision},{scale}))"

    return _DECIMAL.sub(quick, sql)


def contained(rows: DataFrame, predicates: Sequence[str]) -> dict[str, Column]:
    """The predicates that ask whether a column contains a text, as ``LIKE '%text%'``, by Java's own search.

    Args:
        rows: what they are evaluated on.
    """
    found = {sql: parts for sql in predicates if (parts := _parts(sql)) is not None}
    if not found or not has_jvm(rows.sparkSession):
        return {}
    columns = sorted({column for column, _ in found.values()})
    fields = rows.selectExpr(*columns).schema.fields
    plain = {column for column, field in zip(columns, fields, strict=True) if field.dataType.simpleString() == "string"}
    return {sql: _searched(rows, *parts) for sql, parts in found.items() if parts[0] in plain}  # others have collations


def _parts(sql: str) -> tuple[str, str] | None:
    """A column and the text that it is to contain."""
    try:
        tree = sqlglot.parse_one(sql, dialect="spark").unnest()
    except (SqlglotError, ValueError, RecursionError):  # of many levels of parentheses
        return None
    if type(tree) is not exp.Like or {name for name, part in tree.args.items() if part} != {"this", "expression"}:
        return None  # of NOT LIKE the tree says so in another part
    if not isinstance(tree.this, exp.Column) or not isinstance(tree.expression, exp.Literal):
        return None
    text = _CONTAINS.fullmatch(str(tree.expression.this)) if tree.expression.is_string else None
    return (tree.this.sql(dialect="spark"), text.group(1)) if text else None


def _searched(rows: DataFrame, column: str, text: str) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql.classic.column import Column as Classic

    spark = rows.sparkSession
    catalyst, types = "org.apache.spark.sql.catalyst.expressions", "org.apache.spark.sql.types"
    invoke = java_class(spark, f"{catalyst}.objects.Invoke")
    kinds = {name: _object_type(rows, f"java.lang.{name}") for name in ("String", "CharSequence")}
    none = sequence(spark, [])
    columns = java_class(spark, "org.apache.spark.sql.classic.ExpressionUtils")
    value = columns.expression(F.expr(column)._jc)
    in_java = invoke(
        value, "toString", kinds["String"], none, none, True, False, True
    )  # once for all texts of a column
    sought = sequence(spark, [java_class(spark, f"{catalyst}.Literal")(text, kinds["CharSequence"])])
    boolean = scala_object(spark, f"{types}.BooleanType")
    return Classic(columns.column(invoke(in_java, "contains", boolean, sought, none, True, False, True)))


def _object_type(rows: DataFrame, name: str) -> object:
    spark = rows.sparkSession
    return java_class(spark, "org.apache.spark.sql.types.ObjectType")(
        java_class(spark, "java.lang.Class").forName(name)
    )
