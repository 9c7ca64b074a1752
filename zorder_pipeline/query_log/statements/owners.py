"""Which source of a SELECT a column is of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import ValueType

from .catalog import Catalog
from .derived import Derived, alias_columns, has_column, renamed_columns
from .joins import Joins
from .outputs import FOREIGN, select_of, sources_of
from .qualified import lower_path_of, names_of, own_path, path_of

__all__ = ["OutputTypes", "Owners", "family"]

WIDENING = (("number", "float"), ("date", "timestamp_ntz", "timestamp"))
"""Families of types, each of which a set operation casts to those after it; of others the dialect and its settings
tell what it makes."""
MOST_NESTED = 16
"""Derived tables in each other in which the type of a column is looked for."""


class Owners:
    """Which source of a SELECT a column is of: by its qualifiers, by the tables' schemas, or as there is only one.

    Args:
        sources: by alias, what the SELECT reads.
        renamed: the names that an alias gives to its source's columns, by alias.
        types: of what the derived tables of the statement hand out.
    """

    def __init__(
        self,
        scope: Scope,
        catalog: Catalog,
        joins: Joins,
        sources: Mapping[str, exp.Expr | Scope],
        renamed: Mapping[str, tuple[str, ...]],
        types: OutputTypes,
    ) -> None:
        self.scope, self.catalog, self.joins, self.sources, self.renamed = scope, catalog, joins, sources, renamed
        self._types = types
        self._named_by: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for alias, node in sources.items():
            for name in names_of(alias, node):
                self._named_by[name].add(alias)
        self._having: dict[str, set[str]] = {}

    def qualifying(self, column: exp.Column) -> set[str]:
        """The sources that a column's qualifiers name; empty where it has none, or they are structs."""
        if not column.table:
            return set()
        path = lower_path_of(column)
        return set().union(*(self._named_by.get(path[:end], ()) for end in range(1, len(path))))

    def own_name(self, column: exp.Column, alias: str, table: str) -> str | None:
        """Name of a column in a source's table; None where it is another source's, or may be."""
        if column.table == FOREIGN or self.renamed[alias]:
            return None
        schema, naming = self.catalog.schemas.get(table), self.qualifying(column)
        if naming:
            path = own_path(column, alias, self.sources[alias]) if naming == {alias} else None
            return self._named(path, table) if path is not None else None
        if column.table:  # s.field, where s is a struct column of the table
            found = self._unqualified(path_of(column), schema) if schema is not None else None
            return found.name if found is not None and not self.elsewhere(path_of(column)[0], alias) else None
        if (among := self.joins.among.get(column.name.lower())) is not None:
            mine = alias in among and self._merged(column, alias)
            return self._named((column.name,), table) if mine else None
        if schema is None:
            return column.name.lower() if len(self.sources) == 1 and not self._lateral(column.name) else None
        if self.joins.natural and not self._merged(column, alias):
            return None
        found = self._unqualified((column.name,), schema)
        return found.name if found is not None and not self.elsewhere(column.name, alias) else None

    def coalesced(self, column: exp.Column) -> bool:
        """Whether a FULL join with USING makes a column of its sides': a condition on it is one on none of them."""
        return path_of(column)[0].lower() in self.joins.coalesced and not self.qualifying(column)

    def _unqualified(self, path: tuple[str, ...], schema: TableSchema) -> Column | None:
        """The column that a path without a qualifier is; a former name may be that of another source's column."""
        name = ".".join(path)
        return schema.lying(path) or (schema.called(name) if self._alone else schema.find(name))

    def lacks(self, column: exp.Column, alias: str, table: str) -> bool:
        """Whether a column can only be this source's, whose table is known to have none of that name."""
        schema = self.catalog.schemas.get(table)
        if schema is None or column.table == FOREIGN or self.renamed[alias]:
            return False
        if naming := self.qualifying(column):
            path = own_path(column, alias, self.sources[alias]) if naming == {alias} else None
            return path is not None and schema.called(".".join(path)) is None and not schema.holds(path[0])
        if column.table or schema.called(column.name) is not None:
            return False
        return self._alone and not schema.holds(column.name) and not self._lateral(column.name)

    @property
    def _alone(self) -> bool:
        """Whether a column without a qualifier can only be the one source's: a subquery may name those around it."""
        return len(self.sources) == 1 and not self.scope.is_subquery

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

    def type_of(self, column: exp.Column) -> str | None:
        """Type of a column of any source, where it is known; of a derived table where it hands out one as it is."""
        for alias, source in self.sources.items():
            table = self.catalog.find(source) if isinstance(source, exp.Table) else None
            if table is not None and (name := self.own_name(column, alias, table)) is not None:
                return self.type_in(name, table)
        (alias, *more) = self.qualifying(column) or self._unqualifying(column) or {""}
        behind = self.sources.get(alias)
        if more or not isinstance(behind, Scope) or not isinstance(behind.expression, exp.Query):
            return None
        if (path := own_path(column, alias, behind) if column.table else path_of(column)) is None:
            return None
        return self._types.of(behind, Derived(behind, self.catalog, self.renamed[alias]).placed(path))

    def _unqualifying(self, column: exp.Column) -> set[str]:
        """The sources that a column without a qualifier may be of."""
        if column.table or self._lateral(column.name):
            return set()
        return set(self.sources) if len(self.sources) == 1 else self._holders(column.name.lower())

    def type_in(self, name: str, table: str) -> str | None:
        """Type of a table's column, where it is known."""
        found = self.catalog.column(table, name)
        return found.type if found is not None else None

    def _named(self, path: tuple[str, ...], table: str) -> str | None:
        schema, name = self.catalog.schemas.get(table), ".".join(path)
        if schema is None:
            return name.lower()
        found = schema.lying(path) or schema.called(name)
        return found.name if found is not None else None

    def elsewhere(self, name: str, alias: str) -> bool:
        """Whether another source is known to have a column of that name, too."""
        name = name.lower()
        return bool(self._holders(name) - {alias}) or self._lateral(name)

    def _holders(self, name: str) -> set[str]:
        """The sources that are known to have a column of a name in lower case."""
        if name not in self._having:
            seen = (other for other in self.sources if other not in self.joins.hidden)
            self._having[name] = {
                other for other in seen if has_column(self.scope, other, name, self.catalog, self.sources)
            }
        return self._having[name]

    def _lateral(self, column: str) -> bool:
        """Whether a lateral view makes a column of that name."""
        for lateral in self.scope.expression.args.get("laterals") or []:
            names = alias_columns(lateral)
            if not names or column.lower() in names:
                return True
        return False


class OutputTypes:
    """Types of what the queries of a statement hand out, as far as these are columns as they are."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog, self._depth = catalog, 0
        self._known: dict[tuple[int, int], str | None] = {}
        self._owners: dict[int, Owners] = {}

    def of(self, scope: Scope, placed: exp.Expr | None) -> str | None:
        """Type of an output as `Derived.placed` tells it; of a set operation where all of its branches have that."""
        if not isinstance(placed, exp.Column) or self._depth >= MOST_NESTED:
            return None
        if scope.set_operation_scopes:
            names = [item.alias_or_name for item in select_of(scope).expressions]
            own = path_of(placed)
            types = self.at(scope, names.index(own[0])) if len(own) == 1 and own[0] in names else {None}
            return types.pop() if len(types) == 1 else None
        if id(scope) not in self._owners:
            sources = sources_of(scope)
            renamed = {alias: renamed_columns(scope, alias) for alias in sources}
            joins = Joins.of(scope.expression)
            self._owners[id(scope)] = Owners(scope, self.catalog, joins, sources, renamed, self)
        self._depth += 1
        found = self._owners[id(scope)].type_of(placed)
        self._depth -= 1
        return found

    def at(self, scope: Scope, place: int) -> set[str | None]:
        """The types that the branches of a set operation, or a SELECT alone, have at a place that is counted from 0."""
        found, waiting = set[str | None](), [scope]
        while waiting:
            one = waiting.pop()
            if one.set_operation_scopes:
                waiting += one.set_operation_scopes
                continue
            if (id(one), place) not in self._known:
                self._known[id(one), place] = None  # of what names itself
                items = one.expression.expressions[: place + 1]
                plain = len(items) > place and not any(item.is_star for item in items)
                self._known[id(one), place] = self.of(one, items[place].unalias()) if plain else None
            found.add(self._known[id(one), place])
        return found

    def kept(self, whole: Scope, branch: Scope, place: int) -> bool:
        """Whether a set operation hands a branch's column out in the family of its own type, as far as is known."""
        families = {family(known) for known in self.at(whole, place) if known is not None}
        if len(families) < 2:
            return True
        widest = next((max(families, key=chain.index) for chain in WIDENING if families <= set(chain)), None)
        return all(known is not None and family(known) == widest for known in self.at(branch, place))


def family(of_type: str) -> str:
    """Family of a type; whole numbers and decimals are one, as Spark compares each of them by itself.

    >>> family("int"), family("decimal(10,2)"), family("double"), family("timestamp_ntz")
    ('number', 'number', 'float', 'timestamp_ntz')
    """
    found = ValueType.parse(of_type).family
    return "number" if found in ("integer", "decimal") else found
