"""The state's table ``relayouts``: what each relayout promised, did and cost, what became of it, and by which plan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from zorder_pipeline.errors import PlanError
from zorder_pipeline.java import has_jvm
from zorder_pipeline.model.choices import HORIZON_DAYS
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.values import DAY

from .entry import Entry, entry_of
from .state_table import StateTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Ledger"]

SCHEMA_VERSION = 8
COLUMNS = (
    *("schema_version INT", "table_id STRING", "table_location STRING", "layout_id STRING", "version BIGINT"),
    *("committed_at TIMESTAMP", "relayout_date DATE", "files_removed BIGINT", "files_added BIGINT"),
    *("bytes_rewritten BIGINT", "rows BIGINT", "seconds DOUBLE", "cores INT", "columns INT"),
    *("promised_before DOUBLE", "promised_after DOUBLE", "promised_low DOUBLE", "promised_high DOUBLE"),
    *("gate STRING", "plan STRING"),
    # since version 2
    *("additional INT", "predicates INT", "hashed BOOLEAN", "replaced_version BIGINT", "credited DOUBLE"),
    *("cost_expected DOUBLE", "cost_low DOUBLE", "cost_high DOUBLE", "cost_measured DOUBLE"),
    *("measured_at TIMESTAMP", "measured_queries BIGINT", "measured_before DOUBLE", "measured_after DOUBLE"),
    *("measured_bytes_saved DOUBLE", "measured_files_saved DOUBLE", "measured_per_day DOUBLE"),
    # since versions 3, 4, 5, 6, 7 and 8
    *("run STRING", "ended_at TIMESTAMP", "measured_page_bytes_saved DOUBLE", "measured_until BIGINT"),
    *("looked_until BIGINT", "measured_since BIGINT", "merged STRING"),
)
APP = "zorder-relayouts"
MOST_CORES = 100_000


class Ledger:
    """What was relaid, a row per relayout.

    Args:
        state: folder of the state, on any Hadoop filesystem.
    """

    def __init__(self, spark: SparkSession, state: str) -> None:
        self.spark = spark
        self.table = StateTable(spark, state, "relayouts", COLUMNS, SCHEMA_VERSION, "relayout_date")

    def record(
        self,
        plan: Plan,
        layout_id: str,
        version: int,
        done: Mapping[str, Any],
        gate: Mapping[str, Any],
        work: Mapping[str, Any] | None = None,
        committed: datetime | None = None,
    ) -> None:
        """Add a relayout; the same table, version and run a second time adds nothing.

        Another run makes a version again in a table that was put back from a backup, or in a copy that keeps its id.

        A run of several bins is added after each of them, with all that it has done so far.

        Args:
            version: newest table version that it made.
            done: ``files_removed``, ``files_added``, ``bytes_rewritten``, ``rows`` and ``seconds``; ``run``, what its
                commits have in common; and ``merged``, how many of the rows lay by the layout before, by generation.
            gate: the gate's figures.
            work: what its cost follows from: ``additional``, ``predicates``, ``hashed``; ``replaced_version``; and
                ``credited``, the share of what the plan promised that this relayout brings, 0 to 1.
            committed: when; the present when None.
        """
        promise, cores, now = plan.promise, _cores(self.spark), committed or datetime.now(UTC)
        row: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "table_id": plan.table_id,
            "table_location": plan.table,
            "layout_id": layout_id,
            "version": version,
            "committed_at": now.isoformat(),
            "relayout_date": now.date().isoformat(),
            **{name: done[name] for name in ("files_removed", "files_added", "bytes_rewritten", "rows", "seconds")},
            "cores": cores,
            "columns": sum(not feature.expression for feature in plan.spec.features) if plan.spec else 0,
            **{f"promised_{name}": getattr(promise, name) for name in ("before", "after", "low", "high")},
            "gate": json.dumps(dict(gate)),
            "plan": json.dumps(plan.to_json()),
            **(work or {}),
            "cost_measured": done["seconds"] * cores,
            "run": done.get("run") or None,
            "merged": None if done.get("merged") is None else json.dumps(dict(done["merged"])),
        }
        if gate.get("cost_core_seconds"):
            row |= {"cost_expected": gate["cost_core_seconds"], "cost_low": gate.get("cost_low")}
            row |= {"cost_high": gate.get("cost_high")}
        # a transaction of its own makes a repeated record nothing, and either of two at once may come first
        once = f"{APP}-{plan.table_id}-{version}"
        self.table.append([row], f"{once}-{row['run']}" if row["run"] else once)

    def measured(self, entry: Entry, values: Mapping[str, Any]) -> None:
        """Note what became of a relayout: columns ``measured_…`` by their name without that."""
        told = {f"measured_{name}": value for name, value in values.items()}
        self.table.update(entry.key, told | {"measured_at": datetime.now(UTC)})

    def ended(self, entry: Entry, moment: int) -> None:
        """Note when a relayout was undone, microseconds since 1970 UTC."""
        self.table.update(entry.key, {"ended_at": datetime.fromtimestamp(moment / 1e6, UTC)})

    def replaced(self, location: str, table_id: str, moment: int) -> None:
        """Note that relayouts of tables that were there before a table at its place count no more.

        One that was moved elsewhere, and relaid there, is left alone.

        Args:
            moment: when the table was made, microseconds since 1970 UTC.
        """
        from pyspark.sql import functions as F

        rows = self.table.read().where(F.col("table_id") != table_id)
        place = F.max_by("table_location", "committed_at").alias("place")
        newest, standing = F.max(F.unix_micros("committed_at")), F.count_if(F.isnull("ended_at"))
        others = rows.groupBy("table_id").agg(place, newest.alias("newest"), standing.alias("standing"))
        for other in others.where((F.col("place") == location) & (F.col("standing") > 0)).collect():
            ended = datetime.fromtimestamp(max(moment, other["newest"]) / 1e6, UTC)
            self.table.update({"table_id": other["table_id"], "ended_at": None}, {"ended_at": ended})

    def moved(self, table_id: str, location: str) -> None:
        """Note that a table lies elsewhere now."""
        self.table.update({"table_id": table_id}, {"table_location": location})

    def stands(self, entry: Entry) -> None:
        """Take back that a relayout was undone."""
        self.table.update(entry.key, {"ended_at": None})

    def looked(self, entry: Entry, until: int) -> None:
        """Note up to which version the table's history was looked at for what undid a relayout, or one before it."""
        self.table.update(entry.key, {"looked_until": until})

    def entries(
        self,
        table_id: str | None = None,
        location: str | None = None,
        *,
        newest: int | None = None,
        credited: float | None = None,
    ) -> list[Entry]:
        """All relayouts, or those of one table, oldest first; of a run of several bins what it had done in the end.

        Of days that are not asked for no plan is read: one may take a quarter of a megabyte.

        Args:
            location: those, too, of other tables that lay there.
            newest: so many are enough, the newest ones.
            credited: those are enough whose saving is credited at that moment (microseconds since 1970 UTC), by the
                horizon that the gate decided them with, and the newest one.
        """
        from pyspark.sql import functions as F

        rows = self.table.read()
        if table_id is not None:
            mine = F.col("table_id") == table_id
            rows = rows.where(mine if location is None else mine | (F.col("table_location") == location))
        if newest is not None:
            runs = F.count_distinct(F.coalesce("run", F.concat_ws(" ", "table_id", "version")))
            days = rows.groupBy("relayout_date").agg(runs.alias("runs")).orderBy(F.col("relayout_date").desc())
            before = 0
            for day in days.collect():
                if before > newest:  # one more: a run may have begun on the day before
                    rows = rows.where(F.col("relayout_date") > F.lit(day["relayout_date"]))
                    break
                before += day["runs"]
        if credited is not None:
            horizon = F.get_json_object("gate", "$.assumptions.horizon_days").try_cast("double")
            ends = F.unix_micros("committed_at") + F.coalesce(horizon, F.lit(HORIZON_DAYS)) * DAY
            first = F.min(F.when(ends >= credited, F.col("relayout_date")))
            since = rows.agg(F.coalesce(first, F.max("relayout_date"))).collect()[0][0]
            rows = rows.where(F.col("relayout_date") >= F.lit(since))
        asked = rows.withColumns({"moment": F.unix_micros("committed_at"), "ended": F.unix_micros("ended_at")})
        asked = asked.orderBy("moment", "version")
        # of the plan, which may be large, no more than is told; get_json_object knows no NaN, which a plan may hold
        told = F.from_json("plan", "promise STRING, log_watermark BIGINT").alias("told")
        found = [row.asDict() for row in asked.select("*", told).select("*", "told.*").drop("plan", "told").collect()]
        last = {row["run"]: row["version"] for row in found if row["run"] is not None}
        ended = [row for row in found if row["run"] is None or last[row["run"]] == row["version"]]
        return [entry_of(row) for row in (ended if newest is None else ended[-newest:])]

    def newest_of(self, table_id: str, run: str) -> int:
        """Newest version that is recorded of a run (`record`), -1 when none is."""
        from pyspark.sql import functions as F

        rows = self.table.read().where((F.col("table_id") == table_id) & (F.col("run") == run))
        newest = rows.agg(F.max("version")).collect()[0][0]
        return -1 if newest is None else int(newest)

    def latest(self, table_id: str, layout_id: str | None = None) -> Plan | None:
        """The plan of a table's newest relayout, or of its newest by one layout; None when there is none that fits."""
        from pyspark.sql import functions as F

        if not self.table.exists():
            return None
        rows = self.table.read().where(F.col("table_id") == table_id)
        if layout_id is not None:
            rows = rows.where(F.col("layout_id") == layout_id)
        # first the day: of others no plan is read
        day = rows.agg(F.max_by("relayout_date", "version")).collect()[0][0]
        rows = rows.where(F.col("relayout_date") == F.lit(day)).orderBy(F.col("version").desc())
        found = rows.select("plan").limit(1).collect() if day is not None else []
        try:
            return Plan.from_json(json.loads(found[0]["plan"])) if found else None
        except PlanError:  # written by another version of this code: as if there were none
            return None


def _cores(spark: SparkSession) -> int:
    """How many tasks run at a time; in a Spark Connect session as many as a range gets by default."""
    from pyspark.sql import functions as F

    if has_jvm(spark):
        return spark.sparkContext.defaultParallelism
    found = spark.range(MOST_CORES).select(F.spark_partition_id().alias("task")).agg(F.max("task")).collect()
    return int(found[0][0]) + 1
