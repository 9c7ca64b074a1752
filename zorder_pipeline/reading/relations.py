"""Delta tables in Spark's plans: which conditions each scan of one has, and plans that read fewer files of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zorder_pipeline.java import class_name, items, java_class, scala_object, sequence

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Relation", "Scan", "analysed", "numbers", "optimized", "pinned", "reading", "relations", "scans"]
__all__ += ["table_of"]

_UNSURE = ("Sample", "MapInPandas", "MapInArrow", "PythonMapInArrow")
"""Whose rows depend on how the rows before lie in files."""
_ASKING = {"Filter": 0, "Project": 0, "Aggregate": 1}
"""Nodes whose subqueries are replaced, and the place of the expressions that hold these."""
_SUBQUERIES = ("ScalarSubquery", "Exists", "ListQuery")


@dataclass(frozen=True)
class Relation:
    """A Delta table in an analysed plan.

    Attributes:
        number: what its scans in the optimized plan are known by.
        location, version: of the table.
        node: the relation.
        replaceable: whether it reads the whole table, and nothing of its files but their columns.
    """

    number: int
    location: str
    version: int
    node: JavaObject
    replaceable: bool


@dataclass(frozen=True)
class Scan:
    """A relation in an optimized plan, and what its rows have to satisfy.

    Attributes:
        number: of the `Relation`, or another: the optimizer copies what is read twice.
    """

    number: int
    node: JavaObject
    conditions: tuple[JavaObject, ...]


def analysed(rows: DataFrame) -> JavaObject | None:
    """The plan of a query, asked at this moment, if its result does not depend on how rows lie in files; else None."""
    plan = _at_this_moment(rows.sparkSession, rows._jdf.queryExecution().analyzed())
    plans = _with_subqueries(plan) if plan is not None else []
    if any(bool(one.isStreaming()) or not bool(one.deterministic()) for one in plans):
        return None
    return None if any(class_name(node) in _UNSURE for one in plans for node in _nodes(one)) else plan


def _at_this_moment(spark: SparkSession, plan: JavaObject) -> JavaObject | None:
    """A plan with its clock stopped: files are chosen now, rows later. None where it asks for more than the clock.

    Spark looks at the clock when it optimizes a plan, which it does again for each action.
    """
    rules = "org.apache.spark.sql.catalyst.optimizer"
    asking = scala_object(spark, "org.apache.spark.sql.catalyst.trees.TreePattern").CURRENT_LIKE()
    if plan.containsPattern(asking):
        plan = scala_object(spark, f"{rules}.ComputeCurrentTime").apply(plan)
        if plan.containsPattern(asking):  # the current schema
            return None
    special = scala_object(spark, f"{rules}.SpecialDatetimeValues")  # CAST('now' AS TIMESTAMP)
    if any(not special.apply(one).fastEquals(one) for one in items(plan.subqueriesAll())):
        return None
    return special.apply(plan)


def _nodes(plan: JavaObject) -> Iterator[JavaObject]:
    yield plan
    for child in items(plan.children()):
        yield from _nodes(child)


def _with_subqueries(plan: JavaObject) -> list[JavaObject]:
    return [plan, *items(plan.subqueriesAll())]


def _number(node: JavaObject) -> int | None:
    """What a relation is known by; None of other nodes."""
    output = items(node.output()) if class_name(node) == "LogicalRelation" else ()
    return int(output[0].exprId().id()) if output else None


def _numbered(plan: JavaObject) -> Iterator[tuple[int, JavaObject]]:
    """The relations of a plan and its subqueries, by their numbers."""
    for one in _with_subqueries(plan):
        for node in items(one.collectLeaves()):
            if (number := _number(node)) is not None:
                yield number, node


def relations(plan: JavaObject) -> list[Relation]:
    """The Delta tables that an analysed plan and its subqueries read."""
    found = []
    for number, node in _numbered(plan):
        if (table := table_of(node)) is not None:
            plain = node.output().size() == node.relation().schema().size()  # no columns of metadata
            found.append(Relation(number, *table, node, plain))
    return found


def table_of(node: JavaObject) -> tuple[str, int] | None:
    """Location and version of a relation that is a whole Delta table."""
    index = node.relation().location() if _is_of_files(node.relation()) else None
    if index is None or class_name(index) != "TahoeLogFileIndex" or index.partitionFilters().nonEmpty():
        return None
    place = str(index.deltaLog().dataPath().toString())
    return (place, int(index.snapshotAtAnalysis().version())) if str(index.path().toString()) == place else None


def _is_of_files(relation: JavaObject) -> bool:
    """Whether it is a HadoopFsRelation; Delta's own is a nameless class derived from it."""
    found = relation.getClass()
    return "HadoopFsRelation" in (str(found.getSimpleName()), str(found.getSuperclass().getSimpleName()))


def numbers(plan: JavaObject) -> set[int]:
    """Numbers of all relations in a plan and its subqueries, those of files of other kinds too."""
    return {number for number, _ in _numbered(plan)}


def optimized(spark: SparkSession, plan: JavaObject) -> JavaObject:
    """An analysed plan as Spark's optimizer leaves it."""
    return _frame(spark, plan).queryExecution().optimizedPlan()


def _frame(spark: SparkSession, plan: JavaObject) -> JavaObject:
    return java_class(spark, "org.apache.spark.sql.classic.Dataset").ofRows(spark._jsparkSession, plan)


def scans(plan: JavaObject) -> list[Scan]:
    """The scans of an optimized plan and its subqueries."""
    found: list[Scan] = []
    for one in _with_subqueries(plan):
        _visit(one, (), found)
    return found


def _visit(node: JavaObject, conditions: tuple[JavaObject, ...], found: list[Scan]) -> None:
    """Collect scans; ``conditions`` stand right above ``node``."""
    if class_name(node) == "Filter":
        _visit(node.child(), (*conditions, node.condition()), found)
        return
    if (number := _number(node)) is not None:
        found.append(Scan(number, node, conditions))
    for child in items(node.children()):
        _visit(child, (), found)


def reading(spark: SparkSession, plan: JavaObject, replaced: Mapping[int, tuple[JavaObject, JavaObject]]) -> DataFrame:
    """The query of an analysed plan with other file indexes for some of its relations.

    Args:
        replaced: the relation's node and its new file index, by the relation's number.
    """
    from pyspark.sql import DataFrame

    new = {number: _with_index(spark, node, index) for number, (node, index) in replaced.items()}
    return DataFrame(_frame(spark, _rebuilt(spark, plan, new) or plan), spark)


def pinned(node: JavaObject, snapshot: JavaObject) -> JavaObject:
    """The file index of a relation that is to stay at its version, as those of time travel do."""
    index = node.relation().location()
    names = (str(index.productElementName(i)) for i in range(index.productArity()))
    parts = dict(zip(names, _elements(index), strict=True))
    return index.copy(*(parts | {"snapshotAtAnalysis": snapshot, "isTimeTravelQuery": True}).values())


def _elements(node: JavaObject) -> list[JavaObject]:
    """What an object of a case class is made of."""
    return [node.productElement(i) for i in range(node.productArity())]


def _rebuilt(spark: SparkSession, node: JavaObject, new: Mapping[int, JavaObject]) -> JavaObject | None:
    """A plan with new relations by their numbers; None when there are none in it."""
    if (number := _number(node)) is not None:
        return new.get(number)
    found = _with_children(spark, node, [_rebuilt(spark, child, new) for child in items(node.children())])
    place = _ASKING.get(class_name(node)) if node.subqueries().nonEmpty() else None
    if place is None:
        return found
    parts = _elements(found or node)
    many = class_name(node) != "Filter"
    asked = items(parts[place]) if many else [parts[place]]
    changed = [_asking(spark, expression, new) for expression in asked]
    if all(one is None for one in changed):
        return found
    kept = [one or old for one, old in zip(changed, asked, strict=True)]
    parts[place] = sequence(spark, kept) if many else kept[0]
    again = node.copy(*parts)
    again.copyTagsFrom(node)
    return again


def _asking(spark: SparkSession, tree: JavaObject, new: Mapping[int, JavaObject]) -> JavaObject | None:
    """An expression with new relations in its subqueries; None when there are none in it."""
    found = _with_children(spark, tree, [_asking(spark, child, new) for child in items(tree.children())])
    if class_name(tree) not in _SUBQUERIES or (plan := _rebuilt(spark, tree.plan(), new)) is None:
        return found
    return (found or tree).withNewPlan(plan)


def _with_children(spark: SparkSession, node: JavaObject, changed: list[JavaObject | None]) -> JavaObject | None:
    """A plan or an expression with other children where there are any; None when there are none."""
    if all(child is None for child in changed):
        return None
    kept = [one or old for one, old in zip(changed, items(node.children()), strict=True)]
    return node.withNewChildren(sequence(spark, kept))


def _with_index(spark: SparkSession, node: JavaObject, index: JavaObject) -> JavaObject:
    """The relation, reading the files of another index."""
    old = node.relation()
    parts = (old.partitionSchema(), old.dataSchema(), old.bucketSpec(), old.fileFormat(), old.options())
    relation = old.copy(index, *parts, spark._jsparkSession)
    return node.copy(relation, *_elements(node)[1:])
