"""Some files of a snapshot as Spark's readers take them: the JVM's part of `reading`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from zorder_pipeline.java import java_class, nothing, scala_object, sequence

from .sessions import encoders
from .snapshot import TableSnapshot

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

__all__ = ["ChosenFiles"]

CONVERTERS = "scala.jdk.javaapi.CollectionConverters"


class ChosenFiles:
    """Files of one snapshot for whoever asks often: its actions stay in the JVM's memory, no job looks for them."""

    def __init__(self, snapshot: TableSnapshot) -> None:
        self.snapshot = snapshot

    def index(self, paths: Sequence[str]) -> JavaObject:
        """A file index of some files, by their paths as in the snapshot's list of files."""
        snapshot, spark = self.snapshot, self.snapshot.spark
        chosen = java_class(spark, "java.util.LinkedHashMap")(self._actions)
        text = java_class(spark, "java.io.StringReader")("\n".join(paths))  # one call for all; they are URL-encoded
        lines = java_class(spark, "org.apache.commons.io.IOUtils").readLines(text)
        chosen.keySet().retainAll(java_class(spark, "java.util.HashSet")(lines))
        # not chosen.values(): Python would take a map of Java's for its own, and fetch file by file
        actions = java_class(spark, CONVERTERS).asScala(chosen).values().toSeq()
        frame = snapshot.jlog.createDataFrame(snapshot.jsnapshot, actions, False, nothing(spark))
        return frame.queryExecution().analyzed().collectLeaves().apply(0).relation().location()

    @cached_property
    def _actions(self) -> JavaObject:
        """AddFile actions by path, as a java.util.Map, in the snapshot's order: a plain read keeps to that."""
        spark = self.snapshot.spark
        python = java_class(spark, CONVERTERS)
        listed = python.asScala(self.snapshot.jsnapshot.allFiles().collectAsList()).toSeq()
        frame = spark._jsparkSession.createDataset(listed, encoders(spark).addFileEncoder()).toDF()
        text = java_class(spark, "org.apache.spark.sql.Encoders").STRING()
        texts = getattr(frame.select("path", sequence(spark, [])), "as")(text)
        pairs = python.asScala(texts.collectAsList()).toSeq().zip(listed)
        ordered = scala_object(spark, "scala.collection.mutable.LinkedHashMap")
        return java_class(spark, "java.util.LinkedHashMap")(python.asJava(getattr(ordered, "from")(pairs)))
