"""Joins: which side an ON condition restricts, and what an equality passes on to the other side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from .outputs import FOREIGN
from .qualified import path_of

__all__ = ["Joins", "equalities", "flat", "passed_on"]

MAX_PASSED = 200
MAX_BEFORE = 64
"""Conditions of earlier joins that are looked at for a later one."""
HALF = ("SEMI", "ANTI")
PASSING = (exp.EQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Like, exp.StartsWith)


@dataclass
class Joins:
    """The joins of one SELECT.

    Attributes:
        optional: sources that an outer join may fill with nulls.
        on: each ON condition with the sources whose rows it restricts.
        holding: what holds for every row of the joins so far: conditions of inner ones.
        before: by the source that an inner join adds, what held before it.
        using: lower-case names of the columns that USING makes equal.
        among: by those names, the sources that USING stands between: of a later one the column is another.
        coalesced: those of these names that a FULL join has: the column is the first of both sides' that is not null.
        hidden: right sides of SEMI and ANTI joins, whose columns nobody sees but their ON.
        first: the sources that FROM begins with.
        natural: whether a NATURAL join makes columns equal that it does not name.
        whole: sources of which every row counts, whatever is asked of the result: an ASOF join finds the nearest row
            before WHERE looks at it, a POSITIONAL one counts rows.
    """

    optional: set[str] = field(default_factory=set)
    on: list[tuple[exp.Expr, frozenset[str]]] = field(default_factory=list)
    holding: list[exp.Expr] = field(default_factory=list)
    before: dict[str, list[exp.Expr]] = field(default_factory=dict)
    using: dict[str, list[str]] = field(default_factory=dict)
    among: dict[str, set[str]] = field(default_factory=dict)
    coalesced: set[str] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)
    first: frozenset[str] = frozenset()
    natural: bool = False
    whole: set[str] = field(default_factory=set)

    @staticmethod
    def of(select: exp.Expr) -> Joins:
        """Read off the joins of ``select``."""
        found = Joins()
        first = select.args.get("from_")
        seen = found._inside(first.this) if first is not None else set()
        found.first = frozenset(seen)
        for join in select.args.get("joins") or []:
            seen |= found._add(join, seen)
        return found

    def _add(self, join: exp.Join, seen: set[str]) -> set[str]:
        """Note a join with what stands before it; the sources that it adds to what later ones see."""
        names, side, kind = self._inside(join.this), (join.side or "").upper(), (join.kind or "").upper()
        half, method = kind in HALF, (join.method or "").upper()
        self.natural = self.natural or method == "NATURAL"
        if method in ("ASOF", "POSITIONAL"):
            self.whole |= names if method == "ASOF" else seen | names
        if half:
            self.hidden |= seen if side == "RIGHT" else names
        restricted: set[str]
        if side == "FULL":
            self.optional |= seen | names
            restricted = set()
        elif side == "RIGHT" and not half:
            self.optional |= seen
            restricted = set(seen)
        elif kind == "ANTI":
            restricted = set(seen) if side == "RIGHT" else names
        elif side == "LEFT" and not half:
            self.optional |= names
            restricted = names
        else:
            restricted = seen | names
        inner = not side and not method and kind in ("", "INNER", "CROSS")
        if inner and self.holding:
            self.before[join.this.alias_or_name] = self.holding
        elif side in ("RIGHT", "FULL") or method:
            self.holding = []
        if (on := join.args.get("on")) is not None:
            self.on.append((on, frozenset(restricted)))
            if inner:
                self.holding = [*self.holding, *flat(on)][:MAX_BEFORE]
        for name in [] if half else _using(join):
            sides = self.using.setdefault(name, sorted(seen)[:1])
            if name not in self.coalesced:
                sides += sorted(names)
            self.among.setdefault(name, set()).update(seen, names)
        self._coalesce(join)
        return set() if half and side != "RIGHT" else names

    def _coalesce(self, join: exp.Join) -> None:
        if (join.side or "").upper() == "FULL":
            self.coalesced.update(_using(join))

    def _inside(self, node: exp.Expr) -> set[str]:
        """The sources in one side of a join, which may be joins in parentheses; what these may fill is optional."""
        names = {node.alias_or_name}
        if isinstance(node, exp.Subquery | exp.Paren) and isinstance(node.this, exp.Table | exp.Subquery | exp.Paren):
            names |= self._inside(node.this)
        for join in node.args.get("joins") or []:
            more, half = self._inside(join.this), (join.kind or "").upper() in HALF
            if (join.method or "").upper() in ("ASOF", "POSITIONAL"):
                self.whole |= names | more
            self.natural = self.natural or (join.method or "").upper() == "NATURAL"
            if half:
                self.hidden |= names if (join.side or "").upper() == "RIGHT" else more
            elif join.side:
                self.optional |= names | more
            self._coalesce(join)
            names |= more
        return names

    @cached_property
    def merged(self) -> list[tuple[exp.Column, exp.Column]]:
        """Pairs of columns that USING makes equal."""
        return [
            (exp.column(name, table=sides[0]), exp.column(name, table=other))
            for name, sides in self.using.items()
            for other in sides[1:]
        ]

    def restricting(self, alias: str) -> Iterator[exp.Expr]:
        """ON conditions that hold for every row that is needed from ``alias``."""
        for on, restricted in self.on:
            if alias in restricted and (alias not in self.optional or restricted == {alias}):
                yield from flat(on)


def _using(join: exp.Join) -> list[str]:
    """Names of the columns that USING makes equal, in lower case."""
    return [column.name.lower() for column in join.args.get("using") or []]


def flat(node: exp.Expr) -> Iterator[exp.Expr]:
    """The conjuncts of a condition."""
    node = node.unnest()
    if isinstance(node, exp.And):
        for part in node.flatten():
            yield from flat(part)
    else:
        yield node


def equalities(
    conditions: list[exp.Expr], using: list[tuple[exp.Column, exp.Column]]
) -> list[tuple[exp.Column, exp.Column]]:
    """Pairs of columns that are equal in every row that satisfies ``conditions``, and those of USING.

    Columns of elsewhere all have one name, so nothing is known to equal them.
    """
    sides = [(part.this.unnest(), part.expression.unnest()) for part in conditions if isinstance(part, exp.EQ)]
    pairs = [
        (left, right)
        for left, right in sides
        if isinstance(left, exp.Column) and isinstance(right, exp.Column) and FOREIGN not in (left.table, right.table)
    ]
    return [*pairs, *using]


def passed_on(
    conditions: list[exp.Expr],
    pairs: list[tuple[exp.Column, exp.Column]],
    may: Callable[[exp.Column, exp.Column, exp.Expr], bool],
) -> list[exp.Expr]:
    """Comparisons of a column with constants, said of other columns that equal it.

    Args:
        pairs: columns that are equal, see `equalities`.
        may: whether what a condition says of the second column may be said of the first.
    """
    if not pairs:
        return []
    group_of: dict[exp.Column, set[exp.Column]] = {}
    for left, right in pairs:
        less, more = sorted((group_of.setdefault(side, {side}) for side in (left, right)), key=len)
        if less is not more:
            more |= less
            group_of |= dict.fromkeys(less, more)
    found: list[exp.Expr] = []
    for part in conditions:
        if not isinstance(part, PASSING) or len(found) >= MAX_PASSED:
            continue
        if isinstance(part, exp.NullSafeEQ) and part.find(exp.Null):
            continue  # an outer join fills in nulls on one side only
        columns = list(part.find_all(exp.Column))
        if len(columns) != 1 or not isinstance(part.this.unnest(), exp.Column | exp.Literal | exp.Cast | exp.Neg):
            continue
        equal = sorted(group_of.get(columns[0], ()), key=path_of)
        found.extend(_said_of(part, other) for other in equal if other != columns[0] and may(other, columns[0], part))
    return found


def _said_of(part: exp.Expr, column: exp.Column) -> exp.Expr:
    return part.copy().transform(lambda node: column.copy() if isinstance(node, exp.Column) else node, copy=False)
