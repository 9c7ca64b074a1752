"""What conditions say of the columns that a table is partitioned by and that are generated from others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from zorder_pipeline.java import class_name, items, java_class, scala_object, sequence
from zorder_pipeline.model.predicate import And, Opaque, Or, Predicate

from .meanings import Tree, all_of
from .relations import Scan, scans
from .unprepared import SKIPPING, unprepared

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

__all__ = ["derived_conditions", "is_partitioned_by_generated", "wholly_read"]

_EXPRESSION = "delta.generationExpression"
_CATALYST = "org.apache.spark.sql.catalyst"


def is_partitioned_by_generated(columns: StructType, partition_columns: Sequence[str]) -> bool:
    """Whether Delta may know more of partitions than what is written of their columns."""
    return any(_EXPRESSION in (columns[name].metadata or {}) for name in partition_columns)


def derived_conditions(spark: SparkSession, snapshot: JavaObject, scan: Scan) -> list[Tree]:
    """The conditions that Delta's own selection of files adds to a scan's (``ts > …`` says ``CAST(ts AS DATE) >= …``).

    They may leave rows out where the writer's session had another time zone, so that they count where Delta itself asks
    them, and in no session that has turned them, or Delta's own selection, off.

    Args:
        snapshot: Delta's, of the version that is read.
    """
    generated = scala_object(spark, "org.apache.spark.sql.delta.GeneratedColumn")
    if str(spark.conf.get(SKIPPING, "true")).lower() == "false":
        return []
    if not generated.partitionFilterOptimizationEnabled(spark._jsparkSession):
        return []
    asked = [part for tree in scan.conditions for part in all_of(tree)]
    told = generated.generatePartitionFilters(spark._jsparkSession, snapshot, sequence(spark, asked), scan.node)
    plan = scan.node
    for tree in items(told):
        plan = java_class(spark, f"{_CATALYST}.plans.logical.Filter")(tree, plan)
    if class_name(plan) != "Filter":
        return []
    folded = scans(unprepared(spark).sessionState().optimizer().execute(plan))  # casts of constants are still casts
    return [part for one in folded for tree in one.conditions for part in all_of(tree)]


def wholly_read(predicate: Predicate) -> bool:
    """Whether a predicate is understood in all of its parts."""
    match predicate:
        case And(children) | Or(children):
            return all(map(wholly_read, children))
    return not isinstance(predicate, Opaque)
