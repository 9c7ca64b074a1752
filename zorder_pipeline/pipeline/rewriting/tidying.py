"""Upkeep of the state: nights append a few rows at a time, and thousands of tiny files make later nights slower."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from zorder_pipeline.errors import LostRaceError
from zorder_pipeline.query_log.intake.store import LogStore
from zorder_pipeline.state.approvals import Approvals
from zorder_pipeline.state.conflicts import lost_races
from zorder_pipeline.state.delta_tables import is_delta_table, sql_name
from zorder_pipeline.state.ledger import Ledger
from zorder_pipeline.state.memory import Memories
from zorder_pipeline.state.studies import Studies
from zorder_pipeline.state.timings import Timings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["tidy_state"]

BY_DAY = (Ledger, Approvals, Memories, Studies, Timings)
"""What keeps the rows of a day together: days that are over are merged once."""
GROWING = ("query_log", "quarantine", "log_files")
"""Tables of which no part is ever over."""
TOO_MANY = 64
"""Files more than partitions, from which merging the first kind is worth a commit."""
PER_PARTITION = 32
"""Files per partition, from which the second kind is merged: each time, all that it holds is written again."""


def tidy_state(spark: SparkSession, state: str) -> dict[str, int]:
    """Merge the small files of the state's tables by Delta's OPTIMIZE; returns how many were merged, by table.

    No row changes, but memories that newer ones have long replaced are deleted (`Memories.forget`). Where another run
    writes the same files, they are left to the next night.

    Args:
        state: folder of the state.
    """
    tables = [kind(spark, state).table for kind in BY_DAY]
    days = {table.path: table.partition for table in tables}
    with contextlib.suppress(LostRaceError):
        Memories(spark, state).forget()
    store = LogStore(spark, state)
    found = {path: _merged(spark, path, days.get(path)) for path in (*days, *map(store.path, GROWING))}
    return {os.path.basename(path): count for path, count in found.items() if count}


def _merged(spark: SparkSession, path: str, day: str | None) -> int:
    """How many files of a table were merged; of one whose rows of a ``day`` lie together, those of days before."""
    if not is_delta_table(spark, path):
        return 0
    files = spark.read.format("delta").load(path).inputFiles()
    partitions = {os.path.dirname(file) for file in files}
    if len(files) - len(partitions) < (TOO_MANY if day else PER_PARTITION * len(partitions)):
        return 0
    over = f" WHERE {day} < current_date()" if day else ""
    try:
        with lost_races(path):
            return int(spark.sql(f"OPTIMIZE {sql_name(path)}{over}").collect()[0]["metrics"]["numFilesRemoved"])
    except LostRaceError:
        return 0
