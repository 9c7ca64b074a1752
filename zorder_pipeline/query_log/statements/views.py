"""Views in statements: every name of one becomes the query behind it.

As Spark does it: a name means a common table expression in whose reach it stands, else a temporary view, else a table
or a permanent view. What the names in a view's own query mean was settled when it was created, and a temporary view
among them is the one that is called so now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import exp

__all__ = ["GLOBAL", "MAX_VIEWS", "View", "ViewName", "as_unknown", "inlined", "is_unknown", "name_of", "parts_of"]
__all__ += ["query_of", "tables_of"]

ViewName: TypeAlias = tuple[str, ...]
"""Parts of a name in lower case: a temporary view's own one, behind `GLOBAL` where all sessions know it."""
GLOBAL = "global_temp"
"""Schema of the temporary views that all sessions of an application know."""
MAX_VIEWS = 200
"""Views that one statement names, itself and through others."""
MAX_VIEW_DEPTH = 16
MAX_NODES = 200_000
"""Nodes of all the queries that a statement's views stand for."""
AFTER_A_NAME = ("joins", "laterals", "pivots", "sample")
"""What may follow a table's name in FROM, and follows the query of a view in its place."""
_OF_A_VIEW, _UNKNOWN = "zorder view", "zorder unknown"
"""Schemas of tables in a view's query, which no common table expression outside of it is, and of unknown views."""


@dataclass(frozen=True)
class View:
    """A temporary view.

    Attributes:
        query: None where it cannot be read; nothing is known then of what reads the view.
        temporary: the names in ``query`` that meant temporary views when it was created.
    """

    query: exp.Query | None
    temporary: frozenset[ViewName] = field(default_factory=frozenset)


def inlined(
    tree: exp.Expr, temporary: Mapping[ViewName, View], permanent: Callable[[ViewName], exp.Expr | None]
) -> exp.Expr:
    """``tree``, changed: with the query of each view in the place of its name, but for the target of a change.

    Args:
        permanent: a fresh tree of a permanent view's query, None of what is none.

    Raises:
        ValueError: there are more than `MAX_VIEWS`, they are nested too deeply or too large, as where each names the
            one before it twice.

    >>> from sqlglot import parse_one
    >>> view = View(parse_one("SELECT * FROM t WHERE a = 1"))
    >>> inlined(parse_one("SELECT * FROM v JOIN t"), {("v",): view, ("t",): View(None)}, lambda name: None).sql()
    'SELECT * FROM (SELECT * FROM "zorder view".t WHERE a = 1) AS v, "zorder unknown".t AS t'
    """
    target = None if isinstance(tree, exp.Query) else tree.this
    waiting: list[tuple[exp.Table, frozenset[ViewName] | None, tuple[ViewName, ...]]] = [
        (table, None, ()) for table in tables_of(tree) if table is not target
    ]
    count = nodes = 0
    while waiting:
        table, meant, through = waiting.pop()
        name = name_of(table)
        query: exp.Expr | None
        if name in (temporary if meant is None else meant):
            view = temporary.get(name)
            query, inner = (None, frozenset[ViewName]()) if view is None else (view.query, view.temporary)
            query = query.copy() if query is not None and name not in through else None
        elif (query := permanent(name)) is not None:
            inner = frozenset()
            query = query if name not in through else None
        else:
            if through and len(name) == 1:
                table.set("db", exp.to_identifier(_OF_A_VIEW, quoted=True))
            continue
        if query is None:
            as_unknown(table)
            continue
        count, nodes = count + 1, nodes + sum(1 for _ in query.walk())
        if count > MAX_VIEWS or len(through) >= MAX_VIEW_DEPTH or nodes > MAX_NODES:
            raise ValueError("a statement that reads more views, or larger ones, than can be looked into")
        waiting += [(inside, inner, (*through, name)) for inside in tables_of(query)]
        outside = exp.Subquery(this=query, alias=_called(table))
        for following in AFTER_A_NAME:
            outside.set(following, table.args.get(following))
        table.replace(outside)
    return tree


def tables_of(tree: exp.Expr) -> Iterator[exp.Table]:
    """The tables and views that a tree names: without the names of its common table expressions where these reach.

    >>> from sqlglot import parse_one
    >>> query = parse_one("WITH a AS (SELECT * FROM a), b AS (SELECT * FROM a) SELECT * FROM b, c")
    >>> sorted(table.name for table in tables_of(query))
    ['a', 'c']
    """
    places: dict[int, dict[str, int]] = {}
    for table in list(tree.find_all(exp.Table)):
        if isinstance(table.this, exp.Identifier) and not (len(table.parts) == 1 and _is_common(table, places)):
            yield table


def _is_common(table: exp.Table, places: dict[int, dict[str, int]]) -> bool:
    """Whether a name is that of a common table expression: its own query knows those before it alone.

    Args:
        places: of the expressions of each WITH by name, as far as they were asked for.
    """
    name, node = table.name.lower(), table.parent
    inside: exp.Expr = table
    while node is not None:
        clause = node if isinstance(node, exp.With) else node.args.get("with_")
        if isinstance(clause, exp.With) and clause is not inside:
            if id(clause) not in places:
                named = [common.alias.lower() for common in clause.expressions]
                places[id(clause)] = {own: i for i, own in reversed(list(enumerate(named)))}
            place = places[id(clause)].get(name)
            if place is not None and (node is not clause or clause.recursive or place < (inside.index or 0)):
                return True
        inside, node = node, node.parent
    return False


def query_of(tree: exp.Expr) -> exp.Query | None:
    """The query of the temporary view that a statement creates or changes; None of one over files.

    None also of what CACHE TABLE creates: who names it reads memory, and no file.

    >>> from sqlglot import parse_one
    >>> query_of(parse_one("CREATE TEMP VIEW V (x) AS SELECT a FROM t", read="spark")).sql("spark")
    'SELECT * FROM (SELECT a FROM t) AS V(x)'
    """
    query = tree.args.get("expression")
    if isinstance(tree, exp.Alter):
        query = next(iter(tree.args.get("actions") or ()), None)
    if not isinstance(query, exp.Query) or not isinstance(tree, exp.Create | exp.Alter):
        return None
    if isinstance(tree, exp.Create) and tree.kind != "VIEW":
        return None  # a temporary table: a scan of what it was made from, once
    query, schema = query.copy(), tree.this
    if tree.args.get("with_") is not None and not query.args.get("with_"):
        query.set("with_", tree.args["with_"].copy())
    if isinstance(schema, exp.Schema):
        columns = [exp.to_identifier(column.name) for column in schema.expressions]
        alias = exp.TableAlias(this=exp.to_identifier(schema.this.name), columns=columns)
        query = exp.select("*").from_(exp.Subquery(this=query, alias=alias))
    return query


def parts_of(table: exp.Table) -> list[str]:
    """The parts of a table's name as they stand in the statement, or in the view that it comes from."""
    parts = [part.name for part in table.parts]
    return parts[1:] if parts[:1] == [_OF_A_VIEW] else parts


def as_unknown(table: exp.Table) -> exp.Table:
    """``table``, changed: nothing more is known of it than what it is called."""
    table.set("alias", _called(table))
    table.set("db", exp.to_identifier(_UNKNOWN, quoted=True))
    table.set("catalog", None)
    return table


def _called(table: exp.Table) -> exp.Expr:
    alias: exp.Expr | None = table.args.get("alias")
    return alias or exp.TableAlias(this=exp.to_identifier(table.name))


def is_unknown(table: exp.Table) -> bool:
    """Whether a name is that of a table or view of which nothing is known."""
    return table.db == _UNKNOWN


def name_of(table: exp.Table) -> ViewName:
    """What a table or view is called in FROM, all of its parts."""
    return tuple(part.name.lower() for part in table.parts)
