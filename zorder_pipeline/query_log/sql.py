"""One statement taken apart: per table it scans, the predicate that restricts the scan.

The rule: a predicate never excludes a row that the statement needs from that table. Wherever the shape of the query
leaves doubt (outer joins, aggregates, windows, a CTE read twice), the predicate is the weaker one.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from zorder_pipeline.model.predicate import And, Comparison, Opaque, Or, Predicate
from zorder_pipeline.model.schema import TableSchema

from .conditions import TRUE, Context, condition
from .constants import Clock

__all__ = ["Scan", "Unusable", "parse_statement", "template_of"]

MAX_LENGTH = 1_000_000
MAX_DEPTH = 400
QUERIES = (exp.Query, exp.Insert, exp.Create, exp.Update, exp.Delete, exp.Merge)


@dataclass(frozen=True)
class Scan:
    """A scan of one table by a statement; see `zorder_pipeline.model.workload.LoggedQuery`."""

    table: str
    predicate: Predicate
    columns: tuple[str, ...] = ()
    partial: bool = False


@dataclass(frozen=True)
class Unusable:
    """A statement without scans: ignored by kind, or quarantined for a reason."""

    reason: str
    ignored: bool


@dataclass(frozen=True)
class Catalog:
    """The tables that are known.

    Attributes:
        aliases: table by lower-case name that statements may use.
        schemas: schema by table.
    """

    aliases: Mapping[str, str]
    schemas: Mapping[str, TableSchema]

    def find(self, table: exp.Table) -> str | None:
        """The known table that ``table`` names; without known tables its own name."""
        parts = [part.name for part in table.parts]
        whole = ".".join(parts)
        if not self.aliases:
            return whole or None
        last = parts[-1].rstrip("/").rsplit("/", 1)[-1] if parts else ""
        for name in (whole, last):
            if (found := self.aliases.get(name.lower())) is not None:
                return found
        return None


def parse_statement(
    statement: str,
    *,
    dialect: str = "spark",
    aliases: Mapping[str, str] | None = None,
    schemas: Mapping[str, TableSchema] | None = None,
    timestamp: int | None = None,
    zone: str = "UTC",
) -> tuple[Scan, ...] | Unusable:
    """The scans of a statement, or why there are none.

    Args:
        aliases: table by the names that statements may call it, in lower case; without any every table counts.
        schemas: schema by table, to tell which table a column without a qualifier belongs to.

    >>> parse_statement("SELECT a FROM t WHERE b > 5 AND c LIKE 'x%'")[0].predicate.to_sql()
    "b > 5 AND startswith(c, 'x')"
    """
    if len(statement) > MAX_LENGTH:
        return Unusable("too_long", ignored=False)
    if "\0" in statement:
        return Unusable("nul_character", ignored=False)
    if _depth(statement) > MAX_DEPTH:
        return Unusable("too_deeply_nested", ignored=False)
    try:
        trees = [tree for tree in sqlglot.parse(statement, read=dialect) if tree is not None]
        if len(trees) != 1:
            return Unusable("several_statements" if trees else "empty", ignored=not trees)
        root = trees[0]
        if not isinstance(root, QUERIES):
            return Unusable(_kind(root), ignored=True)
        catalog = Catalog(aliases or {}, schemas or {})
        scans = tuple(_scans(root, catalog, timestamp, zone))
    except (sqlglot.errors.SqlglotError, ValueError) as error:
        return Unusable("parse_error" if isinstance(error, sqlglot.errors.ParseError) else "unsupported", ignored=False)
    except RecursionError:
        return Unusable("too_deeply_nested", ignored=False)
    if scans:
        return scans
    if any(True for _ in root.find_all(exp.Table)) and not isinstance(root, exp.Create | exp.Insert):
        return Unusable("other_table", ignored=True)
    return Unusable(_kind(root) if not isinstance(root, exp.Query) else "no_table", ignored=True)


def template_of(statement: str, dialect: str = "spark") -> str:
    """Hash of the statement without its literals, comments and layout."""
    try:
        tokens = sqlglot.tokenize(statement, read=dialect)
    except (sqlglot.errors.SqlglotError, ValueError):
        return ""
    literal = (sqlglot.TokenType.STRING, sqlglot.TokenType.NUMBER)
    text = " ".join("?" if token.token_type in literal else token.text.lower() for token in tokens)
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _depth(statement: str) -> int:
    depth = deepest = 0
    for character in statement:
        if character == "(":
            depth += 1
            deepest = max(deepest, depth)
        elif character == ")":
            depth -= 1
    return deepest


def _kind(root: exp.Expr) -> str:
    if isinstance(root, exp.Command):
        return str(root.this).lower().split()[0]
    return root.key


def _scans(root: exp.Expr, catalog: Catalog, timestamp: int | None, zone: str) -> Iterator[Scan]:
    if isinstance(root, exp.Update | exp.Delete | exp.Merge):
        yield from _changed(root, catalog, timestamp, zone)
        for query in _outermost_queries(root):
            yield from _query(query, catalog, timestamp, zone)
        return
    body = root if isinstance(root, exp.Query) else root.expression
    if isinstance(body, exp.Query):
        if body is not root and root.args.get("with_") is not None:
            body.set("with_", root.args["with_"])
        yield from _query(body, catalog, timestamp, zone)


def _outermost_queries(root: exp.Expr) -> list[exp.Query]:
    return [
        q for q in root.find_all(exp.Query) if q.find_ancestor(exp.Query) is None or q.find_ancestor(exp.Query) is root
    ]


def _changed(root: exp.Expr, catalog: Catalog, timestamp: int | None, zone: str) -> Iterator[Scan]:
    """The target of UPDATE, DELETE and MERGE."""
    target = root.this
    if not isinstance(target, exp.Table) or (name := catalog.find(target)) is None:
        return
    others = root.args.get("using") if isinstance(root, exp.Merge) else root.args.get("from_") or root.args.get("using")
    alias = target.alias_or_name.lower()
    schema = catalog.schemas.get(name)

    def resolve(column: exp.Column) -> str | None:
        if column.table:
            return _path(column) if column.table.lower() == alias else None
        known = schema is not None and schema.find(column.name) is not None
        return _path(column) if not others or known else None

    where = root.args.get("on") if isinstance(root, exp.Merge) else root.args.get("where")
    if isinstance(root, exp.Merge):
        clauses = root.args.get("whens")
        by_source = any(when.args.get("source") for when in (clauses.expressions if clauses is not None else ()))
        where = None if by_source else where
    elif where is not None:
        where = where.this
    context = Context(resolve, Clock(timestamp, zone))
    predicate = condition(where, context) if where is not None else TRUE
    yield Scan(name, predicate, (), context.clock.missed)


def _query(query: exp.Query, catalog: Catalog, timestamp: int | None, zone: str) -> Iterator[Scan]:
    scopes = traverse_scope(query)
    readers: Counter[int] = Counter(
        id(source) for scope in scopes for _, source in scope.selected_sources.values() if isinstance(source, Scope)
    )
    inherited: dict[int, list[tuple[exp.Expr, Scope, str]]] = {}
    for scope in reversed(scopes):  # outer scopes first: they hand conditions down
        if not isinstance(scope.expression, exp.Select):
            continue
        reader = _Reader(scope, catalog, timestamp, zone, inherited.get(id(scope), []))
        for alias, (_, source) in scope.selected_sources.items():
            if isinstance(source, exp.Table):
                if (name := catalog.find(source)) is not None:
                    yield reader.scan(alias, name)
            elif readers[id(source)] == 1 and _transparent(source):
                handed = [(part, scope, alias) for part in reader.conjuncts(alias)]
                inherited.setdefault(id(source), []).extend(handed)


def _transparent(source: Scope) -> bool:
    """Whether a condition on the derived table's plain columns may be applied to its input rows."""
    select = source.expression
    if not isinstance(select, exp.Select):
        return False
    blocked = ("limit", "offset", "group", "having", "qualify", "distinct", "laterals", "windows", "pivots")
    if any(select.args.get(name) for name in blocked):
        return False
    return not any(item.find(exp.AggFunc, exp.Window, exp.Explode, exp.UDTF) for item in select.expressions)


class _Reader:
    """The conditions of one SELECT, and which of its sources they may restrict."""

    def __init__(
        self,
        scope: Scope,
        catalog: Catalog,
        timestamp: int | None,
        zone: str,
        inherited: list[tuple[exp.Expr, Scope, str]],
    ) -> None:
        self.scope, self.catalog, self.timestamp, self.zone = scope, catalog, timestamp, zone
        self.inherited = inherited
        self.aliases = list(scope.selected_sources)
        self.optional: set[str] = set()
        self.on: list[tuple[exp.Expr, set[str]]] = []
        self._joins(scope.expression)

    def _joins(self, select: exp.Expr) -> None:
        """Which side each ON condition restricts, and which sources an outer join may fill with nulls."""
        first = select.args.get("from_")
        seen = {first.this.alias_or_name} if first is not None else set()
        for join in select.args.get("joins") or []:
            name, side, kind = join.this.alias_or_name, (join.side or "").upper(), (join.kind or "").upper()
            on = join.args.get("on")
            restricted: set[str]
            if side == "FULL":
                self.optional |= seen | {name}
                restricted = set()
            elif side == "RIGHT":
                self.optional |= seen
                restricted = set(seen)
            elif kind == "ANTI" or (side == "LEFT" and kind != "SEMI"):
                if kind != "ANTI":
                    self.optional.add(name)
                restricted = {name}
            else:
                restricted = seen | {name}
            if on is not None:
                self.on.append((on, restricted))
            seen.add(name)

    def conjuncts(self, alias: str) -> Iterator[exp.Expr]:
        """Conditions of this scope that may restrict ``alias``."""
        where = self.scope.expression.args.get("where")
        if where is not None:
            yield from _flat(where.this)
        for on, restricted in self.on:
            if alias in restricted and (alias not in self.optional or restricted == {alias}):
                yield from _flat(on)

    def scan(self, alias: str, table: str) -> Scan:
        """The scan of the source ``alias``."""
        clock = Clock(self.timestamp, self.zone)
        context = Context(lambda column: self._mine(column, alias, table), clock)
        parts = [self._safe(condition(part, context), alias) for part in self.conjuncts(alias)]
        for part, outer, derived in self.inherited:
            through = Context(partial(self._through, outer=outer, derived=derived, alias=alias, table=table), clock)
            parts.append(self._safe(condition(part, through), alias))
        flat = [item for part in parts for item in (part.children if isinstance(part, And) else (part,))]
        kept = tuple(dict.fromkeys(item for item in flat if item != TRUE))
        predicate = kept[0] if len(kept) == 1 else And(kept)
        return Scan(table, predicate, self._columns(alias, table), clock.missed)

    def _safe(self, predicate: Predicate, alias: str) -> Predicate:
        """On the side an outer join may fill with nulls, only conditions that reject nulls restrict the scan."""
        if alias in self.optional and _accepts_null(predicate):
            return TRUE
        return predicate

    def _mine(self, column: exp.Column, alias: str, table: str) -> str | None:
        if column.table:
            return _path(column) if column.table.lower() == alias.lower() else self._struct(column, table)
        schema = self.catalog.schemas.get(table)
        if schema is not None:
            if schema.find(column.name) is None:
                return None
            others = [
                self.catalog.schemas.get(self.catalog.find(source) or "")
                for name, (_, source) in self.scope.selected_sources.items()
                if name != alias and isinstance(source, exp.Table)
            ]
            return None if any(o is not None and o.find(column.name) for o in others) else column.name
        return column.name if len(self.aliases) == 1 else None

    def _struct(self, column: exp.Column, table: str) -> str | None:
        """``s.field`` where s is a struct column of the table."""
        schema = self.catalog.schemas.get(table)
        if schema is None or column.table in self.aliases:
            return None
        path = ".".join(part.name for part in column.parts)
        return path if schema.find(path) is not None else None

    def _through(self, column: exp.Column, *, outer: Scope, derived: str, alias: str, table: str) -> str | None:
        """An outer scope's column of the derived table that this scope is, traced to a column of ``alias``."""
        mine = column.table.lower() == derived.lower() if column.table else len(outer.selected_sources) == 1
        if not mine:
            return None
        for item in self.scope.expression.expressions:
            if item.alias_or_name.lower() == column.name.lower():
                inner = item.unalias()
                return self._mine(inner, alias, table) if isinstance(inner, exp.Column) else None
            if item.is_star and len(self.aliases) == 1:
                return self._mine(exp.column(column.name), alias, table)
        return None

    def _columns(self, alias: str, table: str) -> tuple[str, ...]:
        select = self.scope.expression
        if any(item.is_star for item in select.expressions):
            return ()
        found = (self._mine(column, alias, table) for column in self.scope.find_all(exp.Column))
        return tuple(dict.fromkeys(name for name in found if name is not None))


def _flat(node: exp.Expr) -> Iterator[exp.Expr]:
    node = node.unnest()
    if isinstance(node, exp.And):
        for part in node.flatten():
            yield from _flat(part)
    else:
        yield node


def _accepts_null(predicate: Predicate) -> bool:
    match predicate:
        case Comparison(op=op):
            return op in ("is_null", "<=>")
        case Opaque():
            return False
        case And(children) | Or(children):
            return any(_accepts_null(child) for child in children)
    return True


def _path(column: exp.Column) -> str:
    """Name of the column, with the struct fields that follow it."""
    parts = [part.name for part in column.parts]
    return ".".join(parts[1:] if column.table else parts)
