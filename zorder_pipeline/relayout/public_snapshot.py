"""A version of a Delta table by public API alone: SQL, DataFrames and the hidden column ``_metadata``, no JVM."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

from zorder_pipeline.errors import TableError, UnsupportedTableError
from zorder_pipeline.java import reason_of
from zorder_pipeline.state.delta_tables import sql_name
from zorder_pipeline.state.session_conf import set_for_a_while

from .failures import cleaned_up, not_opened
from .file_list import FileList
from .leaves import Leaf, distinct_names, indexed_paths, leaves_of
from .public_files import fetch_files
from .session_conf import ANY_AGE
from .sessions import inside_table, no_table, other_format
from .snapshot import PUBLIC, TableSnapshot, remembered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

__all__ = ["PublicSnapshot", "open_public"]

REFUSED = {
    "delta.enableRowTracking": "would give its rows new ids",
    "delta.appendOnly": "may not replace its files",
}
"""Table properties that only Delta's own transaction can live with."""


class PublicSnapshot(TableSnapshot):
    """One version of a Delta table; properties and features are those of the newest one.

    Names of columns in the data files are taken to be the logical ones: no public API tells them under column mapping.

    Args:
        detail: the table's row of DESCRIBE DETAIL.
        version: which version.
    """

    committer = PUBLIC

    def __init__(self, spark: SparkSession, detail: Row, version: int) -> None:
        self.spark, self.detail, self.version = spark, detail, version
        self.location, self.table_id = str(detail["location"]), str(detail["id"])
        self.properties = dict(detail["properties"])
        self.features = frozenset(self._told("tableFeatures"))
        self.partition_columns = tuple(detail["partitionColumns"])
        self.struct = self.read().schema

    def __getattr__(self, name: str) -> NoReturn:
        if name in ("jlog", "jsnapshot"):
            raise UnsupportedTableError(
                f"{self.location} was opened by public API alone, which this step cannot do with: use a classic Spark "
                "session and committer: transaction for it"
            )
        raise AttributeError(name)

    @property
    def created_at(self) -> int:
        """When the table was made, microseconds since 1970 UTC; 0 where it does not say."""
        created = self.detail["createdAt"]
        return 0 if created is None else int(created.timestamp() * 1e6)

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """Every leaf column, in schema order."""
        indexed = indexed_paths(self.struct, self.partition_columns, self.properties)
        return distinct_names(tuple(leaves_of(self.struct, self.partition_columns, indexed)))

    def unsupported(self) -> str | None:
        """Why this table may not be rewritten; more than for a transaction."""
        if (found := super().unsupported()) is not None:
            return found
        for name, why in REFUSED.items():
            if self.properties.get(name, "").lower() == "true":
                return (
                    f"{self.location} has {name} = true, and a relayout by public API {why}; use a classic Spark "
                    "session and committer: transaction"
                )
        if dotted := [name for name in self.partition_columns if "." in name]:
            return (
                f"{self.location} is partitioned by {dotted[0]}, and Delta's replaceWhere knows no partition column "
                "with a dot in it; rename it, or use a classic Spark session and committer: transaction"
            )
        return None

    def _why_unwritable(self) -> None:
        """By public API only an overwrite tells."""

    def _clustering_columns(self) -> tuple[str, ...]:
        return self._told("clusteringColumns")

    def _told(self, name: str) -> tuple[str, ...]:
        """A list of DESCRIBE DETAIL; empty where an older Delta has no such column."""
        return tuple(self.detail[name] or ()) if name in self.detail else ()

    def at(self, version: int) -> PublicSnapshot:
        """Another version of the same table.

        Raises:
            TableError: Delta's log does not hold it any more.
        """
        from pyspark.errors import PySparkException

        key = (self.table_id, self.location, version, self.written, PUBLIC)
        try:
            with set_for_a_while(self.spark, ANY_AGE):
                return remembered(self.spark, key, lambda: PublicSnapshot(self.spark, self.detail, version))
        except PySparkException as error:
            raise cleaned_up(self.location, version) from error

    def read_files(self, paths: Sequence[str]) -> DataFrame:
        """The live rows of some files of this version, by their paths as in `files`."""
        rows = self.read()
        if len(paths) == len(self.files()):
            return rows
        return rows.where(rows.metadataColumn("_metadata").getField("file_path").isin(list(paths)))

    @cached_property
    def _files(self) -> FileList:
        return fetch_files(self)


def open_public(spark: SparkSession, table: str, version: int | None = None) -> PublicSnapshot:
    """A version of a table by public API.

    Args, Raises: see `zorder_pipeline.relayout.snapshot.open_table`.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    name = sql_name(table)
    try:
        # the history first: what is set meanwhile is seen in the detail, then
        newest = int(spark.sql(f"DESCRIBE HISTORY {name} LIMIT 1").collect()[0]["version"])
        detail = spark.sql(f"DESCRIBE DETAIL {name}").collect()[0]
        if detail["id"] is None:
            raise TableError(inside_table(spark, table))
        if version is not None and version > newest:
            raise TableError(f"table {table} has no version {version}; the newest is {newest}")
        wanted = newest if version is None else version
        key = (detail["id"], detail["location"], wanted, PublicSnapshot.written, PUBLIC)
        return remembered(spark, key, lambda: PublicSnapshot(spark, detail, wanted))
    except (PySparkException, Py4JJavaError) as error:
        if "DELTA_INVALID_PARTITION_PATH" in str(error):
            raise TableError(inside_table(spark, table)) from error
        if "DELTA_MISSING_DELTA_TABLE" in (said := reason_of(error)):
            raise TableError(no_table(table)) from error
        if "DELTA_ONLY_OPERATION" in said:
            raise TableError(other_format(table)) from error
        raise not_opened(table, error) from error
