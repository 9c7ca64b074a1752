"""What features mean to a session: Spark's own trees of them, by which they are found again in its plans."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from zorder_pipeline.java import class_name, items, java_class
from zorder_pipeline.model.file_stats import Feature

from .unprepared import unprepared

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame

__all__ = ["Meaning", "Meanings", "Tree", "all_of"]

Tree: TypeAlias = "JavaObject"
"""An expression of Catalyst, Spark's optimizer."""


class Meaning(NamedTuple):
    """An expression over a relation.

    Attributes:
        tree: as it stands in a plan.
        normal: in a form that is equal for all of the same meaning.
        attributes: the relation's output, as `Meanings.attributes` gives it.
    """

    tree: Tree
    normal: Tree
    attributes: JavaObject


def all_of(tree: Tree) -> list[Tree]:
    """The conditions that a conjunction is made of."""
    if class_name(tree) != "And":
        return [tree]
    return [part for child in items(tree.children()) for part in all_of(child)]


class Meanings:
    """What features mean to a session, so that they are found again in its plans, however they are spelled there.

    Args:
        rows: the table, as Spark reads it.
        columns: the column that stands for each feature, as from `zorder_pipeline.model.file_stats.widened`.
    """

    def __init__(self, rows: DataFrame, columns: Mapping[Feature, str]) -> None:
        self.columns = columns
        self.spark = rows.sparkSession
        self._single: dict[int, list[tuple[Meaning, Tree | None, Feature]]] = defaultdict(list)
        self._joint: list[tuple[list[tuple[Meaning, Tree | None]], Feature]] = []
        self._asked = [feature for feature in columns if feature.kind != "column"]
        for feature, tree, output in self._optimized(rows, self._asked):
            parts, attributes = all_of(tree), self.attributes(output)
            if len(parts) > 1:
                self._joint.append(([self._own(part, attributes) for part in parts], feature))
            self._keep(tree, attributes, feature)
            if feature.type == "double" and class_name(tree) == "Cast":  # of a wide decimal the nearest double is kept
                self._keep(tree.child(), attributes, feature)

    def _keep(self, tree: Tree, attributes: JavaObject, feature: Feature) -> None:
        own = self._own(tree, attributes)
        self._single[own[0].normal.hashCode()].append((*own, feature))

    def _own(self, tree: Tree, attributes: JavaObject) -> tuple[Meaning, Tree | None]:
        """A feature's meaning, with its very tree where the order of operands counts."""
        meaning = self.meaning(tree, attributes)
        return meaning, self._bound(meaning) if _is_ordered(tree) else None

    def _optimized(self, rows: DataFrame, features: Sequence[Feature]) -> Iterator[tuple[Feature, Tree, JavaObject]]:
        """The features that the table knows as Spark's optimizer leaves them, and the output of the table."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException
        from pyspark.sql import functions as F

        if not features:
            return
        plan, optimizer = None, unprepared(rows.sparkSession).sessionState().optimizer()
        try:
            asked = [F.expr(feature.sql).alias(f"f{i}") for i, feature in enumerate(features)]
            plan = rows.select(*asked)._jdf.queryExecution().analyzed()
            # not by a query's execution: that would read what somebody has cached
            plan = optimizer.execute(plan.clone())
        except (PySparkException, Py4JJavaError):
            pass
        if plan is not None and class_name(plan) == "Project" and class_name(plan.child()) == "LogicalRelation":
            for feature, named in zip(features, items(plan.projectList()), strict=True):
                yield feature, named.child(), plan.child().output()
        elif len(features) > 1:  # one of them is unknown here, or takes more than one projection
            half = len(features) // 2
            yield from self._optimized(rows, features[:half])
            yield from self._optimized(rows, features[half:])

    @cached_property
    def _sequence(self) -> Any:
        return java_class(self.spark, "org.apache.spark.sql.catalyst.expressions.package$AttributeSeq")

    @cached_property
    def _binding(self) -> Any:
        return java_class(self.spark, "org.apache.spark.sql.catalyst.expressions.BindReferences")

    @cached_property
    def _normalized(self) -> Any:
        return java_class(self.spark, "org.apache.spark.sql.catalyst.plans.QueryPlan").normalizeExpressions

    def attributes(self, output: JavaObject) -> JavaObject:
        """A relation's output as `meaning` asks for it."""
        return self._sequence(output) if self._asked else output

    def meaning(self, tree: Tree, attributes: JavaObject) -> Meaning:
        """The meaning of an expression over a relation's attributes."""
        return Meaning(tree, self._normalized(tree, attributes) if self._asked else tree, attributes)

    def _bound(self, meaning: Meaning) -> Tree:
        """The tree as it stands, with the places of columns for their numbers, which are others in each plan."""
        return self._binding.bindReference(meaning.tree, meaning.attributes, True)

    def of(self, meaning: Meaning, kind: str) -> Feature | None:
        """The feature that an expression is."""
        if self._single:
            for own, bound, feature in self._single.get(meaning.normal.hashCode(), ()):
                if feature.kind == kind and self._same(own, bound, meaning):
                    return feature
        return None

    def within(self, parts: Sequence[Meaning]) -> Iterable[Feature]:
        """Predicates all of whose conditions are among ``parts``."""
        for own, feature in self._joint:
            if feature.kind == "predicate" and all(any(self._same(*one, part) for part in parts) for one in own):
                yield feature

    def _same(self, own: Meaning, bound: Tree | None, other: Meaning) -> bool:
        return bool(own.normal.equals(other.normal)) and (bound is None or bool(bound.equals(self._bound(other))))


def _is_ordered(tree: Tree) -> bool:
    """Whether the order of operands counts somewhere in an expression, which its normal form is without.

    It takes ``x + (y + z)`` for ``x + y + z``, which is rounded otherwise, and ``greatest(x, y)`` for
    ``greatest(y, x)``, which is the first of 0.0 and -0.0.
    """
    children, name = items(tree.children()), class_name(tree)
    if name in ("Greatest", "Least") or (name in ("Add", "Multiply") and name in map(class_name, children)):
        return True
    return any(_is_ordered(child) for child in children)
