"""What a session has to do with the value of an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zorder_pipeline.errors import UnsupportedTableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["session_of", "zone_of"]

SETTINGS = (
    *("spark.sql.caseSensitive", "spark.sql.legacy.timeParserPolicy", "spark.sql.parser.escapedStringLiterals"),
    *("spark.sql.decimalOperations.allowPrecisionLoss", "spark.sql.legacy.sizeOfNull"),
)
"""Settings of a session that change what expressions mean."""


def session_of(spark: SparkSession) -> str:
    """What the value of an expression depends on besides the row: under another one, statistics of it do not count."""
    if getattr(spark, "_jsparkSession", None) is None:
        raise UnsupportedTableError("statistics of files need a classic Spark session; this one is Spark Connect")
    conf = spark._jsparkSession.sessionState().conf()
    told = [f"spark {spark.version}", f"ansi {conf.ansiEnabled()}", f"zone {conf.sessionLocalTimeZone()}"]
    told += [f"{key} {spark.conf.get(key, None)}" for key in SETTINGS]
    return ", ".join(told)


def zone_of(spark: SparkSession) -> str:
    """The session's time zone."""
    return spark.conf.get("spark.sql.session.timeZone", "UTC") or "UTC"
