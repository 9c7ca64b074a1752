"""Predicates as bits of numbers, in forms with the same result that Spark evaluates in a fraction of the time.

Its own search for a text goes byte by byte, and Java's, which it can be told to call, by vectors. A decimal that is
written as a text is compared object by object, one that comes from an interval as a whole number of 64 bits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from sqlglot import exp

from zorder_pipeline.java import has_jvm, java_class, scala_object, sequence

from .expressions import in_catalyst, parsed

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import Column, DataFrame, SparkSession

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

    searched = contained(rows, predicates)
    others = str(rows.sparkSession.conf.get(_OTHER_INTERVALS, "false")).lower() == "true"
    quick = str if others else quick_decimals
    two, null = F.lit(2).cast("bigint"), F.lit(4).cast("bigint")

    def bits(sql: str, place: int) -> Column:
        value = searched[sql] if sql in searched else F.expr(quick(sql))
        own = F.coalesce(F.call_function("shiftright", two, value.cast("int")), null)  # spared the checks of ANSI
        return F.call_function("shiftleft", own, F.lit(place))

    found: dict[str, Column] = {}
    for start in range(0, len(predicates), PREDICATES_EACH):
        some = predicates[start : start + PREDICATES_EACH]
        found[f"bits_{start // PREDICATES_EACH}"] = reduce(
            Column.bitwiseOR, (bits(sql, BITS_EACH * j) for j, sql in enumerate(some))
        )
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
    return {
        sql: _searched(rows.sparkSession, *parts) for sql, parts in found.items() if parts[0] in plain
    }  # others have collations


def _parts(sql: str) -> tuple[str, str] | None:
    """A column and the text that it is to contain."""
    tree = parsed(sql)
    tree = tree and tree.unnest()
    if type(tree) is not exp.Like or {name for name, part in tree.args.items() if part} != {"this", "expression"}:
        return None  # of NOT LIKE the tree says so in another part
    if not isinstance(tree.this, exp.Column) or not isinstance(tree.expression, exp.Literal):
        return None
    text = _CONTAINS.fullmatch(str(tree.expression.this)) if tree.expression.is_string else None
    return (tree.this.sql(dialect="spark"), text.group(1)) if text else None


def _searched(spark: SparkSession, column: str, text: str) -> Column:
    catalyst, types = "org.apache.spark.sql.catalyst.expressions", "org.apache.spark.sql.types"
    invoke, literal = (java_class(spark, f"{catalyst}.{name}") for name in ("objects.Invoke", "Literal"))
    of_class, named = java_class(spark, f"{types}.ObjectType"), java_class(spark, "java.lang.Class").forName
    whole, part = (of_class(named(f"java.lang.{name}")) for name in ("String", "CharSequence"))
    none, boolean = sequence(spark, []), scala_object(spark, f"{types}.BooleanType")

    def search(value: JavaObject) -> JavaObject:
        in_java = invoke(value, "toString", whole, none, none, True, False, True)  # once for all texts of a column
        return invoke(in_java, "contains", boolean, sequence(spark, [literal(text, part)]), none, True, False, True)

    return in_catalyst(spark, column, search)
