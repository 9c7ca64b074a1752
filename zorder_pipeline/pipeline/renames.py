"""Queries by the names that columns have now, or had at an earlier version of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from zorder_pipeline.model.predicate import And, Comparison, Opaque, Or, Predicate
from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.workload import LoggedQuery, QueryLog
from zorder_pipeline.query_log.statements.expressions import with_names
from zorder_pipeline.relayout.leaves import Leaf
from zorder_pipeline.relayout.snapshot import TableSnapshot

__all__ = ["as_called_now", "as_called_then", "queries_of"]

EVERYTHING = And(())
Called = Mapping[str, str | None]
"""Another name by the one that is used, in lower case; None where that says nothing there."""


def queries_of(log: QueryLog, names: Sequence[str], snapshot: TableSnapshot) -> tuple[LoggedQuery, ...]:
    """A table's queries, by the names that its columns have now.

    Args:
        names: what the log calls the table.
    """
    return as_called_now(log.of_table(names), snapshot.asked_schema)


def as_called_now(queries: Sequence[LoggedQuery], schema: TableSchema) -> tuple[LoggedQuery, ...]:
    """The queries by the names of today: those asked before a column was renamed call it otherwise.

    Args:
        schema: with former names (`zorder_pipeline.relayout.renames.with_former_names`).
    """
    called: Called = {old.lower(): now for old, now in schema.former}
    return tuple(_renamed(query, called) for query in queries) if called else tuple(queries)


def as_called_then(queries: Sequence[LoggedQuery], now: Sequence[Leaf], then: Sequence[Leaf]) -> Sequence[LoggedQuery]:
    """The queries by the names that their columns had, where column mapping tells which these are.

    A condition on a column that came later under a name that another one had says nothing then.

    Args:
        now, then: leaf columns of the two versions.
    """
    old = {leaf.physical: leaf.column.name for leaf in then}
    taken = {name.lower() for name in old.values()}
    called: dict[str, str | None] = {}
    for leaf in now:
        name, was = leaf.column.name, old.get(leaf.physical)
        if was != name and (was is not None or name.lower() in taken):
            called[name.lower()] = was
    return [_renamed(query, called) for query in queries] if called else queries


def _renamed(query: LoggedQuery, called: Called) -> LoggedQuery:
    columns = (called.get(name.lower(), name) for name in query.columns)
    known = tuple(name for name in columns if name is not None)
    return replace(query, predicate=_by(query.predicate, called), columns=known)


def _by(predicate: Predicate, called: Called) -> Predicate:
    match predicate:
        case And(children):
            return And(tuple(_by(child, called) for child in children))
        case Or(children):
            return Or(tuple(_by(child, called) for child in children))
        case Comparison(column=column):
            name = called.get(column.lower(), column)
            return EVERYTHING if name is None else replace(predicate, column=name)
        case Opaque(columns=columns, expression=text):
            names = [called.get(name.lower(), name) for name in columns]
            if names == list(columns):
                return predicate
            known = tuple(name for name in names if name is not None)
            return replace(predicate, columns=known, expression=with_names(text, called))
    return predicate
