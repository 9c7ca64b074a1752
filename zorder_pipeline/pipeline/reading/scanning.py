"""Scans that read only the files that may match, by Delta's statistics and by ours (seed 004, 4.1.3).

Whatever is not surely known is read: a file without statistics, a condition of unknown meaning. What a scan asks is in
Spark's own plan of the query, and the query that runs is that plan with other files: results are those of a plain read
at the same version.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from zorder_pipeline.errors import TableError
from zorder_pipeline.model.predicate import And, Predicate
from zorder_pipeline.model.wording import counted
from zorder_pipeline.model.zone_map import Mask
from zorder_pipeline.reading.catalyst import Conditions
from zorder_pipeline.reading.generated import derived_conditions, wholly_read
from zorder_pipeline.reading.prune import Excluded
from zorder_pipeline.reading.rebuilding import pinned, reading
from zorder_pipeline.reading.relations import (
    Relation,
    analysed,
    numbers,
    optimized,
    relations,
    scans,
    table_of,
)
from zorder_pipeline.relayout.session_conf import reads_otherwise
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table

from .known_files import KnownFiles, known_files, state_of

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ScanReport", "explain", "report_on", "scan", "sql", "understood"]

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ScanReport:
    """What a scan reads of one table, and why not more.

    Attributes:
        table: location of the table.
        version: the version that is read.
        files, rows, bytes: of that version.
        files_read, rows_read, bytes_read: of the files that may match.
        delta_files_read: files that Delta's own selection would read.
        excluded: files by the first statistic that excluded them.
        asked: the part of the predicate that statistics were asked for, in SQL.
    """

    table: str
    version: int
    files: int
    rows: int
    bytes: int
    files_read: int
    rows_read: int
    bytes_read: int
    delta_files_read: int
    excluded: tuple[Excluded, ...]
    asked: str

    def __str__(self) -> str:
        read = f"{self.files_read} of {self.files} files, {self.rows_read:,} of {self.rows:,} rows"
        lines = [f"{self.table} at version {self.version}: {read} (Delta alone: {self.delta_files_read} files)"]
        lines += [f"  {counted(item.files, 'file')} excluded by {_told(item)}" for item in self.excluded]
        return "\n".join([*lines, f"  asked: {self.asked}"])


def _told(item: Excluded) -> str:
    words = {
        "partition": "the partition column",
        "delta": "Delta's min/max of",
        "column": "min/max and nulls of",
        "expression": "min/max of the expression",
        "bloom": "the Bloom filter of",
        "predicate": "the truth of the predicate",
    }
    return f"{words[item.kind]} {item.name}"


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
    if version is not None and (type(version) is not int or version < 0):
        raise TableError(f"table {table} has no version {version!r}; give a whole number from 0 on, or none")
    return _skipping(open_table(spark, table, version).read().where(predicate), state)


def explain(spark: SparkSession, table: str, predicate: str = "true", *, state: str | None = None) -> ScanReport:
    """Which files `scan` would read, and which statistic excludes how many of the others.

    Args:
        table, predicate, state: as in `scan`.

    Raises:
        TableError: there is no such Delta table.
    """
    known = known_files(spark, open_table(spark, table), state_of(spark, state))
    return report_on(known, understood(known, predicate))


def report_on(known: KnownFiles, predicate: Predicate) -> ScanReport:
    """What a scan of ``known`` with this predicate reads."""
    mask, delta = known.selected(predicate)
    files = known.snapshot.files()
    return ScanReport(
        table=known.snapshot.location,
        version=known.snapshot.version,
        files=len(files),
        rows=int(files.rows.sum()),
        bytes=int(files.bytes.sum()),
        files_read=int(mask.sum()),
        rows_read=int(files.rows[mask].sum()),
        bytes_read=int(files.bytes[mask].sum()),
        delta_files_read=int(delta.sum()),
        excluded=known.tests.excluded(known.boxes(predicate), delta),
        asked=predicate.to_sql(),
    )


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
    return _skipping(spark.sql(statement), state)


def understood(known: KnownFiles, condition: str) -> Predicate:
    """The condition as far as it is understood.

    Raises:
        AnalysisException: Spark does not take it for a condition on the table.
    """
    rows = known.snapshot.read().where(condition)
    rows.schema  # noqa: B018 - Spark Connect would not look before
    return _whatever(lambda: _asked_of(known, rows)) or And(())


def _asked_of(known: KnownFiles, rows: DataFrame) -> Predicate | None:
    """What a query asks of the only table that it reads."""
    plan = analysed(rows)
    tables = relations(plan) if plan is not None else []
    if plan is None or len(tables) != 1:
        return None
    asked = _conditions(known.snapshot.spark, plan, {tables[0].number: (tables[0], known)})
    return next((predicates[0] for predicates in asked.values()), None)


def _skipping(plain: DataFrame, state: str | None) -> DataFrame:
    return _whatever(lambda: _with_fewer_files(plain, state_of(plain.sparkSession, state))) or plain


def _with_fewer_files(rows: DataFrame, state: str | None) -> DataFrame | None:
    """The query at its tables' versions, with fewer files where Delta itself would read more; None of one without."""
    spark, plan = rows.sparkSession, analysed(rows)
    every = relations(plan) if plan is not None else []
    tables: dict[int, tuple[Relation, KnownFiles]] = {}
    newest: dict[str, TableSnapshot] = {}
    for relation in every:
        if relation.number not in tables:
            if (snapshot := _snapshot_of(spark, relation, newest)) is None:
                return None
            tables[relation.number] = relation, known_files(spark, snapshot, state)
    if plan is None or not tables:
        return None
    asked = _conditions(spark, plan, {number: pair for number, pair in tables.items() if pair[0].replaceable})
    replaced = {}
    for number, (relation, item) in tables.items():
        mask = _fewer(item, asked[number]) if number in asked else None
        fewer = item.chosen.index(item.snapshot.files().path[mask].tolist()) if mask is not None else None
        replaced[number] = relation.node, fewer or pinned(relation.node, item.snapshot.jsnapshot)
    return reading(spark, plan, replaced, len(every))


def _snapshot_of(spark: SparkSession, relation: Relation, newest: dict[str, TableSnapshot]) -> TableSnapshot | None:
    """What a relation reads at this moment; None where that is no longer what it was analysed for.

    Args:
        newest: of each table, by location, what one statement reads of it.
    """
    location, version = relation.table.location, relation.table.version
    found = newest.get(location) or open_table(spark, location)
    newest[location] = found
    if found.version == version:
        return found
    if relation.table.stays:
        return open_table(spark, location, version)
    return found if relation.fits(found.jsnapshot) else None


def _conditions(
    spark: SparkSession, plan: JavaObject, tables: Mapping[int, tuple[Relation, KnownFiles]]
) -> dict[int, list[Predicate]]:
    """What each scan of a table asks of it, by the relation's number."""
    found: dict[int, list[Predicate]] = {}
    if not tables or reads_otherwise(spark):  # values are not those of the log's bounds: what Delta skips is enough
        return found
    scanned = scans(optimized(spark, plan))
    every = numbers(plan)
    for scan in scanned:
        alike = [scan.number] if scan.number in tables else []
        if scan.number not in every:  # one that the optimizer has copied may be of any relation of its table
            table = table_of(scan.node)
            alike = [number for number, (one, _) in tables.items() if one.table == table]
            if not alike:
                return {}
        if alike:
            known = tables[alike[0]][1]
            conditions = Conditions(known.meanings, scan.node.output(), known.names, known.zone)
            predicate = conditions.all_of(scan.conditions)
            if known.generated:
                derived = conditions.all_of(derived_conditions(spark, known.snapshot.jsnapshot, scan))
                if not wholly_read(derived):  # Delta may read less
                    scanned = [other for other in scanned if other.number not in alike]
                predicate = And((predicate, derived))
            for number in alike:
                found.setdefault(number, []).append(predicate)
    own = {scan.number for scan in scanned}  # which scan stands for a relation that is not there, nobody knows
    return {number: predicates for number, predicates in found.items() if number in own}


def _whatever(read: Callable[[], _T]) -> _T | None:
    """What is made of a statement; None of one that nobody thought of, which Spark may yet answer."""
    try:
        return read()
    except Exception as error:
        _log.warning("a statement is left to Spark: reading it failed (%s)", type(error).__name__)
        _log.debug("how it failed", exc_info=True)
        return None


def _fewer(known: KnownFiles, predicates: Sequence[Predicate]) -> Mask | None:
    """The files that may match, if they are fewer than Delta's own selection would read: else it is left to Delta."""
    mask, delta = np.zeros((2, len(known.snapshot.files())), dtype=np.bool_)
    for predicate in predicates:
        may_match, read_by_delta = known.selected(predicate)
        mask |= may_match
        delta |= read_by_delta
    return mask if mask.sum() < delta.sum() else None
