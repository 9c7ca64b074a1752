"""What a Spark session is and knows: its versions, and why a folder is no table to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from zorder_pipeline.java import has_jvm, java_class, jvm, scala_object
from zorder_pipeline.model.places import is_same_place, local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["encoders", "inside_table", "no_table", "other_format", "session_versions"]


def encoders(spark: SparkSession) -> Any:
    """How Delta's actions become rows of a Dataset: an object with a method for each kind, as ``addFileEncoder``."""
    return scala_object(spark, "org.apache.spark.sql.delta.implicits.package")


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


def inside_table(spark: SparkSession, folder: str) -> str:
    """Why a folder in that of a table, such as a partition's, cannot be opened, and what to do."""
    advice = "with --where for some partitions, if the command has that"
    if not has_jvm(spark):
        return f"{folder} lies in the folder of a Delta table; give the table's own, {advice}"
    path, options = java_class(spark, "org.apache.hadoop.fs.Path")(folder), jvm(spark).PythonUtils.toScalaMap({})
    tables = scala_object(spark, "org.apache.spark.sql.delta.DeltaTableUtils")
    found = tables.findDeltaTableRoot(spark._jsparkSession, path, options)
    table = found.get().toString() if found.isDefined() else folder
    if is_same_place(table, folder):  # its log is empty
        return no_table(folder)
    return f"{folder} lies in the folder of the table {table}; give that, {advice}"


def other_format(table: str, form: str | None = None) -> str:
    """Why a table of the session's catalog that lies in another format cannot be opened.

    >>> other_format("db.t", "parquet")
    'db.t is a table of format parquet, no Delta table; make it one with CONVERT TO DELTA db.t'
    """
    convert = f"; make it one with CONVERT TO DELTA {table}" if form in ("parquet", "iceberg") else ""
    return f"{table} is a table of {f'format {form}' if form else 'another format'}, no Delta table{convert}"


def session_versions(spark: SparkSession) -> tuple[str, str]:
    """Versions of the session's Spark and Delta; "of no known version" where Delta does not say."""
    from py4j.protocol import Py4JError

    try:
        return spark.version, str(java_class(spark, "io.delta.package").VERSION())
    except (TypeError, Py4JError):
        return spark.version, "of no known version"
