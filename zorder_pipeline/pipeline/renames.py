"""Queries by the names that columns have now, or had at an earlier version of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from zorder_pipeline.model.predicate import And, Comparison, Opaque, Or, Predicate
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.workload import LoggedQuery, QueryLog
from zorder_pipeline.query_log.statements.expressions import with_names
from zorder_pipeline.relayout.leaves import Leaf
from zorder_pipeline.relayout.snapshot import TableSnapshot

__all__ = ["as_called_now", "as_called_then", "queries_of"]

EVERYTHING = And(())
Called = Mapping[str, Column | None]
"""The column that is meant by the name that is used, in lower case; None where that says nothing there."""


def queries_of(log: QueryLog, names: Sequence[str], snapshot: TableSnapshot) -> tuple[LoggedQuery, ...]:
    """A table's queries, by the names that its columns have now.

    Args:
        names: what the log calls the table.
    """
    return as_called_now(log.of_table(names), snapshot.asked_schema)


def as_called_now(queries: Sequence[LoggedQuery], schema: TableSchema) -> tuple[LoggedQuery, ...]:
    """The queries by the names of today: those asked before a column was renamed call it otherwise.

    Expressions that an older state holds write a column with a dot in its name as a struct's field: they are mended.

    Args:
        schema: with former names (`zorder_pipeline.relayout.renames.with_former_names`).
    """
    called: dict[str, Column | None] = {column.name.lower(): column for column in schema.columns if column.path}
    called |= {old.lower(): schema.find(now) for old, now in schema.former}
    return tuple(_renamed(query, called) for query in queries) if called else tuple(queries)


def as_called_then(queries: Sequence[LoggedQuery], now: Sequence[Leaf], then: Sequence[Leaf]) -> Sequence[LoggedQuery]:
    """The queries by the names that their columns had, where column mapping tells which these are.

    A condition on a column that came later under a name that another one had says nothing then.

    Args:
        now, then: leaf columns of the two versions.
    """
    old = {leaf.physical: leaf.column for leaf in then}
    taken = {column.name.lower() for column in old.values()}
    called: dict[str, Column | None] = {}
    for leaf in now:
        name, was = leaf.column.name, old.get(leaf.physical)
        if name.lower() in taken if was is None else was.name != name or was.path:
            called[name.lower()] = was
    return [_renamed(query, called) for query in queries] if called else queries


def _renamed(query: LoggedQuery, called: Called) -> LoggedQuery:
    return replace(query, predicate=_by(query.predicate, called), columns=_names(query.columns, called))


def _names(columns: Sequence[str], called: Called) -> tuple[str, ...]:
    """What columns are called, without those that say nothing."""
    found = ((name, called.get(name.lower())) for name in columns)
    return tuple(
        name if column is None else column.name
        for name, column in found
        if column is not None or name.lower() not in called
    )


def _by(predicate: Predicate, called: Called) -> Predicate:
    match predicate:
        case And(children):
            return And(tuple(_by(child, called) for child in children))
        case Or(children):
            return Or(tuple(_by(child, called) for child in children))
        case Comparison(column=column):
            names = _names([column], called)
            return replace(predicate, column=names[0]) if names else EVERYTHING
        case Opaque(columns=columns, expression=text) if any(name.lower() in called for name in columns):
            return replace(predicate, columns=_names(columns, called), expression=with_names(text, called))
    return predicate
