"""Which folders are Delta tables, and what a table is called in SQL."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from zorder_pipeline.java import has_jvm
from zorder_pipeline.model.places import is_uri
from zorder_pipeline.model.spark_sql import column_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["is_delta_table", "is_path", "sql_name"]


def is_delta_table(spark: SparkSession, folder: str) -> bool:
    """Whether a Delta table lies in a folder."""
    from delta.tables import DeltaTable
    from pyspark.errors import PySparkException

    if has_jvm(spark):
        return DeltaTable.isDeltaTable(spark, folder)
    try:
        return bool(spark.sql(f"DESCRIBE DETAIL {sql_name(folder)}").collect()[0]["format"] == "delta")
    except PySparkException as error:
        if "DELTA_MISSING_DELTA_TABLE" not in str(error):
            raise
        return False


def is_path(table: str) -> bool:
    """Whether a table is given by its folder."""
    return "/" in table or table.startswith(".")


def sql_name(table: str) -> str:
    """The name in SQL of a table that is given by its folder or its catalog name."""
    if is_path(table):
        whole = table if is_uri(table) else os.path.abspath(table)  # SQL takes no relative folder
        return "delta." + column_sql((whole,))
    return table if "`" in table else column_sql(tuple(table.split(".")))
