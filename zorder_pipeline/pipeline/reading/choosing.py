"""Which files of its tables a query reads: decided here for whoever runs the query and for whoever explains it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from zorder_pipeline.model.predicate import And, Predicate
from zorder_pipeline.model.zone_map import Mask
from zorder_pipeline.reading.catalyst import Conditions
from zorder_pipeline.reading.generated import derived_conditions, wholly_read
from zorder_pipeline.reading.rebuilding import pinned, reading
from zorder_pipeline.reading.relations import (
    LeftAsItIs,
    Relation,
    analysed,
    numbers,
    optimized,
    relations,
    scans,
    table_of,
)
from zorder_pipeline.reading.unexecuted import refuse_what_analysis_executes
from zorder_pipeline.relayout.session_conf import reads_otherwise
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table

from .known_files import KnownFiles, known_files, state_of

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Chosen", "Reading", "conditions_of", "with_fewer_files"]

_log = logging.getLogger(__name__)

_Tables: TypeAlias = Mapping[int, tuple[Relation, KnownFiles]]
"""What is known of each relation, by its number."""
_Asked: TypeAlias = dict[int, list[Predicate] | str]
"""What each scan of a relation asks of it, or why that is not known."""

UNUSUAL = "this session reads old days, instants or names otherwise than statistics are gathered"
COPIED = "Spark's optimizer has copied scans, and which of them is whose is not known"
DERIVED = "Delta derives conditions for the columns that it is partitioned by, which are not understood"
NO_SCAN = "Spark's optimizer leaves no scan that is surely its own"
NO_FEWER = "statistics exclude nothing that Delta's own selection does not"


@dataclass(frozen=True)
class Chosen:
    """What is read of one relation of a query.

    Attributes:
        known: the version of its table.
        asked: what each scan of it asks; None where that is not known.
        delta: what Delta's own selection reads for each of these, shape (files,).
        mask: the files that are read, shape (files,); None where Delta's own selection decides.
        why: why that decides; None where it does not.
    """

    known: KnownFiles
    asked: tuple[Predicate, ...] | None = None
    delta: tuple[Mask, ...] = ()
    mask: Mask | None = None
    why: str | None = None


@dataclass(frozen=True)
class Reading:
    """A query as it will be read.

    Attributes:
        rows: the query, with fewer files where Delta itself would read more.
        chosen: what is read of each Delta table in it, in the order of the plan; of one that stands there several
            times over as the same relation, once.
        left: why ``rows`` is what Spark made of it, without pinned versions; None where it is not.
    """

    rows: DataFrame
    chosen: tuple[Chosen, ...] = ()
    left: str | None = None


def with_fewer_files(plain: DataFrame, state: str | None, statement: str | None = None) -> Reading:
    """A query with its tables at their versions, reading what may match of them; as it is where that is not sure.

    Args:
        state: see `zorder_pipeline.pipeline.reading.known_files.state_of`.
        statement: what the query was made of, if that is a statement.
    """
    try:
        if statement is not None:
            refuse_what_analysis_executes(plain.sparkSession, statement)
        return _with_fewer_files(plain, state_of(plain.sparkSession, state))
    except LeftAsItIs as why:
        return Reading(plain, left=str(why))
    except Exception as error:
        return Reading(plain, left=_failed(error))


def _failed(error: Exception) -> str:
    """Note what nobody thought of, which Spark may yet answer."""
    why = f"reading it failed ({type(error).__name__})"
    _log.warning("a statement is left to Spark: %s", why)
    _log.debug("how it failed", exc_info=error)
    return why


def _with_fewer_files(rows: DataFrame, state: str | None) -> Reading:
    """The query with other files behind its relations.

    Raises:
        LeftAsItIs: see `analysed`; it reads no Delta table, or one of them cannot be replaced.
    """
    spark, plan = rows.sparkSession, analysed(rows)
    every = relations(plan)
    tables: dict[int, tuple[Relation, KnownFiles]] = {}
    newest: dict[str, TableSnapshot] = {}
    for relation in every:
        if relation.number not in tables:
            tables[relation.number] = relation, known_files(spark, _snapshot_of(spark, relation, newest), state)
    if not tables:
        raise LeftAsItIs("it reads no Delta table")
    asked = conditions_of(spark, plan, {number: pair for number, pair in tables.items() if pair[0].replaceable})
    chosen, replaced = [], {}
    for number, (relation, known) in tables.items():
        one = _chosen(known, asked.get(number, relation.otherwise or NO_SCAN))
        if one.mask is not None:
            index = known.chosen.index(known.snapshot.files().path[one.mask].tolist())
        else:
            index = pinned(relation.node, known.snapshot.jsnapshot)
        replaced[number] = relation.node, index
        chosen.append(one)
    if (found := reading(spark, plan, replaced, len(every))) is None:
        raise LeftAsItIs("one of its tables stands where nothing can be put in its place")
    return Reading(found, tuple(chosen))


def _snapshot_of(spark: SparkSession, relation: Relation, newest: dict[str, TableSnapshot]) -> TableSnapshot:
    """What a relation reads at this moment.

    Args:
        newest: of each table, by location, what one statement reads of it.

    Raises:
        LeftAsItIs: its table is no longer what it was analysed for.
    """
    location, version = relation.table.location, relation.table.version
    found = newest.get(location) or open_table(spark, location)
    newest[location] = found
    if found.version == version:
        return found
    if relation.table.stays:
        return open_table(spark, location, version)
    if not relation.fits(found.jsnapshot):
        raise LeftAsItIs(f"{location} has got other columns or properties since the DataFrame or view of it was made")
    return found


def conditions_of(spark: SparkSession, plan: JavaObject, tables: _Tables) -> _Asked:
    """What each scan of a table asks of it, by the relation's number, or why that is not known."""
    if not tables or reads_otherwise(spark):  # values are not those of the log's bounds: what Delta skips is enough
        return dict.fromkeys(tables, UNUSUAL)
    found: dict[int, list[Predicate]] = {}
    unknown: dict[int, str] = {}
    own: set[int] = set()
    every = numbers(plan)
    for scan in scans(optimized(spark, plan)):
        alike = [scan.number] if scan.number in tables else []
        if scan.number not in every:  # one that the optimizer has copied may be of any relation of its table
            table = table_of(scan.node)
            alike = [number for number, (one, _) in tables.items() if one.table == table]
            if not alike:
                return dict.fromkeys(tables, COPIED)
        if alike:
            known = tables[alike[0]][1]
            parts = known.snapshot.partition_columns
            conditions = Conditions(known.meanings, scan.node.output(), known.names, known.zone, parts)
            predicate = conditions.all_of(scan.conditions)
            if known.generated:
                derived = conditions.all_of(derived_conditions(spark, known.snapshot.jsnapshot, scan))
                if not wholly_read(derived):  # Delta may read less
                    unknown |= dict.fromkeys(alike, DERIVED)
                predicate = And((predicate, derived))
            for number in alike:
                found.setdefault(number, []).append(predicate)
        own.add(scan.number)
    # which scan stands for a relation that is not there, nobody knows
    return {n: unknown.get(n) or (found[n] if n in found and n in own else NO_SCAN) for n in tables}


def _chosen(known: KnownFiles, asked: Sequence[Predicate] | str) -> Chosen:
    """The files that may match, if they are fewer than Delta's own selection would read: else it is left to Delta."""
    if isinstance(asked, str):
        return Chosen(known, why=asked)
    mask, read_by_delta = np.zeros((2, len(known.snapshot.files())), dtype=np.bool_)
    each = []
    for predicate in asked:
        may_match, delta = known.selected(predicate)
        mask |= may_match
        read_by_delta |= delta
        each.append(delta)
    fewer = bool(mask.sum() < read_by_delta.sum())
    return Chosen(known, tuple(asked), tuple(each), mask if fewer else None, None if fewer else NO_FEWER)
