"""Columns of few values: which of them stand in a file, as bits of one number that Spark finds in generated code.

Sets and bounds of strings are aggregated without generated code, which takes several times as long. The values are told
from a few files; where another file turns out to hold another value, that feature is aggregated the slow way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from zorder_pipeline.model.file_stats import BLOOM_BITS, Feature, bloom_place
from zorder_pipeline.model.spark_sql import value_sql
from zorder_pipeline.model.values import Value, ValueType

from .expressions import parsed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["FEW", "Known", "all_of_function", "canonical", "few_values", "of_codes", "others_in", "seen", "slow"]

Known: TypeAlias = tuple[Value, ...]
"""The few canonical values of a column, in ascending order."""
FEW = 62
"""Values that the bits of a number have room for, beside the bit of all others (the lowest) and the sign."""
LONGEST = 100
"""Characters of a text beyond which it is none of a column's few values."""
_PARTS: dict[type[exp.Expr], tuple[int, int]] = {
    exp.Quarter: (1, 4),
    exp.Month: (1, 12),
    exp.WeekOfYear: (1, 53),
    exp.Day: (1, 31),
    exp.DayOfMonth: (1, 31),
    exp.DayOfWeek: (1, 7),
    exp.Hour: (0, 23),
    exp.Minute: (0, 59),
}
"""Lowest and highest value of functions; one that gave another, as in a session with functions of its own, would be
noticed as any other value is."""


def canonical(value: Column, type_name: str) -> Column:
    """A value's canonical form, as a whole number or a text; of the types in `BLOOM_FAMILIES`."""
    from pyspark.sql import functions as F

    match ValueType.parse(type_name).family:
        case "date":
            return F.unix_date(value).cast("bigint")
        case "timestamp":
            return F.unix_micros(value)
        case "string":
            return value
    return value.cast("bigint")


def few_values(
    rows: Callable[[Collection[str]], DataFrame],
    features: Mapping[str, Feature],
    also: Mapping[str, Collection[Value]],
) -> dict[str, Known]:
    """The values of those columns that have at most `FEW`, in their canonical form.

    Args:
        rows: gives rows with columns that are asked for by name; not called where functions tell all they may give.
        features: what each column in question holds, by its name in ``rows``.
        also: values of the table's columns that count, too, wherever they come from.
    """
    given = {name: values for name, each in features.items() if (values := all_of_function(each)) is not None}
    rest = {name: each for name, each in features.items() if name not in given}
    return given | _looked_up(rows(rest.keys()), rest, also) if rest else given


def all_of_function(feature: Feature) -> Known | None:
    """All that a part of a date or time may be, and what lies between; None of anything else.

    >>> month = Feature("MONTH(d)", "expression", "int", "MONTH(d)", ("d",), True)
    >>> all_of_function(month)
    (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
    """
    if feature.kind != "expression" or feature.type != "int":
        return None
    tree = parsed(feature.sql)
    bounds = None if tree is None else _PARTS.get(type(tree.unnest()))
    return None if bounds is None else tuple(range(bounds[0], bounds[1] + 1))


def _looked_up(
    rows: DataFrame, features: Mapping[str, Feature], also: Mapping[str, Collection[Value]]
) -> dict[str, Known]:
    from pyspark.sql import functions as F

    short = {name: _short(canonical(F.col(name), each.type), each.type) for name, each in features.items()}
    found = rows.select(*(form.alias(name) for name, form in short.items())).toArrow()
    distinct = {name: found[name].unique().drop_null() for name in features}
    lists = {name: values.to_pylist() for name, values in distinct.items() if len(values) <= FEW}
    told = {name: also.get(feature.name, ()) for name, feature in features.items() if feature.kind == "column"}
    all_of = {name: ({*values, *told.get(name, ())}, values) for name, values in lists.items() if values}
    return {name: _in_order(each) or _in_order(values) or () for name, (each, values) in all_of.items()}


def _short(form: Column, type_name: str) -> Column:
    """Null for a long text: many of them would be too much for the driver, and few columns of few values have any."""
    from pyspark.sql import functions as F

    return F.when(F.length(form) <= LONGEST, form) if ValueType.parse(type_name).family == "string" else form


def _in_order(values: Collection[Value]) -> Known | None:
    """Values in ascending order, of whole numbers those between them, too, where there is room; None of too many."""
    if len(values) > FEW:
        return None
    low, high = min(values), max(values)
    if isinstance(low, int) and isinstance(high, int) and high - low < FEW:
        return tuple(range(low, high + 1))
    return tuple(sorted(values))


def seen(name: str, feature: Feature, values: Known) -> Column:
    """A number with one bit: that of the column's value among ``values``, the lowest of any other; 0 of null."""
    from pyspark.sql import functions as F

    own, low, high = F.col(name), values[0], values[-1]
    form = canonical(own, feature.type)
    if isinstance(low, int) and isinstance(high, int) and high - low == len(values) - 1:  # all between, too
        place = F.when(form.between(low, high), form - F.lit(low) + F.lit(1)).otherwise(F.lit(0))
    else:  # a loop over an array: branches of a CASE would be too much code for one method
        own_type = ValueType("int" if isinstance(low, int) else "string")
        known = ", ".join(value_sql(value, own_type) for value in values)
        place = F.array_position(F.expr(f"array({known})"), form)
    return F.when(own.isNull(), F.lit(0).cast("bigint")).otherwise(
        F.call_function("shiftleft", F.lit(1).cast("bigint"), place.cast("int"))
    )


def slow(v: str, feature: Feature) -> list[Column]:
    """Aggregates that Spark does not generate code for: bounds of a string, places of values asked for by equality."""
    from pyspark.sql import functions as F

    found = []
    if ValueType.parse(feature.type).family == "string":
        found += [F.min(v).alias(f"low_{v}"), F.max(v).alias(f"high_{v}")]
    if feature.equality:
        text = canonical(F.col(v), feature.type).cast("string").cast("binary")
        place = F.pmod(F.crc32(text), F.lit(BLOOM_BITS)).cast("int")
        found.append(F.collect_set(F.when(F.col(v).isNotNull(), place)).alias(f"places_{v}"))
    return found


def others_in(codes: pa.ChunkedArray) -> bool:
    """Whether some file holds another value than those that were known.

    Args:
        codes: what `seen` gave, by ``bit_or`` for each file.
    """
    return bool((codes.to_numpy() & 1).any())


def of_codes(codes: pa.ChunkedArray, values: Known) -> dict[str, pa.Array]:
    """``low``, ``high`` and ``places`` (of a Bloom filter) of each file; null and empty where all values are null.

    >>> {name: items.to_pylist() for name, items in of_codes(pa.chunked_array([[0b1010, 0]]), ("a", "b", "c")).items()}
    {'low': ['a', None], 'high': ['c', None], 'places': [[15939, 24431], []]}
    """
    every, place = np.unique(codes.to_numpy(), return_inverse=True)
    present: list[Sequence[Value]] = [[v for k, v in enumerate(values, 1) if code >> k & 1] for code in every.tolist()]
    places = [[bloom_place(value) for value in some] for some in present]

    def each(items: list[Value | None]) -> pa.Array:
        return pa.array(items).take(_indices(place))

    return {
        "low": each([some[0] if some else None for some in present]),
        "high": each([some[-1] if some else None for some in present]),
        "places": pa.array(places, pa.list_(pa.int32())).take(_indices(place)),
    }


def _indices(place: npt.NDArray[np.intp]) -> pa.Array:
    return pa.array(place, pa.int64())
