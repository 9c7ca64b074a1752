"""What Spark and Delta fail with, as the project's own errors of one sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from zorder_pipeline.connectors import no_connector
from zorder_pipeline.errors import TableError, UnsupportedTableError
from zorder_pipeline.java import reason_of
from zorder_pipeline.state.delta_tables import is_path
from zorder_pipeline.state.session_conf import ZONE

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["answered", "cleaned_up", "not_opened", "of_constraints", "replaced_by_another", "told_plainly"]
__all__ += ["unwritable"]

BROKEN = ("SparkConnectGrpcException", "RetriesExceeded")
"""What Spark Connect raises, itself and not by a class of its own, when no answer of the server came."""


def answered(error: BaseException) -> bool:
    """Whether a failure is Spark's answer, so it has ended; a broken line or an interruption may leave it at work."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return isinstance(error, Py4JJavaError | PySparkException) and type(error).__name__ not in BROKEN


def replaced_by_another(location: str) -> str:
    """That a table was dropped and made anew, in words."""
    return f"{location} was replaced by another table during the relayout; nothing was committed, learn a plan for it"


def not_opened(table: str, error: Exception) -> TableError:
    """Why a session cannot open a table, with the way out."""
    from pyspark.errors import PySparkException

    said = reason_of(error).rstrip(".")
    if "DELTA_UNSUPPORTED_FEATURES" in said:
        return UnsupportedTableError(
            f"table {table} cannot be opened: {said}; have the engine that made it drop the feature: ALTER TABLE ... "
            "DROP FEATURE"
        )
    if (missing := no_connector(error)) is not None:
        return TableError(f"table {table} cannot be opened: {missing}")
    way_out = "give a folder with a slash, or a catalog name"
    if not is_path(table) and Path(table).is_dir():
        way_out = f"for the folder of that name write ./{table}"
    if not isinstance(error, PySparkException):
        way_out = "see that its Delta log is whole and can be read here"
    elif error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":  # what Spark says of it is a paragraph
        return TableError(f"the session's catalog knows no table {table}; {way_out}")
    return TableError(f"table {table} cannot be opened: {said}; {way_out}")


def unwritable(location: str, error: BaseException) -> UnsupportedTableError | None:
    """That a table has features which the session's Delta cannot write; None where it failed with something else."""
    said = reason_of(error).rstrip(".")
    if "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE" not in said:
        return None
    return UnsupportedTableError(
        f"{location} cannot be rewritten: {said}; have the engine that made it drop the feature: ALTER TABLE ... DROP "
        "FEATURE"
    )


def cleaned_up(location: str, version: int) -> TableError:
    """That a version of a table is out of reach."""
    return TableError(f"version {version} of {location} cannot be read any more: its log entries were cleaned up")


def of_constraints(conf: Mapping[str, str], struct: StructType | None) -> str:
    """What a violated constraint may come from, and what helps.

    Args:
        conf: the settings that files were written with.
        struct: the schema with its generated columns; None where they are not known.
    """
    if struct is not None and not any("delta.generationExpression" in field.metadata for field in struct.fields):
        return "rows that are older than the constraint may break it: repair them or drop it"
    older = "" if struct is not None else "rows may be older than it, or "
    if ZONE in conf:
        return (
            f"{older}a generated column may depend on the time zone: a partition lies in an hour that comes twice in "
            f"the session's, as far as is known, so files are written in {conf[ZONE]}; leave that one out by --where"
        )
    return f"{older}a generated column may depend on the time zone: set {ZONE} to its writers'"


@contextlib.contextmanager
def told_plainly(location: str) -> Iterator[None]:
    """Turn whatever else Spark fails with before the commit into a `TableError` of one sentence."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        raise TableError(f"{location} could not be rewritten: {reason_of(error)}; nothing was committed") from error
