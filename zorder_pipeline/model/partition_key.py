"""A partition of a table as one word, ``ds=2026-01-01/region=eu``: as Dagster, the command line and people name it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote, unquote

from zorder_pipeline.errors import TableError

from .spark_sql import column_sql, value_sql
from .values import ValueType

__all__ = ["NULL", "partition_condition", "partition_key", "partition_values"]

NULL = "__HIVE_DEFAULT_PARTITION__"
"""Stands for null, as in the names of Hive's folders."""
SAFE = " :+-_.@~()"


def partition_key(columns: Sequence[str], values: Sequence[str | None]) -> str:
    """The word for a partition; what would be ambiguous in it is written as ``%XX``.

    Args:
        columns: the table's partition columns.
        values: their values as the Delta log writes them, None for null.

    >>> partition_key(["ds", "region"], ["2026-01-01", "eu/west"]), partition_key(["ds"], [None])
    ('ds=2026-01-01/region=eu%2Fwest', 'ds=__HIVE_DEFAULT_PARTITION__')
    """
    return "/".join(f"{_quoted(name)}={_value(value)}" for name, value in zip(columns, values, strict=True))


def partition_values(key: str, columns: Sequence[str]) -> tuple[str | None, ...]:
    """The values that `partition_key` made the word of.

    Raises:
        TableError: it is no partition of a table with these partition columns.

    >>> partition_values("ds=2026-01-01/region=eu%2Fwest", ["ds", "region"])
    ('2026-01-01', 'eu/west')
    """
    parts = [part.partition("=") for part in key.split("/")]
    if not columns:
        raise TableError(f"there is no partition {key}: the table is not partitioned")
    if [unquote(name) for name, _, _ in parts] != list(columns) or not all(sign for _, sign, _ in parts):
        form = "/".join(f"{name}=..." for name in columns)
        raise TableError(f"{key} is no partition of a table that is partitioned by {', '.join(columns)}; write {form}")
    return tuple(None if value == NULL else unquote(value) for _, _, value in parts)


def partition_condition(key: str, types: Mapping[str, str]) -> str:
    """A Spark SQL condition that is true in exactly this partition.

    Args:
        types: Spark type of each partition column, by name, in their order.

    Raises:
        TableError: see `partition_values`.

    >>> partition_condition("n=__HIVE_DEFAULT_PARTITION__", {"n": "int"})
    '`n` IS NULL'
    """
    values = partition_values(key, list(types))
    parts = []
    for (name, kind), value in zip(types.items(), values, strict=True):
        column = column_sql((name,))
        if value is None:
            parts.append(f"{column} IS NULL")
        else:
            parts.append(f"{column} = try_cast({value_sql(value, ValueType('string'))} AS {kind})")
    return " AND ".join(parts)


def _quoted(text: str) -> str:
    found = quote(text, safe=SAFE)
    return found.replace("...", "%2E%2E%2E")  # three dots are a range of partitions to Dagster


def _value(value: str | None) -> str:
    if value is None:
        return NULL
    return _quoted(value) if value != NULL else value.replace("_", "%5F", 1)
