"""Derived tables: what they hand out, by the names that the outside knows, as expressions of what they read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from .catalog import Catalog
from .joins import Joins
from .outputs import Outputs, select_of, sources_of
from .qualified import column_of

__all__ = ["Derived", "alias_columns", "field_of", "has_column", "plain_star", "renamed_columns"]


@dataclass(frozen=True)
class Derived:
    """A derived table, common table expression or set operation as another SELECT reads it.

    Attributes:
        source: its scope.
        renamed: names that an alias gives its columns, ``AS d (a, b)``; empty when they keep their own.
    """

    source: Scope
    catalog: Catalog
    renamed: tuple[str, ...] = ()

    def places(self, name: str) -> bool:
        """Whether an output of its own, and not only a star, has that name."""
        return self._item(name) is not None

    def placed(self, path: tuple[str, ...]) -> exp.Expr | None:
        """An output, or a field of one, in terms of the derived table's own sources.

        Of a set operation in terms of its outputs: each branch has its own. None where it means something else there,
        or where that is not known.
        """
        name, fields = path[0].lower(), path[1:]
        item = self._item(name)
        starred = bool(self._stars)
        if not self.renamed and len(self._named.get(name, ())) > 1:
            return None
        if self.source.set_operation_scopes:
            if item is not None:  # its branches are told by the name, so that has to be the only one
                alone = item.alias_or_name and len(self._named[item.alias_or_name.lower()]) == 1
                return column_of((item.alias_or_name, *fields)) if alone else None
            return column_of((name, *fields)) if starred and not self.renamed and self._plain_stars else None
        if item is None:
            return self._behind_star(name, fields) if starred and not self.renamed else None
        if any(True in self._owners(star, name).values() for star in self._stars):
            return None  # two outputs of one name
        return self._outputs.safe(field_of(item.unalias(), fields))

    @cached_property
    def _items(self) -> list[exp.Expr]:
        return select_of(self.source).expressions

    @cached_property
    def _stars(self) -> list[exp.Expr]:
        return [item for item in self._items if item.is_star]

    @cached_property
    def _named(self) -> dict[str, list[exp.Expr]]:
        """Outputs that are no stars by their names in lower case."""
        found: dict[str, list[exp.Expr]] = {}
        for item in self._items:
            if not item.is_star:
                found.setdefault(item.alias_or_name.lower(), []).append(item)
        return found

    @cached_property
    def _outputs(self) -> Outputs:
        return Outputs(self.source)

    @cached_property
    def _joins(self) -> Joins:
        return Joins.of(self.source.expression)

    @cached_property
    def _sources(self) -> dict[str, exp.Expr | Scope]:
        return sources_of(self.source)

    @property
    def _plain_stars(self) -> bool:
        return all(plain_star(item) for item in self._stars)

    def _item(self, name: str) -> exp.Expr | None:
        if self.renamed:
            if len(self.renamed) != len(self._items) or self._stars:
                return None
            return self._items[self.renamed.index(name.lower())] if self.renamed.count(name.lower()) == 1 else None
        named = self._named.get(name.lower())
        return named[-1] if named else None

    def _behind_star(self, name: str, fields: tuple[str, ...]) -> exp.Expr | None:
        stars = self._stars
        for star in stars:
            for change in (*_listed(star, "replace"), *_listed(star, "rename")):
                if change.alias.lower() == name:
                    return self._outputs.safe(field_of(change.this, fields)) if len(stars) == 1 else None
        owners = [owner for star in stars for owner in self._owners(star, name).items()]
        if name in self._joins.using and all(isinstance(star, exp.Star) for star in stars):
            return self._outputs.safe(column_of((name, *fields)))
        if len(owners) > 1 and not self._joins.natural:  # of two that have it the name would be ambiguous
            owners = [(owner, has) for owner, has in owners if has]
        if len(owners) != 1:
            return None
        only = len(self._sources) == 1 and not fields  # the source may be called as the column is
        return self._outputs.safe(column_of((name, *fields), "" if only else owners[0][0]))

    def _owners(self, star: exp.Expr, name: str) -> dict[str, bool | None]:
        """The sources that a column behind a star may come from, and whether they surely have it."""
        gone = {item.name.lower() for item in _listed(star, "except_")}
        gone |= {change.this.name.lower() for change in _listed(star, "rename")}
        if name in gone:
            return {}
        named = star.table.lower() if isinstance(star, exp.Column) else ""
        behind = (a for a in self._sources if a not in self._joins.hidden and named in ("", a.lower()))
        known = {alias: has_column(self.source, alias, name, self.catalog, self._sources) for alias in behind}
        return {alias: has for alias, has in known.items() if has is not False}


def has_column(
    scope: Scope, alias: str, name: str, catalog: Catalog, sources: Mapping[str, exp.Expr | Scope]
) -> bool | None:
    """Whether one of the sources of a SELECT has a column of that name; None where that is not known."""
    if renamed := renamed_columns(scope, alias):
        return name.lower() in renamed
    source = sources[alias]
    if isinstance(source, exp.Table):
        schema = catalog.schemas.get(catalog.find(source) or "")
        return None if schema is None else schema.holds(name)
    if not isinstance(source, Scope) or not isinstance(source.expression, exp.Query):
        return None
    items = select_of(source).expressions
    if any(item.alias_or_name.lower() == name.lower() for item in items if not item.is_star):
        return True
    return None if any(item.is_star for item in items) else False


def renamed_columns(scope: Scope, alias: str) -> tuple[str, ...]:
    """Names that FROM gives the columns of a source, ``AS d (a, b)``, where it is used or where it was named; in lower
    case, empty where they keep their own.
    """
    source = scope.sources.get(alias)
    node, source = scope.selected_sources.get(alias, (source, source))  # the right sides of SEMI joins are not selected
    here = alias_columns(node) if isinstance(node, exp.Expr) else []
    defined = source.outer_columns if isinstance(source, Scope) else []
    return tuple(here or [name.lower() for name in defined])


def alias_columns(node: exp.Expr) -> list[str]:
    """Names that a node's alias gives its columns, in lower case."""
    alias = node.args.get("alias")
    return [item.name.lower() for item in alias.columns] if isinstance(alias, exp.TableAlias) else []


def _listed(star: exp.Expr, kind: str) -> list[exp.Expr]:
    """What a star replaces, renames or leaves out."""
    node = star.this if isinstance(star, exp.Column) else star
    found = node.args.get(kind) or []
    return list(found) if isinstance(found, list) else [found]


def plain_star(item: exp.Expr) -> bool:
    """Whether an output is a star that replaces, renames and leaves out nothing."""
    return item.is_star and not any(_listed(item, kind) for kind in ("replace", "rename", "except_"))


def field_of(node: exp.Expr, fields: tuple[str, ...]) -> exp.Expr | None:
    """The fields below an output, itself without any; None below what is no column."""
    if not fields:
        return node
    if not isinstance(node, exp.Column):
        return None
    return column_of((*(part.name for part in node.parts), *fields))
