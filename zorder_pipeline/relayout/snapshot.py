"""A version of a Delta table as the stages see it: schema, properties, files, and whether it may be rewritten."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast, get_args

from zorder_pipeline.errors import LostRaceError, TableError, UnsupportedTableError
from zorder_pipeline.java import activate, has_jvm, items, nothing, reason_of, scala_object, sequence
from zorder_pipeline.model.choices import CommitterName
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.state.delta_tables import is_delta_table, is_path, sql_name
from zorder_pipeline.state.session_conf import set_for_a_while
from zorder_pipeline.versions import check_pair

from .add_files import AddFiles
from .failures import cleaned_up, not_opened, replaced_by_another
from .file_list import FileList, fetch_files
from .leaves import Leaf, distinct_names, leaves_of, stats_paths
from .rewritable import why_unsupported, why_unwritable
from .session_conf import ANY_AGE, AS_OTHERS, quick_reads
from .sessions import inside_table, no_table, other_format, session_versions

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["AUTO", "COMMITTERS", "PUBLIC", "TRANSACTION", "TableSnapshot", "forget_snapshots", "open_table"]
__all__ += ["remembered", "snapshot_of"]

COMMITTERS: tuple[CommitterName, ...] = get_args(CommitterName)
AUTO, TRANSACTION, PUBLIC = COMMITTERS
"""How a table is opened and rewritten: ``transaction`` by Delta's own, ``public`` by public API alone, whole partitions
only; ``auto`` takes the transaction but in a session that has none."""

KEPT = 2


class TableSnapshot:
    """One version of a Delta table.

    Attributes:
        location: URI of the table's folder.
        table_id: Delta's id of the table.
        version: the version.
        schema: leaf columns; struct fields as dotted paths.
        leaves: the same with physical names.
        properties: table properties.
        features: enabled table features, by Delta's names.
        committer: how it is opened and rewritten.
    """

    committer = TRANSACTION
    written = 0
    """When its commit was written, milliseconds, as far as it is known: a folder that is put back has other files."""

    def __init__(self, spark: SparkSession, log: JavaObject, snapshot: JavaObject) -> None:
        from pyspark.sql.types import StructType

        self.spark, self.jlog, self.jsnapshot = spark, log, snapshot
        metadata, protocol = snapshot.metadata(), snapshot.protocol()
        self.location: str = log.dataPath().toString()
        self.table_id: str = metadata.id()
        self.version = int(snapshot.version())
        self.written = _written(snapshot)
        self.properties: dict[str, str] = {pair._1(): pair._2() for pair in items(metadata.configuration().toSeq())}
        self.features: frozenset[str] = frozenset(items(protocol.readerAndWriterFeatureNames().toSeq()))
        self.partition_columns: tuple[str, ...] = tuple(items(metadata.partitionColumns()))
        self.struct: StructType = StructType.fromJson(json.loads(metadata.schemaString()))

    @property
    def created_at(self) -> int:
        """When the table was made, microseconds since 1970 UTC; 0 where it does not say."""
        created = self.jsnapshot.metadata().createdTime()
        return int(created.get()) * 1000 if created.isDefined() else 0

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """Every leaf column, in schema order."""
        indexed = stats_paths(self.stats_struct)
        return distinct_names(tuple(leaves_of(self.struct, self.partition_columns, indexed)))

    @cached_property
    def schema(self) -> TableSchema:
        """Names and types of the leaf columns."""
        return TableSchema(tuple(leaf.column for leaf in self.leaves))

    @cached_property
    def partition_leaves(self) -> tuple[Leaf, ...]:
        """The partition columns, in the order in which the table is partitioned by them."""
        found = {leaf.path[0]: leaf for leaf in self.leaves if leaf.column.partition}
        return tuple(found[name] for name in self.partition_columns)

    @property
    def partition_types(self) -> dict[str, str]:
        """Spark type of each partition column, in that order."""
        return {leaf.path[0]: leaf.column.type for leaf in self.partition_leaves}

    @cached_property
    def asked_schema(self) -> TableSchema:
        """`schema` with the names that its columns had before: by them earlier queries and layouts call them."""
        from .renames import with_former_names

        return with_former_names(self)

    @property
    def paths(self) -> dict[str, tuple[str, ...]]:
        """Logical path of each column by its name in `schema`."""
        return {leaf.column.name: leaf.path for leaf in self.leaves}

    @property
    def stored_as(self) -> dict[str, str]:
        """Where the data files keep each column, and as what type, by its name in `schema`."""
        return {leaf.column.name: leaf.stored for leaf in self.leaves}

    @property
    def whole_partitions(self) -> bool:
        """Whether only whole partitions of it can be rewritten."""
        return self.committer == PUBLIC

    @property
    def target_file_bytes(self) -> int | None:
        """``delta.targetFileSize`` in bytes, when the table sets it."""
        match = re.fullmatch(r"(\d+)\s*([kmgt]?)i?b?", self.properties.get("delta.targetFileSize", "").lower().strip())
        return int(match.group(1)) << {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}[match.group(2)] if match else None

    def unsupported(self) -> str | None:
        """Why this table may not be rewritten, as a sentence with the way out; None when it may."""
        clustered = "clustering" in self.features and bool(self._clustering_columns())
        return why_unsupported(self.location, self.features, self.struct.names, clustered) or self._why_unwritable()

    def _why_unwritable(self) -> str | None:
        return why_unwritable(self.location, self.jlog, self.jsnapshot)

    def refuse_unless_as(self, planned: TableSnapshot) -> None:
        """Refuse to rewrite what a table has become since it was planned for.

        Raises:
            TableError: it is another table.
            LostRaceError: it got another schema.
            UnsupportedTableError: it may not be rewritten any more.
        """
        if self.table_id != planned.table_id:
            raise TableError(replaced_by_another(self.location))
        if self.schema.fingerprint != planned.schema.fingerprint:
            raise LostRaceError(f"{self.location} got another schema meanwhile; plan it again")
        if (reason := self.unsupported()) is not None:
            raise UnsupportedTableError(reason)

    def _clustering_columns(self) -> tuple[str, ...]:
        """Columns of a liquid clustering; none after CLUSTER BY NONE."""
        name = "org.apache.spark.sql.delta.skipping.clustering.ClusteringColumnInfo"
        return tuple(items(scala_object(self.spark, name).extractLogicalNames(self.jsnapshot)))

    def in_session(self, spark: SparkSession) -> TableSnapshot:
        """The same version, read in another session, such as one that is `alone`."""
        found = copy.copy(self)
        found.spark = spark
        return found

    def newest(self) -> TableSnapshot:
        """The same table as it is now.

        Raises:
            TableError: see `open_table`.
        """
        return open_table(self.spark, self.location, committer=self.committer)

    def at(self, version: int) -> TableSnapshot:
        """Another version of the same table.

        Raises:
            TableError: Delta's log does not hold it any more.
        """
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        none = nothing(self.spark)
        try:
            return snapshot_of(self.spark, self.jlog, self.jlog.getSnapshotAt(version, none, none, False))
        except (Py4JJavaError, PySparkException) as error:
            raise cleaned_up(self.location, version) from error

    def read(self) -> DataFrame:
        """The rows of exactly this version, also where it is older than Delta lets others read once it is replaced."""
        with set_for_a_while(self.spark, ANY_AGE):
            return self.spark.read.format("delta").option("versionAsOf", self.version).load(self.location)

    def read_files(self, paths: Sequence[str]) -> DataFrame:
        """The live rows of some files of this version, by their paths as in `files`."""
        from pyspark.sql import DataFrame

        frame = self.jlog.createDataFrame(self.jsnapshot, self.actions_of(paths), False, nothing(self.spark))
        return DataFrame(frame, self.spark)

    def reading(self) -> AbstractContextManager[None]:
        """In the block rows of it have the values that other sessions read, and it may be of any age.

        What the session passes over, and by which calendar it reads days of old, is its own matter all the same.
        """
        return set_for_a_while(self.spark, ANY_AGE | AS_OTHERS | quick_reads(self.location))

    @cached_property
    def add_files(self) -> AddFiles:
        """Its AddFile actions in the JVM's memory; who made this version may have told them, in any order."""
        return AddFiles(self.spark, self.jsnapshot)

    def actions_of(self, paths: Sequence[str]) -> JavaObject:
        """A Scala sequence of the AddFile actions of some files, by their paths as in `files`."""
        if self.add_files.few:
            return self.add_files.of(paths)
        return self.jsnapshot.getSpecificFilesWithStats(sequence(self.spark, list(paths)))

    @cached_property
    def stats_struct(self) -> StructType:
        """Type of the statistics of a file."""
        from pyspark.sql.types import StructType

        return StructType.fromJson(json.loads(self.jsnapshot.statsSchema().json()))

    @cached_property
    def stats_frame(self) -> DataFrame:
        """The AddFile actions with their statistics parsed."""
        from pyspark.sql import DataFrame
        from pyspark.sql import functions as F

        if self.add_files.few:
            return self.add_files.frame().withColumn("stats", F.from_json("stats", self.stats_struct))
        return DataFrame(self.jsnapshot.withStats(), self.spark)

    def files(self) -> FileList:
        """All live files; fetched once."""
        return self._files

    @cached_property
    def _files(self) -> FileList:
        return fetch_files(self)


Known = TypeVar("Known", bound=TableSnapshot)
Key: TypeAlias = tuple[str, str, int, int, str]
_known: dict[Key, TableSnapshot] = {}
"""The snapshots last used: a run looks at the same version when it decides and when it rewrites."""


def snapshot_of(spark: SparkSession, log: JavaObject, snapshot: JavaObject) -> TableSnapshot:
    """A version of a table as Delta loaded it; with what is known of it already when it was looked at before."""
    place = snapshot.metadata().id(), log.dataPath().toString()
    key = (*place, int(snapshot.version()), _written(snapshot), TRANSACTION)
    return remembered(spark, key, lambda: TableSnapshot(spark, log, snapshot))


def _written(snapshot: JavaObject) -> int:
    return int(snapshot.logSegment().lastCommitFileModificationTimestamp())


def remembered(spark: SparkSession, key: Key, make: Callable[[], Known]) -> Known:
    """The snapshot last used by a key (table id, location, version, when written, committer), or one that is made."""
    found = cast("Known | None", _known.pop(key, None))
    if found is None or found.spark is not spark:
        found = make()
    _known[key] = found
    for oldest in list(_known)[:-KEPT]:
        _known.pop(oldest, None)
    return found


def forget_snapshots() -> None:
    """Drop what is known of the snapshots last used."""
    _known.clear()


def open_table(spark: SparkSession, table: str, version: int | None = None, *, committer: str = AUTO) -> TableSnapshot:
    """A version of a table.

    Args:
        table: path (or URI) of the table's folder, or a catalog name.
        version: the newest by default.
        committer: one of `COMMITTERS`.

    Raises:
        TableError: there is no such table or version, or it is no Delta table.
        UnsupportedTableError: nobody tested the session's Spark and Delta, or they cannot read the table.
    """
    if committer not in COMMITTERS:
        raise TableError(f"there is no committer {committer!r}; choose one of {', '.join(COMMITTERS)}")
    sql_name(table)  # its history is told by SQL, which has to take its name as it is
    if committer == PUBLIC or (committer == AUTO and not has_jvm(spark)):
        from .public_snapshot import open_public

        return open_public(spark, table, version)
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    check_pair(*session_versions(spark))
    activate(spark)
    delta_log = scala_object(spark, "org.apache.spark.sql.delta.DeltaLog")
    try:
        if is_path(table):
            if not is_delta_table(spark, table):
                raise TableError(no_table(table))
            pair = delta_log.forTableWithSnapshot(spark._jsparkSession, table)
        else:
            detail = spark.sql(f"DESCRIBE DETAIL {sql_name(table)}").collect()[0]
            if detail["format"] != "delta":
                raise TableError(other_format(table, detail["format"]))
            pair = delta_log.forTableWithSnapshot(spark._jsparkSession, detail["location"])
        log, newest = pair._1(), pair._2()
        if int(newest.version()) < 0:
            raise TableError(inside_table(spark, table))
        none = nothing(spark)
        snapshot = newest if version is None else log.getSnapshotAt(version, none, none, False)
    except (PySparkException, Py4JJavaError) as error:
        if "non-existent version" in reason_of(error):
            raise TableError(f"table {table} has no version {version}; the newest is {newest.version()}") from error
        raise not_opened(table, error) from error
    return snapshot_of(spark, log, snapshot)
