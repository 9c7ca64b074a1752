"""A scan of one table before its literals are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from zorder_pipeline.model.predicate import And, Comparison, Opaque, Or, Predicate, conjuncts

from .catalog import Catalog
from .clock import Clock
from .conditions import TRUE, condition
from .context import Context
from .together import told_together

__all__ = ["Recipe", "Scan"]

MAX_LEVELS = 40


@dataclass(frozen=True)
class Scan:
    """A scan of one table by a statement; see `zorder_pipeline.model.workload.LoggedQuery`."""

    table: str
    predicate: Predicate
    columns: tuple[str, ...] = ()
    partial: bool = False


@dataclass(frozen=True)
class Recipe:
    """A scan before its literals are read: statements of one template share it.

    Attributes:
        conditions: all of them hold for every row that is needed.
        implied: the same, but not written in the statement: passed on by an equality join.
        optional: an outer join may fill the table's side with nulls.
        columns: columns that the scan reads, empty when all or unknown.
        lacking: a condition names a column that the table does not have: it was renamed, or dropped.
    """

    table: str
    conditions: tuple[exp.Expr, ...]
    resolve: Callable[[exp.Column], str | None]
    catalog: Catalog
    implied: tuple[exp.Expr, ...] = ()
    optional: bool = False
    columns: tuple[str, ...] = ()
    lacking: bool = False

    def scan(self, timestamp: int | None, zone: str) -> Scan:
        """The scan with its literals as they are now in the conditions."""
        clock = Clock(timestamp, zone, self.catalog.dialect)
        context = Context(self.resolve, clock, lambda name: self.catalog.column(self.table, name))
        parts = [self._condition(part, context) for part in self.conditions]
        parts += told_together(self.conditions, context)
        written = {leaf.column.lower() for part in parts for leaf in _written(part)}
        leaves = [leaf for item in self.implied for leaf in conjuncts(condition(item, context))]
        parts += [
            replace(leaf, derived=True)
            for leaf in leaves
            if isinstance(leaf, Comparison) and leaf.column.lower() not in written
        ]
        flattened = [item for part in parts for item in conjuncts(part)]
        if self.optional:
            flattened = [item for item in flattened if not _accepts_null(item)]
        kept = tuple(dict.fromkeys(item for item in flattened if item != TRUE))
        predicate = kept[0] if len(kept) == 1 else And(kept)
        return Scan(self.table, predicate, self.columns, clock.missed or self.lacking)

    @staticmethod
    def _condition(part: exp.Expr, context: Context) -> Predicate:
        """A condition; one of more levels than the rest can go through says nothing."""
        found = condition(part, context)
        if not _deep(found, MAX_LEVELS):
            return found
        context.clock.missed = True
        return TRUE


def _deep(predicate: Predicate, levels: int) -> bool:
    """Whether alternatives and conjunctions stand in each other more than so many levels deep."""
    if not isinstance(predicate, And | Or):
        return False
    return levels == 0 or any(_deep(child, levels - 1) for child in predicate.children)


def _written(predicate: Predicate) -> Iterator[Comparison]:
    for leaf in conjuncts(predicate):
        if isinstance(leaf, Comparison) and leaf.op in ("=", "<=>"):
            yield leaf


def _accepts_null(predicate: Predicate) -> bool:
    """Whether a row of nulls may satisfy the condition, so that it says nothing of the rows before an outer join."""
    match predicate:
        case Comparison(op=op):
            return op in ("is_null", "<=>")
        case Opaque():
            return True
        case And(children):
            return all(_accepts_null(child) for child in children)
        case Or(children):
            return any(_accepts_null(child) for child in children)
    return True
