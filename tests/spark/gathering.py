"""Statistics of what conditions ask, gathered of all files of a table in the session as it is."""

from __future__ import annotations

from pyspark.sql import SparkSession

from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.statistics import gather_statistics, statistics_features
from zorder_pipeline.query_log.sql import Unusable, parse_statement
from zorder_pipeline.reading.session import zone_of
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table

__all__ = ["asked_of", "gathered"]


def asked_of(snapshot: TableSnapshot, *conditions: str) -> tuple[Feature, ...]:
    """What statistics the conditions ask for, in the session as it is."""
    queries, zone = [], zone_of(snapshot.spark)
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
