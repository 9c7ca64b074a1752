"""What Spark's own plan says of a scan's rows, as a predicate: no text is read a second time, Spark has done that.

Names are resolved, constants typed and casts explicit in a plan, whatever the statement, the session and its settings
were. What is not one of a few forms here says nothing, so that more files are read, never fewer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from zorder_pipeline.java import class_name, items
from zorder_pipeline.model.file_stats import Feature, rounded
from zorder_pipeline.model.like_patterns import beginning_of
from zorder_pipeline.model.predicate import (
    FALSE,
    FLIPPED,
    TRUE,
    And,
    Comparison,
    Literal,
    Opaque,
    Or,
    Predicate,
    as_solved,
)
from zorder_pipeline.model.values import ValueType

from .constants import literal_of
from .expressions import unqualified
from .java_zones import JavaZone
from .meanings import Meaning, Meanings, Tree, all_of
from .solving import Part, part, solved, together

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

__all__ = ["Conditions"]

MOST_CONDITIONS = 500
"""Conditions of a scan that are looked at: each takes some calls into the JVM."""
MOST_TEXT = 10_000
"""Characters of a condition on partitions that is kept in SQL: more are not worth the time that every scan takes."""
MOST_LISTED, MOST_ROWS = 10_000, 1_000
"""Values of one IN that are looked at, and rows of values: each part of these takes a call into the JVM."""
_OPS = {"EqualTo": "=", "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">", "GreaterThanOrEqual": ">="}
_HOLDS: Mapping[str, Callable[[Fraction, Fraction], bool]] = {
    "=": operator.eq,
    "in": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Conditions:
    """Reads conditions on one relation of a plan.

    Args:
        meanings: features of the table that the relation is.
        output: the relation's attributes.
        names: the table's column, and its type, at each path.
        zone: the session's time zone.
        parts: the columns that partition the table; a condition on them alone is kept in SQL, too.
    """

    def __init__(
        self,
        meanings: Meanings,
        output: JavaObject,
        names: Mapping[tuple[str, ...], tuple[str, str]],
        zone: str,
        parts: Collection[str] = (),
    ) -> None:
        self.meanings, self.names, self.zone = meanings, names, JavaZone(meanings.spark, zone)
        self._attributes = meanings.attributes(output)
        self._own = {attribute.exprId().id(): str(attribute.name()) for attribute in items(output)}
        self._seen = 0
        self._dated: list[Part] = []
        self._columns = {name for name, _ in names.values()}
        self._parts = frozenset(parts)

    def all_of(self, conditions: Iterable[Tree]) -> Predicate:
        """What holds for every row that satisfies all conditions."""
        meant = [self._meaning(one) for tree in conditions for one in all_of(tree)]
        before, self._dated = self._dated, []
        read = [self._read(item) for item in meant]
        read += together(self._dated, self.zone)
        self._dated = before
        read += [self._true(feature) for feature in self.meanings.within(meant)]
        return And(tuple(read))

    def _read(self, meaning: Meaning) -> Predicate:
        """What a condition says that is no conjunction."""
        tree, kind = meaning.tree, class_name(meaning.tree)
        self._seen += 1
        if self._seen > MOST_CONDITIONS:
            return Opaque(kind)
        if kind == "Or":
            found: Predicate = Or(tuple(self.all_of([child]) for child in items(tree.children())))
        else:
            found = self._compared(tree, kind) or self._opaque(tree, kind)
            if self._parts and isinstance(found, And) and (whole := self._opaque(tree, kind)).expression:
                found = And((found, whole))  # Delta asks all of it of the partitions
        turned = kind == "Not"
        feature = self.meanings.of(self._meaning(tree.child()) if turned else meaning, "predicate")
        if feature is None:
            return found
        return And((found, self._true(feature, FALSE if turned else TRUE)))

    def _opaque(self, tree: Tree, kind: str) -> Opaque:
        """A condition of no known form, with the columns that it looks at."""
        seen = self._looked_at(tree)
        names = tuple(sorted(name for name in seen if name))
        alone = bool(names) and "" not in seen and self._parts.issuperset(names) and bool(tree.deterministic())
        text = str(tree.sql()) if alone else ""
        return Opaque(kind, names, unqualified(text) if len(text) <= MOST_TEXT else "")

    def _looked_at(self, tree: Tree) -> set[str]:
        """Names of the table's columns in a condition, and "" for any other."""
        return {self._own.get(node.exprId().id(), "") for node in items(tree.references().toSeq())}

    def _is_mixed(self, tree: Tree) -> bool:
        """Whether it looks at columns that partition the table and at others: Delta chooses no partitions by it."""
        names = self._looked_at(tree)
        return not names <= self._parts and not names.isdisjoint(self._parts)

    def _true(self, feature: Feature, value: Literal = TRUE) -> Predicate:
        return Comparison(self.meanings.columns[feature], "=", (value,))

    def _meaning(self, tree: Tree) -> Meaning:
        return self.meanings.meaning(tree, self._attributes)

    def _compared(self, tree: Tree, kind: str) -> Predicate | None:
        if kind in _OPS:
            left, right = tree.left(), tree.right()
            if class_name(right) == "Literal":
                return self._comparison(left, _OPS[kind], [right])
            return self._comparison(right, FLIPPED[_OPS[kind]], [left]) if class_name(left) == "Literal" else None
        if kind == "EqualNullSafe":
            sides = sorted((tree.left(), tree.right()), key=lambda side: class_name(side) == "Literal")
            known = class_name(sides[1]) == "Literal" and sides[1].value() is not None
            if known and sides[1].value() is True:  # IS TRUE, of which Delta makes nothing but of partitions alone
                return None if self._is_mixed(sides[0]) else as_solved(self.all_of([sides[0]]))
            return self._comparison(sides[0], "=", [sides[1]]) if known else None
        if kind in ("In", "InSet"):
            return self._listed(tree, kind)
        if kind == "StartsWith" and class_name(tree.right()) == "Literal":
            return self._comparison(tree.left(), "starts_with", [tree.right()])
        if kind in ("Like", "LikeAny"):
            return self._like(tree, kind)
        if kind in ("IsNull", "IsNotNull"):
            return self._is_null(tree.child(), "is_null" if kind == "IsNull" else "is_not_null")
        if kind == "Not":
            child, turned = tree.child(), class_name(tree.child())
            if turned == "IsNull":
                return self._is_null(child.child(), "is_not_null")
            return self._other_than(child, turned) if turned in ("EqualTo", "In", "InSet") else self._is(child, FALSE)
        return self._is(tree, TRUE)

    def _is_null(self, tree: Tree, op: str) -> Predicate | None:
        name = self._column(tree)
        return Comparison(name[0], op) if name else None

    def _is(self, tree: Tree, truth: Literal) -> Predicate | None:
        name = self._column(tree)
        if name is None and class_name(tree) == "Coalesce":
            return self._filled(tree, "=", [truth == TRUE])
        return Comparison(name[0], "=", (truth,)) if name and name[1] == "boolean" else None

    def _other_than(self, tree: Tree, kind: str) -> Predicate | None:
        """The contrary of an equality, or of a list, of a column or of what is solved for one."""
        if kind == "EqualTo":
            sides = sorted((tree.left(), tree.right()), key=lambda side: class_name(side) == "Literal")
            return self._comparison(sides[0], "<>", [sides[1]]) if class_name(sides[1]) == "Literal" else None
        before, self._dated = self._dated, []  # which hold where this does
        found = self._listed(tree, kind)
        self._dated = before
        if not isinstance(found, Comparison) or found.column not in self._columns or found.solved:
            return None
        whole = kind == "In" and tree.list().size() == len(found.literals)  # without a null
        return Comparison(found.column, "not_in", found.literals) if whole else None

    def _listed(self, tree: Tree, kind: str) -> Predicate | None:
        if kind == "In":
            listed = items(tree.list())
            if len(listed) > MOST_LISTED or any(class_name(item) != "Literal" for item in listed):
                return None
            return self._comparison(tree.value(), "in", [item for item in listed if item.value() is not None])
        values = tree.hset()
        if values.size() > MOST_LISTED:
            return None
        return self._compared_with(tree.child(), "in", [item for item in items(values.toSeq()) if item is not None])

    def _like(self, tree: Tree, kind: str) -> Predicate | None:
        """What patterns say of their column's beginning; of simple ones Spark itself has made comparisons."""
        if kind == "LikeAny":
            subject, patterns, escape = tree.child(), items(tree.patterns()), "\\"
        elif class_name(tree.right()) == "Literal":
            subject, patterns, escape = tree.left(), [tree.right().value()], str(tree.escapeChar())
        else:
            return None
        name, texts = self._column(subject), [literal_of(pattern, "string") for pattern in patterns]
        begins = [beginning_of(text.text, escape) for text in texts if text is not None]
        known = [begin for begin in begins if begin is not None]
        if name is None or name[1] != "string" or not known or len(known) < len(texts):
            return None
        said = [Comparison(name[0], begin.op, (Literal("string", begin.text),), solved=True) for begin in known]
        return And((said[0] if len(said) == 1 else Or(tuple(said)), self._opaque(tree, kind)))

    def _rows(self, subject: Tree, rows: Sequence[Any]) -> Predicate | None:
        """``(a, b) IN ((1, 2), ...)`` as what it says of each part alone, of which Delta makes nothing.

        Of a part that a row has null for nothing is said: in rows a null is equal to it.
        """
        if not rows or len(rows) > MOST_ROWS:
            return None
        mixed, said = self._is_mixed(subject), list[Predicate]()
        for i, inner in enumerate(items(subject.valExprs())):
            if mixed and not self._parts.isdisjoint(self._looked_at(inner)):
                continue
            values = [row.get(i, inner.dataType()) for row in rows]
            told = None if None in values else self._compared_with(inner, "in", values)
            if told is not None:
                said.append(as_solved(told))
        return And(tuple(said)) if said else None

    def _comparison(self, subject: Tree, op: str, constants: Sequence[Tree]) -> Predicate | None:
        """``subject op constants``, if the subject is a column or a feature and the constants are of its very type."""
        own = str(subject.dataType().catalogString())
        if class_name(subject) == "CreateNamedStruct":  # whose parts have other names
            return self._compared_with(subject, op, [constant.value() for constant in constants])
        if any(str(constant.dataType().catalogString()) != own for constant in constants):
            return None
        return self._compared_with(subject, op, [constant.value() for constant in constants])

    def _compared_with(self, subject: Tree, op: str, values: Sequence[Any]) -> Predicate | None:
        """The same with values of the subject's type, as Catalyst keeps them."""
        if class_name(subject) == "CreateNamedStruct":
            return self._rows(subject, values) if op in ("=", "in") else None
        own = str(subject.dataType().catalogString())
        found = [literal_of(value, own) for value in values]
        literals = tuple(item for item in found if item is not None)
        if not literals or len(literals) < len(found):
            return None
        if (name := self._column(subject)) is not None:
            return Comparison(name[0], op, literals) if name[1] == own else None
        told = self._filled(subject, op, values) or solved(subject, op, values, self._column, self.zone)
        if (dated := part(subject, op, values, self._column, self.zone)) is not None:
            self._dated.append(dated)
        if op == "<>":  # of which rounded bounds of features say nothing
            return told
        feature = self.meanings.of(self._meaning(subject), "expression")
        wide = feature is not None and feature.type == "double" and own.startswith("decimal")
        if feature is None or (feature.type != own and not wide):
            return told
        compared = Comparison(self.meanings.columns[feature], rounded(op, feature.type), literals)
        return compared if told is None else And((told, compared))

    def _filled(self, subject: Tree, op: str, values: Sequence[Any]) -> Predicate | None:
        """``coalesce(a, 0) > 5``: of the column itself, and of its nulls unless the constant cannot satisfy that."""
        if class_name(subject) != "Coalesce":
            return None
        first, *others = items(subject.children())
        name = self._column(first.child() if class_name(first) == "Cast" else first)
        own = str(subject.dataType().catalogString())
        literals = [literal_of(value, own) for value in values]
        kept = name is not None and (name[1] == own or ValueType(name[1]).widens_to(ValueType(own)))
        if name is None or not kept or None in literals or class_name(others[0]) != "Literal":
            return None
        found = Comparison(name[0], op, tuple(item for item in literals if item is not None), solved=True)
        if _never(literal_of(others[0].value(), own), op, literals):
            return found
        return Or((found, Comparison(name[0], "is_null", solved=True)))

    def _column(self, tree: Tree) -> tuple[str, str] | None:
        """Name and type of the table's column, or of the field of one, that an expression is."""
        path: list[str] = []
        while class_name(tree) == "GetStructField":
            fields = tree.child().dataType().fields()
            path.insert(0, str(fields[tree.ordinal()].name()))
            tree = tree.child()
        own = self._own.get(tree.exprId().id()) if class_name(tree) == "AttributeReference" else None
        return None if own is None else self.names.get((own, *path))


def _never(filling: Literal | None, op: str, literals: Sequence[Literal | None]) -> bool:
    """Whether a constant is told to satisfy no comparison with others of its type."""
    if filling is None or op not in _HOLDS:
        return False
    if filling.kind != "number":
        return filling in literals if op == "<>" else op in ("=", "in") and filling not in literals
    own, others = Fraction(filling.text), [Fraction(item.text) for item in literals if item is not None]
    return not any(_HOLDS[op](own, other) for other in others)
