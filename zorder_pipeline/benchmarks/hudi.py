"""Apache Hudi's clustering as a peer, by z-order and by Hilbert curve, in an environment of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .foreign import Foreign, PeerError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["HUDI", "hudi_hilbert", "hudi_zorder"]

HUDI = Foreign(
    name="Hudi",
    job="hudi_job.py",
    jar="org.apache.hudi:hudi-spark3.5-bundle_2.12:1.1.1",
    pyspark="3.5.7",
    variable="ZORDER_HUDI_PYTHON",
)


def hudi_zorder(
    spark: SparkSession, source: str, dest: str, columns: Sequence[str], files: int, measure: object = None
) -> float:
    """The procedure ``run_clustering`` by z-order.

    Raises:
        PeerError: there is no column, the environment cannot be made, or the job fails.
    """
    del measure
    return _clustered(spark, source, dest, columns, files, "z-order")


def hudi_hilbert(
    spark: SparkSession, source: str, dest: str, columns: Sequence[str], files: int, measure: object = None
) -> float:
    """The procedure ``run_clustering`` by Hilbert curve.

    Raises:
        PeerError: there is no column, the environment cannot be made, or the job fails.
    """
    del measure
    return _clustered(spark, source, dest, columns, files, "hilbert")


def _clustered(spark: SparkSession, source: str, dest: str, columns: Sequence[str], files: int, curve: str) -> float:
    if not columns:
        raise PeerError("the log filters by no column")
    how = {"columns": list(columns), "curve": curve}
    return HUDI.rewritten(spark, source, dest, files, how, f"{curve} of {', '.join(columns)}")
