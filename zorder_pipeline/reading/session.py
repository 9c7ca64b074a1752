"""What a session has to do with the value of an expression."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from zorder_pipeline.errors import UnsupportedTableError
from zorder_pipeline.java import has_jvm, java_class, scala_object
from zorder_pipeline.model.file_stats import Feature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["session_of", "unshadowed", "zone_of"]

_ORDER = "spark.sql.functionResolution.sessionOrder"
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")
SETTINGS = (
    *("spark.sql.caseSensitive", "spark.sql.legacy.timeParserPolicy", "spark.sql.parser.escapedStringLiterals"),
    *("spark.sql.decimalOperations.allowPrecisionLoss", "spark.sql.legacy.sizeOfNull", "spark.sql.timestampType"),
    *(_ORDER, "spark.sql.preserveCharVarcharTypeInfo", "spark.sql.readSideCharPadding"),
    *("spark.sql.icu.caseMappings.enabled", "spark.sql.charAsVarchar"),
)
"""Settings of a session that change what expressions mean, besides all that begin with `LEGACY`."""
LEGACY = "spark.sql.legacy."


def session_of(spark: SparkSession) -> str:
    """What the value of an expression depends on besides the row: under another one, statistics of it do not count."""
    if not has_jvm(spark):
        raise UnsupportedTableError("statistics of files need a classic Spark session; this one is Spark Connect")
    conf = spark._jsparkSession.sessionState().conf()
    every = str(conf.getAllConfs().mkString("\0"))  # in one call: one by one they would take longer than planning
    settings = dict(entry.split(" -> ", 1) for entry in every.split("\0") if " -> " in entry)
    told = [f"spark {spark.version}", f"ansi {conf.ansiEnabled()}", f"zone {conf.sessionLocalTimeZone()}"]
    told += [f"{key} {settings.get(key)}" for key in SETTINGS]
    told += [f"{key} {value}" for key, value in sorted(settings.items()) if key.startswith(LEGACY)]
    return ", ".join(told)


def _shadowed(spark: SparkSession, text: str) -> bool:
    """Whether a function that ``text`` calls may be the session's own under the name of one of Spark's."""
    calls = sorted({found.lower() for found in _CALLED.findall(text)})
    if tuple(map(int, spark.version.split(".")[:2])) >= (4, 2):  # which keeps both kinds apart
        return bool(calls) and (spark.conf.get(_ORDER, None) or "").lower() == "first"
    catalyst = "org.apache.spark.sql.catalyst"
    named = java_class(spark, f"{catalyst}.FunctionIdentifier")
    own = spark._jsparkSession.sessionState().functionRegistry()
    usual = scala_object(spark, f"{catalyst}.analysis.FunctionRegistry").builtin()
    for name in calls:
        found = [registry.lookupFunction(named(name)) for registry in (own, usual)]
        if all(item.isDefined() for item in found):
            here, there = (item.get().getClassName() for item in found)
            if here != there:
                return True
    return False


def unshadowed(spark: SparkSession, features: Iterable[Feature]) -> list[Feature]:
    """The features that call no function which the session has put in the place of Spark's own."""
    return [feature for feature in features if feature.kind == "column" or not _shadowed(spark, feature.sql)]


def zone_of(spark: SparkSession) -> str:
    """The session's time zone."""
    return spark.conf.get("spark.sql.session.timeZone", "UTC") or "UTC"
