"""Scans that read only the files that may match, by Delta's statistics and by ours (seed 004, 4.1.3).

Whatever is not surely known is read: a file without statistics, a condition of unknown meaning, a statement that Spark
and the reader of query logs do not understand alike. Results are those of a plain read at the same version.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from zorder_pipeline.errors import TableError
from zorder_pipeline.model.predicate import And, Predicate
from zorder_pipeline.model.zone_map import Mask
from zorder_pipeline.query_log.references import Reference, references, respelled, with_names
from zorder_pipeline.query_log.sql import Unusable, parse_statement
from zorder_pipeline.reading.prune import Excluded
from zorder_pipeline.relayout.chosen_files import delta_location, same_plan
from zorder_pipeline.relayout.snapshot import open_table

from .agreement import read_alike, reads_ansi
from .known_files import KnownFiles, known_files, state_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ScanReport", "explain", "report_on", "scan", "sql", "understood"]

TABLE = "__zorder_table"
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
        lines += [f"  {item.files} files excluded by {_told(item)}" for item in self.excluded]
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
    known = known_files(spark, open_table(spark, table, version), state_of(spark, state))
    plain = known.snapshot.read
    mask = _whatever(lambda: _fewer(known, [understood(known, predicate)]))
    again = respelled(predicate) if mask is not None else None
    if mask is None or again is None:
        return plain().where(predicate)
    rows = known.chosen.read(_paths(known, mask))
    if not _whatever(lambda: same_plan(rows.where(predicate), rows.where(again))):
        return plain().where(predicate)
    return rows.where(predicate)


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
    boxes = known.boxes(predicate)
    mask = known.tests.matching(boxes)
    files = known.snapshot.files()
    delta = files.zone_map().matching(known.delta_boxes(predicate))
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
        excluded=known.tests.excluded(boxes),
        asked=predicate.to_sql(),
    )


def sql(spark: SparkSession, statement: str, *, state: str | None = None) -> DataFrame:
    """``spark.sql(statement)``, reading only the files that may match of every Delta table in the statement.

    Of a table named several times the files are read that any of its scans needs. A statement that is no query, or
    that is not understood for sure, is handed to Spark as it is.

    Args:
        statement: one statement in Spark SQL.
        state: as in `scan`.

    ::

        zorder_pipeline.sql(spark, "SELECT count(*) FROM flights WHERE comment LIKE '%delayed%'", state="/data/state")
    """
    plain = spark.sql(statement)
    found = references(statement) if read_alike(spark, statement) else ()
    if not found:
        return plain
    where = {text: delta_location(spark, text) for text in {reference.text for reference in found}}
    opened = {}
    for location in {place for place in where.values() if place is not None}:
        try:
            opened[location] = known_files(spark, open_table(spark, location), state_of(spark, state))
        except TableError:
            continue
    mine = [reference for reference in found if where[reference.text] in opened]
    chosen = _whatever(lambda: _chosen(statement, mine, where, opened)) or {}
    again = respelled(statement) if chosen else None
    if again is None:
        return plain
    with _views(spark, {place: (opened[place], mask) for place, mask in chosen.items()}) as names:
        replaced = [(reference, names[place]) for reference in mine if (place := where[reference.text]) in names]
        return _checked(spark, plain, again, with_names(statement, replaced))


def _checked(spark: SparkSession, plain: DataFrame, again: str, replaced: str) -> DataFrame:
    """The statement over views, if Spark finds that both spellings of the statement mean the same."""
    from pyspark.errors import PySparkException

    try:
        if not same_plan(plain, spark.sql(again)):
            return plain
        result = spark.sql(replaced)
    except PySparkException:  # a column called by its table's whole name, for one
        return plain
    return result if result.schema == plain.schema else plain


def _chosen(
    statement: str,
    mine: Sequence[Reference],
    where: dict[str, str | None],
    opened: dict[str, KnownFiles],
) -> dict[str, Mask]:
    """Files that may match by location, of the tables where they are fewer than Delta itself would read."""
    if not mine:
        return {}
    aliases = {reference.name: place for reference in mine if (place := where[reference.text]) is not None}
    schemas = {location: known.snapshot.schema for location, known in opened.items()}
    zone = next(iter(opened.values())).zone
    ansi = reads_ansi(next(iter(opened.values())).snapshot.spark)
    scans = parse_statement(statement, aliases=aliases, schemas=schemas, zone=zone, sure=True, ansi=ansi)
    if isinstance(scans, Unusable):
        return {}
    result = {}
    for location, known in opened.items():
        predicates = [item.predicate for item in scans if item.table == location]
        if len(predicates) < sum(where[reference.text] == location for reference in mine):
            continue
        if (mask := _fewer(known, predicates)) is not None:
            result[location] = mask
    return result


def understood(known: KnownFiles, condition: str) -> Predicate:
    """The condition as far as it is understood."""
    return _whatever(lambda: _understood(known, condition)) or And(())


def _understood(known: KnownFiles, condition: str) -> Predicate | None:
    if not read_alike(known.snapshot.spark, condition):
        return None
    found = parse_statement(
        f"SELECT * FROM {TABLE} WHERE ({condition}\n)",
        aliases={TABLE: TABLE},
        schemas={TABLE: known.snapshot.schema},
        zone=known.zone,
        sure=True,
        ansi=reads_ansi(known.snapshot.spark),
    )
    return None if isinstance(found, Unusable) or len(found) != 1 else found[0].predicate


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
    zones = known.snapshot.files().zone_map()
    for predicate in predicates:
        mask |= known.tests.matching(known.boxes(predicate))
        delta |= zones.matching(known.delta_boxes(predicate))
    return mask if mask.sum() < delta.sum() else None


def _paths(known: KnownFiles, mask: Mask) -> list[str]:
    return [str(path) for path in known.snapshot.files().path[mask]]


@contextmanager
def _views(spark: SparkSession, chosen: dict[str, tuple[KnownFiles, Mask]]) -> Iterator[dict[str, str]]:
    """Temporary views over the chosen files, by location; they are gone afterwards, and what was analysed stays."""
    names: dict[str, str] = {}
    try:
        for location, (known, mask) in chosen.items():
            names[location] = f"__zorder_{uuid.uuid4().hex}"
            known.chosen.read(_paths(known, mask)).createOrReplaceTempView(names[location])
        yield names
    finally:
        for name in names.values():
            spark.catalog.dropTempView(name)
