"""Which conditions of a statement restrict which table it scans.

The rule: a condition restricts a scan only when no row that fails it is needed from that table. Wherever the shape of
the query leaves doubt (outer joins, aggregates, windows, limits), it does not. Where files are left out by it, only
what WHERE and ON say of a table that stands in FROM itself counts: nothing is handed into derived tables and nothing
passed on by equalities, as there are too many ways in which columns of one name are not the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial, reduce

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from .catalog import Catalog
from .clock import SPARKS
from .derived import alias_columns, field_of, plain_star
from .outputs import Outputs, cut_off, large, lets_through, says_something, select_of, sources_of, substituted
from .owners import OutputTypes, family
from .qualified import path_of
from .recipe import Recipe
from .select import Select

__all__ = ["TooManyTablesError", "recipes_of"]

MAX_DERIVED = 64
MAX_SOURCES = 200
"""Tables and queries in one FROM: what is known of one by its joins is looked for among all others."""
MAX_HANDED = 200_000
"""Nodes of conditions that are handed into derived tables and branches of one statement: what comes after gets none."""


class TooManyTablesError(ValueError):
    """One FROM reads more tables than are looked at."""


def recipes_of(query: exp.Query, catalog: Catalog) -> Iterator[Recipe]:
    """Every scan of a known table in the query, its subqueries and its common table expressions.

    Raises:
        TooManyTablesError: there are more in one FROM than are looked at.
    """
    scopes = traverse_scope(query)
    readers: Counter[int] = Counter()
    for scope in scopes:
        if len(sources_of(scope)) > MAX_SOURCES:
            raise TooManyTablesError(f"more than {MAX_SOURCES} tables in one FROM")
        readers.update(id(source) for source in sources_of(scope).values() if isinstance(source, Scope))
    handed: dict[int, list[list[exp.Expr]]] = {}
    asked: dict[int, list[frozenset[str] | None]] = {}
    firsts: dict[int, exp.Select] = {}
    types, spent = OutputTypes(catalog), 0
    for scope in reversed(scopes):  # outer scopes first: they hand conditions down, and what they ask for
        inherited = [] if _closed(scope) else _combined(handed.get(id(scope), []), readers[id(scope)])
        names = _all_of(asked.get(id(scope), []), readers[id(scope)])
        if scope.set_operation_scopes:
            first = firsts.get(id(scope)) or select_of(scope)
            firsts[id(scope.set_operation_scopes[0])] = first
            # EXCEPT and INTERSECT, and what leaves repetitions out, compare whole rows
            all_rows = isinstance(scope.expression, exp.Union) and scope.expression.args.get("distinct") is False
            if inherited and _cast_behind_stars(scope, catalog):
                inherited = []
            for place, branch in enumerate(scope.set_operation_scopes):
                readers[id(branch)] = 1
                asked[id(branch)] = [names if all_rows else None]
                here = firsts.get(id(branch)) or select_of(branch)
                may = inherited and spent < MAX_HANDED and not (place and _reads_right_whole(scope.expression, catalog))
                kept = cache(partial(types.kept, scope, branch))
                handed[id(branch)] = [_into_branch(inherited, first, branch, here, catalog, kept) if may else []]
                spent += _size(handed[id(branch)][0])
            continue
        if not isinstance(scope.expression, exp.Select):
            continue
        names = None if scope.expression.args.get("distinct") is not None else names  # rows are compared whole
        source_reader = Select(scope, catalog, inherited, types, names)
        for alias, source in sources_of(scope).items():
            if isinstance(source, exp.Table):
                if (name := catalog.find(source)) is not None:
                    yield source_reader.recipe(alias, name)
            elif isinstance(source, Scope):
                moved = source_reader.for_derived(alias, source) if spent < MAX_HANDED else []
                handed.setdefault(id(source), []).append(moved)
                spent += _size(moved)
                asked.setdefault(id(source), []).append(source_reader.asked_of(alias))


def _size(parts: list[exp.Expr]) -> int:
    return sum(1 for part in parts for _ in part.walk())


def _closed(scope: Scope) -> bool:
    """Whether no condition may be handed into the scope: recursion, or a set operation cut off or matched by name."""
    clause = scope.expression.find_ancestor(exp.With)
    if clause is not None and clause.recursive:
        return True
    if not scope.set_operation_scopes:
        return False
    return bool(scope.expression.args.get("by_name")) or cut_off(scope.expression)


def _reads_right_whole(query: exp.Expr, catalog: Catalog) -> bool:
    """Whether the right side of a set operation is read whole: Spark makes an anti or a semi join of EXCEPT and
    INTERSECT, unless ALL stands there, on conditions that pass nothing on.
    """
    compared = isinstance(query, exp.Except | exp.Intersect) and query.args.get("distinct") is not False
    return compared and catalog.dialect in SPARKS


def _all_of(asked: list[frozenset[str] | None], readers: int) -> frozenset[str] | None:
    """Columns that any reader asks for; None of those whose readers are not all known, or ask for all."""
    known = [names for names in asked if names is not None]
    return frozenset().union(*known) if 0 < readers == len(known) else None


def _combined(lists: list[list[exp.Expr]], readers: int) -> list[exp.Expr]:
    """What all readers of a derived table ask of it: a conjunction for one reader, a disjunction of several."""
    if len(lists) == 1 and readers == 1:
        return lists[0]
    if not lists or len(lists) != readers or not all(lists) or len(lists) > MAX_DERIVED:
        return []
    if large(*(part for parts in lists for part in parts)):
        return []
    either = [reduce(lambda a, b: exp.And(this=a, expression=b), map(_wrapped, parts)) for parts in lists]
    return [reduce(lambda a, b: exp.Or(this=_wrapped(a), expression=_wrapped(b)), either)]


def _wrapped(node: exp.Expr) -> exp.Expr:
    return node if isinstance(node, exp.Paren) else exp.Paren(this=node)


def _into_branch(
    parts: list[exp.Expr],
    first: exp.Select,
    branch: Scope,
    here: exp.Select,
    catalog: Catalog,
    kept: Callable[[int], bool],
) -> list[exp.Expr]:
    """Conditions on a UNION's output columns as conditions on what one branch selects in their place.

    Args:
        first: the SELECT that names the UNION's columns, ``here`` the one that names the branch's.
        kept: whether the UNION hands out the branch's column at a place without a cast that changes what is compared.
    """
    names = [item.alias_or_name.lower() for item in first.expressions]
    outputs = here.expressions
    if any(item.is_star for item in first.expressions) or any(item.is_star for item in outputs):
        return parts if _same_star(first, branch, here, catalog) else []
    if branch.set_operation_scopes:  # a nested UNION takes the names of its own first branch
        outputs = [exp.column(item.alias_or_name) for item in outputs]
    if len(names) != len(outputs):
        return []
    count = Counter(names)
    places = {name: i for i, name in enumerate(names) if name and count[name] == 1}

    def place(column: exp.Column) -> exp.Expr | None:
        name, *fields = path_of(column)
        at = places.get(name.lower())
        return field_of(outputs[at].unalias(), tuple(fields)) if at is not None and kept(at) else None

    if branch.set_operation_scopes:
        return [substituted(part, place) for part in parts]
    if not lets_through(branch, catalog.dialect):
        return []
    own = Outputs(branch)
    moved = [substituted(part, lambda column: own.safe(place(column))) for part in parts]
    return [part for part in moved if says_something(part)]


def _same_star(first: exp.Select, branch: Scope, here: exp.Select, catalog: Catalog) -> bool:
    """Whether stars hand out the same columns in the same order: the first branch, or a table of the same columns."""
    if branch.set_operation_scopes or not lets_through(branch, catalog.dialect):
        return first is here and bool(branch.set_operation_scopes)
    if len(here.expressions) != 1 or not plain_star(here.expressions[0]):
        return False
    columns = _starred(first, catalog)
    return first is here or (columns is not None and columns == _starred(here, catalog))


def _cast_behind_stars(scope: Scope, catalog: Catalog) -> bool:
    """Whether the branches of a set operation are stars of tables whose columns differ in nothing but their types."""
    one, *others = (_starred(select_of(branch), catalog) for branch in scope.set_operation_scopes)
    return one is not None and any(
        other is not None and other != one and [name for name, _ in other] == [name for name, _ in one]
        for other in others
    )


def _starred(select: exp.Select, catalog: Catalog) -> tuple[tuple[str, str], ...] | None:
    """Names and families of the columns of ``SELECT *`` from one known table; None of anything else."""
    source = select.args.get("from_")
    table = source.this if source is not None else None
    bare = len(select.expressions) == 1 and plain_star(select.expressions[0])
    if not bare or not isinstance(table, exp.Table) or any(select.args.get(name) for name in ("joins", "laterals")):
        return None
    if any(table.args.get(name) for name in ("pivots", "joins", "laterals")) or alias_columns(table):
        return None
    schema = catalog.schemas.get(catalog.find(table) or "")
    if schema is None:
        return None
    return tuple((column.name.lower(), family(column.type)) for column in schema.columns)
