"""The conditions of one SELECT, and which of its sources they may restrict."""

from __future__ import annotations

from functools import cached_property

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from .catalog import Catalog
from .derived import Derived, renamed_columns
from .joins import Joins, equalities, flat, passed_on
from .literals import DATE_TYPES
from .outputs import FOREIGN, Outputs, large, lets_through, reshaped, says_something, sources_of, substituted, varies
from .owners import OutputTypes, Owners
from .qualified import of_condition, own_path, path_of
from .recipe import Recipe

__all__ = ["Select"]

PATTERNS = ("match", "connect")
"""Clauses that make rows of many, before WHERE looks at them."""
PLAIN = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
COMPARED = (exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NEQ, exp.Between, exp.In, exp.Like, exp.StartsWith)
NULL_OF_NULLS = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Tuple, exp.Cast, exp.DataType),
    *(exp.DataTypeParam, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Interval, exp.Var, exp.CurrentDate, exp.TsOrDsAdd),
    *(exp.CurrentTimestamp, exp.DateAdd, exp.DateSub, exp.TimestampTrunc, exp.DateTrunc, exp.Year, exp.TsOrDsToDate),
)
"""What a comparison may be made of that a null makes unknown, whatever else it holds."""


class Select:
    """The conditions of one SELECT, and which of its sources they may restrict.

    Args:
        inherited: conditions on its outputs, in terms of its sources.
        types: of what the derived tables of the statement hand out.
        asked: names of the outputs that anybody reads, in lower case; None for all of them.
    """

    def __init__(
        self,
        scope: Scope,
        catalog: Catalog,
        inherited: list[exp.Expr],
        types: OutputTypes,
        asked: frozenset[str] | None = None,
    ) -> None:
        self.scope, self.catalog, self.asked = scope, catalog, asked
        select = scope.expression
        self.sources = sources_of(scope)
        self.renamed = {alias: renamed_columns(scope, alias) for alias in self.sources}
        self._compared: dict[int, tuple[exp.Expr, frozenset[str]]] = {}
        self.joins = Joins.of(select)
        self.owners = Owners(scope, catalog, self.joins, self.sources, self.renamed, types)
        where = select.args.get("where")
        self.where = [*(flat(where.this) if where is not None else ()), *self._having(select), *inherited]
        limit = select.args.get("limit")
        if isinstance(limit, exp.Limit) and isinstance(limit.expression, exp.Literal):  # of none nothing is needed
            self.where.append(exp.GT(this=limit.expression.copy(), expression=exp.Literal.number(0)))

    def _having(self, select: exp.Expr) -> list[exp.Expr]:
        """HAVING conditions that only look at group keys."""
        having = select.args.get("having")
        if having is None or varies(select, self.catalog.dialect) or (outputs := Outputs(self.scope)).keys is None:
            return []
        keys = outputs.keys
        parts = [part for part in flat(having.this) if not part.find(exp.AggFunc, exp.Anonymous, exp.AnonymousAggFunc)]

        def key(column: exp.Column) -> exp.Expr | None:
            called = outputs.named.get(column.name.lower()) if not column.table else None
            if called is None or outputs.same(called, column):
                return column  # a key, or a part of one: engines refuse others
            names = {inner.name.lower() for inner in called.find_all(exp.Column)}
            if keys.holds(column) or column.name.lower() in names:
                return None  # two things of one name
            return outputs.before_windows(called)

        return [substituted(part, key) for part in parts]

    def conditions(self, alias: str) -> list[exp.Expr]:
        """Conditions that hold for every row that is needed from ``alias``."""
        where = self.where
        if alias in self.joins.whole or any(map(self.scope.expression.args.get, PATTERNS)):
            return []
        if alias in self.joins.hidden:  # WHERE cannot name it: what has no qualifier is another source's
            where = self._of_others(where, alias)
        before = self._of_others(self.joins.before.get(alias, []), alias)
        return [*where, *self.joins.restricting(alias), *filter(says_something, before)]

    def _of_others(self, parts: list[exp.Expr], alias: str) -> list[exp.Expr]:
        """Conditions where ``alias`` cannot be named: only columns that are surely another source's are known."""

        def place(column: exp.Column) -> exp.Expr | None:
            return column if self.owners.qualifying(column) - {alias} else None

        return [part if self._is_of_others(part, alias) else substituted(part, place) for part in parts]

    def _is_of_others(self, part: exp.Expr, alias: str) -> bool:
        """Whether a condition compares columns of other sources alone, and thus says nothing of ``alias``.

        Of hundreds of joined tables each one would look at the conditions of all, at each statement of a template.
        """
        if id(part) not in self._compared:  # kept with it, as an id is another node's once its own is gone
            self._compared[id(part)] = (part, self._compares(part))
        names = self._compared[id(part)][1]
        return bool(names) and alias not in names

    def _compares(self, part: exp.Expr) -> frozenset[str]:
        """The sources whose columns a condition compares with each other or constants; empty of any other condition."""
        if not isinstance(part, PLAIN):
            return frozenset()
        sides = [part.this.unnest(), part.expression.unnest()]
        columns = [side for side in sides if isinstance(side, exp.Column)]
        named = [self.owners.qualifying(column) for column in columns]
        plain = all(isinstance(side, exp.Column | exp.Literal) for side in sides) and sides[0] != sides[1]
        return frozenset().union(*named) if plain and all(named) else frozenset()

    @cached_property
    def _read(self) -> list[tuple[exp.Column, set[str]]]:
        """The columns of the statement, with the sources that their qualifiers name."""
        return [(column, self.owners.qualifying(column)) for column in self.scope.find_all(exp.Column)]

    def recipe(self, alias: str, table: str) -> Recipe:
        """The scan of the source ``alias``; conditions on a PIVOT are about the rows that it makes, those on a sample
        about the rows that were drawn.
        """
        node, select = self.sources[alias], self.scope.expression
        taken = [
            of.args.get(name) for of in (node, select) if isinstance(of, exp.Expr) for name in ("pivots", "sample")
        ]
        found = [] if any(taken) else self.conditions(alias)

        def same_type(column: exp.Column, other: exp.Column, part: exp.Expr) -> bool:
            mine = self.owners.own_name(column, alias, table)
            return mine is not None and self._alike(self.owners.type_in(mine, table), other, part)

        derived = passed_on(found, equalities(found, self.joins.merged), same_type)
        own = [part for part in found if not self._is_of_others(part, alias)]
        return Recipe(
            table=table,
            conditions=tuple(own),
            resolve=lambda column: (
                None if self.owners.coalesced(column) else self.owners.own_name(column, alias, table)
            ),
            catalog=self.catalog,
            implied=tuple(derived),
            optional=alias in self.joins.optional,
            columns=self._columns(alias, table),
            lacking=any(
                self.owners.lacks(node, alias, table)
                for part in own
                for node in of_condition(part)
                if isinstance(node, exp.Column)
            ),
        )

    def _alike(self, own: str | None, other: exp.Column, part: exp.Expr) -> bool:
        """Whether Spark casts no side of an equality of a column of a type with another one, as far as is known.

        Or, of one of unknown type, whether it is compared with constants of the type of ours: days.
        """
        theirs = self.owners.type_of(other)
        return own is not None and (theirs == own or (theirs is None and own == "date" and _of_days(part)))

    def for_derived(self, alias: str, source: Scope) -> list[exp.Expr]:
        """Conditions on a derived table, in terms of its own sources."""
        if reshaped(self.scope) or not (source.set_operation_scopes or lets_through(source, self.catalog.dialect)):
            return []
        outputs = Derived(source, self.catalog, self.renamed[alias])

        def place(column: exp.Column) -> exp.Expr | None:
            if column.table == FOREIGN or self.owners.coalesced(column):
                return None
            naming = self.owners.qualifying(column)
            if naming:
                path = own_path(column, alias, source) if naming == {alias} else None
                return outputs.placed(path) if path is not None else None
            path = path_of(column)
            if column.table and not outputs.places(path[0]) and not self._alone:
                return None  # a field, or a column of a statement around this one
            mine = len(self.sources) == 1 or (outputs.places(path[0]) and not self.owners.elsewhere(path[0], alias))
            return outputs.placed(path) if mine else None

        moved = []
        conditions = self.conditions(alias)
        columns = equalities(conditions, self.joins.merged)

        def same_type(column: exp.Column, other: exp.Column, part: exp.Expr) -> bool:
            mine = column.table.lower() == alias.lower()
            return mine and self._alike(self.owners.type_of(column), other, part)

        implied = passed_on(conditions, columns, same_type)
        for part in [*conditions, *implied]:
            if alias in self.joins.optional and not _rejects_null(part):
                continue
            rewritten = substituted(part, place)
            if says_something(rewritten) and not large(rewritten):
                moved.append(rewritten)
        return moved

    @property
    def _alone(self) -> bool:
        """Whether a qualifier that is no source's can only be a struct of the one source there is."""
        scope: Scope | None = self.scope
        while scope is not None:
            if scope.is_subquery:
                return False
            scope = scope.parent
        node = self.scope.expression
        around = node.find_ancestor(exp.Lateral, exp.Update, exp.Delete, exp.Merge)
        unnested = node.args.get("laterals") or node.args.get("joins")  # their aliases may be structs
        return len(self.sources) == 1 and not unnested and around is None

    def asked_of(self, alias: str) -> frozenset[str] | None:
        """Names of the columns that are read of a source, or might be: those without a qualifier; None for all."""
        if self.renamed[alias] or (self._starred and self.asked is None):
            return None
        names = set(self.asked or ()) if self._starred else set()
        for column in self.scope.expression.find_all(exp.Column):
            path = own_path(column, alias, self.sources[alias]) if self.owners.qualifying(column) else path_of(column)
            if path is not None:
                names.add(path[0].lower())
        return frozenset(names)

    @property
    def _starred(self) -> bool:
        return any(item.is_star for item in self.scope.expression.expressions)

    def _columns(self, alias: str, table: str) -> tuple[str, ...]:
        """Columns that are read of a table; empty for all, or where that is not known."""
        if self._starred and (self.asked is None or self.catalog.schemas.get(table) is None):
            return ()
        columns = [column for column, naming in self._read if not naming or alias in naming]
        if self._starred:
            columns += [exp.column(name) for name in sorted(self.asked or ())]
        found = (self.owners.own_name(column, alias, table) for column in columns if not column.is_star)
        return tuple(dict.fromkeys(name for name in found if name is not None))


def _rejects_null(part: exp.Expr) -> bool:
    """Whether a null on the derived table's side surely fails the condition: plain comparisons only."""
    node = part.unnest()
    return isinstance(node, COMPARED) and all(isinstance(item, COMPARED + NULL_OF_NULLS) for item in node.walk())


def _of_days(part: exp.Expr) -> bool:
    """Whether every constant of a comparison is a date by its type."""
    return all(
        isinstance(literal.parent, exp.Cast) and literal.parent.to.this in DATE_TYPES
        for literal in part.find_all(exp.Literal, exp.Null)
    )
