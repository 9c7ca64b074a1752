"""Scans that read only the files that may match, by Delta's statistics and by ours (seed 004, 4.1.3).

Whatever is not surely known is read: a file without statistics, a condition of unknown meaning. What a scan asks is in
Spark's own plan of the query, and the query that runs is that plan with other files: results are those of a plain read
at the same version.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from zorder_pipeline.errors import TableError
from zorder_pipeline.reading.relations import LeftAsItIs, as_analysed, relations
from zorder_pipeline.reading.unexecuted import query_of
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table

from .choosing import Reading, with_fewer_files
from .reports import RelationReport, StatementReport, of_reading, of_relation, unread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["explain", "explain_scan", "explain_sql", "scan", "sql"]

_log = logging.getLogger(__name__)


def scan(
    spark: SparkSession, table: str, predicate: str = "true", *, state: str | None = None, version: int | None = None
) -> DataFrame:
    """The rows of a Delta table that satisfy a predicate, read from the files that may hold such rows.

    The result is that of ``spark.read`` of the same version with the same filter. The version is pinned when this is
    called.

    Args:
        table: path or catalog name.
        predicate: a condition in Spark SQL over the table's columns.
        state: folder of the state with the statistics; by default the session's setting ``spark.zorder.state``.
            Without any only Delta's own statistics are used.
        version: of the table; the newest by default.

    Raises:
        TableError: there is no such Delta table or version.

    ::

        import zorder_pipeline

        rows = zorder_pipeline.scan(spark, "/data/flights", "comment LIKE '%delayed%'", state="/data/state")
    """
    return with_fewer_files(_opened(spark, table, version).read().where(predicate), state).rows


def explain(
    spark: SparkSession, table: str, predicate: str = "true", *, state: str | None = None, version: int | None = None
) -> RelationReport:
    """Which files of a table `scan` reads, and which statistic excludes how many of the others.

    Args:
        table, predicate, state, version: as in `scan`.

    Raises:
        TableError: there is no such Delta table or version.
    """
    snapshot = _opened(spark, table, version)
    reading = with_fewer_files(snapshot.read().where(predicate), state)
    for chosen in reading.chosen:  # first the table's own, then those of subqueries
        if chosen.known.snapshot.location == snapshot.location:
            return of_relation(chosen)
    return unread(snapshot, reading.left or "")


def explain_scan(
    spark: SparkSession, table: str, predicate: str = "true", *, state: str | None = None, version: int | None = None
) -> StatementReport:
    """What `scan` reads, in the form in which `explain_sql` tells it: also of tables in the predicate's subqueries.

    Args:
        table, predicate, state, version: as in `scan`.

    Raises:
        TableError: there is no such Delta table or version.
    """
    return _told(with_fewer_files(_opened(spark, table, version).read().where(predicate), state))


def _opened(spark: SparkSession, table: str, version: int | None) -> TableSnapshot:
    if version is not None and (type(version) is not int or version < 0):
        raise TableError(f"table {table} has no version {version!r}; give a whole number from 0 on, or none")
    return open_table(spark, table, version)


def sql(spark: SparkSession, statement: str, *, state: str | None = None) -> DataFrame:
    """``spark.sql(statement)``, reading only the files that may match of the Delta tables in the statement.

    Spark's own plan says what each scan of a table asks. A statement that is no query, or that Spark itself calls
    non-deterministic, is left to it as it is. Versions are pinned when this is called.

    Args:
        statement: one statement in Spark SQL.
        state: as in `scan`.

    ::

        zorder_pipeline.sql(spark, "SELECT count(*) FROM flights WHERE comment LIKE '%delayed%'", state="/data/state")
    """
    return with_fewer_files(spark.sql(statement), state, statement).rows


def explain_sql(spark: SparkSession, statement: str, *, state: str | None = None) -> StatementReport:
    """Which files `sql` reads of each Delta table in a statement, and which statistic excludes how many of the others.

    The statement is not executed, and what chooses files for `sql` chooses them here. ``str`` of the result is for
    people, ``to_json()`` for programs.

    Args:
        statement, state: as in `sql`.

    Raises:
        PySparkException: Spark does not understand the statement.
        UnsupportedTableError: the session is one of Spark Connect.

    ::

        print(zorder_pipeline.explain_sql(spark, "SELECT a FROM flights JOIN planes USING (tail) WHERE seats > 100"))
    """
    try:
        plain = query_of(spark, statement)
    except LeftAsItIs as why:
        return StatementReport((), str(why))
    return _told(with_fewer_files(plain, state, statement))


def _told(reading: Reading) -> StatementReport:
    return of_reading(reading, () if reading.left is None else _tables_of(reading.rows))


def _tables_of(rows: DataFrame) -> list[RelationReport]:
    """The tables of a query that is left to Spark, as far as they can be told."""
    try:
        tables = {relation.number: relation.table for relation in relations(as_analysed(rows))}
        opened = [open_table(rows.sparkSession, table.location, table.version) for table in tables.values()]
        return [unread(snapshot, "the whole statement is left to Spark") for snapshot in opened]
    except Exception:
        _log.debug("what a statement reads that is left to Spark", exc_info=True)
        return []
