"""Joins: which side an ON condition restricts, and what an equality passes on to the other side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

__all__ = ["Joins", "equalities", "flat", "passed_on"]

MAX_PASSED = 200
HALF = ("SEMI", "ANTI")
PASSING = (exp.EQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Like, exp.StartsWith)


@dataclass
class Joins:
    """The joins of one SELECT.

    Attributes:
        optional: sources that an outer join may fill with nulls.
        on: each ON condition with the sources whose rows it restricts.
        using: lower-case names of the columns that USING makes equal.
        hidden: right sides of SEMI and ANTI joins, whose columns nobody sees but their ON.
        first: the sources that FROM begins with.
        natural: whether a NATURAL join makes columns equal that it does not name.
        whole: sources of which every row counts, whatever is asked of the result: an ASOF join finds the nearest row
            before WHERE looks at it, a POSITIONAL one counts rows.
    """

    optional: set[str] = field(default_factory=set)
    on: list[tuple[exp.Expr, frozenset[str]]] = field(default_factory=list)
    using: dict[str, list[str]] = field(default_factory=dict)
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
        if (on := join.args.get("on")) is not None:
            self.on.append((on, frozenset(restricted)))
        for column in () if half else join.args.get("using") or []:
            sides = self.using.setdefault(column.name.lower(), sorted(seen)[:1])
            sides += sorted(names)
        return set() if half and side != "RIGHT" else names

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
            names |= more
        return names

    def restricting(self, alias: str) -> Iterator[exp.Expr]:
        """ON conditions that hold for every row that is needed from ``alias``."""
        for on, restricted in self.on:
            if alias in restricted and (alias not in self.optional or restricted == {alias}):
                yield from flat(on)


def flat(node: exp.Expr) -> Iterator[exp.Expr]:
    """The conjuncts of a condition."""
    node = node.unnest()
    if isinstance(node, exp.And):
        for part in node.flatten():
            yield from flat(part)
    else:
        yield node


def equalities(conditions: list[exp.Expr], using: dict[str, list[str]]) -> list[tuple[exp.Column, exp.Column]]:
    """Pairs of columns that are equal in every row that satisfies ``conditions``."""
    pairs = [
        (part.this.unnest(), part.expression.unnest())
        for part in conditions
        if isinstance(part, exp.EQ)
        and isinstance(part.this.unnest(), exp.Column)
        and isinstance(part.expression.unnest(), exp.Column)
    ]
    for name, sides in using.items():
        pairs += [(exp.column(name, table=sides[0]), exp.column(name, table=other)) for other in sides[1:]]
    return pairs


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
    groups: list[set[exp.Column]] = []
    for left, right in pairs:
        touching = [group for group in groups if left in group or right in group]
        merged = {left, right}.union(*touching)
        groups = [group for group in groups if group not in touching] + [merged]
    found: list[exp.Expr] = []
    for part in conditions:
        if not isinstance(part, PASSING) or len(found) >= MAX_PASSED:
            continue
        if isinstance(part, exp.NullSafeEQ) and part.find(exp.Null):
            continue  # an outer join fills in nulls on one side only
        columns = list(part.find_all(exp.Column))
        if len(columns) != 1 or not isinstance(part.this.unnest(), exp.Column | exp.Literal | exp.Cast | exp.Neg):
            continue
        for group in groups:
            if columns[0] in group:
                others = (other for other in group if other != columns[0] and may(other, columns[0], part))
                found.extend(_said_of(part, other) for other in others)
    return found


def _said_of(part: exp.Expr, column: exp.Column) -> exp.Expr:
    return part.copy().transform(lambda node: column.copy() if isinstance(node, exp.Column) else node, copy=False)
