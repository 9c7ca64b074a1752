"""The conditions of one SELECT, and which of its sources they may restrict."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from .catalog import Catalog
from .joins import Joins, equalities, flat, passed_on
from .outputs import FOREIGN, group_keys, lets_through, reshaped, safe_output, select_of, sources_of, substituted
from .recipe import Recipe

__all__ = ["Select"]


class Select:
    """The conditions of one SELECT, and which of its sources they may restrict."""

    def __init__(self, scope: Scope, catalog: Catalog, inherited: list[exp.Expr]) -> None:
        self.scope, self.catalog, self.inherited = scope, catalog, inherited
        select = scope.expression
        self.sources = sources_of(scope)
        self.names = {alias.lower() for alias in self.sources}
        self.joins = Joins.of(select)
        where = select.args.get("where")
        self.where = [*(flat(where.this) if where is not None else ()), *self._having(select), *inherited]

    def _having(self, select: exp.Expr) -> list[exp.Expr]:
        """HAVING conditions that only look at group keys."""
        having, keys = select.args.get("having"), group_keys(select)
        if having is None or keys is None:
            return []
        parts = [part for part in flat(having.this) if not part.find(exp.AggFunc)]
        named = {item.alias.lower(): item.unalias() for item in select.expressions if item.alias}

        def key(column: exp.Column) -> exp.Expr | None:
            called = named.get(column.name.lower(), column) if not column.table else column
            if column in keys and called != column:
                return None  # two things of one name
            return called if called in keys else None

        return [substituted(part, key) for part in parts]

    def conditions(self, alias: str) -> list[exp.Expr]:
        """Conditions that hold for every row that is needed from ``alias``."""
        where = self.where
        if alias in self.joins.hidden:  # WHERE cannot name it: what has no qualifier is another source's
            others = self.names - {alias.lower()}
            where = [
                substituted(part, lambda column: column if column.table.lower() in others else None) for part in where
            ]
        return [*where, *self.joins.restricting(alias)]

    def recipe(self, alias: str, table: str, pivoted: bool) -> Recipe:
        """The scan of the source ``alias``; conditions on a PIVOT are about the rows that it makes."""
        found = [] if pivoted else self.conditions(alias)

        def same_type(column: exp.Column, other: exp.Column) -> bool:
            mine = self._mine(column, alias, table)
            return mine is not None and self._type(other) == self._type_in(mine, table)

        derived = passed_on(found, equalities(found, self.joins.using), same_type)
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
        if reshaped(self.scope):
            return []
        if source.set_operation_scopes:
            outputs = {item.alias_or_name.lower(): item for item in select_of(source).expressions}
            starred = any(item.is_star for item in outputs.values())
        elif lets_through(source):
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
                return safe_output(item.unalias(), source)
            single = len(sources_of(source)) == 1
            return exp.column(column.name) if starred and single else None

        moved = []
        conditions = self.conditions(alias)
        columns = equalities(conditions, self.joins.using)
        implied = passed_on(conditions, columns, lambda column, _: column.table.lower() == alias.lower())
        for part in [*conditions, *implied]:
            if alias in self.joins.optional and not _rejects_null(part):
                continue
            rewritten = substituted(part, place)
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
            return self._named(column.name, table) if self._merged(column, alias) else None
        if schema is None:
            return column.name.lower() if len(self.names) == 1 and not self._lateral(column) else None
        if self.joins.natural and not self._merged(column, alias):
            return None
        found = schema.find(column.name)
        return found.name if found is not None and not self._elsewhere(column, alias) else None

    def _merged(self, column: exp.Column, alias: str) -> bool:
        """Whether a column that a join made of several is this source's, or of one type in all of them."""
        if alias in self.joins.first and alias not in self.joins.optional:
            return True
        types = set()
        for source in self.sources.values():
            known = self.catalog.schemas.get(self.catalog.find(source) or "") if isinstance(source, exp.Table) else None
            found = known.find(column.name) if known is not None else None
            types.add(found.type if found is not None else None)
        return len(types - {None}) <= 1

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
            if name == alias or name in self.joins.hidden:
                continue
            if isinstance(source, Scope):
                items = select_of(source).expressions if isinstance(source.expression, exp.Query) else []
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


def _rejects_null(part: exp.Expr) -> bool:
    """Whether a null on the derived table's side surely fails the condition: plain comparisons only."""
    node = part.unnest()
    plain = isinstance(node, exp.EQ | exp.LT | exp.LTE | exp.GT | exp.GTE | exp.NEQ | exp.Between | exp.In | exp.Like)
    return plain and not node.find(exp.Coalesce, exp.Case, exp.If, exp.Is, exp.NullSafeEQ, exp.Anonymous, exp.Nullif)


def _path(column: exp.Column) -> str:
    """Name of the column, with the struct fields that follow it."""
    parts = [part.name for part in column.parts]
    return ".".join(parts[1:] if column.table else parts)
