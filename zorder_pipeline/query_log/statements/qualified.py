"""Columns by the qualifiers before their names (an alias, a table's name in full or in part) and the fields after."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

__all__ = ["column_of", "lower_path_of", "names_of", "of_condition", "own_path", "path_of"]

MOST_PARTS = 4
"""Parts that sqlglot's columns have room for."""


def path_of(column: exp.Column) -> tuple[str, ...]:
    """All parts of the column's name, qualifiers and struct fields alike."""
    return tuple(part.name for part in column.parts)


def lower_path_of(column: exp.Column) -> tuple[str, ...]:
    """The same in lower case."""
    return tuple(part.name.lower() for part in column.parts)


def own_path(column: exp.Column, alias: str, source: object) -> tuple[str, ...] | None:
    """What follows the qualifiers that name a source: the column, and struct fields; None where none of them do.

    Args:
        alias: the source's name in FROM.
        source: its node; a table without an alias may also be called by its full name.

    >>> from sqlglot import parse_one
    >>> orders, table = parse_one("sales.orders.address.city"), exp.to_table("sales.orders")
    >>> own_path(orders, "orders", table), own_path(orders, "o", exp.to_table("sales.orders AS o"))
    (('address', 'city'), None)
    """
    lowered = lower_path_of(column)
    for names in names_of(alias, source):
        if len(names) < len(lowered) and lowered[: len(names)] == names:
            return path_of(column)[len(names) :]
    return None


def names_of(alias: str, source: object) -> list[tuple[str, ...]]:
    """The qualifiers that name a source, in lower case, the longest first.

    >>> names_of("orders", exp.to_table("main.sales.orders"))
    [('main', 'sales', 'orders'), ('sales', 'orders'), ('orders',)]
    """
    full = [part.name.lower() for part in source.parts] if isinstance(source, exp.Table) and not source.alias else []
    return [*(tuple(full[first:]) for first in range(len(full) - 1)), (alias.lower(),)]


def column_of(path: tuple[str, ...], alias: str = "") -> exp.Column | None:
    """The column of a path, behind an alias where one is given; None where it has too many parts.

    >>> column_of(("address", "city"), "o").sql()
    'o.address.city'
    """
    parts = (alias, *path) if alias else path
    if len(parts) > MOST_PARTS:
        return None
    names = [exp.to_identifier(part) for part in reversed(parts)]
    return exp.Column(**dict(zip(("this", "table", "db", "catalog"), names, strict=False)))


def of_condition(condition: exp.Expr) -> Iterator[exp.Expr]:
    """What a condition is made of but for queries in it, which have conditions of their own."""
    return condition.walk(prune=lambda node: isinstance(node, exp.Query))
