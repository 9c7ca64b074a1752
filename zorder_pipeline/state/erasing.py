"""Deleting rows of the state's tables so that nobody finds them any more, once VACUUM has removed the files.

Delta keeps its log past VACUUM: what a DELETE asked for, and the least and greatest value of each file's columns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from .delta_tables import changed, sql_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["WHOLE_FILES", "delete_equal", "delete_where", "set_properties"]

WHOLE_FILES = {"delta.enableDeletionVectors": "false"}
"""Files are written anew without what is deleted, whatever the session has for new tables: under a deletion vector it
would stay in a file that VACUUM keeps."""


def set_properties(spark: SparkSession, path: str, properties: Mapping[str, str]) -> None:
    """Give a table, which an older version may have made, the properties of a new one, `WHOLE_FILES` among them.

    What was deleted under deletion vectors goes with VACUUM from then on, too.

    Raises:
        LostRaceError: another writer was faster each time; nothing has changed.
    """
    from delta.tables import DeltaTable

    found = DeltaTable.forPath(spark, path).detail().select("properties", "tableFeatures").collect()[0]
    if not properties.items() <= found["properties"].items():
        told = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        changed(spark, path, lambda: spark.sql(f"ALTER TABLE {sql_name(path)} SET TBLPROPERTIES ({told})").collect())
    if "deletionVectors" in (found["tableFeatures"] or ()):
        changed(spark, path, lambda: spark.sql(f"REORG TABLE {sql_name(path)} APPLY (PURGE)").collect())


def delete_where(spark: SparkSession, path: str, condition: Column) -> int:
    """Delete the rows that meet a condition; returns how many. Delta's history keeps the constants in it.

    Raises:
        LostRaceError: another writer was faster each time; nothing was deleted.
    """
    from delta.tables import DeltaTable

    if rows := _rows(spark, path).where(condition).count():
        changed(spark, path, lambda: DeltaTable.forPath(spark, path).delete(condition))
    return rows


def delete_equal(spark: SparkSession, path: str, columns: Sequence[str], values: Collection[Sequence[str]]) -> int:
    """Delete the rows whose ``columns``, all texts, equal one of ``values``; returns how many.

    Delta's history keeps none of these, as the MERGE that it is asks for what is in another table.

    Raises:
        LostRaceError: another writer was faster each time; nothing was deleted.
    """
    from delta.tables import DeltaTable
    from pyspark.sql import functions as F

    if not values:
        return 0
    told = pa.table([pa.array(column, pa.string()) for column in zip(*values, strict=True)], list(columns))
    meant = spark.createDataFrame(told)
    if rows := _rows(spark, path).join(F.broadcast(meant), list(columns), "left_semi").count():
        same = " AND ".join(f"stored.{name} = meant.{name}" for name in columns)

        def change() -> None:
            table = DeltaTable.forPath(spark, path).alias("stored")
            table.merge(meant.alias("meant"), same).whenMatchedDelete().execute()

        changed(spark, path, change)
    return rows


def _rows(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.format("delta").load(path)
