"""Upkeep of the state: nights append a few rows at a time, and thousands of tiny files make later nights slower."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from zorder_pipeline.errors import LostRaceError
from zorder_pipeline.relayout.failures import lost_races
from zorder_pipeline.relayout.sessions import is_delta_table, sql_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["tidy_state"]

BY_DAY = {
    "relayouts": "relayout_date",
    "approvals": "event_date",
    "drift": "noted_date",
    "calibrations": "calibration_date",
}
"""Tables whose rows of a day lie together, by their partition column: days that are over are merged once."""
GROWING = ("query_log", "quarantine", "log_files")
"""Tables of which no part is ever over."""
TOO_MANY = 64
"""Files more than partitions, from which merging the first kind is worth a commit."""
PER_PARTITION = 32
"""Files per partition, from which the second kind is merged: each time, all that it holds is written again."""


def tidy_state(spark: SparkSession, state: str) -> dict[str, int]:
    """Merge the small files of the state's tables by Delta's OPTIMIZE; returns how many were merged, by table.

    No row changes. Where another run writes the same files, they are left to the next night.

    Args:
        state: folder of the state.
    """
    found = {}
    for table in (*BY_DAY, *GROWING):
        path = f"{state.rstrip('/')}/{table}"
        if not is_delta_table(spark, path):
            continue
        files = spark.read.format("delta").load(path).inputFiles()
        partitions = Counter(os.path.dirname(file) for file in files)
        day = BY_DAY.get(table)
        if len(files) - len(partitions) < (TOO_MANY if day else PER_PARTITION * len(partitions)):
            continue
        try:
            with lost_races(path):
                merged = spark.sql(f"OPTIMIZE {sql_name(path)}{f' WHERE {day} < current_date()' if day else ''}")
                found[table] = int(merged.collect()[0]["metrics"]["numFilesRemoved"])
        except LostRaceError:
            continue
    return {table: count for table, count in found.items() if count}
