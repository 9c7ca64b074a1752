"""Proof before the commit that the written files hold the same rows as the files they replace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zorder_pipeline.errors import VerificationError
from zorder_pipeline.model.spark_sql import column_sql
from zorder_pipeline.state.session_conf import set_for_a_while

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

__all__ = ["MODES", "check_counts", "check_hashes", "content_hash", "row_counts"]

MODES = ("counts", "hash")
BY_SCAN = {"spark.databricks.delta.optimizeMetadataQuery.enabled": "false"}
"""Count rows by reading the files, where Delta would add up what its log says of them."""


def content_hash(rows: DataFrame) -> tuple[int, int]:
    """Number of rows and an order-independent hash of their content (the sum of a 64-bit hash per row)."""
    from pyspark.sql import functions as F

    hashed = F.xxhash64(*(_hashable(F.col(column_sql((f.name,))), f.dataType) for f in rows.schema.fields))
    total = F.sum(hashed.cast("decimal(38,0)"))
    row = rows.agg(F.count(F.lit(1)), total).collect()[0]
    return int(row[0]), int(row[1] or 0)


def row_counts(before: DataFrame, after: DataFrame) -> tuple[int, int]:
    """Numbers of rows of two versions of a table.

    Delta answers with those in its log, which may be wrong: where they differ, the files' own rows are counted.
    """
    told = before.count(), after.count()
    if told[0] == told[1]:
        return told
    with set_for_a_while(before.sparkSession, BY_SCAN):
        return before.count(), after.count()


def check_counts(expected: int, written: int) -> None:
    """Raises `VerificationError` when the numbers of rows differ."""
    if expected != written:
        raise VerificationError(f"{written} rows were written of {expected} read; nothing was committed")


def check_hashes(before: tuple[int, int], after: tuple[int, int]) -> None:
    """Raises `VerificationError` when the contents differ."""
    if before != after:
        raise VerificationError("the written rows differ from those read (content hash); nothing was committed")


def _hashable(column: Column, kind: DataType) -> Column:
    """A value in a form of which Spark's hash sees everything.

    To that hash a null is nothing and an array's end is not seen, zeros of both signs are one, and so are texts that a
    collation takes for equal; maps and variants have none.
    """
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    match kind:
        case T.StructType():
            parts = [_hashable(column.getField(field.name), field.dataType) for field in kind.fields]
        case T.ArrayType():
            parts = [F.size(column), F.transform(column, lambda item: _hashable(item, kind.elementType))]
        case T.MapType():
            entry = T.StructType().add("key", kind.keyType).add("value", kind.valueType)
            parts = [_hashable(F.map_entries(column), T.ArrayType(entry))]
        case T.VariantType():
            parts = [F.to_json(column), F.schema_of_variant(column)]
        case T.FloatType() | T.DoubleType():
            parts = [column, F.when(column == 0, column.cast("string"))]
        case T.StringType() | T.CharType() | T.VarcharType():
            parts = [column.cast("binary")]
        case _:
            parts = [column]
    return F.struct(column.isNull(), *parts)
