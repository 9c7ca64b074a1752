"""Statements as DataFrames where nothing may be executed: of a command ``spark.sql`` makes none before it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zorder_pipeline.java import activate, class_name, is_a, jvm, scala_object

from .relations import LeftAsItIs, frame_of, refuse_command

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["query_of", "refuse_what_analysis_executes"]

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"


def query_of(spark: SparkSession, statement: str) -> DataFrame:
    """The DataFrame that ``spark.sql`` makes of a query.

    Raises:
        LeftAsItIs: it is no query.
        PySparkException: Spark does not understand it.
        UnsupportedTableError: a session of Spark Connect, in which nobody knows before what would be executed.
    """
    from pyspark.sql import DataFrame

    jvm(spark)
    parsed = refuse_what_analysis_executes(spark, statement)
    skip = scala_object(spark, "org.apache.spark.sql.execution.CommandExecutionMode").SKIP()
    plan = spark._jsparkSession.sessionState().executePlan(parsed, skip).analyzed()
    refuse_command(spark, plan)
    return DataFrame(frame_of(spark, plan), spark)


def refuse_what_analysis_executes(spark: SparkSession, statement: str) -> JavaObject:
    """A statement parsed, if to analyse it is not to execute it.

    Raises:
        LeftAsItIs: it is one of these: what it reads nobody knows before.
        PySparkException: Spark cannot parse it.
    """
    activate(spark)  # whose settings the parser asks for
    parsed = spark._jsparkSession.sessionState().sqlParser().parsePlan(statement)
    name = class_name(parsed)
    if name == "CompoundBody":
        raise LeftAsItIs("it is a script")
    if "ExecuteImmediate" in name:
        raise LeftAsItIs("it is an EXECUTE IMMEDIATE, whose statement is known when it is executed")
    if is_a(spark, parsed, f"{_LOGICAL}.ExecutableDuringAnalysis"):
        raise LeftAsItIs("it is the call of a procedure")
    return parsed
