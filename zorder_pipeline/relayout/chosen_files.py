"""Some files of a snapshot as a DataFrame, and what Spark says of names and plans: the JVM's part of `reading`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from .sessions import jvm
from .snapshot import TableSnapshot

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ChosenFiles", "delta_location", "same_plan"]


class ChosenFiles:
    """Files of one snapshot for whoever asks often: its actions stay in the JVM's memory, no job looks for them."""

    def __init__(self, snapshot: TableSnapshot) -> None:
        self.snapshot = snapshot

    def read(self, paths: Sequence[str]) -> DataFrame:
        """The live rows of some files, by their paths as in the snapshot's list of files."""
        from pyspark.sql import DataFrame

        snapshot, java = self.snapshot, jvm(self.snapshot.spark)
        chosen = java.java.util.HashMap(self._actions)
        text = java.java.io.StringReader("\n".join(paths))  # one call, however many paths; they are URL-encoded
        chosen.keySet().retainAll(java.java.util.HashSet(java.org.apache.commons.io.IOUtils.readLines(text)))
        actions = java.PythonUtils.toSeq(java.java.util.ArrayList(chosen.values()))
        frame = snapshot.jlog.createDataFrame(snapshot.jsnapshot, actions, False, java.scala.Option.empty())
        return DataFrame(frame, snapshot.spark)

    @cached_property
    def _actions(self) -> JavaObject:
        """AddFile actions by path, as a java.util.Map."""
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
        evidence = getattr(java.scala, "$less$colon$less$").__getattr__("MODULE$").refl()
        return java.java.util.HashMap(python.asJava(pairs.toMap(evidence)))


def delta_location(spark: SparkSession, name: str) -> str | None:
    """Location of the Delta table that Spark finds under a name; None when it is none, or more than the table itself.

    Args:
        name: as it stands in a statement: a table's or a view's name, or ``delta.`/path```.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        plan = spark.table(name)._jdf.queryExecution().analyzed()
        while plan.getClass().getSimpleName() == "SubqueryAlias":
            plan = plan.child()
        if plan.getClass().getSimpleName() != "LogicalRelation":
            return None
        index = plan.relation().location()
        if index.getClass().getSimpleName() != "TahoeLogFileIndex" or index.isTimeTravelQuery():
            return None
        place = str(index.deltaLog().dataPath().toString())
        return place if str(index.path().toString()) == place else None  # a partition's own folder
    except (PySparkException, Py4JError):
        return None


def same_plan(one: DataFrame, other: DataFrame) -> bool:
    """Whether Spark finds that two analysed frames say the same, constants folded."""
    java = jvm(one.sparkSession)
    folding = getattr(java.org.apache.spark.sql.catalyst.optimizer, "ConstantFolding$").__getattr__("MODULE$")
    plans = [folding.apply(frame._jdf.queryExecution().analyzed()) for frame in (one, other)]
    return bool(plans[0].sameResult(plans[1]))
