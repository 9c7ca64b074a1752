"""Where a session reads SQL otherwise than the reader of query logs does, so that a scan is left to Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zorder_pipeline.model.predicate import VARIABLE
from zorder_pipeline.reading.session import shadowed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["read_alike", "reads_ansi"]

READ_WITH = {
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.legacy.ctePrecedencePolicy": "corrected",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.preserveCharVarcharTypeInfo": "false",
}
"""Settings that change what a text says, and their defaults, which the reader of query logs reads with."""


def read_alike(spark: SparkSession, text: str) -> bool:
    """Whether Spark parses in this session what stands in ``text``, by the rules of the reader of query logs."""
    if VARIABLE in text or shadowed(spark, text):
        return False
    return all((spark.conf.get(key, usual) or usual).lower() == usual for key, usual in READ_WITH.items())


def reads_ansi(spark: SparkSession) -> bool:
    """Whether an overflow or a malformed number is an error in this session: its ANSI mode."""
    return (spark.conf.get("spark.sql.ansi.enabled", "true") or "true").lower() == "true"
