"""What people may choose and what holds unless they do: the same for the command line, tables.yaml and the settings.

Loads nothing, as the command line reads it for every ``--help``.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = ["APPROVAL_DAYS", "COPY_BYTES", "HORIZON_DAYS", "SAMPLE_ROWS", "TRIALS"]
__all__ += ["CommitterName", "Cost", "Dialect", "LogFormat", "Sampler", "Verify"]

LogFormat: TypeAlias = Literal["auto", "sql", "query-history", "spark-events"]
Dialect: TypeAlias = Literal["spark", "databricks", "hive", "presto", "trino", "snowflake", "bigquery", "duckdb"]
"""sqlglot's names of the dialects that logs are read in."""
Sampler: TypeAlias = Literal["moves", "cma-es", "tpe"]
"""What proposes layouts, see `zorder_pipeline.layout.search.SearchSettings`."""
Cost: TypeAlias = Literal["rows", "filtered", "bytes"]
"""What a layout is judged by, see `zorder_pipeline.pipeline.learning.weights.layout_weights`."""
Verify: TypeAlias = Literal["counts", "hash"]
"""How a rewrite is checked, see `zorder_pipeline.relayout.job.Safety`."""
CommitterName: TypeAlias = Literal["auto", "transaction", "public"]
"""How a table is opened and rewritten, see `zorder_pipeline.relayout.snapshot.COMMITTERS`."""

TRIALS = 600
"""Layouts evaluated at most."""
SAMPLE_ROWS = 100_000
"""Rows sampled of a table, raised where a file would be represented by too few."""
HORIZON_DAYS = 30.0
"""Days within which a rewrite must pay for itself."""
APPROVAL_DAYS = 14.0
"""Days that a request for approval, and an approval, holds."""
COPY_BYTES = 256 << 20
"""Bytes of the largest copy that costs are measured on; it is copied three times, whole, two fifths and a seventh."""
