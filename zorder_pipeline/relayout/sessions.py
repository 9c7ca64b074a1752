"""What a Spark session is and knows: its versions, and which names and folders are tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zorder_pipeline.java import has_jvm, java_class, scala_object
from zorder_pipeline.model.places import is_uri, local_path
from zorder_pipeline.model.spark_sql import column_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["activate", "encoders", "is_delta_table", "is_path", "no_table", "session_id", "session_versions"]
__all__ += ["sql_name"]


def activate(spark: SparkSession) -> None:
    """Make this the session that Delta finds when it asks its own thread for one: a new thread has none."""
    java_class(spark, "org.apache.spark.sql.classic.SparkSession").setActiveSession(spark._jsparkSession)


def encoders(spark: SparkSession) -> Any:
    """How Delta's actions become rows of a Dataset: an object with a method for each kind, as ``addFileEncoder``."""
    return scala_object(spark, "org.apache.spark.sql.delta.implicits.package")


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


def no_table(folder: str) -> str:
    """Why a folder cannot be opened, and what to do, as far as a local one tells."""
    advice = "give the folder that holds _delta_log, or a catalog name"
    path = local_path(folder)
    local = None if path is None else Path(path)
    if local is not None and not local.exists():
        return f"{folder} is no Delta table: it does not exist; {advice}"
    if local is not None and local.is_dir() and any(local.glob("*.parquet")):
        convert = f"CONVERT TO DELTA parquet.`{local.absolute()}`"
        return f"{folder} holds Parquet files but is no Delta table; make it one with {convert}"
    return f"{folder} is no Delta table; {advice}"


def session_id(spark: SparkSession) -> str:
    """What tells a session from others, whichever Python object stands for it."""
    return str(spark._jsparkSession.sessionUUID() if has_jvm(spark) else spark.session_id)  # type: ignore[attr-defined]


def session_versions(spark: SparkSession) -> tuple[str, str]:
    """Versions of the session's Spark and Delta; "of no known version" where Delta does not say."""
    from py4j.protocol import Py4JError

    try:
        return spark.version, str(java_class(spark, "io.delta.package").VERSION())
    except (TypeError, Py4JError):
        return spark.version, "of no known version"


def sql_name(table: str) -> str:
    """The name in SQL of a table that is given by its folder or its catalog name."""
    if is_path(table):
        whole = table if is_uri(table) else os.path.abspath(table)  # SQL takes no relative folder
        return "delta." + column_sql((whole,))
    return table if "`" in table else column_sql(tuple(table.split(".")))


def is_path(table: str) -> bool:
    """Whether a table is given by its folder."""
    return "/" in table or table.startswith(".")
