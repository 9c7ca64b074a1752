"""A version's AddFile actions, held by the JVM: a job looks them up once, and they are at hand for whoever asks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from zorder_pipeline.java import carried, java_class, scala_object, sequence

from .actions import actions_frame

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["FEW", "AddFiles"]

FEW = 1_000_000
"""Statistics of columns in files up to which a version's actions are taken from it whole, some 20 MB: of 10,000 files
with lowest and highest values and nulls of 32 columns."""
CONVERTERS = "scala.jdk.javaapi.CollectionConverters"


class AddFiles:
    """The AddFile actions of a snapshot of Delta's.

    Args:
        jsnapshot: the snapshot.
        listed: its actions where they are known already, a Scala sequence; by default they are looked up, in the order
            that a plain read keeps to.
    """

    def __init__(self, spark: SparkSession, jsnapshot: JavaObject, listed: JavaObject | None = None) -> None:
        self.spark, self._jsnapshot, self._known = spark, jsnapshot, listed

    @cached_property
    def few(self) -> bool:
        """Whether they are few, as the log's own summary says; False where it has none, as a job had to tell."""
        summary = self._jsnapshot.checksumOpt()
        if not summary.isDefined():
            return False
        columns = str(self._jsnapshot.statsSchema().json()).count('"name"')
        return int(summary.get().numFiles()) * columns <= FEW

    def frame(self) -> DataFrame:
        """Their own columns, from memory."""
        return actions_frame(self.spark, self._listed)

    def of(self, paths: Sequence[str]) -> JavaObject:
        """A Scala sequence of those of some files, by their paths as in the actions."""
        chosen = self._map()
        chosen.keySet().retainAll(self._set(paths))
        return self._values(chosen)

    def in_order(self) -> AddFiles:
        """The same in the order that a plain read keeps to."""
        return self if self._known is None else AddFiles(self.spark, self._jsnapshot)

    def after(self, jsnapshot: JavaObject, removed: Sequence[str], added: JavaObject) -> AddFiles:
        """Those of the snapshot that a commit has made of this one.

        Args:
            removed: paths of the files that the commit removed.
            added: the actions that it added, a Scala sequence.
        """
        kept = self._map()
        kept.keySet().removeAll(self._set(removed))
        return AddFiles(self.spark, jsnapshot, self._values(kept).concat(added))

    def _map(self) -> JavaObject:
        return java_class(self.spark, "java.util.LinkedHashMap")(self._by_path)

    def _set(self, paths: Sequence[str]) -> JavaObject:
        return java_class(self.spark, "java.util.HashSet")(carried(self.spark, list(paths)))

    def _values(self, actions: JavaObject) -> JavaObject:
        # not actions.values(): Python would take a map of Java's for its own, and fetch file by file
        return java_class(self.spark, CONVERTERS).asScala(actions).values().toSeq()

    @cached_property
    def _listed(self) -> JavaObject:
        if self._known is not None:
            return self._known
        return java_class(self.spark, CONVERTERS).asScala(self._jsnapshot.allFiles().collectAsList()).toSeq()

    @cached_property
    def _by_path(self) -> JavaObject:
        """The actions by path, as a java.util.Map."""
        spark = self.spark
        python = java_class(spark, CONVERTERS)
        text = java_class(spark, "org.apache.spark.sql.Encoders").STRING()
        texts = getattr(self.frame()._jdf.select("path", sequence(spark, [])), "as")(text)
        pairs = python.asScala(texts.collectAsList()).toSeq().zip(self._listed)
        ordered = scala_object(spark, "scala.collection.mutable.LinkedHashMap")
        return java_class(spark, "java.util.LinkedHashMap")(python.asJava(getattr(ordered, "from")(pairs)))
