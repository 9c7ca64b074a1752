"""What a Spark session is and knows: its JVM, if it has one, its versions, and which names and folders are tables."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zorder_pipeline.errors import UnsupportedTableError
from zorder_pipeline.model.spark_sql import column_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["activate", "elements", "has_jvm", "is_delta_table", "is_path", "java_class", "jvm", "no_table", "nothing"]
__all__ += ["scala_object", "session_id", "session_versions", "sql_name"]

SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*:"
"""What a URI begins with."""


def has_jvm(spark: SparkSession) -> bool:
    """Whether it is a classic session, and none of Spark Connect."""
    return getattr(spark, "_jvm", None) is not None


def jvm(spark: SparkSession) -> Any:
    """The session's JVM.

    Raises:
        UnsupportedTableError: a Spark Connect session, which has none.
    """
    if not has_jvm(spark):
        raise UnsupportedTableError(
            "this Spark session has no JVM (Spark Connect), which this step needs: use a classic session, e.g. "
            "spark.master: local[*] or the cluster's own master URL, or committer: public for a relayout"
        )
    return spark._jvm


def java_class(spark: SparkSession, name: str) -> Any:
    """A class of the session's JVM by its whole name: one call, where word after word the JVM looks for each."""
    return getattr(jvm(spark), name)


def scala_object(spark: SparkSession, name: str) -> Any:
    """A Scala object of the session's JVM by its whole name."""
    return getattr(java_class(spark, f"{name}$"), "MODULE$")


def nothing(spark: SparkSession) -> Any:
    """Scala's None."""
    return java_class(spark, "scala.Option").empty()


def elements(found: Any) -> list[Any]:
    """The elements of a Scala collection: iterating in Java's way ends in an exception, dear to carry to Python."""
    sequence = found.toSeq()
    return [sequence.apply(i) for i in range(sequence.size())]


def activate(spark: SparkSession) -> None:
    """Make this the session that Delta finds when it asks its own thread for one: a new thread has none."""
    java_class(spark, "org.apache.spark.sql.classic.SparkSession").setActiveSession(spark._jsparkSession)


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
    local = Path(folder.removeprefix("file://"))
    if "://" not in folder.removeprefix("file://") and not local.exists():
        return (
            f"{folder} is no Delta table: it does not exist; give the folder that holds _delta_log, or a catalog name"
        )
    if local.is_dir() and any(local.glob("*.parquet")):
        convert = f"CONVERT TO DELTA parquet.`{local.absolute()}`"
        return f"{folder} holds Parquet files but is no Delta table; make it one with {convert}"
    return f"{folder} is no Delta table; give the folder that holds _delta_log, or a catalog name"


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
        whole = table if re.match(SCHEME, table) else os.path.abspath(table)  # SQL takes no relative folder
        return "delta." + column_sql((whole,))
    return table if "`" in table else column_sql(tuple(table.split(".")))


def is_path(table: str) -> bool:
    """Whether a table is given by its folder."""
    return "/" in table or table.startswith(".")
