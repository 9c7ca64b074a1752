"""A Delta table of the pipeline's state: rows added exactly once, changed, deleted by their day; old schemas grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from zorder_pipeline.errors import ZorderError
from zorder_pipeline.model.spark_sql import cast_name, value_sql
from zorder_pipeline.model.values import ValueType

from .conflicts import insist
from .delta_tables import changed, is_delta_table, sql_name
from .session_conf import apart

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["StateTable", "newer_version"]


def newer_version(place: str, found: int, known: int) -> ZorderError:
    """The error of a table, or a state, that a later version of this code wrote."""
    return ZorderError(
        f"{place} was written by a newer version of zorder (schema {found}, this one knows {known}); upgrade zorder, "
        f"or use another state folder"
    )


class StateTable:
    """A table of the state by its name.

    Args:
        state: folder of the state, on any Hadoop filesystem.
        name: the table's name in it.
        columns: name and Spark SQL type of each, ``schema_version INT`` among them; later versions add at the end.
        version: of this schema. A table of an older one gets the new columns, null in its rows, when it is written to.
        partition: column that it is partitioned by.
    """

    def __init__(
        self, spark: SparkSession, state: str, name: str, columns: Sequence[str], version: int, partition: str
    ) -> None:
        self.spark, self.path = spark, f"{state.rstrip('/')}/{name}"
        self.types = {name: cast_name(kind.lower()) for name, kind in (item.split() for item in columns)}
        self.version, self.partition = version, partition

    def exists(self) -> bool:
        """Whether anything was ever added."""
        return is_delta_table(self.spark, self.path)

    def read(self) -> DataFrame:
        """All rows with all columns; none when nothing was added yet.

        Raises:
            ZorderError: a newer version of zorder wrote it.
        """
        from pyspark.sql import functions as F

        if not self.exists():
            schema = ", ".join(f"{name} {kind}" for name, kind in self.types.items())
            return self.spark.createDataFrame([], schema)
        frame = self._zoned(self._stored())
        found = [F.col(name) if name in frame.columns else F.lit(None).cast(kind) for name, kind in self.types.items()]
        newest = frame.agg(F.max("schema_version")).collect()[0][0]
        if newest is not None and newest > self.version:
            raise newer_version(self.path, newest, self.version)
        return frame.select(*(column.alias(name) for column, name in zip(found, self.types, strict=True)))

    def append(self, rows: Sequence[Mapping[str, Any]], once: str | None = None) -> None:
        """Add rows; columns left out are null.

        Args:
            once: a name under which the rows are added a first time only.
        """
        if not rows:
            return
        from pyspark.sql import functions as F

        given = {name for row in rows for name in row}
        names = [name for name in self.types if name in given]
        text = [[None if row.get(name) is None else str(row[name]) for name in names] for row in rows]
        # as text: Python's types would be guessed per column, and a column of nulls has none
        frame = self.spark.createDataFrame(text, ", ".join(f"{name} STRING" for name in names))
        chosen = [
            (F.col(name) if name in given else F.lit(None)).cast(kind).alias(name) for name, kind in self.types.items()
        ]
        options = {} if once is None else {"txnAppId": once, "txnVersion": "1"}

        def add() -> None:
            if there := self.exists():
                self._upgrade()
            with apart(frame.select(*chosen), new=not there) as added:
                writer = added.write.format("delta").mode("append").partitionBy(self.partition)
                writer.options(**options).save(self.path)

        insist(self.path, add)  # two may make the table at the same time

    def update(self, key: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        """Set ``values`` in the rows whose columns equal ``key``; by None those are meant that have no value there."""
        changes = [f"{name} = {self._sql(name, value)}" for name, value in values.items()]
        changes.append(f"schema_version = {self.version}")
        statement = f"UPDATE {sql_name(self.path)} SET {', '.join(changes)} WHERE {self._meant(key)}"

        def change() -> None:
            self._upgrade()
            self.spark.sql(statement).collect()

        changed(
            self.spark, self.path, change
        )  # another row of the same file may be changed, or the table upgraded by another

    def delete(self, before: date, kept: Sequence[Mapping[str, Any]]) -> int:
        """Delete the rows of partitions before a day, but for those whose columns equal one of ``kept``; how many."""
        condition = f"{self.partition} < {self._sql(self.partition, before)}"
        condition += "".join(f" AND NOT ({self._meant(key)})" for key in kept)
        statement = f"DELETE FROM {sql_name(self.path)} WHERE {condition}"
        return changed(self.spark, self.path, lambda: int(self.spark.sql(statement).collect()[0][0]))

    def _meant(self, key: Mapping[str, Any]) -> str:
        """The rows whose columns equal ``key``, as an SQL condition."""
        return " AND ".join(f"{name} <=> {self._sql(name, value)}" for name, value in key.items())

    def _sql(self, name: str, value: Any) -> str:
        """A value of a column as SQL text."""
        text = "NULL" if value is None else value_sql(str(value), ValueType("string"))
        return f"CAST({text} AS {self.types[name]})"

    def _stored(self) -> DataFrame:
        """The rows as they lie there."""
        return self.spark.read.format("delta").load(self.path)

    def _zoned(self, stored: DataFrame) -> DataFrame:
        """Rows with instants in place of UTC's clock, as which sessions stored them whose TIMESTAMP has no zone."""
        from pyspark.sql import functions as F

        without = [name for name, kind in stored.dtypes if kind == "timestamp_ntz" and name in self.types]
        # by a cast alone they would be the session's own time
        zoned = {name: F.concat(name, F.lit("Z")).cast(self.types[name]) for name in without}
        return stored.withColumns(zoned) if zoned else stored  # Spark Connect does not take none

    def _upgrade(self) -> None:
        stored = self._stored()
        if (meant := self._zoned(stored)) is not stored:  # which no ALTER TABLE can do
            with apart(meant, new=False) as rows:
                writer = rows.write.format("delta").mode("overwrite").partitionBy(self.partition)
                writer.options(overwriteSchema="true", partitionOverwriteMode="static").save(self.path)
        missing = [f"{name} {kind}" for name, kind in self.types.items() if name not in stored.columns]
        if missing:
            self.spark.sql(f"ALTER TABLE {sql_name(self.path)} ADD COLUMNS ({', '.join(missing)})").collect()
