"""Analysed plans again, with other files behind their Delta tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from zorder_pipeline.java import class_name, is_a, items, java_class, sequence

from .relations import frame_of, number_of

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["pinned", "reading"]

_SUBQUERIES = ("ScalarSubquery", "Exists", "ListQuery", "LateralSubquery")


def reading(
    spark: SparkSession, plan: JavaObject, replaced: Mapping[int, tuple[JavaObject, JavaObject]], places: int
) -> DataFrame | None:
    """The query of an analysed plan with other file indexes for some of its relations; None if one is out of reach.

    Args:
        replaced: the relation's node and its new file index, by the relation's number.
        places: how often these stand in the plan.
    """
    from pyspark.sql import DataFrame

    new = {number: _with_index(spark, node, index) for number, (node, index) in replaced.items()}
    rebuilding = _Rebuilding(spark, new)
    found = rebuilding.plan(plan)
    return DataFrame(frame_of(spark, found or plan), spark) if rebuilding.reached == places else None


def pinned(node: JavaObject, snapshot: JavaObject) -> JavaObject:
    """The file index of a relation that is to stay at its version, as those of time travel do."""
    index = node.relation().location()
    names = (str(index.productElementName(i)) for i in range(index.productArity()))
    parts = dict(zip(names, _elements(index), strict=True))
    return index.copy(*(parts | {"snapshotAtAnalysis": snapshot, "isTimeTravelQuery": True}).values())


def _elements(node: JavaObject) -> list[JavaObject]:
    """What an object of a case class is made of."""
    return [node.productElement(i) for i in range(node.productArity())]


class _Rebuilding:
    """Plans and expressions with new relations in the place of some; each method returns None where there are none.

    Args:
        new: relations by their numbers.

    Attributes:
        reached: relations that were replaced.
    """

    def __init__(self, spark: SparkSession, new: Mapping[int, JavaObject]) -> None:
        self.spark, self.new, self.reached = spark, new, 0

    def plan(self, node: JavaObject) -> JavaObject | None:
        """A plan."""
        if (number := number_of(node)) is not None:
            self.reached += number in self.new
            return self.new.get(number)
        found = self._with_children(node, self.plan)
        if not node.subqueries().nonEmpty():
            return found
        parts = _elements(found or node)
        changed = [self._part(part) for part in parts]
        if all(one is None for one in changed):
            return found
        again = node.copy(*(old if one is None else one for one, old in zip(changed, parts, strict=True)))
        again.copyTagsFrom(node)
        return again

    def _part(self, part: Any) -> JavaObject | None:
        """What a node is made of besides its children: expressions, alone, in sequences or in options."""
        if is_a(self.spark, part, "org.apache.spark.sql.catalyst.expressions.Expression"):
            return self._expression(part)
        if is_a(self.spark, part, "scala.Some"):
            found = self._part(part.get())
            return None if found is None else java_class(self.spark, "scala.Option").apply(found)
        if not is_a(self.spark, part, "scala.collection.immutable.Seq"):
            return None
        old = items(part)
        changed = [self._part(one) for one in old]
        return None if all(one is None for one in changed) else sequence(self.spark, _kept(changed, old))

    def _expression(self, tree: JavaObject) -> JavaObject | None:
        found = self._with_children(tree, self._expression)
        if class_name(tree) not in _SUBQUERIES or (plan := self.plan(tree.plan())) is None:
            return found
        return (found or tree).withNewPlan(plan)

    def _with_children(self, node: JavaObject, rebuilt: Callable[[JavaObject], JavaObject | None]) -> JavaObject | None:
        old = items(node.children())
        changed = [rebuilt(child) for child in old]
        if all(child is None for child in changed):
            return None
        return node.withNewChildren(sequence(self.spark, _kept(changed, old)))


def _kept(changed: list[JavaObject | None], old: list[JavaObject]) -> list[JavaObject]:
    return [before if one is None else one for one, before in zip(changed, old, strict=True)]


def _with_index(spark: SparkSession, node: JavaObject, index: JavaObject) -> JavaObject:
    """The relation, reading the files of another index."""
    old = node.relation()
    parts = (old.partitionSchema(), old.dataSchema(), old.bucketSpec(), old.fileFormat(), old.options())
    relation = old.copy(index, *parts, spark._jsparkSession)
    return node.copy(relation, *_elements(node)[1:])
