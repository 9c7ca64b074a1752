"""Gathering statistics of files: a few aggregations over them at once, of the features' columns alone.

What Spark aggregates in generated code (bounds of numbers, all predicates as bits of a few numbers, columns of few
values) is kept apart from what it does not (bounds of strings, sets of values): in one aggregation with these, all of
it is several times slower.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zorder_pipeline.errors import TableError
from zorder_pipeline.java import beside
from zorder_pipeline.model.file_stats import BLOOM_BITS, BLOOM_FAMILIES, Feature
from zorder_pipeline.model.values import Value, ValueType, canonical_array
from zorder_pipeline.state.session_conf import session_zone

from .few_values import few_values, of_codes, others_in, seen, slow
from .file_numbers import number, uri
from .halving import failures, halved
from .quick_forms import BITS_EACH, PREDICATES_EACH, predicate_bits
from .session import aggregates_as_usual, unshadowed
from .wide_decimals import WIDE_DIGITS, as_double, wide_decimal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

__all__ = ["STATS", "evaluable", "gather", "stored_columns"]

MOST_PLACES = BLOOM_BITS // 4
"""A Bloom filter with more bits set than this says too little to be kept."""
ROWS_LOOKED_AT = 1000
"""Rows by which columns of few values are told where nothing better is given."""
_SLOTS = {"string": ("text", pa.string()), "float": ("real", pa.float64())}
_WHOLE = ("whole", pa.int64())
STATS = pa.schema(
    [
        ("file", pa.string()),
        ("rows", pa.int64()),
        ("feature", pa.string()),
        ("kind", pa.string()),
        ("type", pa.string()),
        ("sql", pa.string()),
        ("columns", pa.string()),
        ("nulls", pa.int64()),
        ("low_whole", pa.int64()),
        ("high_whole", pa.int64()),
        ("low_real", pa.float64()),
        ("high_real", pa.float64()),
        ("low_text", pa.string()),
        ("high_text", pa.string()),
        ("places", pa.binary()),
        ("sought", pa.bool_()),
    ]
)
"""A row per file and feature, with the SQL that was evaluated; bounds stand in the column that their type's canonical
values fit, ``columns`` says where the files keep what the feature looks at, ``nulls`` is -1 where there are some and
nobody counted them, and ``sought`` says whether ``places`` were to be kept, which are null where they are too many."""


def evaluable(rows: DataFrame, features: Sequence[Feature]) -> tuple[Feature, ...]:
    """The features that Spark can evaluate on ``rows``, with their types; those whose values have no order are out.

    So are those that were written for another time zone than the session's, and those that call a function which the
    session has put in the place of Spark's own.

    Of an expression that is a wide decimal the nearest double stands for the value: rounding keeps the order of values,
    but not that two of them differ, see `zorder_pipeline.reading.meanings`.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    def fields(some: Sequence[Feature]) -> list[tuple[Feature, StructField]]:
        if not some:
            return []
        try:
            return list(zip(some, rows.select(*(F.expr(feature.sql) for feature in some)).schema.fields, strict=True))
        except (PySparkException, Py4JJavaError):  # a column was dropped, or a function is unknown here
            half = len(some) // 2
            return [] if not half else [*fields(some[:half]), *fields(some[half:])]

    zone = session_zone(rows.sparkSession)
    found, own_zone = [], [feature for feature in features if feature.zone in ("", zone)]
    for feature, field in fields(unshadowed(rows.sparkSession, own_zone)):
        value_type = ValueType.parse(field.dataType.simpleString())
        digits = value_type.digits if value_type.family == "decimal" else 0
        if digits > WIDE_DIGITS and feature.kind == "expression":  # money times a rate has more than 18 digits
            found.append(replace(feature, type="double", sql=as_double(feature.sql), equality=False))
        elif value_type.orderable and value_type.family != "binary" and digits <= WIDE_DIGITS:
            kept = feature.equality and value_type.family in BLOOM_FAMILIES
            found.append(replace(feature, type=value_type.name, equality=kept))
    return tuple(found)


def stored_columns(feature: Feature, stored_as: Mapping[str, str]) -> str | None:
    """Where files keep a feature's columns, as text: a name may come to mean another column; None of one unknown.

    Args:
        stored_as: where the files keep each column, and as what type, by its name.
    """
    found = {name: stored_as.get(name) for name in sorted(feature.columns)}
    return None if None in found.values() else json.dumps(found)


def gather(
    rows: DataFrame,
    features: Sequence[Feature],
    stored_as: Mapping[str, str],
    some: Callable[[], DataFrame] | None = None,
    also: Mapping[str, Collection[Value]] | None = None,
    numbered: Mapping[int, str] | None = None,
) -> pa.Table:
    """Statistics of each feature in each file that ``rows`` come from, as `STATS`; ``file`` is its whole URI.

    A feature that fails on some row (a cast under ANSI, a text that is no UTF-8) has statistics that say nothing.

    Args:
        features: as `evaluable` gives them.
        stored_as: as in `stored_columns`; features of other columns are left out.
        some: gives rows of the same table by which columns of few values are told, some of the first ones by default;
            the better they show what ``rows`` hold, the sooner it is done. It is called where they are needed.
        also: canonical values of columns that probably occur besides, such as the files' bounds.
        numbered: what to call each file, by its number (`zorder_pipeline.reading.file_numbers`): to be told by a number
            is cheaper than by its URI. ``file`` is null of one that has none here.

    Raises:
        PySparkException, Py4JJavaError: the files cannot be read, whatever is asked of them.
        TableError: the session has functions of its own in the place of those that files are aggregated with.
    """
    if not aggregates_as_usual(rows.sparkSession):
        raise TableError(
            "no statistics are gathered in a session with functions of its own under names of Spark's, such as min: "
            "use another session, or one that looks for Spark's functions first"
        )
    some = some or partial(rows.limit, ROWS_LOOKED_AT)
    features = [feature for feature in features if stored_columns(feature, stored_as) is not None]
    if not features:
        return STATS.empty_table()
    key = (uri(rows) if numbered is None else number(rows)).alias("file")
    try:
        found = [_gathered(rows, key, features, stored_as, some, also)]
        failing = []
    except failures():
        files = _at_once([rows.groupBy(key).count().withColumnRenamed("count", "rows")])[0]  # or it fails, too
        found = list(halved(features, lambda part: _gathered(rows, key, part, stored_as, some, also)))
        failing = [each for each in found if isinstance(each, Feature)]
        if not found:
            raise
    tables = [each for each in found if isinstance(each, pa.Table)]
    nothing = {"nulls": pa.repeat(pa.scalar(-1, pa.int64()), files.num_rows)} if failing else {}
    tables += [_stats(files, each, stored_columns(each, stored_as), nothing, {}) for each in failing]
    every = pa.concat_tables(tables)
    return every if numbered is None else _called(every, numbered)


def _called(stats: pa.Table, numbered: Mapping[int, str]) -> pa.Table:
    names = [numbered.get(int(text)) for text in stats["file"].to_pylist()]
    return stats.set_column(0, "file", pa.array(names, pa.string()))


def _gathered(
    rows: DataFrame,
    key: Column,
    features: Sequence[Feature],
    stored_as: Mapping[str, str],
    some: Callable[[], DataFrame],
    also: Mapping[str, Collection[Value]] | None,
) -> pa.Table:
    from pyspark.sql import functions as F

    predicates = [feature for feature in features if feature.kind == "predicate"]
    others = [feature for feature in features if feature.kind != "predicate"]
    values = {f"v{i}": F.expr(feature.sql) for i, feature in enumerate(others)}
    texts = {v for v, each in zip(values, others, strict=True) if ValueType.parse(each.type).family == "string"}
    apart = {v: each for v, each in zip(values, others, strict=True) if v in texts or each.equality}
    with ThreadPoolExecutor(1) as pool:  # a job, beside which Spark is told all else
        look = beside(rows.sparkSession, few_values)
        told = pool.submit(
            look, lambda names: some().select(*(F.expr(apart[v].sql).alias(v) for v in names)), apart, also or {}
        )
        doubles = {f"v{i}": wide_decimal(rows, each.sql) for i, each in enumerate(others) if each.type == "double"}
        decimals = {v: decimal for v, decimal in doubles.items() if decimal is not None}
        values |= {v: decimal.value(rows.sparkSession) for v, decimal in decimals.items()}
        counted: list[Column] = [F.count(F.lit(1)).alias("rows"), *(F.count(v).alias(f"count_{v}") for v in values)]
        for v in (v for v in values if v not in texts):
            bounds = decimals[v].bounds(v) if v in decimals else {"low": F.min(v), "high": F.max(v)}
            counted += [bound.alias(f"{side}_{v}") for side, bound in bounds.items()]
        values |= (bits := predicate_bits(rows, [feature.sql for feature in predicates]))
        counted += [F.bit_or(name).alias(name) for name in bits]
        known = told.result()
    # evaluated in a projection, or each of its aggregates would evaluate a value again
    named = rows.select(key, *(value.alias(name) for name, value in values.items()))
    coded = named.select("*", *(seen(v, apart[v], each).alias(f"seen_{v}") for v, each in known.items()))
    frames = [coded.groupBy("file").agg(*counted, *(F.bit_or(f"seen_{v}").alias(f"seen_{v}") for v in known))]

    def slowly(names: Sequence[str]) -> list[DataFrame]:
        aggregates = [each for v in names for each in slow(v, apart[v])]
        return [named.groupBy("file").agg(*aggregates)] if aggregates else []

    frames += slowly([v for v in apart if v not in known])
    wide, *more = _at_once(frames)
    if mistaken := [v for v in known if others_in(wide[f"seen_{v}"])]:
        more += _at_once(slowly(mistaken))
    for other in more:
        assert wide["file"].equals(other["file"]), "all aggregations read the same files"
        for name in other.column_names[1:]:
            wide = wide.append_column(name, other[name])
    for v in known.keys() - set(mistaken):
        for name, items in of_codes(wide[f"seen_{v}"], known[v]).items():
            if f"{name}_{v}" not in wide.column_names:  # bounds of numbers are there
                wide = wide.append_column(f"{name}_{v}", items)
    wide = wide.combine_chunks()
    found = [
        _of_predicate(wide, i, feature, stored_columns(feature, stored_as)) for i, feature in enumerate(predicates)
    ]
    found += [_of_values(wide, i, feature, stored_columns(feature, stored_as)) for i, feature in enumerate(others)]
    return pa.concat_tables(found)


def _at_once(frames: Sequence[DataFrame]) -> list[pa.Table]:
    """Rows of several frames by file: one is compiled while another runs."""
    with ThreadPoolExecutor(len(frames)) as pool:
        fetch = beside(frames[0].sparkSession, lambda frame: frame.toArrow().sort_by("file"))
        return list(pool.map(fetch, frames))


def _of_predicate(wide: pa.Table, i: int, feature: Feature, columns: str | None) -> pa.Table:
    bits = wide[f"bits_{i // PREDICATES_EACH}"].to_numpy() >> (BITS_EACH * (i % PREDICATES_EACH))
    true, false, null = ((bits >> k) & 1 == 1 for k in range(BITS_EACH))
    nulls = np.where(~null, 0, np.where(true | false, -1, wide["rows"].to_numpy()))
    known = true | false
    sides = {"low": ~false, "high": true}
    bounds = {side: pa.array(values.astype(np.int64), mask=~known) for side, values in sides.items()}
    return _stats(wide, feature, columns, {"nulls": pa.array(nulls)}, bounds)


def _of_values(wide: pa.Table, i: int, feature: Feature, columns: str | None) -> pa.Table:
    value_type = ValueType.parse(feature.type)
    own = {"nulls": pc.subtract(wide["rows"], wide[f"count_v{i}"])}
    if feature.equality:
        own["places"] = _packed(wide[f"places_v{i}"])
    bounds = {}
    for side, outwards in (("low", -np.inf), ("high", np.inf)):
        values, valid = canonical_array(wide[f"{side}_v{i}"], value_type)
        if value_type.family == "float" and feature.kind == "expression":
            values = np.nextafter(values, outwards)  # of a decimal Spark and Python may differ in the last bit
        bounds[side] = pa.array(values, _SLOTS.get(value_type.family, _WHOLE)[1], mask=~valid)
    return _stats(wide, feature, columns, own, bounds)


def _stats(
    wide: pa.Table, feature: Feature, columns: str | None, own: Mapping[str, Any], bounds: Mapping[str, pa.Array]
) -> pa.Table:
    """Rows of `STATS`, one per file."""
    slot = _SLOTS.get(ValueType.parse(feature.type).family, _WHOLE)[0]
    texts = {
        "feature": feature.name,
        "kind": feature.kind,
        "type": feature.type,
        "sql": feature.sql,
        "columns": columns,
    }
    sought = pa.repeat(pa.scalar(feature.equality, pa.bool_()), wide.num_rows)
    given: dict[str, Any] = {"file": wide["file"], "rows": wide["rows"], "sought": sought, **own}
    given |= {name: pa.repeat(pa.scalar(text, pa.string()), wide.num_rows) for name, text in texts.items()}
    given |= {f"{side}_{slot}": values for side, values in bounds.items()}
    items = [given.get(item.name, pa.nulls(wide.num_rows, item.type)) for item in STATS]
    return pa.table(items, STATS.names).cast(STATS)


def _packed(places: pa.ChunkedArray) -> pa.Array:
    """Each file's places as unsigned 16-bit numbers; null where they are too many."""
    lists = places.combine_chunks()
    lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    ends, values = lists.offsets.to_numpy(), lists.values.to_numpy(zero_copy_only=False).astype("<u2")
    return pa.array(
        [values[start:end].tobytes() if end - start <= MOST_PLACES else None for start, end in pairwise(ends)],
        pa.binary(),
    )
