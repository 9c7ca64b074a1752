"""Apache Hudi's clustering as a peer, by z-order and by Hilbert curve, in an environment of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .foreign import Foreign, PeerError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["HUDI", "hudi"]

HUDI = Foreign(
    name="Hudi",
    job="hudi_job.py",
    jar="org.apache.hudi:hudi-spark3.5-bundle_2.12:1.1.1",
    pyspark="3.5.7",
    variable="ZORDER_HUDI_PYTHON",
)


def hudi(curve: str) -> Callable[..., float]:
    """The procedure ``run_clustering`` by a curve, ``z-order`` or ``hilbert``, as `zorder_pipeline.benchmarks.peers`
    takes it.

    Raises, when called:
        PeerError: there is no column, the environment cannot be made, or the job fails.
    """

    def prepare(
        spark: SparkSession, source: str, dest: str, columns: Sequence[str], files: int, measure: object = None
    ) -> float:
        del measure
        if not columns:
            raise PeerError("the log filters by no column")
        how = {"columns": list(columns), "curve": curve}
        return HUDI.rewritten(spark, source, dest, files, how, f"{curve} of {', '.join(columns)}")

    return prepare
