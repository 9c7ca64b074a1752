"""A Spark session's JVM: classes and objects by their whole names, collections without a call for each step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zorder_pipeline.errors import UnsupportedTableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["has_jvm", "items", "java_class", "jvm", "nothing", "scala_object", "sequence"]


def has_jvm(spark: SparkSession) -> bool:
    """Whether it is a classic session, and none of Spark Connect."""
    return getattr(spark, "_jvm", None) is not None


def jvm(spark: SparkSession) -> Any:
    """The session's JVM.

    Raises:
        UnsupportedTableError: a Spark Connect session, which has none.
    """
    if not has_jvm(spark):
        raise UnsupportedTableError(
            "this Spark session has no JVM (Spark Connect), which this step needs: use a classic session, e.g. "
            "spark.master: local[*] or the cluster's own master URL, or committer: public for a relayout"
        )
    return spark._jvm


def java_class(spark: SparkSession, name: str) -> Any:
    """A class of the session's JVM by its whole name: one call, where word after word the JVM looks for each."""
    return getattr(jvm(spark), name)


def scala_object(spark: SparkSession, name: str) -> Any:
    """A Scala object of the session's JVM by its whole name."""
    return getattr(java_class(spark, f"{name}$"), "MODULE$")


def nothing(spark: SparkSession) -> Any:
    """Scala's None."""
    return java_class(spark, "scala.Option").empty()


def sequence(spark: SparkSession, found: Any) -> Any:
    """A Scala sequence of what a list holds, of Python's or of Java's."""
    return jvm(spark).PythonUtils.toSeq(found)


def items(found: Any) -> list[Any]:
    """The elements of a Scala sequence: iterating in Java's way ends in an exception, dear to carry to Python.

    Of other collections ask for ``found.toSeq()``.
    """
    return [found.apply(i) for i in range(found.size())]
