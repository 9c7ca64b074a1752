"""The tables and views that statements may name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import sqlglot
from sqlglot import exp

from zorder_pipeline.errors import LogError
from zorder_pipeline.model.places import without_root
from zorder_pipeline.model.schema import Column, TableSchema

from .bounded import TooAmbiguousError, one_in
from .called import with_called_tables
from .views import View, ViewName, inlined, is_unknown, name_of, parts_of

__all__ = ["OTHER_FORMATS", "SESSION_CATALOG", "Catalog", "generation_of"]

MEANING = 6
"""Changes when a statement means something else than it was taken for: then all logs are read again once."""
OTHER_FORMATS = {"parquet", "orc", "csv", "json", "text", "avro", "xml", "binaryfile", "iceberg", "hudi"}
"""Of files that statements and plans name by where they lie."""
SESSION_CATALOG = "spark_catalog."
"""Begins the whole names of tables that statements name by schema and name; Spark's plans have the whole ones."""


@dataclass(frozen=True)
class Catalog:
    """What is known of the tables that statements read.

    Attributes:
        aliases: table by the names that statements may use, in lower case; empty when every table counts by its name.
        schemas: schema by table.
        views: query text by the view's name in lower case.
        dialect: sqlglot dialect of the statements and views.
        temporary: temporary views. They hide tables and permanent views that are named alike.
        places: URI of its folder by table.
    """

    aliases: Mapping[str, str] = field(default_factory=dict)
    schemas: Mapping[str, TableSchema] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    dialect: str = "spark"
    temporary: Mapping[ViewName, View] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(
        aliases: Mapping[str, str],
        schemas: Mapping[str, TableSchema],
        views: Mapping[str, str],
        dialect: str,
        places: Mapping[str, str] | None = None,
    ) -> Catalog:
        """A catalog of names in any case.

        Raises:
            LogError: a view is no query that can be parsed.
        """
        lowered = {name.lower(): table for name, table in aliases.items()}
        named = {name.lower(): text for name, text in views.items()}
        found = Catalog(lowered, schemas, named, dialect, places=places or {})
        for name, text in found.views.items():
            found._parsed(name, text)
        return found

    def find(self, table: exp.Table) -> str | None:
        """The known table that ``table`` names; without known tables its own name in lower case, or its folder.

        >>> one = sqlglot.parse_one("SELECT * FROM delta.`/Lake/orders`", read="spark").find(exp.Table)
        >>> two = sqlglot.parse_one("SELECT * FROM spark_catalog.Sales.Orders", read="spark").find(exp.Table)
        >>> Catalog().find(one), Catalog().find(two)
        ('/Lake/orders', 'sales.orders')
        """
        parts = parts_of(table)
        return None if is_unknown(table) or _is_no_delta(parts) else self._match(parts)

    def named(self, name: str) -> str | None:
        """The known table of a location (an absolute path or URI), or of a catalog name with dots."""
        if "/" not in name:
            return self._match(name.replace("`", "").split("."))
        place = name.rstrip("/")
        bare = without_root(place)
        if not self.aliases:
            return bare or None
        candidates = (place, f"delta.{place}", f"delta.file:{bare}", f"delta.{bare}", bare, bare.rsplit("/", 1)[-1])
        return next((self.aliases[c.lower()] for c in candidates if c.lower() in self.aliases), None)

    def _match(self, parts: list[str]) -> str | None:
        whole = ".".join(parts)
        if not self.aliases:
            if parts and "/" in parts[-1]:  # a folder, by which the table is opened, is told from others by its case
                return without_root(parts[-1]).rstrip("/") or None
            return whole.lower().removeprefix(SESSION_CATALOG) or None
        if parts and "/" in parts[-1] and whole.lower() not in self.aliases:
            return self.named(parts[-1])
        names = (whole, ".".join(parts[-2:]), parts[-1] if parts else "")
        return next((self.aliases[name.lower()] for name in names if name.lower() in self.aliases), None)

    def column(self, table: str, name: str) -> Column | None:
        """The table's column called ``name``, where its schema is known."""
        schema = self.schemas.get(table)
        return schema.find(name) if schema is not None else None

    def with_views(self, tree: exp.Expr) -> exp.Expr:
        """``tree``, changed: with every view replaced by its query.

        Raises:
            LogError: a view's query cannot be parsed.
            ValueError: views are too many, too large or nested too deeply.
        """
        return inlined(tree, self.temporary, self._view) if self.views or self.temporary else tree

    def is_view(self, table: exp.Table) -> bool:
        """Whether a name is that of a view."""
        name = name_of(table)
        return name in self.temporary or self._text(name) is not None

    def _text(self, name: ViewName) -> str | None:
        """The text of the view that a name means, which ends with the view's own or is the end of that of one alone."""
        if not self.views or not name:
            return None
        for start in range(len(name)):
            if (text := self.views.get(".".join(name[start:]))) is not None:
                return text
        return None if ".".join(name) in self.aliases else self._ends.get(".".join(name))

    @cached_property
    def _ends(self) -> dict[str, str]:
        """Texts of views by the shorter names that are those of one view alone."""
        found: dict[str, list[str]] = {}
        for name, text in self.views.items():
            parts = name.split(".")
            for start in range(1, len(parts)):
                found.setdefault(".".join(parts[start:]), []).append(text)
        return {name: texts[0] for name, texts in found.items() if len(texts) == 1}

    def _view(self, name: ViewName) -> exp.Expr | None:
        text = self._text(name)
        return None if text is None else self._parsed(name[-1], text)

    def _parsed(self, name: str, text: str) -> exp.Expr:
        try:
            return with_called_tables(one_in(text, self.dialect), self.dialect)
        except (sqlglot.errors.SqlglotError, TooAmbiguousError) as error:
            raise LogError(f"view {name} is no query that can be read: {str(error).splitlines()[0]}") from error


def _is_no_delta(parts: list[str]) -> bool:
    """Whether a name is surely that of no Delta table: files of another format, or what describes a schema."""
    before = parts[-2].lower() if len(parts) > 1 else ""
    return before == "information_schema" or (len(parts) == 2 and before in OTHER_FORMATS and "/" in parts[1])


def generation_of(catalog: Catalog, zone: str) -> str:
    """Hash of what queries depend on besides the log; under another one (new tables, views) logs are read again."""
    text = json.dumps([MEANING, sorted(catalog.aliases.items()), sorted(catalog.views.items()), catalog.dialect, zone])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
