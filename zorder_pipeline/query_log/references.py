"""Where a query names tables, by the characters of its text, so that others can be put in their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope

from zorder_pipeline.model.predicate import VARIABLE

from .dialects import dialect_of
from .names import with_uniform_names
from .sql import BROKEN, MAX_LENGTH

__all__ = ["Reference", "references", "respelled", "with_names"]

OPERATORS = (exp.Binary, exp.Between, exp.In, exp.Not, exp.Neg)
PLAIN = frozenset({"this", "db", "catalog", "alias", "joins", "laterals"})
"""Parts of a table in FROM that do not change which rows it has: no time travel, no sample, no pivot."""


@dataclass(frozen=True)
class Reference:
    """A table's name in a statement.

    Attributes:
        text: as it is written.
        name: without quotes, in lower case.
        start, end: its characters in the statement, the end excluded.
        alias: its last part, quoted, where it has no alias and columns may be qualified by it; "" otherwise.
    """

    text: str
    name: str
    start: int
    end: int
    alias: str


def references(statement: str) -> tuple[Reference, ...]:
    """The tables that one query names, in the order of its text; none when it is no single query, or unclear.

    >>> [
    ...     (r.text, r.alias)
    ...     for r in references("WITH a AS (SELECT 1 x FROM db.t) SELECT * FROM a JOIN u v ON a.x = v.x")
    ... ]
    [('db.t', '`t`'), ('u', '')]
    """
    if len(statement) > MAX_LENGTH:
        return ()
    try:
        trees = sqlglot.parse(statement, read=dialect_of("spark"))
        tree = trees[0] if len(trees) == 1 else None
        if not isinstance(tree, exp.Query) or tree.find(exp.TableSample):  # other files are another sample
            return ()
        tables = {
            id(source): source
            for scope in traverse_scope(with_uniform_names(tree))
            for source in scope.sources.values()
            if isinstance(source, exp.Table)
        }
    except (*BROKEN, RecursionError):
        return ()
    found = (_reference(table, statement) for table in tables.values())
    return tuple(sorted((item for item in found if item is not None), key=lambda item: item.start))


def _reference(table: exp.Table, statement: str) -> Reference | None:
    parts = table.parts
    if {name for name, value in table.args.items() if value} - PLAIN or not parts:
        return None
    if not all(isinstance(part, exp.Identifier) and "start" in part.meta for part in parts):
        return None
    alias = table.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.columns:
        return None
    start, end = parts[0].meta["start"], parts[-1].meta["end"] + 1
    last = "" if alias is not None else "`" + parts[-1].name.replace("`", "``") + "`"
    return Reference(statement[start:end], ".".join(part.name for part in parts).lower(), start, end, last)


def with_names(statement: str, replaced: Sequence[tuple[Reference, str]]) -> str:
    """The statement with other names in the place of references; everything else stays as it is written.

    >>> statement = "SELECT t.a FROM db.t"
    >>> with_names(statement, [(references(statement)[0], "v")])
    'SELECT t.a FROM `v` AS `t`'
    """
    for reference, name in sorted(replaced, key=lambda pair: -pair[0].start):
        alias = f" AS {reference.alias}" if reference.alias else ""
        statement = f"{statement[: reference.start]}`{name}`{alias}{statement[reference.end :]}"
    return statement


def _enclosed(tree: exp.Expr) -> exp.Expr:
    """Operands in parentheses, so that what binds stronger is said, and not left to Spark's own rules."""
    for node in list(tree.walk()):
        parent = node.parent
        if not isinstance(node, OPERATORS) or not isinstance(parent, OPERATORS) or isinstance(node, exp.Dot):
            continue
        chained = isinstance(node, exp.Connector) and type(node) is type(parent)
        if not chained and not isinstance(parent, exp.Dot | exp.Escape):
            enclosing = exp.Paren()
            node.replace(enclosing)
            enclosing.set("this", node)
    return tree


def respelled(text: str) -> str | None:
    """A query or condition as the parser of query logs has understood it; None when it has not.

    Whoever relies on that understanding lets Spark compare the two.
    """
    try:
        trees = sqlglot.parse(text, read=dialect_of("spark"))
        if len(trees) != 1 or trees[0] is None:
            return None
        again = _enclosed(trees[0]).sql(dialect="spark", comments=False)
    except (*BROKEN, RecursionError):
        return None
    return None if VARIABLE in again else again
