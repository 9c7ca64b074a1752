"""Sessions in which plans are optimized to be looked at, beside the one that asks: its other threads do not notice."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from zorder_pipeline.java import java_class

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

__all__ = ["AS_WRITTEN", "SKIPPING", "unprepared"]

AS_WRITTEN = {
    "spark.sql.alwaysInlineCommonExpr": "true",
    "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
    "spark.sql.optimizer.expression.nestedPruning.enabled": "false",
}
"""What an expression looks like in an optimized plan does not depend on the rest of the query."""
SKIPPING = "spark.databricks.delta.stats.skipping"
"""Whether Delta's own selection of files asks their statistics; partitions it always asks."""
KEPT = 4
"""Such sessions kept: one is made anew for other settings."""

_kept: OrderedDict[str, tuple[JavaObject, JavaObject]] = OrderedDict()
_holding = threading.Lock()


def unprepared(spark: SparkSession) -> JavaObject:
    """A session with the settings of this one, but `AS_WRITTEN` and without Delta's own selection of files.

    That takes a job, and other threads' transactions would miss it: they conflict with whatever they may have read.
    """
    own = spark._jsparkSession
    settings, name = own.sessionState().conf().settings(), str(own.sessionUUID())
    with _holding:
        held = _kept.pop(name, None)
        found = held if held is not None and held[0].equals(settings) else _made(spark)
        _kept[name] = found
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return found[1]


def _made(spark: SparkSession) -> tuple[JavaObject, JavaObject]:
    """Settings as they are now, and a session of them."""
    made = spark._jsparkSession.cloneSession()
    settings = java_class(spark, "java.util.HashMap")(made.sessionState().conf().settings())
    for key, value in {**AS_WRITTEN, SKIPPING: "false"}.items():
        made.conf().set(key, value)
    return settings, made
