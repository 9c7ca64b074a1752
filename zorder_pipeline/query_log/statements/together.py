"""Parts of one date that stand together: ``year(d) = 2024 AND month(d) IN (3, 4)``, which BI tools write."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from sqlglot import exp

from zorder_pipeline.model.predicate import Literal, Or, Predicate
from zorder_pipeline.model.written_days import days_together

from .constants import fold
from .context import Context
from .days import Days, days_of

__all__ = ["told_together"]

_PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "YEAR",
    exp.Quarter: "QUARTER",
    exp.Month: "MONTH",
    exp.Day: "DAY",
    exp.DayOfMonth: "DAY",
}
MOST = 62
"""Values of a part that are looked at."""


def told_together(nodes: Sequence[exp.Expr], context: Context) -> list[Predicate]:
    """What conditions that all hold say of days together, besides what each says alone.

    Delta does not see through them, scans through ``reading/`` do.
    """
    asked: dict[Days, dict[str, frozenset[int]]] = defaultdict(dict)
    for node in (node.unnest() for node in nodes):
        part, inner = _part(node.this.unnest() if isinstance(node.this, exp.Expr) else node)
        values = _values(node, context) if part else frozenset()
        own = days_of(inner, context.typed, context.clock) if values and inner is not None else None
        if own is None:
            continue
        known = asked[own].get(part)
        asked[own][part] = values if known is None else known & values
    found: list[Predicate] = []
    for own, parts in asked.items():
        spans = days_together(parts)
        if spans:  # without any nothing is said: Delta does not see that either
            try:
                found.append(Or(tuple(own.told("=", *span) for span in spans)))
            except (ValueError, LookupError, OverflowError):  # days that do not begin there
                continue
    return found


def _part(node: exp.Expr) -> tuple[str, exp.Expr | None]:
    if isinstance(node, exp.Extract):
        name = str(node.this).upper()
        return (name if name in _PARTS.values() else ""), node.expression
    return _PARTS.get(type(node), ""), node.this if isinstance(node.this, exp.Expr) else None


def _values(node: exp.Expr, context: Context) -> frozenset[int]:
    """The values that a part may have; empty where that is not told, or of too many."""
    match node:
        case exp.EQ():
            items = [node.expression]
        case exp.In() if node.expressions and not node.args.get("query"):
            items = node.expressions
        case _:
            return _NO
    if len(items) > MOST:
        return _NO
    found = [_whole(fold(item, context.clock)) for item in items]
    known = frozenset(value for value in found if value is not None)
    return known if None not in found else _NO


_NO: frozenset[int] = frozenset()


def _whole(literal: Literal | None) -> int | None:
    told = literal is not None and literal.kind in ("number", "string") and literal.text.isascii()
    return (
        int(literal.text)
        if told and literal is not None and literal.text.isdecimal() and len(literal.text) < 5
        else None
    )
