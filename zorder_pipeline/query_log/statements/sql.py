"""One statement taken apart: per table it scans, the predicate that restricts the scan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp

from zorder_pipeline.model.schema import TableSchema

from .bounded import TooAmbiguousError
from .called import with_called_tables
from .catalog import Catalog
from .changing import read_by_a_change
from .dialects import tokens_of
from .expressions import too_deep
from .names import with_uniform_names
from .parsing import BROKEN, Parameters, deeply, parsed
from .quotes import has_quoted_names
from .recipe import Recipe, Scan
from .scopes import TooManyTablesError, recipes_of
from .view_names import Change, changes_of
from .views import View, is_unknown, name_of, parts_of, query_of, tables_of

__all__ = [
    "OTHER_DIALECT",
    "TOO_AMBIGUOUS",
    "TOO_MANY_TABLES",
    "TOO_MUCH",
    "Scan",
    "Unusable",
    "parse_statement",
    "read_statement",
    "scans_of",
    "trees_of",
]

MAX_LENGTH = 200_000
MAX_STATEMENTS = 100
MAX_TABLES = 20
_UPKEEP = {"restore", "fsck", "reorg", "convert", "generate", "undrop", "sync", "desc", "describe"}
"""Delta's commands that read nothing for anybody."""
_READING = (exp.Query, exp.Insert, exp.Create, exp.Update, exp.Delete, exp.Merge, exp.Cache)


@dataclass(frozen=True)
class Unusable:
    """A statement without scans: ignored by kind, or quarantined for a reason.

    Attributes:
        tables: what it reads instead of a known table.
    """

    reason: str
    ignored: bool
    tables: tuple[str, ...] = ()


OTHER_DIALECT = Unusable("other_dialect", ignored=False)
TOO_AMBIGUOUS = Unusable("too_ambiguous", ignored=False)
TOO_MANY_TABLES = Unusable("too_many_tables", ignored=False)
TOO_MUCH = (TOO_AMBIGUOUS, TOO_MANY_TABLES)
"""What every statement of a template is, whatever its literals."""


def parse_statement(
    statement: str,
    *,
    dialect: str = "spark",
    aliases: Mapping[str, str] | None = None,
    schemas: Mapping[str, TableSchema] | None = None,
    views: Mapping[str, str] | None = None,
    timestamp: int | None = None,
    zone: str = "UTC",
    parameters: Parameters | None = None,
) -> tuple[Scan, ...] | Unusable:
    """The scans of a statement, or why there are none.

    Each statement is parsed by itself: the oracle for `templates.Parser`, which logs are read by.

    Args:
        aliases: table by the names that statements may call it, in lower case; without any every table counts.
        schemas: schema by table, to tell which table a column without a qualifier belongs to.
        views: query text by view name in lower case.
        timestamp: when it ran, microseconds since 1970 UTC: relative time is resolved by it.
        zone: its session's time zone.
        parameters: of a prepared statement, by name or in order.

    >>> parse_statement("SELECT a FROM t WHERE b > 5 AND c LIKE 'x%'")[0].predicate.to_sql()
    "b > 5 AND startswith(c, 'x')"
    """
    catalog = Catalog(aliases or {}, schemas or {}, views or {}, dialect)
    if len(statement) <= MAX_LENGTH and has_quoted_names(statement, dialect):
        return OTHER_DIALECT
    recipes = read_statement(statement, catalog, parameters)
    if isinstance(recipes, Unusable):
        return recipes
    return scans_of(recipes, timestamp, zone)


def scans_of(recipes: Sequence[Recipe], timestamp: int | None, zone: str) -> tuple[Scan, ...] | Unusable:
    """The scans of recipes with their literals as they are now; one statement's failure is not the log's."""
    try:
        with deeply():
            return tuple(recipe.scan(timestamp, zone) for recipe in recipes)
    except RecursionError:
        return Unusable("too_deeply_nested", ignored=False)
    except BROKEN:
        return Unusable("unsupported", ignored=False)


def read_statement(
    statement: str, catalog: Catalog, parameters: Parameters | None = None
) -> tuple[Recipe, ...] | Unusable:
    """The scans of a statement before their literals are read, or why there are none."""
    trees = trees_of(statement, catalog.dialect, parameters)
    if isinstance(trees, Unusable):
        return trees
    try:
        with deeply():
            return _together(trees, statement, catalog)
    except TooManyTablesError:
        return TOO_MANY_TABLES
    except BROKEN:
        return Unusable("unsupported", ignored=False)
    except RecursionError:
        return Unusable("too_deeply_nested", ignored=False)


def trees_of(statement: str, dialect: str, parameters: Parameters | None = None) -> list[exp.Expr] | Unusable:
    """The statements of a line as trees, or why it cannot be parsed."""
    if len(statement) > MAX_LENGTH:
        return Unusable("too_long", ignored=False)
    if "\0" in statement:
        return Unusable("nul_character", ignored=False)
    if too_deep(statement):
        return Unusable("too_deeply_nested", ignored=False)
    try:
        with deeply():
            return [with_called_tables(tree, dialect) for tree in parsed(statement, dialect, parameters)]
    except sqlglot.errors.TokenError:
        return Unusable("tokenize_error", ignored=False)
    except sqlglot.errors.ParseError:
        verb = next((token.text.lower() for token in tokens_of(statement, dialect) or ()), "")
        return Unusable(verb, ignored=True) if verb in _UPKEEP else Unusable("parse_error", ignored=False)
    except TooAmbiguousError:
        return TOO_AMBIGUOUS
    except BROKEN:
        return Unusable("unsupported", ignored=False)
    except RecursionError:
        return Unusable("too_deeply_nested", ignored=False)


def _together(trees: list[exp.Expr], statement: str, catalog: Catalog) -> tuple[Recipe, ...] | Unusable:
    """Several statements in one line are read as one; what one of them creates for a time the next may name."""
    if not trees:
        return Unusable("empty", ignored=True)
    if len(trees) > MAX_STATEMENTS:
        return Unusable("too_many_statements", ignored=False)
    changes, count = changes_of(statement, catalog.dialect)
    if changes and count != len(trees):
        return Unusable("unsupported", ignored=False)
    found: list[tuple[Recipe, ...] | Unusable] = []
    for place, tree in enumerate(trees):
        found.append(_recipes(tree.copy() if changes else tree, catalog))
        for change in (change for change in changes if change.place == place):
            catalog = _changed_by(change, tree, catalog)
    recipes = tuple(recipe for item in found if isinstance(item, tuple) for recipe in item)
    if recipes:
        return recipes
    return next(item for item in reversed(found) if isinstance(item, Unusable))


def _changed_by(change: Change, tree: exp.Expr, catalog: Catalog) -> Catalog:
    """The catalog after a statement has created, changed or dropped a temporary view."""
    there = change.name in catalog.temporary
    if (change.if_new and there) or (change.if_there and not there):
        return catalog
    views = {name: view for name, view in catalog.temporary.items() if name != change.name}
    if change.is_there:
        query = query_of(tree)
        names = {name_of(table) for table in tables_of(query)} if query is not None else set()
        views[change.name] = View(query, frozenset(names & catalog.temporary.keys()))
    return replace(catalog, temporary=views)


def _recipes(root: exp.Expr, catalog: Catalog) -> tuple[Recipe, ...] | Unusable:
    if isinstance(root, exp.Copy) and isinstance(root.this, exp.Query):
        root = root.this
    if isinstance(root, exp.MultitableInserts):
        return Unusable("unsupported", ignored=False)
    if not isinstance(root, _READING) or (isinstance(root, exp.Create) and root.kind not in ("TABLE", None)):
        return Unusable(_kind(root), ignored=True)
    root = with_uniform_names(catalog.with_views(root))
    if recipes := tuple(_scans(root, catalog)):
        return recipes
    if isinstance(root, exp.Create | exp.Insert | exp.Cache):
        return Unusable(_kind(root), ignored=True)
    others = list(tables_of(root))
    names = dict.fromkeys(".".join(parts_of(table)).lower() for table in others if not is_unknown(table))
    return Unusable("other_table" if others else "no_table", ignored=True, tables=tuple(names)[:MAX_TABLES])


def _kind(root: exp.Expr) -> str:
    if isinstance(root, exp.Command):
        return (str(root.this).lower().split() or ["command"])[0]
    if isinstance(root, exp.Condition | exp.Alias):  # CLEAR CACHE and SELEC * FORM t look like an expression alike
        return "unknown_statement"
    return f"create_{root.kind.lower()}" if isinstance(root, exp.Create) and root.kind else root.key


def _scans(root: exp.Expr, catalog: Catalog) -> Iterator[Recipe]:
    if isinstance(root, exp.Update | exp.Delete | exp.Merge):
        yield from read_by_a_change(root, catalog)
        return
    body = root if isinstance(root, exp.Query) else root.expression
    if isinstance(body, exp.Query):
        if body is not root and root.args.get("with_") is not None:
            body.set("with_", root.args["with_"])
        yield from recipes_of(body, catalog)
