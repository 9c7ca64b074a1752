"""The state's table ``relayouts``: what each relayout promised, did and cost, and by which plan."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zorder_pipeline.errors import PlanError
from zorder_pipeline.model.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Ledger"]

SCHEMA_VERSION = 1
COLUMNS = (
    *("schema_version INT", "table_id STRING", "table_location STRING", "layout_id STRING", "version BIGINT"),
    *("committed_at TIMESTAMP", "relayout_date DATE", "files_removed BIGINT", "files_added BIGINT"),
    *("bytes_rewritten BIGINT", "rows BIGINT", "seconds DOUBLE", "cores INT", "columns INT"),
    *("promised_before DOUBLE", "promised_after DOUBLE", "promised_low DOUBLE", "promised_high DOUBLE"),
    *("gate STRING", "plan STRING"),
)
TYPES = dict(item.split() for item in COLUMNS)
APP = "zorder-relayouts"


class Ledger:
    """What was relaid, a row per relayout.

    Args:
        state: folder of the state, on any Hadoop filesystem.
    """

    def __init__(self, spark: SparkSession, state: str) -> None:
        self.spark, self.path = spark, f"{state.rstrip('/')}/relayouts"

    def record(
        self, plan: Plan, layout_id: str, version: int, done: Mapping[str, Any], gate: Mapping[str, Any]
    ) -> None:
        """Add a relayout; the same table and version a second time adds nothing.

        Args:
            version: table version that it made.
            done: ``files_removed``, ``files_added``, ``bytes_rewritten``, ``rows`` and ``seconds``.
            gate: the gate's figures.
        """
        promise, moment = plan.promise, time.time()
        row = (
            *(SCHEMA_VERSION, plan.table_id, plan.table, layout_id, version),
            *(done[name] for name in ("files_removed", "files_added", "bytes_rewritten", "rows", "seconds")),
            *(self.spark.sparkContext.defaultParallelism, len(plan.spec.columns) if plan.spec else 0),
            *(promise.before, promise.after, promise.low, promise.high),
            *(json.dumps(dict(gate)), json.dumps(plan.to_json())),
        )
        given = [name for name in TYPES if name not in ("committed_at", "relayout_date")]
        from pyspark.sql import functions as F

        literals = {name: F.lit(value) for name, value in zip(given, row, strict=True)}
        literals |= {"committed_at": F.timestamp_micros(F.lit(int(moment * 1e6)))}
        literals |= {"relayout_date": F.to_date(literals["committed_at"])}
        frame = self.spark.range(1).select(*(literals[name].cast(kind).alias(name) for name, kind in TYPES.items()))
        writer = frame.write.format("delta").mode("append").partitionBy("relayout_date")
        # a transaction number per table makes a repeated record nothing
        writer.option("txnAppId", f"{APP}-{plan.table_id}").option("txnVersion", version).save(self.path)

    def latest(self, table_id: str, layout_id: str | None = None) -> Plan | None:
        """The plan of a table's newest relayout, or of its newest by one layout; None when there is none that fits."""
        from delta.tables import DeltaTable
        from pyspark.sql import functions as F

        if not DeltaTable.isDeltaTable(self.spark, self.path):
            return None
        rows = self.spark.read.format("delta").load(self.path).where(F.col("table_id") == table_id)
        if layout_id is not None:
            rows = rows.where(F.col("layout_id") == layout_id)
        found = rows.orderBy(F.col("version").desc()).select("plan").limit(1).collect()
        try:
            return Plan.from_json(json.loads(found[0]["plan"])) if found else None
        except PlanError:  # written by another version of this code: as if there were none
            return None
