"""Which conditions of a statement restrict which table it scans.

The rule: a condition restricts a scan only when no row that fails it is needed from that table. Wherever the shape of
the query leaves doubt (outer joins, aggregates, windows, limits), it does not. Where files are left out by it, only
what WHERE and ON say of a table that stands in FROM itself counts: nothing is handed into derived tables and nothing
passed on by equalities, as there are too many ways in which columns of one name are not the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import reduce

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from .catalog import Catalog
from .outputs import lets_through, safe_output, select_of, sources_of, substituted
from .recipe import Recipe
from .select import Select

__all__ = ["recipes_of"]

MAX_DERIVED = 64


def recipes_of(query: exp.Query, catalog: Catalog) -> Iterator[Recipe]:
    """Every scan of a known table in the query, its subqueries and its common table expressions."""
    scopes = traverse_scope(query)
    readers: Counter[int] = Counter()
    for scope in scopes:
        readers.update(id(source) for source in sources_of(scope).values() if isinstance(source, Scope))
    handed: dict[int, list[list[exp.Expr]]] = {}
    for scope in reversed(scopes):  # outer scopes first: they hand conditions down
        inherited = [] if _closed(scope) else _combined(handed.get(id(scope), []), readers[id(scope)])
        if scope.set_operation_scopes:
            for branch in scope.set_operation_scopes:
                readers[id(branch)] = 1
                handed[id(branch)] = [_into_branch(inherited, scope, branch)]
            continue
        if not isinstance(scope.expression, exp.Select):
            continue
        source_reader = Select(scope, catalog, inherited)
        for alias, source in sources_of(scope).items():
            if isinstance(source, exp.Table):
                if (name := catalog.find(source)) is not None:
                    yield source_reader.recipe(alias, name, pivoted=bool(source.args.get("pivots")))
            elif isinstance(source, Scope):
                handed.setdefault(id(source), []).append(source_reader.for_derived(alias, source))


def _closed(scope: Scope) -> bool:
    """Whether no condition may be handed into the scope: recursion, or a set operation cut off or matched by name."""
    clause = scope.expression.find_ancestor(exp.With)
    if clause is not None and clause.recursive:
        return True
    if not scope.set_operation_scopes:
        return False
    return any(scope.expression.args.get(name) for name in ("limit", "offset", "by_name"))


def _combined(lists: list[list[exp.Expr]], readers: int) -> list[exp.Expr]:
    """What all readers of a derived table ask of it: a conjunction for one reader, a disjunction of several."""
    if len(lists) == 1 and readers == 1:
        return lists[0]
    if not lists or len(lists) != readers or not all(lists) or len(lists) > MAX_DERIVED:
        return []
    either = [reduce(lambda a, b: exp.And(this=a, expression=b), map(_wrapped, parts)) for parts in lists]
    return [reduce(lambda a, b: exp.Or(this=_wrapped(a), expression=_wrapped(b)), either)]


def _wrapped(node: exp.Expr) -> exp.Expr:
    return node if isinstance(node, exp.Paren) else exp.Paren(this=node)


def _into_branch(parts: list[exp.Expr], union: Scope, branch: Scope) -> list[exp.Expr]:
    """Conditions on a UNION's output columns as conditions on what one branch selects in their place."""
    names = [item.alias_or_name.lower() for item in select_of(union).expressions]
    outputs = select_of(branch).expressions
    if branch.set_operation_scopes:  # a nested UNION takes the names of its own first branch
        outputs = [exp.column(item.alias_or_name) for item in outputs]
    if len(names) != len(outputs) or any(item.is_star for item in outputs):
        return parts if any(item.is_star for item in outputs) and _same_star(union, branch) else []
    places = {name: item.unalias() for name, item in zip(names, outputs, strict=True)}
    if branch.set_operation_scopes:
        return [substituted(part, lambda column: places.get(column.name.lower())) for part in parts]
    if not lets_through(branch):
        return []
    moved = [substituted(part, lambda column: safe_output(places.get(column.name.lower()), branch)) for part in parts]
    return [part for part in moved if part.find(exp.Column)]


def _same_star(union: Scope, branch: Scope) -> bool:
    return select_of(union) is select_of(branch) and lets_through(branch)
