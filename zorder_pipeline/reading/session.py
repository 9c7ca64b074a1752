"""What a session has to do with the value of an expression."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from zorder_pipeline.errors import UnsupportedTableError
from zorder_pipeline.java import has_jvm, java_class, jvm, scala_object
from zorder_pipeline.model.file_stats import Feature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["aggregates_as_usual", "session_of", "unshadowed", "without_rules", "zone_rules"]

RULES = ", zone rules "
_ORDER, _PATHS = "spark.sql.functionResolution.sessionOrder", "spark.sql.path.enabled"
_BUILTIN_FIRST = "system.builtin"
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")
SETTINGS = (
    *("spark.sql.caseSensitive", "spark.sql.legacy.timeParserPolicy", "spark.sql.parser.escapedStringLiterals"),
    *("spark.sql.decimalOperations.allowPrecisionLoss", "spark.sql.legacy.sizeOfNull", "spark.sql.timestampType"),
    *(_ORDER, _PATHS, "spark.sql.preserveCharVarcharTypeInfo", "spark.sql.readSideCharPadding"),
    *("spark.sql.icu.caseMappings.enabled", "spark.sql.charAsVarchar"),
)
"""Settings of a session that change what expressions mean, besides all that begin with one of `FAMILIES`."""
FAMILIES = ("spark.sql.legacy.", "spark.sql.function.")
CASES = frozenset(("az", "aze", "el", "ell", "hy", "hye", "lit", "lt", "nl", "nld", "tr", "tur"))
"""Languages in which Java, or ICU, maps some letters to capitals, or back, otherwise than in all others."""
NEW_TEXTS = 19
"""Version of Java since which some doubles have another text, as the shortest that tells them apart (JDK-4511638)."""
_AGGREGATING = (
    *("abs", "array", "array_position", "bit_or", "coalesce", "collect_set", "count", "crc32", "decode", "length"),
    *("max", "min", "negative", "pmod", "shiftleft", "shiftright", "unix_date", "unix_micros", "unix_millis"),
)
"""Functions that statistics are gathered with."""


def session_of(spark: SparkSession) -> str:
    """What the value of an expression depends on besides the row: under another one, statistics of it do not count."""
    if not has_jvm(spark):
        raise UnsupportedTableError("statistics of files need a classic Spark session; this one is Spark Connect")
    conf = spark._jsparkSession.sessionState().conf()
    every = str(conf.getAllConfs().mkString("\0"))  # in one call: one by one they would take longer than planning
    settings = dict(entry.split(" -> ", 1) for entry in every.split("\0") if " -> " in entry)
    told = [f"spark {spark.version}", f"ansi {conf.ansiEnabled()}", f"zone {conf.sessionLocalTimeZone()}"]
    if (language := str(java_class(spark, "java.util.Locale").getDefault().getLanguage())) in CASES:
        told.append(f"letters of {language}")  # only of these, so that what was gathered in others counts in all others
    if _java(jvm(spark)) >= NEW_TEXTS:  # only of these, as of letters
        told.append("texts of doubles since Java 19")
    told += [f"{key} {settings.get(key)}" for key in SETTINGS]
    told += [f"{key} {value}" for key, value in sorted(settings.items()) if key.startswith(FAMILIES)]
    return ", ".join(told) + RULES + zone_rules(jvm(spark))


def without_rules(session: str) -> str:
    """`session_of` without the version of the time zones' rules, as for what has nothing to do with instants.

    >>> without_rules("spark 4.2.0, zone UTC, zone rules 2025a")
    'spark 4.2.0, zone UTC'
    """
    return session.rpartition(RULES)[0] or session


@lru_cache(maxsize=4)
def zone_rules(of: Any) -> str:
    """Version of the time zones' rules that a JVM has, such as ``2025a``: others may give an instant another date."""
    from py4j.protocol import Py4JError

    try:
        return str(getattr(of, "java.time.zone.ZoneRulesProvider").getVersions("UTC").lastEntry().getKey())
    except Py4JError:  # a provider of somebody's own
        return "unknown"


@lru_cache(maxsize=4)
def _java(of: Any) -> int:
    """Version of a JVM, such as 17."""
    return int(getattr(of, "java.lang.Runtime").version().feature())


def _apart(spark: SparkSession) -> bool:
    """Whether this Spark keeps a session's functions apart from its own."""
    return tuple(map(int, spark.version.split(".")[:2])) >= (4, 2)


def _own_first(spark: SparkSession) -> bool:
    """Whether a session of a Spark that keeps both kinds of functions apart may look for its own ones first."""
    if str(spark.conf.get(_PATHS, None)).lower() == "true":
        path = str(spark._jsparkSession.sessionState().catalogManager().currentPathString())
        return not path.replace("`", "").lower().startswith(_BUILTIN_FIRST)
    return str(spark.conf.get(_ORDER, None)).lower() == "first"


def _shadowed(spark: SparkSession, text: str) -> bool:
    """Whether a function that ``text`` calls may be the session's own under the name of one of Spark's."""
    calls = sorted({found.lower() for found in _CALLED.findall(text)})
    if _apart(spark):
        return bool(calls) and _own_first(spark)
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


def aggregates_as_usual(spark: SparkSession) -> bool:
    """Whether what files are aggregated with are Spark's own functions, and none of the session's of that name."""
    return not _shadowed(spark, " ".join(f"{name}(" for name in _AGGREGATING))


def unshadowed(spark: SparkSession, features: Iterable[Feature]) -> list[Feature]:
    """The features that call no function which the session has put in the place of Spark's own."""
    return [feature for feature in features if feature.kind == "column" or not _shadowed(spark, feature.sql)]
