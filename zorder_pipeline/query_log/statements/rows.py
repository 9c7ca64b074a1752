"""Rows of columns compared with rows of constants: ``(a, b) IN ((1, 2), (3, 4))``."""

from __future__ import annotations

from sqlglot import exp

from zorder_pipeline.model.predicate import And, Predicate, as_solved

from .constants import fold
from .context import Context

__all__ = ["equal_rows", "listed_rows"]


def listed_rows(node: exp.In, context: Context) -> Predicate | None:
    """``(a, b) IN ((1, 2), ...)`` as what it says of each column alone, by which only scans through ``reading/`` skip.

    Of a column that a row has null for nothing is said: in rows Spark takes a null for equal to it.
    """
    if not isinstance(node.this, exp.Tuple):
        return None
    rows = [item.expressions for item in node.expressions if isinstance(item, exp.Tuple)]
    if len(rows) != len(node.expressions) or any(len(row) != len(node.this.expressions) for row in rows):
        return None
    parts: list[Predicate] = []
    names = [context.column(item) for item in node.this.expressions]
    partitioning = [name is not None and context.partitions(name) for name in names]
    for i, name in enumerate(names):
        values = dict.fromkeys(fold(row[i], context.clock) for row in rows)
        present = tuple(value for value in values if value is not None and value.kind != "null")
        if partitioning[i] and not all(partitioning):
            continue  # Delta chooses partitions by conditions on these columns alone
        told = context.compared(name, "in", present, derived=True) if name is not None else None
        if told is not None and len(present) == len(values):
            parts.append(as_solved(told))
    return And(tuple(parts)) if parts else None


def equal_rows(left: exp.Expr, op: str, right: exp.Expr, context: Context) -> Predicate | None:
    """``(a, b) = (1, 2)``, as of a list of one row."""
    if op != "=" or not (isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple)):
        return None
    sides = (left, right) if left.find(exp.Column) else (right, left)
    return listed_rows(exp.In(this=sides[0].copy(), expressions=[sides[1].copy()]), context)
