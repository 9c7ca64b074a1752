"""A Spark session's JVM: classes and objects by their whole names, collections without a call for each step.

Also what it fails with, in one line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from zorder_pipeline.errors import UnsupportedTableError

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

__all__ = [
    "activate",
    "beside",
    "carried",
    "cause",
    "class_name",
    "first_line",
    "has_jvm",
    "is_a",
    "is_gone",
    "items",
    "java_class",
    "jvm",
    "nothing",
    "of_spark",
    "reason_in",
    "reason_of",
    "scala_object",
    "sequence",
]

Given = ParamSpec("Given")
Found = TypeVar("Found")

CALLING = "An error occurred while calling "
"""How py4j begins to tell a Java exception: what it says itself comes on the lines after that."""
RAISED = re.compile(r"^(?:: |Caused by: )(?:[\w$]+\.)+(?P<name>[\w$]+)(?:: (?P<said>.*\S))?", re.MULTILINE)
WORKER = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(?P<said>\S.*)", re.MULTILINE)
"""How Spark tells what a Python worker raised."""

_namer: tuple[Any, Any] = (None, None)
"""A connection to a JVM, and what tells class names there: to look that up is a call of its own."""


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


def class_name(found: JavaObject) -> str:
    """The simple name of an object's class, in one call: asked for its class, the JVM would hand out another object."""
    from py4j.java_gateway import JavaClass

    global _namer
    client, told = _namer
    if client is not found._gateway_client:
        client = found._gateway_client
        told = JavaClass("org.apache.commons.lang3.ClassUtils", client).getSimpleName
        _namer = (client, told)
    return str(told(found))


def is_a(spark: SparkSession, found: Any, name: str) -> bool:
    """Whether something is a Java object of a class, or an interface, by its whole name."""
    from py4j.java_gateway import JavaObject, is_instance_of

    return isinstance(found, JavaObject) and bool(is_instance_of(spark.sparkContext._gateway, found, name))


def scala_object(spark: SparkSession, name: str) -> Any:
    """A Scala object of the session's JVM by its whole name."""
    return getattr(java_class(spark, f"{name}$"), "MODULE$")


def nothing(spark: SparkSession) -> Any:
    """Scala's None."""
    return java_class(spark, "scala.Option").empty()


def sequence(spark: SparkSession, found: Any) -> Any:
    """A Scala sequence of what a list holds, of Python's or of Java's."""
    return jvm(spark).PythonUtils.toSeq(carried(spark, found))


def carried(spark: SparkSession, found: Any) -> Any:
    """A list of texts, such as a table's files, as Java's: one by one, each would be a call; anything else as it is."""
    if not isinstance(found, list) or len(found) < 2:
        return found
    if any(not isinstance(each, str) or "\n" in each or "\r" in each for each in found):
        return found
    text = java_class(spark, "java.io.StringReader")("".join(f"{each}\n" for each in found))
    return java_class(spark, "org.apache.commons.io.IOUtils").readLines(text)


def activate(spark: SparkSession) -> None:
    """Make this the session that Delta finds when it asks its own thread for one: a new thread has none."""
    java_class(spark, "org.apache.spark.sql.classic.SparkSession").setActiveSession(spark._jsparkSession)


def beside(spark: SparkSession, call: Callable[Given, Found]) -> Callable[Given, Found]:
    """A function to be called in another thread, where the session is then the active one, with its job group."""
    from pyspark.util import inheritable_thread_target

    def called(*args: Given.args, **kwargs: Given.kwargs) -> Found:
        if has_jvm(spark):
            activate(spark)
        return call(*args, **kwargs)

    found: Callable[Given, Found] = inheritable_thread_target(spark)(called)
    return found


def items(found: Any) -> list[Any]:
    """The elements of a Scala sequence: iterating in Java's way ends in an exception, dear to carry to Python.

    Of other collections ask for ``found.toSeq()``.
    """
    return [found.apply(i) for i in range(found.size())]


def cause(error: JavaObject) -> str:
    """What a Java exception says at its root."""
    while (deeper := error.getCause()) is not None:
        error = deeper
    return first_line(str(error.getMessage() or error.getClass().getName()))


def first_line(text: str, most: int = 300) -> str:
    """The first line of a message, at most so many characters of it."""
    return (text.strip().splitlines() or ["no message"])[0][:most]


def reason_in(text: str, most: int = 300) -> str:
    """What the message of a failure of Spark's says in one line: of a Java exception the root cause, not the call.

    >>> reason_in("An error occurred while calling o55.collect.\\n: a.b.IOError: No space left\\n\\tat a.b(C:1)")
    'No space left'
    """
    if CALLING in text.partition("\n")[0] and (raised := list(RAISED.finditer(text))):
        return first_line(raised[-1]["said"] or raised[-1]["name"], most)
    told = list(WORKER.finditer(text))
    return first_line(told[-1]["said"] if told else text, most)


def of_spark(error: BaseException) -> bool:
    """Whether Spark failed, or is gone."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return isinstance(error, Py4JError | PySparkException) or is_gone(error)


def is_gone(error: BaseException) -> bool:
    """Whether Spark's Java process ended: the call at that moment gets no answer, and later ones no connection."""
    from py4j.protocol import Py4JNetworkError

    return isinstance(error, Py4JNetworkError | ConnectionRefusedError)


def reason_of(error: BaseException, most: int = 300) -> str:
    """What a failure of Spark's says in one line.

    Args:
        most: characters, at most.
    """
    from py4j.protocol import Py4JError, Py4JJavaError

    if isinstance(error, Py4JJavaError):
        try:
            return cause(error.java_exception)[:most]
        except Py4JError:  # Java is gone, and with it what it said
            return first_line(str(error.errmsg), most)
    return reason_in(str(error), most)
