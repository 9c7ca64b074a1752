"""Delta's own transaction, reached through py4j: file by file, with tags, all or nothing.

Files of a relayout are committed with ``dataChange = false`` as an OPTIMIZE, so Delta checks them under snapshot
isolation: concurrent appends survive, a concurrent change of an input file aborts us, streams see nothing again.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from zorder_pipeline.errors import LostRaceError, TableError, UnsupportedTableError, VerificationError
from zorder_pipeline.java import (
    activate,
    cause,
    first_line,
    java_class,
    jvm,
    nothing,
    reason_of,
    scala_object,
    sequence,
)
from zorder_pipeline.model.spark_sql import column_sql
from zorder_pipeline.state.conflicts import conflict, lost_races
from zorder_pipeline.state.session_conf import set_for_a_while
from zorder_pipeline.versions import supported_text

from .actions import actions_frame, actions_summary, removals, tagged, typed_actions
from .committer import Replacement, Written
from .failures import of_constraints, unwritable
from .history import METRICS, USER_METADATA, history_of, labelling, made_as, told_with
from .restoring import COMMITS_SEARCHED
from .same_log import is_same_log
from .sessions import encoders
from .snapshot import TableSnapshot, snapshot_of
from .verify import check_counts, check_hashes, content_hash

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame

__all__ = ["Transaction"]


class Transaction:
    """The `zorder_pipeline.relayout.committer.Committer` that replaces any files.

    Args:
        snapshot: the table as it was planned for; the transaction itself starts at the table's newest version.
        paths: AddFile paths to replace; those no longer live are left out.
        replaced: rows and bytes of those files.
    """

    def __init__(self, snapshot: TableSnapshot, paths: Sequence[str], replaced: tuple[int, int]) -> None:
        self.paths, self.replaced = paths, replaced
        self.spark, self.jlog = snapshot.spark, snapshot.jlog
        from py4j.protocol import Py4JError, Py4JJavaError

        activate(self.spark)
        none = nothing(self.spark)
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
        self.current.refuse_unless_as(snapshot)
        self.inputs = self.current.actions_of(paths)
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
        none = nothing(self.spark)
        rows = self.jlog.createDataFrame(self.current.jsnapshot, self.inputs, False, none)
        if "rowTracking" in self.current.features:
            rows = self._row_tracking().preserveRowTrackingColumns(rows, self.current.jsnapshot)
        return DataFrame(rows, self.spark)

    def replace(self, rows: DataFrame, how: Replacement) -> Written:
        """Write, verify, tag and commit; what fails before the commit changes nothing (see `discard` for its files)."""
        expected, size = self.replaced
        before = content_hash(self._visible(self.input_rows())) if how.verify == "hash" else None
        try:
            added = self.write(rows, how.conf)
            count, written, bytes_added = actions_summary(added)
            if expected != written:  # the log's statistics may be wrong
                check_counts(self.input_rows().count(), written)
            if before is not None:
                check_hashes(before, content_hash(self._visible(self.written_rows())))
            metrics = {
                "numAddedFiles": count,
                "numRemovedFiles": len(self.paths),
                "numAddedBytes": bytes_added,
                "numRemovedBytes": size,
            }
            version, note = self.commit(how.tags, metrics, how.columns, how.label)
        except BaseException:
            self.discard()
            raise
        return Written(version, len(self.paths), count, size, bytes_added, written, note)

    def write(self, rows: DataFrame, conf: Mapping[str, str]) -> DataFrame:
        """Write the new files (not yet part of the table); returns their AddFile actions.

        Raises:
            TableError: rows violate a constraint of the table, or the disk is full, or a task failed.
        """
        from py4j.protocol import Py4JJavaError

        with set_for_a_while(self.spark, conf):
            try:
                self.written = self.txn.writeFiles(rows._jdf, nothing(self.spark), True, sequence(self.spark, []))
            except Py4JJavaError as error:
                location, java = self.current.location, error.java_exception
                if "InvariantViolation" not in java.getClass().getName():
                    raise TableError(f"{location} could not be written: {cause(java)}; nothing changed") from error
                why = of_constraints(conf, self.current.struct)
                raise TableError(f"{location} could not be written: {first_line(java.getMessage())} ({why})") from error
        return actions_frame(self.spark, self.written)

    def written_rows(self) -> DataFrame:
        """The rows of the files just written, read back."""
        from pyspark.sql import DataFrame

        none = nothing(self.spark)
        rows = self.jlog.createDataFrame(self.current.jsnapshot, self.written, False, none)
        return DataFrame(rows, self.spark)

    def _visible(self, rows: DataFrame) -> DataFrame:
        """Rows without hidden columns; on Spark 4.0 Delta reads none without a type (VOID), either, which are null."""
        there = set(rows.columns)
        return rows.select(*(column_sql((name,)) for name in self.current.struct.names if name in there))

    def commit(
        self, tags: Sequence[Mapping[str, str]], metrics: Mapping[str, int], columns: Sequence[str], label: str
    ) -> tuple[int, str]:
        """Tag the new files, remove the inputs, commit; returns the new version, and what failed after it was made.

        Args:
            tags: of each new file, by the number of the partition that wrote it.
            columns: what the table's history names as the order of the rows.
            label: what the commit's user metadata begins with; the session's own follows.

        Raises:
            LostRaceError: another writer changed an input file; nothing was committed.
            UnsupportedTableError: Delta cannot write the table; nothing was committed.
            VerificationError: whether it is committed is not known, or it may come late.
        """
        assert self.written is not None
        kinds = encoders(self.spark)
        added = typed_actions(tagged(actions_frame(self.spark, self.written), tags), kinds.addFileEncoder())
        actions = java_class(self.spark, "java.util.ArrayList")(added)
        removed = removals(actions_frame(self.spark, self.inputs))
        actions.addAll(typed_actions(removed, kinds.removeFileEncoder()))
        operation = self._operation(columns)
        tags_of_commit = jvm(self.spark).PythonUtils.toScalaMap({})
        if "rowTracking" in self.current.features:
            preserving = self._row_tracking().addPreservedRowTrackingTagIfNotSet
            tags_of_commit = preserving(self.current.jsnapshot, tags_of_commit)
        self._register(metrics)
        note = ""
        location = self.current.location
        with lost_races(location), labelling:
            told = {USER_METADATA: told_with(self.spark, label), **METRICS}
            if not is_same_log(self.current):
                raise LostRaceError(f"{location} was replaced or dropped during the relayout; plan it again")
            self._committing = True
            try:
                with set_for_a_while(self.spark, told):
                    version = int(self.txn.commit(sequence(self.spark, actions), operation, tags_of_commit))
            except Exception as error:
                if (landed := self._landed(label, error)) is None:
                    if conflict(error):
                        raise
                    if (refused := unwritable(location, error)) is not None:
                        raise refused from error
                    raise VerificationError(
                        f"{location} could not be committed ({reason_of(error)}); its log shows nothing "
                        f"of it, but as it may come yet, the new files are left to VACUUM: {_shown(label)} if it came"
                    ) from error
                version = landed
                note = f"version {version} is committed, but what Delta does after a commit failed: {reason_of(error)}"
        self.written = None
        with contextlib.suppress(Exception):  # it is committed, whatever goes wrong here
            self._tell_files(version, sequence(self.spark, added))
        return version, note

    def _tell_files(self, version: int, added: JavaObject) -> None:
        """Have the version that was made know its files, which a job would have to look up in Delta's log.

        Not where others committed in between, nor where the commit gives the actions ids of rows.
        """
        made, known = self.jlog.unsafeVolatileSnapshot(), self.current.add_files
        alone = (
            version == self.read_version + 1 == int(made.version()) and made.metadata().id() == self.current.table_id
        )
        if alone and known.few and "rowTracking" not in self.current.features:
            snapshot_of(self.spark, self.jlog, made).add_files = known.after(made, self.paths, added)

    def _landed(self, label: str, error: Exception) -> int | None:
        """The version that a commit made although it ended with ``error``, as a hook after it may fail.

        Raises:
            VerificationError: that cannot be found out.
        """
        location = self.current.location
        try:
            if not self._in_log():
                return None
            rows = [
                row for row in history_of(self.current, COMMITS_SEARCHED) if int(row["version"]) > self.read_version
            ]
        except Exception:
            raise VerificationError(
                f"whether {location} was rewritten is not known ({reason_of(error)}): {_shown(label)} if it was"
            ) from error
        mine = [int(row["version"]) for row in rows if made_as(row, label)]
        return mine[0] if mine else int(self.jlog.unsafeVolatileSnapshot().version())

    def _in_log(self) -> bool:
        """Whether the files that were written are part of the table."""
        none = nothing(self.spark)
        newest = self.jlog.update(False, none, none)
        return bool(newest.getSpecificFilesWithStats(sequence(self.spark, self._new_paths())).nonEmpty())

    def _new_paths(self) -> list[str]:
        """Paths of the files that were written, as in their AddFile actions."""
        return [row["path"] for row in actions_frame(self.spark, self.written).select("path").collect()]

    def discard(self) -> None:
        """Delete files that were written but not committed, as far as that works; VACUUM takes the rest (those of tasks
        that had ended when one failed).

        Once the commit was asked for, they may be part of the table, or become it, whatever Python was told: an
        interruption leaves the JVM at work, and a log entry whose writing failed may still come. Only a conflict with
        another writer, or a table that Delta cannot write, is an end to it, where the log shows none of the files.
        """
        ended = isinstance(sys.exception(), LostRaceError | UnsupportedTableError)
        if self.written is None or (self._committing and not ended):
            return
        with contextlib.suppress(Exception):
            if self._committing and self._in_log():
                return
            root = self.jlog.dataPath()
            filesystem = root.getFileSystem(self.jlog.newDeltaHadoopConf())
            unquoted, path = (java_class(self.spark, name) for name in ("java.net.URI", "org.apache.hadoop.fs.Path"))
            for written in self._new_paths():
                filesystem.delete(path(root, path(unquoted(written))), False)

    def _operation(self, columns: Sequence[str]) -> JavaObject:
        optimize = java_class(self.spark, "org.apache.spark.sql.delta.DeltaOperations$Optimize")
        return optimize(
            sequence(self.spark, []), sequence(self.spark, list(columns)), False, nothing(self.spark), False
        )

    def _register(self, metrics: Mapping[str, int]) -> None:
        """Put our figures into the commit's operationMetrics, as DESCRIBE HISTORY shows them."""
        context = self.spark.sparkContext._jsc.sc()
        factory = scala_object(self.spark, "org.apache.spark.sql.execution.metric.SQLMetrics")
        registered = {}
        for name, value in metrics.items():
            metric = factory.createMetric(context, name)
            metric.set(int(value))
            registered[name] = metric
        with set_for_a_while(self.spark, METRICS):
            self.txn.registerSQLMetrics(self.spark._jsparkSession, jvm(self.spark).PythonUtils.toScalaMap(registered))

    def _row_tracking(self) -> JavaObject:
        return scala_object(self.spark, "org.apache.spark.sql.delta.RowTracking")


def _shown(label: str) -> str:
    """Where a commit can be found, in words."""
    return f"DESCRIBE HISTORY shows {label!r} in the userMetadata of the commit"
