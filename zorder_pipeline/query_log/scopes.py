"""Which conditions of a statement restrict which table it scans.

The rule: a condition restricts a scan only when no row that fails it is needed from that table. Wherever the shape of
the query leaves doubt (outer joins, aggregates, windows, limits), it does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from zorder_pipeline.model.predicate import And, Comparison, Opaque, Or, Predicate

from .catalog import Catalog
from .conditions import TRUE, Context, condition
from .constants import Clock
from .joins import Joins, equalities, flat, passed_on

__all__ = ["Recipe", "Scan", "recipes_of"]

FOREIGN = "__foreign__"
BLOCKING = ("limit", "offset", "qualify", "windows", "pivots", "match")
MAX_DERIVED = 64


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
    """

    table: str
    conditions: tuple[exp.Expr, ...]
    resolve: Callable[[exp.Column], str | None]
    catalog: Catalog
    implied: tuple[exp.Expr, ...] = ()
    optional: bool = False
    columns: tuple[str, ...] = ()

    def scan(self, timestamp: int | None, zone: str) -> Scan:
        """The scan with its literals as they are now in the conditions."""
        clock = Clock(timestamp, zone)
        context = Context(self.resolve, clock, lambda name: self.catalog.column(self.table, name))
        parts = [condition(part, context) for part in self.conditions]
        written = {leaf.column.lower() for part in parts for leaf in _written(part)}
        leaves = [leaf for item in self.implied for leaf in _flat_predicate(condition(item, context))]
        parts += [
            replace(leaf, derived=True)
            for leaf in leaves
            if isinstance(leaf, Comparison) and leaf.column.lower() not in written
        ]
        flattened = [item for part in parts for item in _flat_predicate(part)]
        if self.optional:
            flattened = [item for item in flattened if not _accepts_null(item)]
        kept = tuple(dict.fromkeys(item for item in flattened if item != TRUE))
        predicate = kept[0] if len(kept) == 1 else And(kept)
        return Scan(self.table, predicate, self.columns, clock.missed)


def recipes_of(query: exp.Query, catalog: Catalog) -> Iterator[Recipe]:
    """Every scan of a known table in the query, its subqueries and its common table expressions."""
    scopes = traverse_scope(query)
    readers: Counter[int] = Counter()
    for scope in scopes:
        readers.update(id(source) for source in _sources(scope).values() if isinstance(source, Scope))
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
        source_reader = _Select(scope, catalog, inherited)
        for alias, source in _sources(scope).items():
            if isinstance(source, exp.Table):
                if (name := catalog.find(source)) is not None:
                    yield source_reader.recipe(alias, name, reshaped=bool(source.args.get("pivots")))
            elif isinstance(source, Scope):
                handed.setdefault(id(source), []).append(source_reader.for_derived(alias, source))


def _sources(scope: Scope) -> dict[str, exp.Expr | Scope]:
    """What a SELECT reads, by alias; sqlglot keeps the right sides of SEMI and ANTI joins apart."""
    found: dict[str, exp.Expr | Scope] = {alias: source for alias, (_, source) in scope.selected_sources.items()}
    for join in scope.expression.args.get("joins") or []:
        name = join.this.alias_or_name
        if name not in found and name in scope.sources:
            found[name] = scope.sources[name]
    return found


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
    names = [item.alias_or_name.lower() for item in _select_of(union).expressions]
    outputs = _select_of(branch).expressions
    if branch.set_operation_scopes:  # a nested UNION takes the names of its own first branch
        outputs = [exp.column(item.alias_or_name) for item in outputs]
    if len(names) != len(outputs) or any(item.is_star for item in outputs):
        return parts if any(item.is_star for item in outputs) and _same_star(union, branch) else []
    places = {name: item.unalias() for name, item in zip(names, outputs, strict=True)}
    if branch.set_operation_scopes:
        return [_substituted(part, lambda column: places.get(column.name.lower())) for part in parts]
    if not _lets_through(branch):
        return []
    moved = [_substituted(part, lambda column: _safe_output(places.get(column.name.lower()), branch)) for part in parts]
    return [part for part in moved if part.find(exp.Column)]


def _same_star(union: Scope, branch: Scope) -> bool:
    return _select_of(union) is _select_of(branch) and _lets_through(branch)


def _select_of(scope: Scope) -> exp.Select:
    node = scope.expression
    while not isinstance(node, exp.Select):
        node = node.this
    return node


def _substituted(part: exp.Expr, place: Callable[[exp.Column], exp.Expr | None]) -> exp.Expr:
    """``part`` with its columns replaced; one without a replacement becomes a name that nothing resolves."""

    def swap(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        found = place(node)
        if found is None:
            return exp.column("x", table=FOREIGN)
        return found.copy() if isinstance(found, exp.Column | exp.Literal) else exp.Paren(this=found.copy())

    return part.copy().transform(swap, copy=False)


def _lets_through(scope: Scope) -> bool:
    """Whether filtering the output equals filtering the input."""
    select = scope.expression
    if not isinstance(select, exp.Select) or any(select.args.get(name) for name in BLOCKING):
        return False
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        return False
    return not any(item.find(exp.Window, exp.Explode, exp.UDTF) for item in select.expressions)


def _group_keys(select: exp.Expr) -> list[exp.Expr] | None:
    """Expressions of GROUP BY; None when the select aggregates without them, or by more than one set of them."""
    group = select.args.get("group")
    if group is None:
        return None
    if any(group.args.get(name) for name in ("rollup", "cube", "grouping_sets", "totals", "all")):
        return None
    keys = []
    for item in group.expressions:
        if isinstance(item, exp.Literal) and item.this.isdigit() and int(item.this) <= len(select.expressions):
            item = select.expressions[int(item.this) - 1].unalias()
        keys.append(item)
    return keys


def _safe_output(node: exp.Expr | None, scope: Scope) -> exp.Expr | None:
    """An output expression, when it means the same for an input row: no aggregate, and a key where there is a group."""
    if node is None or node.find(exp.AggFunc, exp.Window, exp.Select, exp.Explode):
        return None
    select = scope.expression
    keys = _group_keys(select)
    if keys is not None:
        return node if node in keys else None
    if select.args.get("group") or any(item.find(exp.AggFunc) for item in select.expressions):
        return None
    return node


class _Select:
    """The conditions of one SELECT, and which of its sources they may restrict."""

    def __init__(self, scope: Scope, catalog: Catalog, inherited: list[exp.Expr]) -> None:
        self.scope, self.catalog, self.inherited = scope, catalog, inherited
        select = scope.expression
        self.sources = _sources(scope)
        self.names = {alias.lower() for alias in self.sources}
        self.joins = Joins.of(select)
        where = select.args.get("where")
        self.where = [*(flat(where.this) if where is not None else ()), *self._having(select), *inherited]

    def _having(self, select: exp.Expr) -> list[exp.Expr]:
        """HAVING conditions that only look at group keys."""
        having, keys = select.args.get("having"), _group_keys(select)
        if having is None or keys is None:
            return []
        parts = [part for part in flat(having.this) if not part.find(exp.AggFunc)]
        named = {item.alias.lower(): item.unalias() for item in select.expressions if item.alias}

        def key(column: exp.Column) -> exp.Expr | None:
            found = column if column in keys else named.get(column.name.lower()) if not column.table else None
            return found if found in keys else None

        return [_substituted(part, key) for part in parts]

    def conditions(self, alias: str) -> list[exp.Expr]:
        """Conditions that hold for every row that is needed from ``alias``."""
        return [*self.where, *self.joins.restricting(alias)]

    def recipe(self, alias: str, table: str, reshaped: bool) -> Recipe:
        """The scan of the source ``alias``; conditions on a PIVOT are about the rows that it makes."""
        found = [] if reshaped else self.conditions(alias)
        pairs = equalities(found, self.joins.using)

        def same_type(column: exp.Column, other: exp.Column) -> bool:
            mine = self._mine(column, alias, table)
            return mine is not None and self._type(other) == self._type_in(mine, table)

        derived = passed_on(found, pairs, same_type)
        return Recipe(
            table=table,
            conditions=tuple(found),
            resolve=lambda column: self._mine(column, alias, table),
            catalog=self.catalog,
            implied=tuple(derived),
            optional=alias in self.joins.optional,
            columns=self._columns(alias, table),
        )

    def for_derived(self, alias: str, source: Scope) -> list[exp.Expr]:
        """Conditions on a derived table, in terms of its own sources."""
        if source.set_operation_scopes:
            outputs = {item.alias_or_name.lower(): item for item in _select_of(source).expressions}
            starred = any(item.is_star for item in outputs.values())
        elif _lets_through(source):
            outputs = {item.alias_or_name.lower(): item for item in source.expression.expressions}
            starred = any(item.is_star for item in source.expression.expressions)
        else:
            return []

        def place(column: exp.Column) -> exp.Expr | None:
            if column.table.lower() != alias.lower() and (column.table or len(self.names) > 1):
                return None
            item = outputs.get(column.name.lower())
            if source.set_operation_scopes:
                return exp.column(column.name) if item is not None or starred else None
            if item is not None and not item.is_star:
                return _safe_output(item.unalias(), source)
            single = len(_sources(source)) == 1
            return exp.column(column.name) if starred and single else None

        moved = []
        conditions = self.conditions(alias)
        columns = equalities(conditions, self.joins.using)
        implied = passed_on(conditions, columns, lambda column, _: column.table.lower() == alias.lower())
        for part in [*conditions, *implied]:
            if alias in self.joins.optional and not _rejects_null(part):
                continue
            rewritten = _substituted(part, place)
            if any(column.table != FOREIGN for column in rewritten.find_all(exp.Column)):
                moved.append(rewritten)
        return moved

    def _mine(self, column: exp.Column, alias: str, table: str) -> str | None:
        if column.table == FOREIGN:
            return None
        schema = self.catalog.schemas.get(table)
        if column.table.lower() in self.names or (column.table and schema is None):
            if column.table.lower() != alias.lower():
                return None
            return self._named(_path(column), table)
        if column.table:  # s.field, where s is a struct column of the table
            path = ".".join(part.name for part in column.parts)
            found = schema.find(path) if schema is not None else None
            return found.name if found is not None else None
        if column.name.lower() in self.joins.using:
            return self._named(column.name, table)
        if schema is None:
            return column.name.lower() if len(self.names) == 1 and not self._lateral(column) else None
        found = schema.find(column.name)
        return found.name if found is not None and not self._elsewhere(column, alias) else None

    def _type(self, column: exp.Column) -> str | None:
        """Type of a column of any source, where it is known."""
        for alias, source in self.sources.items():
            table = self.catalog.find(source) if isinstance(source, exp.Table) else None
            if table is not None and (name := self._mine(column, alias, table)) is not None:
                return self._type_in(name, table)
        return None

    def _type_in(self, name: str, table: str) -> str | None:
        found = self.catalog.column(table, name)
        return found.type if found is not None else None

    def _named(self, path: str, table: str) -> str | None:
        schema = self.catalog.schemas.get(table)
        if schema is None:
            return path.lower()
        found = schema.find(path)
        return found.name if found is not None else None

    def _elsewhere(self, column: exp.Column, alias: str) -> bool:
        """Whether another source may have a column of that name, too."""
        for name, source in self.sources.items():
            if name == alias:
                continue
            if isinstance(source, Scope):
                items = _select_of(source).expressions if isinstance(source.expression, exp.Query) else []
                if any(item.alias_or_name.lower() == column.name.lower() for item in items):
                    return True
            elif isinstance(source, exp.Table) and self._has(source, column.name):
                return True
        return self._lateral(column)

    def _has(self, source: exp.Table, name: str) -> bool:
        return self.catalog.column(self.catalog.find(source) or "", name) is not None

    def _lateral(self, column: exp.Column) -> bool:
        """Whether a lateral view makes a column of that name."""
        for lateral in self.scope.expression.args.get("laterals") or []:
            alias = lateral.args.get("alias")
            names = [item.name.lower() for item in (alias.columns if isinstance(alias, exp.TableAlias) else [])]
            if not names or column.name.lower() in names:
                return True
        return False

    def _columns(self, alias: str, table: str) -> tuple[str, ...]:
        if any(item.is_star for item in self.scope.expression.expressions):
            return ()
        found = (self._mine(column, alias, table) for column in self.scope.find_all(exp.Column))
        return tuple(dict.fromkeys(name for name in found if name is not None))


def _flat_predicate(predicate: Predicate) -> Iterator[Predicate]:
    if isinstance(predicate, And):
        for child in predicate.children:
            yield from _flat_predicate(child)
    else:
        yield predicate


def _written(predicate: Predicate) -> Iterator[Comparison]:
    for leaf in _flat_predicate(predicate):
        if isinstance(leaf, Comparison) and leaf.op in ("=", "<=>"):
            yield leaf


def _rejects_null(part: exp.Expr) -> bool:
    """Whether a null on the derived table's side surely fails the condition: plain comparisons only."""
    node = part.unnest()
    plain = isinstance(node, exp.EQ | exp.LT | exp.LTE | exp.GT | exp.GTE | exp.NEQ | exp.Between | exp.In | exp.Like)
    return plain and not node.find(exp.Coalesce, exp.Case, exp.If, exp.Is, exp.NullSafeEQ, exp.Anonymous, exp.Nullif)


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


def _path(column: exp.Column) -> str:
    """Name of the column, with the struct fields that follow it."""
    parts = [part.name for part in column.parts]
    return ".".join(parts[1:] if column.table else parts)
