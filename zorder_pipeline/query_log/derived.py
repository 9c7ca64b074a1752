"""Derived tables: what they hand out, by the names that the outside knows, as expressions of what they read."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from .catalog import Catalog
from .joins import Joins
from .outputs import safe_output, select_of, sources_of
from .qualified import column_of

__all__ = ["Derived", "alias_columns", "has_column", "plain_star", "renamed_columns"]


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
        starred = any(one.is_star for one in self._items)
        if self.source.set_operation_scopes:
            if item is not None:  # its branches are told by the name, so that has to be the only one
                own = [one.alias_or_name.lower() for one in self._items]
                alone = item.alias_or_name and own.count(item.alias_or_name.lower()) == 1
                return column_of((item.alias_or_name, *fields)) if alone else None
            return column_of((name, *fields)) if starred and not self.renamed and self._plain_stars else None
        if item is None:
            return self._behind_star(name, fields) if starred and not self.renamed else None
        if starred and any(self._offers(star, name) is True for star in self._items if star.is_star):
            return None  # two outputs of one name
        return safe_output(_field_of(item.unalias(), fields), self.source)

    @property
    def _items(self) -> list[exp.Expr]:
        return select_of(self.source).expressions

    @property
    def _plain_stars(self) -> bool:
        return all(plain_star(item) for item in self._items if item.is_star)

    def _item(self, name: str) -> exp.Expr | None:
        if self.renamed:
            names = [one.lower() for one in self.renamed]
            if len(names) != len(self._items) or any(item.is_star for item in self._items):
                return None
            return self._items[names.index(name.lower())] if names.count(name.lower()) == 1 else None
        named = [item for item in self._items if not item.is_star and item.alias_or_name.lower() == name.lower()]
        return named[-1] if named else None

    def _behind_star(self, name: str, fields: tuple[str, ...]) -> exp.Expr | None:
        stars = [item for item in self._items if item.is_star]
        for star in stars:
            for change in (*_listed(star, "replace"), *_listed(star, "rename")):
                if change.alias.lower() == name:
                    return safe_output(_field_of(change.this, fields), self.source) if len(stars) == 1 else None
        owners = [owner for star in stars for owner in self._owners(star, name)]
        if self._merged(name) and all(isinstance(star, exp.Star) for star in stars):
            return safe_output(column_of((name, *fields)), self.source)
        if len(owners) != 1:
            return None
        alone = len(sources_of(self.source)) == 1
        return safe_output(column_of((name, *fields), "" if alone else owners[0]), self.source)

    def _merged(self, name: str) -> bool:
        """Whether a join makes one column of that name of several."""
        return name in Joins.of(self.source.expression).using

    def _owners(self, star: exp.Expr, name: str) -> list[str]:
        """The sources that a column behind a star may come from."""
        gone = {item.name.lower() for item in _listed(star, "except_")}
        gone |= {change.this.name.lower() for change in _listed(star, "rename")}
        if name in gone:
            return []
        known = {alias: has_column(source, name, self.catalog) for alias, source in self._behind(star).items()}
        return [alias for alias, has in known.items() if has is not False]

    def _offers(self, star: exp.Expr, name: str) -> bool:
        """Whether a star surely has an output of that name."""
        sources = self._behind(star)
        return any(has_column(sources[alias], name, self.catalog) is True for alias in self._owners(star, name))

    def _behind(self, star: exp.Expr) -> dict[str, exp.Expr | Scope]:
        sources, hidden = sources_of(self.source), Joins.of(self.source.expression).hidden
        named = star.table.lower() if isinstance(star, exp.Column) else ""
        return {a: source for a, source in sources.items() if a not in hidden and named in ("", a.lower())}


def has_column(source: exp.Expr | Scope, name: str, catalog: Catalog) -> bool | None:
    """Whether a source has a column of that name; None where that is not known."""
    if isinstance(source, exp.Table):
        if alias_columns(source):
            return name.lower() in alias_columns(source)
        schema = catalog.schemas.get(catalog.find(source) or "")
        return None if schema is None else schema.holds(name)
    if isinstance(source, Scope) and source.outer_columns:
        return name.lower() in [column.lower() for column in source.outer_columns]
    if isinstance(source, Scope) and isinstance(source.expression, exp.Query):
        items = select_of(source).expressions
        if any(item.alias_or_name.lower() == name.lower() for item in items if not item.is_star):
            return True
        return None if any(item.is_star for item in items) else False
    return None


def renamed_columns(scope: Scope, alias: str) -> tuple[str, ...]:
    """Names that FROM gives the columns of a source, ``AS d (a, b)``, where it was named or where it is used."""
    node, source = scope.selected_sources.get(alias, (None, scope.sources.get(alias)))
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


def _field_of(node: exp.Expr, fields: tuple[str, ...]) -> exp.Expr | None:
    """The fields below an output, itself without any; None below what is no column."""
    if not fields:
        return node
    if not isinstance(node, exp.Column):
        return None
    return column_of((*(part.name for part in node.parts), *fields))
