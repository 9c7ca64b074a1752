"""Joins: which side an ON condition restricts, and what an equality passes on to the other side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

__all__ = ["Joins", "equalities", "flat", "passed_on"]

MAX_PASSED = 200
PASSING = (exp.EQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Like, exp.StartsWith)


@dataclass
class Joins:
    """The joins of one SELECT.

    Attributes:
        optional: sources that an outer join may fill with nulls.
        on: each ON condition with the sources whose rows it restricts.
        using: lower-case names of the columns that USING makes equal.
    """

    optional: set[str] = field(default_factory=set)
    on: list[tuple[exp.Expr, frozenset[str]]] = field(default_factory=list)
    using: dict[str, list[str]] = field(default_factory=dict)

    @staticmethod
    def of(select: exp.Expr) -> Joins:
        """Read off the joins of ``select``."""
        found = Joins()
        first = select.args.get("from_")
        seen = {first.this.alias_or_name} if first is not None else set()
        for join in select.args.get("joins") or []:
            found._add(join, seen)
            seen.add(join.this.alias_or_name)
        return found

    def _add(self, join: exp.Join, seen: set[str]) -> None:
        name, side, kind = join.this.alias_or_name, (join.side or "").upper(), (join.kind or "").upper()
        restricted: set[str]
        if side == "FULL":
            self.optional |= seen | {name}
            restricted = set()
        elif side == "RIGHT" and kind not in ("SEMI", "ANTI"):
            self.optional |= seen
            restricted = set(seen)
        elif kind == "ANTI" or (side == "LEFT" and kind != "SEMI"):
            if kind != "ANTI":
                self.optional.add(name)
            restricted = {name}
        else:
            restricted = seen | {name}
        if (on := join.args.get("on")) is not None:
            self.on.append((on, frozenset(restricted)))
        for column in join.args.get("using") or []:
            sides = self.using.setdefault(column.name.lower(), sorted(seen)[:1])
            sides.append(name)

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
    may: Callable[[exp.Column, exp.Column], bool],
) -> list[exp.Expr]:
    """Comparisons of a column with constants, said of other columns that equal it.

    Args:
        pairs: columns that are equal, see `equalities`.
        may: whether what is said of the second column may be said of the first.
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
        columns = list(part.find_all(exp.Column))
        if len(columns) != 1 or not isinstance(part.this.unnest(), exp.Column | exp.Literal | exp.Cast | exp.Neg):
            continue
        for group in groups:
            if columns[0] in group:
                others = (other for other in group if other != columns[0] and may(other, columns[0]))
                found.extend(_said_of(part, other) for other in others)
    return found


def _said_of(part: exp.Expr, column: exp.Column) -> exp.Expr:
    return part.copy().transform(lambda node: column.copy() if isinstance(node, exp.Column) else node, copy=False)
