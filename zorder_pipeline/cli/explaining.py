"""``zorder explain``: which files a scan or a statement reads, and which statistic excluded the others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import click

from zorder_pipeline.errors import ZorderError

from .common import Payload, command, out, start_spark
from .states import existing_state_option

__all__ = ["explain"]


@command
@click.option("--table", help="Path or catalog name of the Delta table that is scanned.")
@click.option("--where", help="Condition in Spark SQL on its columns; by default all rows are asked for.")
@click.option("--version", type=click.IntRange(0), help="Version of the table; the newest by default.")
@click.option("--sql", "statement", help="Instead of --table: a query in Spark SQL. It is not executed.")
@click.option("--file", "path", type=click.Path(), help="Instead of --table: a file that holds one such query.")
@existing_state_option(
    ", which keeps the statistics; by default what spark.zorder.state names in the configuration at hand, and without "
    "either Delta's own statistics count alone"
)
def explain(
    table: str | None,
    where: str | None,
    version: int | None,
    statement: str | None,
    path: str | None,
    state: str | None,
) -> Payload:
    """Which files zorder_pipeline.scan or sql reads, and which statistic excludes how many of the others."""
    from zorder_pipeline import pipeline

    if sum(given is not None for given in (table, statement, path)) != 1:
        raise ZorderError("give one of --table, --sql and --file: a scan of one table, or a query")
    for option, given in {"--where": where, "--version": version}.items():
        if given is not None and table is None:
            raise ZorderError(f"{option} means nothing without --table; write it into the query, or leave it out")
    asked = _query_in(path) if path is not None else statement
    spark = start_spark("explain", brief=True)
    if asked is not None:
        with _understood("--sql" if path is None else f"--file {path}"):
            found = pipeline.explain_sql(spark, asked, state=state)
    else:
        with _understood(f"--where {where!r}"):
            found = pipeline.explain_scan(spark, str(table), where or "true", state=state, version=version)
    out.print(str(found), soft_wrap=True)
    return found.to_json()


def _query_in(path: str) -> str:
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ZorderError(f"--file {path} is no text in UTF-8; save it as that") from error
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ZorderError(f"--file {path} cannot be read: {why}; name a file that holds one query") from error
    if not text.strip():
        raise ZorderError(f"--file {path} is empty; write one query into it")
    return text


@contextlib.contextmanager
def _understood(what: str) -> Iterator[None]:
    """Tell in a sentence that Spark cannot make sense of what was asked."""
    from pyspark.errors import AnalysisException

    from zorder_pipeline.java import reason_of

    try:
        yield
    except AnalysisException as error:
        sentence = f"Spark does not understand {what}: {reason_of(error)}"
        if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
            sentence += "; a table that no catalog knows is written as delta.`/its/folder`"
        raise ZorderError(sentence) from error
