"""Delta tables in Spark's plans, and which conditions each scan of one has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zorder_pipeline.java import class_name, items, java_class, scala_object

from .unprepared import unprepared

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["LeftAsItIs", "Relation", "Scan", "Table", "analysed", "as_analysed", "frame_of", "number_of", "numbers"]
__all__ += ["optimized", "refuse_command", "relations", "scans", "table_of"]

_UNSURE = (
    *("Sample", "MapInPandas", "MapInArrow", "PythonMapInArrow", "MapPartitions", "MapPartitionsInR"),
    *("MapPartitionsInRWithArrow", "ScriptTransformation"),
)
"""Whose rows depend on how the rows before lie in files: what sees all rows of a task, whatever it makes of them."""
_found: tuple[Any, Any] = (None, None)
"""A JVM, and its rules: each takes two calls to look up."""


class LeftAsItIs(Exception):  # noqa: N818 - nothing is wrong with such a query
    """A query whose files are Spark's own business; the text says why."""


@dataclass(frozen=True)
class Table:
    """A Delta table as a relation knows it.

    Attributes:
        location: of the table.
        version: that it had when the relation was analysed.
        stays: whether that version is read, as in time travel, and not the newest one.
    """

    location: str
    version: int
    stays: bool


@dataclass(frozen=True)
class Relation:
    """A Delta table in an analysed plan.

    Attributes:
        number: what its scans in the optimized plan are known by.
        table: the table.
        node: the relation.
        otherwise: what it reads that is not the whole table, or not only the columns of its files; None if nothing.
    """

    number: int
    table: Table
    node: JavaObject
    otherwise: str | None

    @property
    def replaceable(self) -> bool:
        """Whether other files can stand behind it."""
        return self.otherwise is None

    def fits(self, snapshot: JavaObject) -> bool:
        """Whether the relation, as it was analysed, reads a version of its table just as one made for that would."""
        then = self.node.relation().location().snapshotAtAnalysis()
        return all(
            bool(old.equals(new))
            for old, new in ((then.metadata(), snapshot.metadata()), (then.protocol(), snapshot.protocol()))
        )


@dataclass(frozen=True)
class Scan:
    """A relation in an optimized plan, and what its rows have to satisfy.

    Attributes:
        number: of the `Relation`, or another: the optimizer copies what is read twice.
    """

    number: int
    node: JavaObject
    conditions: tuple[JavaObject, ...]


def analysed(rows: DataFrame) -> JavaObject:
    """The plan of a query, asked at this moment.

    Raises:
        LeftAsItIs: it is no query, or its result depends on how rows lie in files.
    """
    plan = _at_this_moment(rows.sparkSession, as_analysed(rows))
    plans = _with_subqueries(plan)
    if any(bool(one.isStreaming()) for one in plans):
        raise LeftAsItIs("it is a stream")
    if not all(bool(one.deterministic()) for one in plans):
        raise LeftAsItIs("Spark calls its result non-deterministic, as that of samples, rand() and their like")
    if unsure := [name for one in plans for node in _nodes(one) if (name := class_name(node)) in _UNSURE]:
        raise LeftAsItIs(f"its result depends on how rows lie in files ({unsure[0]})")
    return plan


def as_analysed(rows: DataFrame) -> JavaObject:
    """The plan of a query as Spark analysed it."""
    return rows._jdf.queryExecution().analyzed()


def _at_this_moment(spark: SparkSession, plan: JavaObject) -> JavaObject:
    """A plan with its clock stopped: files are chosen now, rows later.

    Spark looks at the clock when it optimizes a plan, which it does again for each action.

    Raises:
        LeftAsItIs: it is a command, or asks for more than the clock.
    """
    refuse_command(spark, plan)
    _, asking, clock, special = _rules(spark)
    if plan.containsPattern(asking):
        plan = clock.apply(plan)
        if plan.containsPattern(asking):
            raise LeftAsItIs("it asks for the current user, catalog or schema")
    if any(not special.apply(one).fastEquals(one) for one in items(plan.subqueriesAll())):
        raise LeftAsItIs("a subquery of it casts 'now', 'today' or their like")
    return special.apply(plan)


def refuse_command(spark: SparkSession, plan: JavaObject) -> None:
    """See that a DataFrame can be made of a plan: that of a command is made by executing it, once more.

    Raises:
        LeftAsItIs: it is a command.
    """
    if plan.containsPattern(_rules(spark)[0]):
        raise LeftAsItIs("it is no query but a command")


def _rules(spark: SparkSession) -> Any:
    """What commands have in common, and what asks for the clock; the rule that tells it, that for ``CAST('now' …)``."""
    global _found
    if _found[0] is not spark._jvm:
        catalyst = "org.apache.spark.sql.catalyst"
        patterns = scala_object(spark, f"{catalyst}.trees.TreePattern")
        names = ("ComputeCurrentTime", "SpecialDatetimeValues")
        clock, special = (scala_object(spark, f"{catalyst}.optimizer.{name}") for name in names)
        _found = spark._jvm, (patterns.COMMAND(), patterns.CURRENT_LIKE(), clock, special)
    return _found[1]


def _nodes(plan: JavaObject) -> Iterator[JavaObject]:
    yield plan
    for child in items(plan.children()):
        yield from _nodes(child)


def _with_subqueries(plan: JavaObject) -> list[JavaObject]:
    return [plan, *items(plan.subqueriesAll())]


def number_of(node: JavaObject) -> int | None:
    """What a relation is known by; None of other nodes."""
    output = items(node.output()) if class_name(node) == "LogicalRelation" else ()
    return int(output[0].exprId().id()) if output else None


def _numbered(plan: JavaObject) -> Iterator[tuple[int, JavaObject]]:
    """The relations of a plan and its subqueries, by their numbers."""
    for one in _with_subqueries(plan):
        for node in items(one.collectLeaves()):
            if (number := number_of(node)) is not None:
                yield number, node


def relations(plan: JavaObject) -> list[Relation]:
    """The Delta tables that an analysed plan and its subqueries read, each as often as it stands there."""
    found = []
    for number, node in _numbered(plan):
        if (table := table_of(node)) is not None:
            index = node.relation().location()
            whole = str(index.path().toString()) == table.location and not index.partitionFilters().nonEmpty()
            plain = node.output().size() == node.relation().schema().size()  # no columns of metadata
            otherwise = None if plain else "its query asks for _metadata of its files"
            found.append(Relation(number, table, node, otherwise if whole else "only a part of its folder is read"))
    return found


def table_of(node: JavaObject) -> Table | None:
    """The Delta table that a relation reads, or a part of."""
    index = node.relation().location() if _is_of_files(node.relation()) else None
    if index is None or class_name(index) != "TahoeLogFileIndex":
        return None
    location = str(index.deltaLog().dataPath().toString())
    return Table(location, int(index.snapshotAtAnalysis().version()), bool(index.isTimeTravelQuery()))


def _is_of_files(relation: JavaObject) -> bool:
    """Whether it is a HadoopFsRelation; Delta's own is a nameless class derived from it."""
    found = relation.getClass()
    return "HadoopFsRelation" in (str(found.getSimpleName()), str(found.getSuperclass().getSimpleName()))


def numbers(plan: JavaObject) -> set[int]:
    """Numbers of all relations in a plan and its subqueries, those of files of other kinds too."""
    return {number for number, _ in _numbered(plan)}


def optimized(spark: SparkSession, plan: JavaObject) -> JavaObject:
    """An analysed plan as Spark's optimizer leaves it in a session of `unprepared`."""
    return frame_of(spark, plan, unprepared(spark)).queryExecution().optimizedPlan()


def frame_of(spark: SparkSession, plan: JavaObject, session: JavaObject | None = None) -> JavaObject:
    """Spark's own Dataset of a plan, in a session of the JVM or else in this one."""
    return java_class(spark, "org.apache.spark.sql.classic.Dataset").ofRows(session or spark._jsparkSession, plan)


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
    if (number := number_of(node)) is not None:
        found.append(Scan(number, node, conditions))
    for child in items(node.children()):
        _visit(child, (), found)
