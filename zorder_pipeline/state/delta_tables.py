"""Which folders are Delta tables, and what a table is called in SQL."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from zorder_pipeline.errors import TableError
from zorder_pipeline.java import has_jvm
from zorder_pipeline.model.places import is_uri
from zorder_pipeline.model.predicate import VARIABLE
from zorder_pipeline.model.spark_sql import column_sql

from .conflicts import insist
from .session_conf import OWN_COMMITS, set_for_a_while

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["changed", "is_delta_table", "is_path", "made_changeable", "sql_name"]

Made = TypeVar("Made")

_PART = r"`(?:[^`]|``)+`|[^`.]+"
_QUOTED = re.compile(rf"\s*(?:{_PART})(?:\s*\.\s*(?:{_PART}))*\s*")
"""A catalog name some of whose parts are quoted as in SQL."""


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


def changed(spark: SparkSession, path: str, change: Callable[[], Made]) -> Made:
    """What a change of a table of the state gives, tried again where another writer was faster.

    It is made by none of the session's own transactions, also of a table that takes none yet (`made_changeable`).

    Raises:
        LostRaceError: another writer was faster each time; nothing has changed.
    """
    with set_for_a_while(spark, OWN_COMMITS):
        return insist(path, lambda: made_changeable(spark, path, change))


def made_changeable(spark: SparkSession, path: str, change: Callable[[], Made]) -> Made:
    """A change of a table of the state; one that takes none, as an older version made it, is let do so first.

    That made such tables as the session had it for its own new ones: append-only, perhaps.
    """
    try:
        return change()
    except Exception as error:
        if "DELTA_CANNOT_MODIFY_APPEND_ONLY" not in str(error):
            raise
    spark.sql(f"ALTER TABLE {sql_name(path)} SET TBLPROPERTIES ('delta.appendOnly' = 'false')").collect()
    return change()


def is_path(table: str) -> bool:
    """Whether a table is given by its folder."""
    return "/" in table or table.startswith(".")


def sql_name(table: str) -> str:
    """The name in SQL of a table that is given by its folder or its catalog name, with every part quoted.

    A name may come from a log, so nothing in it is taken for SQL; parts that are quoted already, as on a command line,
    are unquoted first.

    Raises:
        TableError: Spark would put settings or the driver's environment into it.

    >>> sql_name("`my lake` . orders"), sql_name("lake . orders"), sql_name("` .x`.y")
    ('`my lake`.`orders`', '`lake`.`orders`', '` .x`.`y`')
    >>> sql_name("lake.orders"), sql_name("`my.lake`.orders"), sql_name("a`b")
    ('`lake`.`orders`', '`my.lake`.`orders`', '`a``b`')
    """
    if VARIABLE in table:
        raise TableError(f"table {table} cannot be opened: its name holds {VARIABLE}, which Spark replaces; rename it")
    if is_path(table):
        whole = table if is_uri(table) else os.path.abspath(table)  # SQL takes no relative folder
        return "delta." + column_sql((whole,))
    if not _QUOTED.fullmatch(table):
        return column_sql(tuple(table.split(".")))
    parts = [part if part.startswith("`") else part.strip() for part in re.findall(_PART, table)]
    told = (part[1:-1].replace("``", "`") if part.startswith("`") else part for part in parts if part)
    return column_sql(tuple(told))
