"""Queries of today at an earlier version of the table: columns that were renamed since go by other names there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from zorder_pipeline.model.predicate import And, Comparison, Or, Predicate
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.relayout.leaves import Leaf

__all__ = ["as_called_then"]

EVERYTHING = And(())


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


def _renamed(query: LoggedQuery, called: Mapping[str, str | None]) -> LoggedQuery:
    columns = (called.get(name.lower(), name) for name in query.columns)
    known = tuple(name for name in columns if name is not None)
    return replace(query, predicate=_by(query.predicate, called), columns=known)


def _by(predicate: Predicate, called: Mapping[str, str | None]) -> Predicate:
    match predicate:
        case And(children):
            return And(tuple(_by(child, called) for child in children))
        case Or(children):
            return Or(tuple(_by(child, called) for child in children))
        case Comparison(column=column):
            name = called.get(column.lower(), column)
            return EVERYTHING if name is None else replace(predicate, column=name)
    return predicate
