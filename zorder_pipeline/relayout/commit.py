"""Delta's own transaction, reached through py4j: file by file, with tags, all or nothing.

Files of a relayout are committed with ``dataChange = false`` as an OPTIMIZE, so Delta checks them under snapshot
isolation: concurrent appends survive, a concurrent change of an input file aborts us, streams see nothing again.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from zorder_pipeline.errors import LostRaceError, TableError, UnsupportedTableError
from zorder_pipeline.model.spark_sql import column_sql
from zorder_pipeline.versions import supported_text

from .committer import Replacement, Written
from .failures import cause, first_line, lost_races, of_zones
from .session_conf import AS_STORED, set_for_a_while
from .sessions import activate, jvm
from .snapshot import TableSnapshot, snapshot_of
from .verify import check_counts, check_hashes, content_hash

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame

__all__ = ["Transaction", "actions_summary"]

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
PART = r"part-(\d+)-[^/]*$"
"""Spark names a file by the partition that wrote it."""


class Transaction:
    """The `zorder_pipeline.relayout.committer.Committer` that replaces any files.

    Args:
        snapshot: the table as it was planned for; the transaction itself starts at the table's newest version.
        paths: AddFile paths to replace; those no longer live are left out.
        replaced: rows and bytes of those files.
    """

    def __init__(self, snapshot: TableSnapshot, paths: Sequence[str], replaced: tuple[int, int]) -> None:
        self.removed, self.replaced = len(paths), replaced
        self.spark, self.jlog = snapshot.spark, snapshot.jlog
        from py4j.protocol import Py4JError, Py4JJavaError

        self.jvm = jvm(self.spark)
        activate(self.spark)
        none = self.jvm.scala.Option.empty()
        try:
            self.jlog.update(False, none, none)
            self.txn = self.jlog.startTransaction(none, none)
        except (TypeError, AttributeError, Py4JError) as error:
            if isinstance(error, Py4JJavaError):
                raise
            raise UnsupportedTableError(
                f"this Delta version's transaction differs; supported are {supported_text()}, or choose committer: "
                "public"
            ) from error
        self.current = snapshot_of(self.spark, self.jlog, self.txn.snapshot())
        if self.current.table_id != snapshot.table_id or self.current.schema.fingerprint != snapshot.schema.fingerprint:
            raise LostRaceError(f"{snapshot.location} was replaced or got another schema meanwhile; plan it again")
        self.inputs = self.current.jsnapshot.getSpecificFilesWithStats(self._seq(list(paths)))
        self.written: JavaObject | None = None
        self._committing = False

    @property
    def read_version(self) -> int:
        """Version the transaction reads."""
        return self.current.version

    def input_rows(self) -> DataFrame:
        """Live rows of the input files, with the hidden columns that keep row ids when the table tracks rows."""
        from pyspark.sql import DataFrame

        self.txn.trackFilesRead(self.inputs)
        none = self.jvm.scala.Option.empty()
        with set_for_a_while(self.spark, AS_STORED):
            rows = self.jlog.createDataFrame(self.current.jsnapshot, self.inputs, False, none)
        if "rowTracking" in self.current.features:
            rows = self._module("RowTracking$").preserveRowTrackingColumns(rows, self.current.jsnapshot)
        return DataFrame(rows, self.spark)

    def replace(self, rows: DataFrame, how: Replacement) -> Written:
        """Write, verify, tag and commit; what fails before the commit leaves nothing behind."""
        visible = [column_sql((name,)) for name in self.current.struct.names]
        expected, size = self.replaced
        before = content_hash(self.input_rows().select(*visible)) if how.verify == "hash" else None
        try:
            added = self.write(rows, how.conf)
            count, written, bytes_added = actions_summary(added)
            check_counts(expected, written)
            if before is not None:
                check_hashes(before, content_hash(self.written_rows().select(*visible)))
            metrics = {
                "numAddedFiles": count,
                "numRemovedFiles": self.removed,
                "numAddedBytes": bytes_added,
                "numRemovedBytes": size,
                "numOutputRows": written,
            }
            version = self.commit(how.tags, metrics, how.columns, how.label)
        except BaseException:
            self.discard()
            raise
        return Written(version, self.removed, count, size, bytes_added, written)

    def write(self, rows: DataFrame, conf: Mapping[str, str]) -> DataFrame:
        """Write the new files (not yet part of the table); returns their AddFile actions.

        Raises:
            TableError: rows violate a constraint of the table, or the disk is full, or a task failed.
        """
        from py4j.protocol import Py4JJavaError

        with set_for_a_while(self.spark, conf):
            none, nothing = self.jvm.scala.Option.empty(), self._seq([])
            try:
                self.written = self.txn.writeFiles(rows._jdf, none, True, nothing)
            except Py4JJavaError as error:
                location, java = self.current.location, error.java_exception
                if "InvariantViolation" not in java.getClass().getName():
                    raise TableError(f"{location} could not be written: {cause(java)}; nothing changed") from error
                raise TableError(
                    f"{location} could not be written: {first_line(java.getMessage())} ({of_zones(conf)})"
                ) from error
        return self._frame(self.written)

    def written_rows(self) -> DataFrame:
        """The rows of the files just written, read back."""
        from pyspark.sql import DataFrame

        none = self.jvm.scala.Option.empty()
        with set_for_a_while(self.spark, AS_STORED):
            rows = self.jlog.createDataFrame(self.current.jsnapshot, self.written, False, none)
        return DataFrame(rows, self.spark)

    def commit(
        self, tags: Sequence[Mapping[str, str]], metrics: Mapping[str, int], columns: Sequence[str], label: str
    ) -> int:
        """Tag the new files, remove the inputs, commit; returns the new version.

        Args:
            tags: of each new file, by the number of the partition that wrote it.
            columns: what the table's history names as the order of the rows.
            label: the commit's user metadata, unless the session sets its own.

        Raises:
            LostRaceError: another writer changed an input file; nothing was committed.
        """
        from pyspark.sql import functions as F

        assert self.written is not None
        number = F.regexp_extract("path", PART, 1).try_cast("int")  # a file of another name is left without tags
        own = F.get(F.from_json(F.lit(json.dumps([dict(item) for item in tags])), "array<map<string,string>>"), number)
        none = F.create_map().cast("map<string,string>")
        both = F.map_concat(F.coalesce(F.col("tags"), none), F.coalesce(own, none))
        added = self._frame(self.written).withColumns({"tags": both, "dataChange": F.lit(False)})
        encoders = getattr(self.jvm.org.apache.spark.sql.delta.implicits, "package$").__getattr__("MODULE$")
        actions = self.jvm.java.util.ArrayList(_typed(added, encoders.addFileEncoder()))
        actions.addAll(_typed(self._removals(), encoders.removeFileEncoder()))
        operation = self._operation(columns)
        tags_of_commit = self.jvm.PythonUtils.toScalaMap({})
        if "rowTracking" in self.current.features:
            module = self._module("RowTracking$")
            tags_of_commit = module.addPreservedRowTrackingTagIfNotSet(self.current.jsnapshot, tags_of_commit)
        self._register(metrics)
        told = {} if self.spark.conf.get(USER_METADATA, None) else {USER_METADATA: label}
        with lost_races(self.current.location), set_for_a_while(self.spark, told):
            self._committing = True
            version = int(self.txn.commit(self._seq(actions), operation, tags_of_commit))
            self.written = None
            return version

    def discard(self) -> None:
        """Delete files that were written but not committed, as far as that works; VACUUM takes the rest.

        Once the commit was asked for, they may be part of the table whatever Python was told: an interruption leaves
        the JVM at work, and a failure may have come after the log entry. Then only the log's answer counts.
        """
        if self.written is None or (self._committing and not isinstance(sys.exception(), Exception)):
            return
        with contextlib.suppress(Exception):
            none = self.jvm.scala.Option.empty()
            paths = [row["path"] for row in self._frame(self.written).select("path").collect()]
            newest = self.jlog.update(False, none, none)
            if self._committing and newest.getSpecificFilesWithStats(self._seq(paths)).nonEmpty():
                return
            root = self.jlog.dataPath()
            filesystem = root.getFileSystem(self.jlog.newDeltaHadoopConf())
            unquote = self.jvm.java.net.URI
            for written in paths:
                path = self.jvm.org.apache.hadoop.fs.Path(unquote(written))
                filesystem.delete(self.jvm.org.apache.hadoop.fs.Path(root, path), False)

    def _removals(self) -> DataFrame:
        """RemoveFile actions of the inputs, as a DataFrame in the action's own columns."""
        from pyspark.sql import functions as F

        return self._frame(self.inputs).select(
            "path",
            F.lit(int(time.time() * 1000)).cast("bigint").alias("deletionTimestamp"),
            F.lit(False).alias("dataChange"),
            F.lit(True).alias("extendedFileMetadata"),
            "partitionValues",
            "size",
            "tags",
            "deletionVector",
            "baseRowId",
            "defaultRowCommitVersion",
            "stats",
            "backReference",
        )

    def _operation(self, columns: Sequence[str]) -> JavaObject:
        none = self.jvm.scala.Option.empty()
        return getattr(self.jvm.org.apache.spark.sql.delta, "DeltaOperations$Optimize")(
            self._seq([]), self._seq(list(columns)), False, none, False
        )

    def _register(self, metrics: Mapping[str, int]) -> None:
        """Put our figures into the commit's operationMetrics, as DESCRIBE HISTORY shows them."""
        context = self.spark.sparkContext._jsc.sc()
        factory = getattr(self.jvm.org.apache.spark.sql.execution.metric, "SQLMetrics$").__getattr__("MODULE$")
        registered = {}
        for name, value in metrics.items():
            metric = factory.createMetric(context, name)
            metric.set(int(value))
            registered[name] = metric
        self.txn.registerSQLMetrics(self.spark._jsparkSession, self.jvm.PythonUtils.toScalaMap(registered))

    def _frame(self, files: JavaObject) -> DataFrame:
        """AddFile actions as a DataFrame."""
        from pyspark.sql import DataFrame

        encoders = getattr(self.jvm.org.apache.spark.sql.delta.implicits, "package$").__getattr__("MODULE$")
        session = self.spark._jsparkSession
        return DataFrame(session.createDataset(files, encoders.addFileEncoder()).toDF(), self.spark)

    def _seq(self, items: Any) -> JavaObject:
        return self.jvm.PythonUtils.toSeq(items)

    def _module(self, name: str) -> JavaObject:
        return getattr(self.jvm.org.apache.spark.sql.delta, name).__getattr__("MODULE$")


def _typed(frame: DataFrame, encoder: JavaObject) -> JavaObject:
    """A Java list of the frame's rows as objects of the encoder's class."""
    return getattr(frame._jdf, "as")(encoder).collectAsList()


def actions_summary(actions: DataFrame) -> tuple[int, int, int]:
    """Number, rows and bytes of AddFile actions."""
    rows = actions.select("size", "stats").collect()
    counted = sum(json.loads(row["stats"])["numRecords"] for row in rows)
    return len(rows), counted, sum(row["size"] for row in rows)
