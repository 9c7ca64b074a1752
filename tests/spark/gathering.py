"""Statistics of what conditions ask, gathered in the session as it is, and scans by them beside plain reads."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

import zorder_pipeline
from zorder_pipeline.java import class_name, items
from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.reading.statistics import gather_statistics, statistics_features
from zorder_pipeline.query_log.statements.sql import Unusable, parse_statement
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table
from zorder_pipeline.state.session_conf import session_zone

__all__ = ["asked_of", "files_of", "gathered", "read_alike", "rows_of", "same_answer"]


def asked_of(snapshot: TableSnapshot, *conditions: str) -> tuple[Feature, ...]:
    """What statistics the conditions ask for, in the session as it is."""
    queries, zone = [], session_zone(snapshot.spark)
    for condition in conditions:
        statement = f"SELECT * FROM t WHERE {condition}"
        scans = parse_statement(statement, aliases={"t": "t"}, schemas={"t": snapshot.schema}, zone=zone)
        assert not isinstance(scans, Unusable), condition
        queries += [LoggedQuery("t", scan.predicate) for scan in scans]
    return statistics_features(snapshot, queries)


def gathered(spark: SparkSession, path: str, state: str, *conditions: str) -> None:
    """Keep statistics of what the conditions ask; they count in the kind of session in which they were gathered."""
    snapshot = open_table(spark, path)
    gather_statistics(spark, snapshot, asked_of(snapshot, *conditions), state)


def rows_of(found: DataFrame) -> list[str]:
    """A result's rows, in an order of their own."""
    return sorted(map(str, found.collect()))


def files_of(found: DataFrame) -> int:
    """Files that all scans of a query's plan, and of those of its subqueries, may read."""
    plan = found._jdf.queryExecution().optimizedPlan()
    every = [leaf for one in [plan, *items(plan.subqueriesAll())] for leaf in items(one.collectLeaves())]
    return sum(len(leaf.relation().location().inputFiles()) for leaf in every if class_name(leaf) == "LogicalRelation")


def same_answer(spark: SparkSession, statement: str, state: str) -> list[str]:
    """The rows of a statement, which are the same, as is their schema, through `zorder_pipeline.sql`."""
    plain, found = spark.sql(statement), zorder_pipeline.sql(spark, statement, state=state)
    assert found.schema == plain.schema
    expected = rows_of(plain)
    assert rows_of(found) == expected, statement
    return expected


def read_alike(spark: SparkSession, path: str, state: str, condition: str, name: str | None = None) -> int:
    """Files that a scan of a table reads, whose rows, and those of a statement, are a plain read's.

    Args:
        name: what the statement calls the table; its path by default.
    """
    scanned = zorder_pipeline.scan(spark, path, condition, state=state)
    expected = same_answer(spark, f"SELECT * FROM {name or f'delta.`{path}`'} WHERE {condition}", state)
    assert rows_of(scanned) == expected, condition
    report = zorder_pipeline.explain(spark, path, condition, state=state)
    if report.files_read is None or report.delta_files_read is None:
        assert report.left_to_delta
        return report.files
    if report.files_read < report.delta_files_read:  # else it is left to Delta
        assert len(scanned.inputFiles()) == report.files_read
    return report.files_read
