"""A partition of a table as one word, ``ds=2026-01-01/region=eu``: as Dagster, the command line and people name it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from urllib.parse import quote, unquote

from zorder_pipeline.errors import TableError

from .spark_sql import cast_name, column_sql, value_sql
from .values import ValueType

__all__ = ["NULL", "partition_condition", "partition_key", "partition_values", "partitions_condition", "spelled"]

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


def spelled(key: str) -> str:
    """A word for a partition as `partition_key` spells it, so that two words for one partition are one.

    >>> spelled("ds=2026%2D01%2D01/region=größe"), spelled("2026-01-01")
    ('ds=2026-01-01/region=gr%C3%B6%C3%9Fe', '2026-01-01')
    """
    columns = [unquote(part.partition("=")[0]) for part in key.split("/")]
    try:
        return partition_key(columns, partition_values(key, columns))
    except TableError:  # it is none
        return key


def partition_condition(key: str, types: Mapping[str, str]) -> str:
    """A Spark SQL condition that is true in exactly this partition.

    Args:
        types: Spark type of each partition column, by name, in their order.

    Raises:
        TableError: see `partition_values`.

    >>> partition_condition("n=__HIVE_DEFAULT_PARTITION__", {"n": "int"})
    '`n` IS NULL'
    """
    return partitions_condition([partition_values(key, list(types))], types)


def partitions_condition(partitions: Collection[Sequence[str | None]], types: Mapping[str, str]) -> str:
    """A Spark SQL condition that is true in exactly these partitions, each given by its values.

    Args:
        types: see `partition_condition`; without any the table is one partition.

    >>> partitions_condition([()], {}), partitions_condition([("1",), (None,)], {"n": "int"})
    ('true', "`n` = try_cast(decode(X'31', 'UTF-8') AS int) OR `n` IS NULL")
    """
    if not types:
        return "true"
    (name, kind), *rest = types.items()
    column = column_sql((name,))
    following: dict[str | None, list[tuple[str | None, ...]]] = {}
    for first, *others in partitions:
        following.setdefault(first, []).append(tuple(others))
    alike: dict[tuple[tuple[str | None, ...], ...], list[str | None]] = {}
    for value, rests in following.items():
        alike.setdefault(tuple(rests), []).append(value)
    parts = []
    for after, values in alike.items():
        texts = (value_sql(value, ValueType("string")) for value in values if value is not None)
        given = [f"try_cast({text} AS {cast_name(kind)})" for text in texts]
        ways = [f"{column} = {given[0]}"] if len(given) == 1 else [f"{column} IN ({', '.join(given)})"] if given else []
        ways += [f"{column} IS NULL"] if None in values else []
        both = [" OR ".join(ways), *([partitions_condition(after, dict(rest))] if rest else [])]
        parts.append(" AND ".join(f"({text})" if rest and " OR " in text else text for text in both))
    return parts[0] if len(parts) == 1 else " OR ".join(f"({part})" for part in parts)


def _quoted(text: str) -> str:
    found = quote(text, safe=SAFE)
    return found.replace("...", "%2E%2E%2E")  # three dots are a range of partitions to Dagster


def _value(value: str | None) -> str:
    if value is None:
        return NULL
    return _quoted(value) if value != NULL else value.replace("_", "%5F", 1)
