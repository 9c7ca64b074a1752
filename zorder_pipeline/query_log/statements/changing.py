"""UPDATE, DELETE and MERGE: what they read of their target, and of the tables beside it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from sqlglot import exp

from .catalog import Catalog
from .joins import flat
from .qualified import own_path, path_of
from .recipe import Recipe
from .scopes import recipes_of
from .views import as_unknown

__all__ = ["read_by_a_change"]


def read_by_a_change(root: exp.Expr, catalog: Catalog) -> Iterator[Recipe]:
    """Every scan of a known table by an UPDATE, DELETE or MERGE: the target's first."""
    yield from _of_the_target(root, catalog)
    beside, common = _beside(root), root.args.get("with_")
    queries = [] if beside is None else [beside]
    queries += [query for query in root.find_all(exp.Query) if query.find_ancestor(exp.Query) in (None, root)]
    if common is not None:
        own = [query for query in queries if not isinstance(query.parent, exp.CTE)]
        queries = [_as_one(own, [beside, *_others(root)], common)]
    for query in queries:
        yield from recipes_of(query, catalog)


def _as_one(queries: list[exp.Query], beside: list[exp.Expr | None], common: exp.Expr) -> exp.Query:
    """Queries as the branches of one, so that each common table expression of the statement is read once for all.

    Args:
        beside: those that do not stand in a condition, and thus know nothing of the target.
    """
    branches: list[exp.Query] = []
    for query in queries:
        part = query.copy() if isinstance(query, exp.Subquery) else exp.Subquery(this=query.copy())
        stands_alone = any(query is other for other in beside)
        branches.append(exp.select("*").from_(part) if stands_alone else exp.select(part))
    branches = branches or [exp.select("1")]
    whole = reduce(lambda one, other: exp.Union(this=one, expression=other, distinct=False), branches)
    whole.set("with_", common.copy())
    return whole


def _others(root: exp.Expr) -> list[exp.Expr]:
    """What is read beside the target."""
    found = root.args.get("using") or root.args.get("from_")
    listed = found if isinstance(found, list) else [found] if found is not None else []
    return [item.this if isinstance(item, exp.From) else item for item in listed]


def _beside(root: exp.Expr) -> exp.Query | None:
    """The tables beside the target as a query of their own, which knows no more of the target than its name.

    A MERGE that does something where nothing matches needs every row of its source.
    """
    tables = [item.copy() for item in _others(root) if isinstance(item, exp.Table)]
    if not tables or not isinstance(root.this, exp.Table):
        return None
    condition = _condition(root)
    if not all(when.args.get("matched") or when.args.get("source") for when in _clauses(root)):
        condition = None
    query = exp.select("*").from_(tables[0])
    for table in tables[1:]:
        query = query.join(table, join_type="cross", copy=False)
    if condition is None:
        return query
    target = as_unknown(exp.to_table(root.this.alias_or_name))
    return query.join(target, join_type="cross", copy=False).where(condition.copy(), copy=False)


def _condition(root: exp.Expr) -> exp.Expr | None:
    """By what the rows of the target are found."""
    where = root.args.get("where")
    return root.args.get("on") if isinstance(root, exp.Merge) else where.this if where is not None else None


def _clauses(root: exp.Expr) -> list[exp.Expr]:
    """What a MERGE does, WHEN by WHEN."""
    clauses = root.args.get("whens")
    return list(clauses.expressions) if clauses is not None else []


def _of_the_target(root: exp.Expr, catalog: Catalog) -> Iterator[Recipe]:
    target = root.this
    if not isinstance(target, exp.Table) or catalog.is_view(target) or (name := catalog.find(target)) is None:
        return
    others = _others(root)
    alias, schema = target.alias_or_name.lower(), catalog.schemas.get(name)
    named = {node.alias_or_name.lower() for node in root.find_all(exp.Table, exp.Subquery) if node is not target}

    def resolve(column: exp.Column) -> str | None:
        own = own_path(column, alias, target)
        path = own or path_of(column)
        if own is None and len(path) > 1 and (schema is None or (others and path[0].lower() in named)):
            return None  # another source's, and not a field of a struct
        if schema is not None:
            found = schema.find(".".join(path)) if others else schema.called(".".join(path))
            return found.name if found is not None else None
        return ".".join(path).lower() if own is not None or not others else None

    condition = None if any(when.args.get("source") for when in _clauses(root)) else _condition(root)
    conditions = tuple(flat(condition)) if condition is not None else ()
    yield Recipe(name, conditions, resolve, catalog)
