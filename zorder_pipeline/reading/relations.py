"""Delta tables in Spark's plans: which conditions each scan of one has, and plans that read fewer files of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .catalyst import items, kind_of

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Relation", "Scan", "analysed", "numbers", "optimized", "reading", "relations", "scans"]

_UNSURE = ("Sample", "MapInPandas", "MapInArrow", "PythonMapInArrow")
"""Whose rows depend on how the rows before lie in files."""


@dataclass(frozen=True)
class Relation:
    """A whole Delta table in an analysed plan.

    Attributes:
        number: what its scans in the optimized plan are known by.
        location, version: of the table.
        node: the relation.
    """

    number: int
    location: str
    version: int
    node: JavaObject


@dataclass(frozen=True)
class Scan:
    """A relation in an optimized plan, and what its rows have to satisfy."""

    number: int
    output: JavaObject
    conditions: tuple[JavaObject, ...]


def analysed(rows: DataFrame) -> JavaObject | None:
    """The plan of a query, if its result does not depend on how rows lie in files; else None."""
    plan = rows._jdf.queryExecution().analyzed()
    plans = [plan, *items(plan.subqueriesAll())]
    if any(bool(one.isStreaming()) or not bool(one.deterministic()) for one in plans):
        return None
    return None if any(kind_of(node) in _UNSURE for one in plans for node in _nodes(one)) else plan


def _nodes(plan: JavaObject) -> Iterator[JavaObject]:
    yield plan
    for child in items(plan.children()):
        yield from _nodes(child)


def _number(node: JavaObject) -> int | None:
    output = items(node.output())
    return int(output[0].exprId().id()) if output else None


def relations(plan: JavaObject) -> list[Relation]:
    """The Delta tables that an analysed plan reads as a whole, outside of its subqueries too."""
    found = []
    for one in [plan, *items(plan.subqueriesAll())]:
        for node in items(one.collectLeaves()):
            if kind_of(node) != "LogicalRelation" or (number := _number(node)) is None:
                continue
            relation = node.relation()
            index = relation.location() if _is_of_files(relation) else None
            if index is None or kind_of(index) != "TahoeLogFileIndex" or index.partitionFilters().nonEmpty():
                continue
            place = str(index.deltaLog().dataPath().toString())
            plain = node.output().size() == relation.schema().size()  # no columns of metadata
            if plain and str(index.path().toString()) == place:
                found.append(Relation(number, place, int(index.snapshotAtAnalysis().version()), node))
    return found


def _is_of_files(relation: JavaObject) -> bool:
    """Whether it is a HadoopFsRelation; Delta's own is a nameless class derived from it."""
    found = relation.getClass()
    return "HadoopFsRelation" in (str(found.getSimpleName()), str(found.getSuperclass().getSimpleName()))


def numbers(plan: JavaObject) -> set[int]:
    """Numbers of all relations in a plan and its subqueries."""
    leaves = [node for one in [plan, *items(plan.subqueriesAll())] for node in items(one.collectLeaves())]
    found = (_number(node) for node in leaves if kind_of(node) == "LogicalRelation")
    return {number for number in found if number is not None}


def optimized(spark: SparkSession, plan: JavaObject) -> JavaObject:
    """An analysed plan as Spark's optimizer leaves it."""
    return _frame(spark, plan).queryExecution().optimizedPlan()


def _frame(spark: SparkSession, plan: JavaObject) -> JavaObject:
    dataset = spark._jvm.org.apache.spark.sql.classic.Dataset  # type: ignore[union-attr]
    return dataset.ofRows(spark._jsparkSession, plan)


def scans(plan: JavaObject) -> list[Scan]:
    """The scans of an optimized plan and its subqueries."""
    found: list[Scan] = []
    for one in [plan, *items(plan.subqueriesAll())]:
        _visit(one, (), found)
    return found


def _visit(node: JavaObject, conditions: tuple[JavaObject, ...], found: list[Scan]) -> None:
    """Collect scans; ``conditions`` stand right above ``node``."""
    if kind_of(node) == "Filter":
        _visit(node.child(), (*conditions, node.condition()), found)
        return
    children = items(node.children())
    if not children and kind_of(node) == "LogicalRelation" and (number := _number(node)) is not None:
        found.append(Scan(number, node.output(), conditions))
    for child in children:
        _visit(child, (), found)


def reading(spark: SparkSession, plan: JavaObject, replaced: Mapping[int, tuple[JavaObject, JavaObject]]) -> DataFrame:
    """The query of an analysed plan with other file indexes for some of its relations.

    Args:
        replaced: the relation's node and its new file index, by the relation's number. Those in subqueries stay.
    """
    from pyspark.sql import DataFrame

    java = spark._jvm
    new = {number: _with_index(spark, node, index) for number, (node, index) in replaced.items()}

    def rebuilt(node: JavaObject) -> JavaObject | None:
        children = items(node.children())
        if not children:
            number = _number(node) if kind_of(node) == "LogicalRelation" else None
            return new.get(number) if number is not None else None
        changed = [rebuilt(child) for child in children]
        if all(child is None for child in changed):
            return None
        kept = [new_one or old for new_one, old in zip(changed, children, strict=True)]
        return node.withNewChildren(java.PythonUtils.toSeq(kept))  # type: ignore[union-attr]

    found = rebuilt(plan)
    return DataFrame(_frame(spark, plan if found is None else found), spark)


def _with_index(spark: SparkSession, node: JavaObject, index: JavaObject) -> JavaObject:
    """The relation, reading the files of another index."""
    old = node.relation()
    parts = (old.partitionSchema(), old.dataSchema(), old.bucketSpec(), old.fileFormat(), old.options())
    relation = old.copy(index, *parts, spark._jsparkSession)
    rest = [node.productElement(i) for i in range(1, node.productArity())]
    return node.copy(relation, *rest)
