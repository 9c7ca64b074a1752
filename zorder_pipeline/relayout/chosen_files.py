"""Some files of a snapshot as Spark's readers take them: the JVM's part of `reading`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from .sessions import jvm
from .snapshot import TableSnapshot

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

__all__ = ["ChosenFiles"]


class ChosenFiles:
    """Files of one snapshot for whoever asks often: its actions stay in the JVM's memory, no job looks for them."""

    def __init__(self, snapshot: TableSnapshot) -> None:
        self.snapshot = snapshot

    def index(self, paths: Sequence[str]) -> JavaObject:
        """A file index of some files, by their paths as in the snapshot's list of files."""
        snapshot, java = self.snapshot, jvm(self.snapshot.spark)
        chosen = java.java.util.LinkedHashMap(self._actions)
        text = java.java.io.StringReader("\n".join(paths))  # one call, however many paths; they are URL-encoded
        chosen.keySet().retainAll(java.java.util.HashSet(java.org.apache.commons.io.IOUtils.readLines(text)))
        actions = java.PythonUtils.toSeq(java.java.util.ArrayList(chosen.values()))
        frame = snapshot.jlog.createDataFrame(snapshot.jsnapshot, actions, False, java.scala.Option.empty())
        return frame.queryExecution().analyzed().collectLeaves().apply(0).relation().location()

    @cached_property
    def _actions(self) -> JavaObject:
        """AddFile actions by path, as a java.util.Map, in the snapshot's order: a plain read keeps to that."""
        java = jvm(self.snapshot.spark)
        python = java.scala.jdk.javaapi.CollectionConverters
        encoders = getattr(java.org.apache.spark.sql.delta.implicits, "package$").__getattr__("MODULE$")
        listed = python.asScala(self.snapshot.jsnapshot.allFiles().collectAsList()).toSeq()
        session = self.snapshot.spark._jsparkSession
        frame = session.createDataset(listed, encoders.addFileEncoder()).toDF()
        texts = getattr(frame.select("path", java.PythonUtils.toSeq([])), "as")(
            java.org.apache.spark.sql.Encoders.STRING()
        )
        pairs = python.asScala(texts.collectAsList()).toSeq().zip(listed)
        ordered = getattr(java.scala.collection.mutable, "LinkedHashMap$").__getattr__("MODULE$")
        return java.java.util.LinkedHashMap(python.asJava(getattr(ordered, "from")(pairs)))
