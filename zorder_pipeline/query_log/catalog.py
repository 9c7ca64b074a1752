"""The tables and views that statements may name."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp

from zorder_pipeline.errors import LogError
from zorder_pipeline.model.schema import Column, TableSchema

from .dialects import dialect_of

__all__ = ["MAX_VIEW_DEPTH", "Catalog", "generation_of", "name_of", "temporary_view"]

MAX_VIEW_DEPTH = 16
MAX_VIEWS = 200
"""Views that one statement names, itself or through others."""
GLOBAL = "global_temp"
"""Schema of the temporary views that all sessions of an application know."""
AFTER_A_NAME = ("joins", "laterals", "pivots", "sample")
"""What may follow a table's name in FROM, and follows the query of a view in its place."""


@dataclass(frozen=True)
class Catalog:
    """What is known of the tables that statements read.

    Attributes:
        aliases: table by the names that statements may use, in lower case; empty when every table counts by its name.
        schemas: schema by table.
        views: query text by the view's name in lower case.
        dialect: sqlglot dialect of the statements and views.
        temporary: queries of temporary views, see `temporary_view`. They hide tables and views that are named alike.
    """

    aliases: Mapping[str, str] = field(default_factory=dict)
    schemas: Mapping[str, TableSchema] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    dialect: str = "spark"
    temporary: Mapping[str, exp.Query] = field(default_factory=dict)

    @staticmethod
    def of(
        aliases: Mapping[str, str], schemas: Mapping[str, TableSchema], views: Mapping[str, str], dialect: str
    ) -> Catalog:
        """A catalog of names in any case.

        Raises:
            LogError: a view is no query that can be parsed.
        """
        lowered = {name.lower(): table for name, table in aliases.items()}
        found = Catalog(lowered, schemas, {name.lower(): text for name, text in views.items()}, dialect)
        for name, text in found.views.items():
            found._parsed(name, text)
        return found

    def find(self, table: exp.Table) -> str | None:
        """The known table that ``table`` names; without known tables its own name in lower case."""
        return self._match([part.name for part in table.parts])

    def named(self, name: str) -> str | None:
        """The known table of a location (an absolute path or URI), or of a catalog name with dots."""
        if "/" not in name:
            return self._match(name.replace("`", "").split("."))
        place = name.rstrip("/")
        bare = re.sub(r"^[A-Za-z0-9+.-]+:(//[^/]*)?", "", place)
        if not self.aliases:
            return bare.lower() or None
        candidates = (place, f"delta.{place}", f"delta.file:{bare}", f"delta.{bare}", bare, bare.rsplit("/", 1)[-1])
        return next((self.aliases[c.lower()] for c in candidates if c.lower() in self.aliases), None)

    def _match(self, parts: list[str]) -> str | None:
        whole = ".".join(parts)
        if not self.aliases:
            return whole.lower() or None
        last = parts[-1].rstrip("/").rsplit("/", 1)[-1] if parts else ""
        for name in (whole, ".".join(parts[-2:]), last):
            if (found := self.aliases.get(name.lower())) is not None:
                return found
        return None

    def column(self, table: str, name: str) -> Column | None:
        """The table's column called ``name``, where its schema is known."""
        schema = self.schemas.get(table)
        return schema.find(name) if schema is not None else None

    def with_views(self, tree: exp.Expr) -> exp.Expr:
        """``tree`` with every view replaced by its query.

        Raises:
            LogError: a view's query cannot be parsed.
            ValueError: there are more than `MAX_VIEWS`, as where each names the one before it twice.
        """
        views = 0
        for _ in range(MAX_VIEW_DEPTH if self.views or self.temporary else 0):
            before, hidden = views, {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
            for table in list(tree.find_all(exp.Table)):
                view = self._view(table, tree, hidden)
                if view is None:
                    continue
                if (views := views + 1) > MAX_VIEWS:
                    raise ValueError(f"a statement that reads more than {MAX_VIEWS} views")
                alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name))
                query = exp.Subquery(this=view, alias=alias)
                for name in AFTER_A_NAME:
                    query.set(name, table.args.get(name))
                table.replace(query)
            if views == before:
                break
        return tree

    def _view(self, table: exp.Table, tree: exp.Expr, hidden: Set[str]) -> exp.Expr | None:
        names = [part.name.lower() for part in table.parts]
        if not names or (table is tree.this and not isinstance(tree, exp.Query)):
            return None
        if len(names) == 1 and names[0] in hidden:
            return None
        if (own := self.temporary.get(".".join(names))) is not None:
            return own.copy()
        text = self.views.get(".".join(names)) or self.views.get(names[-1])
        return None if text is None else self._parsed(table.name, text)

    def _parsed(self, name: str, text: str) -> exp.Expr:
        try:
            return sqlglot.parse_one(text, read=dialect_of(self.dialect))
        except sqlglot.errors.SqlglotError as error:
            raise LogError(f"view {name} is no query that can be read: {str(error).splitlines()[0]}") from error


def name_of(table: exp.Table) -> str:
    """The name that a statement calls a table by, with its qualifiers, in lower case."""
    return ".".join(part.name for part in table.parts).lower()


def temporary_view(tree: exp.Expr) -> tuple[str, exp.Query] | None:
    """Name (in lower case, of a global one with its schema) and query of the temporary view that a statement creates.

    None of one that reads another one of its own name, and of one over files.

    >>> name, query = temporary_view(sqlglot.parse_one("CREATE TEMP VIEW V (x) AS SELECT a FROM t", read="spark"))
    >>> name, query.sql("spark")
    ('v', 'SELECT * FROM (SELECT a FROM t) AS V(x)')
    """
    if not isinstance(tree, exp.Create) or tree.kind != "VIEW":
        return None
    properties, schema, query = tree.args.get("properties"), tree.this, tree.expression
    kinds = {type(item) for item in properties.expressions} if properties is not None else set()
    table = schema.this if isinstance(schema, exp.Schema) else schema
    if exp.TemporaryProperty not in kinds or not isinstance(query, exp.Query) or not isinstance(table, exp.Table):
        return None
    name = f"{GLOBAL}.{table.name}".lower() if exp.GlobalProperty in kinds else table.name.lower()
    if any(name_of(other) == name for other in query.find_all(exp.Table)):
        return None
    query = query.copy()
    if isinstance(schema, exp.Schema):
        columns = [exp.to_identifier(column.name) for column in schema.expressions]
        alias = exp.TableAlias(this=exp.to_identifier(table.name), columns=columns)
        query = exp.select("*").from_(exp.Subquery(this=query, alias=alias))
    return name, query


def generation_of(catalog: Catalog, zone: str) -> str:
    """Hash of what queries depend on besides the log; under another one (new tables, views) logs are read again."""
    text = json.dumps([sorted(catalog.aliases.items()), sorted(catalog.views.items()), catalog.dialect, zone])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
