"""Apache Iceberg's ``rewrite_data_files`` as a peer, by zorder and by sort, in an environment of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .foreign import Foreign, PeerError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ICEBERG", "NOT_INTERLEAVED", "iceberg_sort", "iceberg_zorder"]

ICEBERG = Foreign(
    name="Iceberg",
    job="iceberg_job.py",
    jar="org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
    pyspark="4.0.4",
    variable="ZORDER_ICEBERG_PYTHON",
)
NOT_INTERLEAVED = ("decimal",)
"""Types that Iceberg's zorder refuses."""


def iceberg_zorder(
    spark: SparkSession, source: str, dest: str, columns: Sequence[str], files: int, measure: object = None
) -> float:
    """``rewrite_data_files`` by zorder(columns).

    Raises:
        PeerError: there is no column, the environment cannot be made, or the job fails.
    """
    del measure
    if not columns:
        raise PeerError("the log filters by no column of a type that Iceberg's zorder takes")
    order = f"zorder({','.join(columns)})"
    return ICEBERG.rewritten(spark, source, dest, files, {"sort_order": order}, order)


def iceberg_sort(
    spark: SparkSession, source: str, dest: str, columns: Sequence[str], files: int, measure: object = None
) -> float:
    """``rewrite_data_files`` by sort order: the columns one after the other.

    Raises:
        PeerError: the environment cannot be made, or the job fails.
    """
    del measure
    order = ",".join(f"{name} ASC NULLS FIRST" for name in columns)
    return ICEBERG.rewritten(spark, source, dest, files, {"sort_order": order}, order)
