"""Seeded logs of selective look-ups on any table: their literals are quantiles and values of the table's own columns.

A `Shape` says which columns a kind of query filters, how, and which share of the rows each filter should keep on its
own; `table_logs` turns shapes into statements that run in Spark SQL and DuckDB alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from zorder_pipeline.errors import ZorderError

from .templates import Draw, Template
from .workloads import Record, two_logs

__all__ = ["SHAPES", "Filter", "Shape", "table_logs"]

OPS = ("range", "point", "in", "prefix", "above", "null")
PROFILE_ROWS = 200_000
IN_VALUES = 3


@dataclass(frozen=True)
class Filter:
    """One column's condition.

    Attributes:
        column: column name.
        op: ``range`` (BETWEEN), ``point`` (= a row's value), ``in``, ``prefix`` (LIKE 'x%'), ``above`` (>= a high
            quantile) or ``null`` (IS NULL).
        share: rows that a range or ``above`` keeps, on average; the others keep what the value has.
    """

    column: str
    op: str = "range"
    share: float = 0.01

    def __post_init__(self) -> None:
        if self.op not in OPS:
            raise ValueError(f"unknown op {self.op!r}; one of {', '.join(OPS)}")


@dataclass(frozen=True)
class Shape:
    """A kind of query: filters joined by AND, and how often it is asked."""

    name: str
    weight: float
    filters: tuple[Filter, ...]


def _shape(name: str, weight: float, *filters: tuple[Any, ...]) -> Shape:
    return Shape(name, weight, tuple(Filter(*item) for item in filters))


SHAPES: Mapping[str, tuple[Shape, ...]] = {
    "orders_lineitem": (
        _shape("customer", 14, ("o_custkey", "point")),
        _shape("part", 12, ("l_partkey", "point")),
        _shape("order", 10, ("o_orderkey", "point")),
        _shape("ordered_days", 12, ("o_orderdate", "range", 0.004)),
        _shape("supplier_shipped", 10, ("l_suppkey", "range", 0.02), ("l_shipdate", "range", 0.05)),
        _shape("big_orders", 8, ("o_totalprice", "above", 0.03), ("o_orderdate", "range", 0.1)),
        _shape("price", 8, ("l_extendedprice", "range", 0.006)),
        _shape("customers_recent", 10, ("o_custkey", "range", 0.05), ("o_orderdate", "range", 0.08)),
        _shape("clerk", 6, ("o_clerk", "point")),
        _shape("mode_received", 6, ("l_shipmode", "point"), ("l_receiptdate", "range", 0.02)),
    ),
    "skewed": (
        _shape("tenant_window", 20, ("tenant", "point"), ("event_time", "range", 0.01)),
        _shape("device", 12, ("device", "point")),
        _shape("window", 12, ("event_time", "range", 0.004)),
        _shape("failures", 8, ("status", "point"), ("event_time", "range", 0.008)),
        _shape("amount", 10, ("amount", "range", 0.006)),
        _shape("top", 6, ("amount", "above", 0.005)),
        _shape("country_opened", 8, ("country", "point"), ("opened", "range", 0.02)),
        _shape("score", 6, ("score", "range", 0.008)),
        _shape("tenants", 6, ("tenant", "in"), ("score", "range", 0.02)),
        _shape("sessions", 8, ("session", "point")),
        _shape("unplanned", 4, ("plan", "null"), ("opened", "range", 0.03)),
    ),
    "wide": (
        _shape("i01_i03", 12, ("i01", "range", 0.1), ("i03", "range", 0.08)),
        _shape("i02", 10, ("i02", "range", 0.006)),
        _shape("i05_d01", 10, ("i05", "range", 0.1), ("d01", "range", 0.06)),
        _shape("s04", 8, ("s04", "point")),
        _shape("f01", 8, ("f01", "range", 0.006)),
        _shape("f02_s01", 8, ("f02", "range", 0.06), ("s01", "point")),
        _shape("i07", 10, ("i07", "point")),
        _shape("d00", 8, ("d00", "range", 0.008)),
        _shape("i00", 6, ("i00", "range", 0.002)),
        _shape("i10_i11", 10, ("i10", "range", 0.08), ("i11", "range", 0.08)),
        _shape("s03", 5, ("s03", "prefix")),
        _shape("n02", 5, ("n02", "range", 0.005)),
    ),
    "flights": (
        _shape("route_week", 14, ("origin", "point"), ("dest", "point"), ("time_hour", "range", 0.06)),
        _shape("aircraft", 12, ("tailnum", "point")),
        _shape("flight_number", 10, ("flight", "point"), ("month", "point")),
        _shape("hours", 12, ("time_hour", "range", 0.003)),
        _shape("delays", 8, ("dep_delay", "above", 0.01)),
        _shape("late_arrivals", 8, ("arr_delay", "range", 0.02), ("origin", "point")),
        _shape("carrier_day", 10, ("carrier", "point"), ("month", "point"), ("day", "point")),
        _shape("distance", 8, ("distance", "range", 0.006)),
        _shape("cancelled", 4, ("reason", "point"), ("dest", "point")),
        _shape("destination_air_time", 8, ("dest", "point"), ("air_time", "range", 0.05)),
    ),
    "taxi": (
        _shape("zone_hours", 16, ("PULocationID", "point"), ("tpep_pickup_datetime", "range", 0.03)),
        _shape("window", 14, ("tpep_pickup_datetime", "range", 0.003)),
        _shape("zone_pair", 12, ("PULocationID", "point"), ("DOLocationID", "point")),
        _shape("fares", 10, ("fare_amount", "range", 0.006)),
        _shape("long_trips", 8, ("trip_distance", "above", 0.008)),
        _shape("tips", 8, ("tip_amount", "above", 0.02), ("DOLocationID", "point")),
        _shape("dropped", 10, ("DOLocationID", "point"), ("tpep_dropoff_datetime", "range", 0.03)),
        _shape("totals", 8, ("total_amount", "range", 0.02), ("tpep_pickup_datetime", "range", 0.2)),
        _shape("no_count", 4, ("passenger_count", "null"), ("trip_distance", "range", 0.05)),
    ),
}
"""Shapes by table name; most keep at most 1% of the rows."""


def table_logs(
    rows: pa.Table,
    name: str,
    train: int,
    unseen: int,
    seed: int,
    shapes: Sequence[Shape] | None = None,
    *,
    once: bool = False,
) -> tuple[list[Record], list[Record]]:
    """A training log and a later log of other statements on the table ``rows``, called ``name`` in the statements.

    With ``once`` each of the ``shapes`` is asked once at most, in either of the logs.

    Raises:
        ZorderError: there are no shapes for ``name``, or too few different literals for two logs.
    """
    if shapes is None and name not in SHAPES:
        raise ZorderError(f"no query shapes are known for table {name}; known are {', '.join(SHAPES)}")
    chosen = SHAPES[name] if shapes is None else tuple(shapes)
    columns = {item.column for shape in chosen for item in shape.filters}
    profile = {column: _Profile(rows.column(column)) for column in sorted(columns)}
    templates = [Template(shape.name, shape.weight, partial(_statement, shape, name, profile)) for shape in chosen]
    return two_logs(train, unseen, seed, templates, once=once)


def _statement(shape: Shape, table: str, profile: Mapping[str, _Profile], d: Draw) -> str:
    first = shape.filters[0].column
    where = " AND ".join(profile[item.column].condition(item, d.rng) for item in shape.filters)
    return f"SELECT count(*) AS n, min({first}) AS low, max({first}) AS high FROM {table} WHERE {where}"


def _share_near(share: float, spread: float, rng: np.random.Generator) -> float:
    """A share of the rows, ``share`` in the mean: by up to ``spread`` of it more or less, never more than all rows."""
    spread = min(spread, 1 / share - 1)
    return min(1.0, share * rng.uniform(1 - spread, 1 + spread))


class _Profile:
    """A column's values in ascending order (without nulls and NaN), from evenly spaced rows."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        step = max(1, len(column) // PROFILE_ROWS)
        sample = column.take(pa.array(np.arange(0, len(column), step))).drop_null().to_pylist()
        self.values = sorted(value for value in sample if value == value)

    def condition(self, item: Filter, rng: np.random.Generator) -> str:
        """The filter as SQL, with literals drawn."""
        n, column = len(self.values), item.column
        match item.op:
            case "null":
                return f"{column} IS NULL"
            case "point":
                return f"{column} = {_sql(self._pick(rng))}"
            case "in":
                listed = sorted({_sql(self._pick(rng)) for _ in range(IN_VALUES)})
                return f"{column} IN ({', '.join(listed)})"
            case "prefix":
                text = str(self._pick(rng))
                return f"{column} LIKE '{text[: max(1, len(text) - 1)]}%'"
            case "above":
                return f"{column} >= {_sql(self.values[int(n * (1 - _share_near(item.share, 0.8, rng)))])}"
        width = min(n - 1, max(1, int(n * item.share * rng.uniform(0.3, 1.7))))
        low = int(rng.integers(n - width))
        return f"{column} BETWEEN {_sql(self.values[low])} AND {_sql(self.values[low + width])}"

    def _pick(self, rng: np.random.Generator) -> Any:
        # a row's value, so that frequent values are asked for more often, as people do
        return self.values[int(rng.integers(len(self.values)))]


def _sql(value: Any) -> str:
    """A literal that Spark and DuckDB read alike; a time without a zone as a string, which both cast to the column."""
    match value:
        case bool():
            return str(value).lower()
        case int() | Decimal():
            return str(value)
        case float():
            return np.format_float_positional(value, trim="0")
        case datetime() if value.tzinfo:
            return f"TIMESTAMP '{value.astimezone(UTC).replace(tzinfo=None).isoformat(' ', 'microseconds')}'"
        case datetime():
            return f"'{value.isoformat(' ', 'seconds')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
    return "'" + str(value).replace("'", "''") + "'"
