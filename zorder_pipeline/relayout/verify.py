"""Proof before the commit that the written files hold the same rows as the files they replace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zorder_pipeline.errors import VerificationError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["MODES", "check_counts", "check_hashes", "content_hash"]

MODES = ("counts", "hash")


def content_hash(rows: DataFrame) -> tuple[int, int]:
    """Number of rows and an order-independent hash of their content (the sum of a 64-bit hash per row)."""
    from pyspark.sql import functions as F

    hashed = F.xxhash64(*(_hashable(F.col(_quoted(f.name)), f.dataType.simpleString()) for f in rows.schema.fields))
    total = F.sum(hashed.cast("decimal(38,0)"))
    row = rows.agg(F.count(F.lit(1)), total).collect()[0]
    return int(row[0]), int(row[1] or 0)


def check_counts(expected: int, written: int) -> None:
    """Raises `VerificationError` when the numbers of rows differ."""
    if expected != written:
        raise VerificationError(f"{written} rows were written of {expected} read; nothing was committed")


def check_hashes(before: tuple[int, int], after: tuple[int, int]) -> None:
    """Raises `VerificationError` when the contents differ."""
    if before != after:
        raise VerificationError("the written rows differ from those read (content hash); nothing was committed")


def _hashable(column: Column, type_name: str) -> Column:
    """Maps and variants have no hash of their own; a null hashes as nothing, so its place is marked."""
    from pyspark.sql import functions as F

    if "map<" in type_name or "variant" in type_name:
        column = F.to_json(F.struct(column)) if "map<" in type_name else F.to_json(column)
    return F.struct(column.isNull(), column)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
