"""Canonical values and boxes as Spark SQL text, rebuilt from data: nothing that came from a log is ever pasted in."""

from __future__ import annotations

import math

from .ranges import Box, Boxes, Interval, Range
from .values import Value, ValueType

__all__ = ["boxes_sql", "bracketed", "cast_name", "column_sql", "value_sql"]


def column_sql(path: tuple[str, ...]) -> str:
    """A column reference with every part quoted.

    >>> column_sql(("a b", "c`d"))
    '`a b`.`c``d`'
    """
    return ".".join("`" + part.replace("`", "``") + "`" for part in path)


def cast_name(kind: str) -> str:
    """A type to cast to, the same in every session: TIMESTAMP may stand for one without a time zone
    (``spark.sql.timestampType``).

    >>> cast_name("timestamp"), cast_name("decimal(9,2)")
    ('timestamp_ltz', 'decimal(9,2)')
    """
    return "timestamp_ltz" if kind == "timestamp" else kind


def bracketed(condition: str) -> str:
    """A condition in brackets, as a part of a longer one; with a line's end, as it may end in a comment.

    >>> bracketed("ds = '2026-01-01' -- today")
    "(ds = '2026-01-01' -- today\\n)"
    """
    return f"({condition}\n)"


def value_sql(value: Value, value_type: ValueType) -> str:
    """A literal of exactly ``value_type``, whatever the session's time zone, ANSI mode or escape rules are.

    >>> value_sql(10471, ValueType("date")), value_sql("it's", ValueType("string"))
    ('date_from_unix_date(10471)', "decode(X'69742773', 'UTF-8')")
    """
    match value_type.family:
        case "string":
            return f"decode(X'{str(value).encode('utf-8', 'surrogatepass').hex()}', 'UTF-8')"
        case "binary":
            return f"X'{bytes(value).hex() if isinstance(value, bytes) else ''}'"
        case "float":
            text = repr(float(value)) if math.isfinite(float(value)) else f"'{float(value)}'"
            return f"CAST({text} AS {value_type.name})" if text.startswith("'") else f"CAST({text}D AS DOUBLE)"
        case "date":
            return f"date_from_unix_date({int(value)})"
        case "timestamp":
            return f"timestamp_micros({int(value)})"
        case "timestamp_ntz":
            span = f"make_dt_interval(0, 0, 0, {_seconds(int(value))})"
            return f"CAST(TIMESTAMP_NTZ '1970-01-01 00:00:00' + {span} AS TIMESTAMP_NTZ)"
        case "boolean":
            return "true" if value else "false"
        case "decimal":
            sign, digits = ("-" if int(value) < 0 else ""), str(abs(int(value))).rjust(value_type.scale + 1, "0")
            point = len(digits) - max(0, value_type.scale)
            return f"CAST('{sign}{digits[:point]}.{digits[point:]}0' AS DECIMAL(38, {max(0, value_type.scale)}))"
    wide = abs(int(value)) >= 1 << 63
    return f"CAST('{int(value)}' AS {'DECIMAL(38, 0)' if wide else 'BIGINT'})"


def _seconds(micros: int) -> str:
    whole, rest = divmod(abs(micros), 1_000_000)
    return f"CAST('{'-' if micros < 0 else ''}{whole}.{rest:06d}' AS DECIMAL(18, 6))"


def boxes_sql(boxes: Boxes, paths: dict[str, tuple[str, ...]], never_null: bool = True) -> str:
    """The boxes as a condition that is true for exactly the rows they match.

    Args:
        paths: path of each column (a struct field has several parts) by its schema name.
        never_null: false for the other rows, instead of false or null. Delta skips files only by a condition that may
            be null.
    """
    return " OR ".join(f"({_box_sql(box, paths, never_null)})" for box in boxes) or "false"


def _box_sql(box: Box, paths: dict[str, tuple[str, ...]], never_null: bool) -> str:
    return " AND ".join(f"({_range_sql(item, column_sql(paths[item.column]), never_null)})" for item in box) or "true"


def _range_sql(item: Range, column: str, never_null: bool) -> str:
    parts = [_interval_sql(interval, column, ValueType.parse(item.type)) for interval in item.intervals]
    if item.nulls:
        parts.append(f"{column} IS NULL")
    either = " OR ".join(parts) or "false"
    return f"coalesce({either}, false)" if parts and never_null else either


def _interval_sql(interval: Interval, column: str, value_type: ValueType) -> str:
    parts = [f"{column} IS NOT NULL"]
    if interval.low is not None:
        parts.append(f"{column} {'>' if interval.low_open else '>='} {value_sql(interval.low, value_type)}")
    if interval.high is not None:
        parts.append(f"{column} {'<' if interval.high_open else '<='} {value_sql(interval.high, value_type)}")
    return "(" + " AND ".join(parts) + ")"
