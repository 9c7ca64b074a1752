"""Gathering statistics of files: one aggregation over them, of the features' columns alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from zorder_pipeline.errors import UnsupportedTableError
from zorder_pipeline.model.file_stats import BLOOM_BITS, BLOOM_FAMILIES, Feature
from zorder_pipeline.model.values import ValueType, canonical_array

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField

__all__ = ["STATS", "evaluable", "gather", "session_of", "stored_columns"]

MOST_PLACES = BLOOM_BITS // 4
"""A Bloom filter with more bits set than this says too little to be kept."""
WIDE_DIGITS = 18
"""Digits of a decimal beyond which its unscaled value does not fit 64 bits."""
SETTINGS = (
    *("spark.sql.caseSensitive", "spark.sql.legacy.timeParserPolicy", "spark.sql.parser.escapedStringLiterals"),
    *("spark.sql.decimalOperations.allowPrecisionLoss", "spark.sql.legacy.sizeOfNull"),
)
"""Settings of a session that change what expressions mean."""
_SLOTS = {"string": ("text", pa.string()), "float": ("real", pa.float64())}
STATS = pa.schema(
    [
        ("file", pa.string()),
        ("rows", pa.int64()),
        ("feature", pa.string()),
        ("kind", pa.string()),
        ("type", pa.string()),
        ("columns", pa.string()),
        ("nulls", pa.int64()),
        ("low_whole", pa.int64()),
        ("high_whole", pa.int64()),
        ("low_real", pa.float64()),
        ("high_real", pa.float64()),
        ("low_text", pa.string()),
        ("high_text", pa.string()),
        ("places", pa.binary()),
    ]
)
"""A row per file and feature; bounds stand in the column that their type's canonical values fit, ``columns`` says
where the files keep what the feature looks at."""


def session_of(spark: SparkSession) -> str:
    """What the value of an expression depends on besides the row: under another one, statistics of it do not count."""
    if getattr(spark, "_jsparkSession", None) is None:
        raise UnsupportedTableError("statistics of files need a classic Spark session; this one is Spark Connect")
    conf = spark._jsparkSession.sessionState().conf()
    told = [f"spark {spark.version}", f"ansi {conf.ansiEnabled()}", f"zone {conf.sessionLocalTimeZone()}"]
    told += [f"{key} {spark.conf.get(key, None)}" for key in SETTINGS]
    return ", ".join(told)


def evaluable(rows: DataFrame, features: Sequence[Feature]) -> tuple[Feature, ...]:
    """The features that Spark can evaluate on ``rows``, with their types; those whose values have no order are out.

    Of an expression that is a wide decimal the nearest double stands for the value: rounding keeps the order of values,
    but not that two of them differ, see `zorder_pipeline.features.statistics.enriched`.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    def fields(some: Sequence[Feature]) -> list[tuple[Feature, StructField]]:
        if not some:
            return []
        try:
            return list(zip(some, rows.select(*(F.expr(feature.sql) for feature in some)).schema.fields, strict=True))
        except PySparkException:  # a column was dropped, or a function is unknown here
            half = len(some) // 2
            return [] if not half else [*fields(some[:half]), *fields(some[half:])]

    found = []
    for feature, field in fields(features):
        value_type = ValueType.parse(field.dataType.simpleString())
        digits = int(value_type.name[8:].split(",")[0]) if value_type.family == "decimal" else 0
        if digits > WIDE_DIGITS and feature.kind == "expression":  # money times a rate has more than 18 digits
            found.append(replace(feature, type="double", sql=f"CAST({feature.sql} AS DOUBLE)", equality=False))
        elif value_type.orderable and value_type.family != "binary" and digits <= WIDE_DIGITS:
            kept = feature.equality and value_type.family in BLOOM_FAMILIES
            found.append(replace(feature, type=value_type.name, equality=kept))
    return tuple(found)


def stored_columns(feature: Feature, physical: Mapping[str, str]) -> str | None:
    """The physical names of a feature's columns, as text: a name may come to mean another column; None of one unknown.

    Args:
        physical: physical path of each column by its name.
    """
    found = {name: physical.get(name) for name in sorted(feature.columns)}
    return None if None in found.values() else json.dumps(found)


def gather(rows: DataFrame, features: Sequence[Feature], physical: Mapping[str, str]) -> pa.Table:
    """Statistics of each feature in each file that ``rows`` come from, as `STATS`; ``file`` is its whole URI.

    Every live row is looked at once. A feature that fails on some row (a cast under ANSI) is left out.

    Args:
        features: as `evaluable` gives them.
        physical: as in `stored_columns`; features of other columns are left out.
    """
    from pyspark.errors import PySparkException

    features = [feature for feature in features if stored_columns(feature, physical) is not None]
    if not features:
        return STATS.empty_table()
    try:
        return _gathered(rows, features, physical)
    except PySparkException:
        if len(features) == 1:
            return STATS.empty_table()
        half = len(features) // 2
        return pa.concat_tables([gather(rows, part, physical) for part in (features[:half], features[half:])])


def _gathered(rows: DataFrame, features: Sequence[Feature], physical: Mapping[str, str]) -> pa.Table:
    from pyspark.sql import functions as F

    path = rows.metadataColumn("_metadata").getField("file_path")
    values = [F.expr(feature.sql).alias(f"v{i}") for i, feature in enumerate(features)]
    frame = rows.select(path.alias("file"), *values)
    asked: list[Column] = [F.count(F.lit(1)).alias("rows")]
    for i, feature in enumerate(features):
        value = F.col(f"v{i}")
        asked += [F.min(value).alias(f"low{i}"), F.max(value).alias(f"high{i}")]
        asked.append((F.count(F.lit(1)) - F.count(value)).alias(f"nulls{i}"))
        if feature.equality:
            place = F.pmod(F.crc32(_text(value, feature.type).cast("binary")), F.lit(BLOOM_BITS)).cast("int")
            asked.append(F.collect_set(F.when(value.isNotNull(), place)).alias(f"places{i}"))
    wide = frame.groupBy("file").agg(*asked).toArrow().combine_chunks()
    found = []
    for i, feature in enumerate(features):
        columns = {"feature": feature.name, "kind": feature.kind, "type": feature.type}
        found.append(_of_feature(wide, i, feature, columns | {"columns": stored_columns(feature, physical)}))
    return pa.concat_tables(found)


def _of_feature(wide: pa.Table, i: int, feature: Feature, texts: Mapping[str, str | None]) -> pa.Table:
    count, value_type = wide.num_rows, ValueType.parse(feature.type)
    slot, kind = _SLOTS.get(value_type.family, ("whole", pa.int64()))
    columns: dict[str, Any] = {"file": wide["file"], "rows": wide["rows"], "nulls": wide[f"nulls{i}"]}
    for name, text in texts.items():
        columns[name] = pa.repeat(pa.scalar(text, pa.string()), count)
    for side in ("low", "high"):
        values, valid = canonical_array(wide[f"{side}{i}"], value_type)
        columns[f"{side}_{slot}"] = pa.array(values, kind, mask=~valid)
    if feature.equality:
        columns["places"] = _packed(wide[f"places{i}"])
    return pa.table(
        [columns[item.name] if item.name in columns else pa.nulls(count, item.type) for item in STATS], STATS.names
    ).cast(STATS)


def _packed(places: pa.ChunkedArray) -> pa.Array:
    """Each file's places as unsigned 16-bit numbers; null where they are too many."""
    lists = places.combine_chunks()
    lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    ends, values = lists.offsets.to_numpy(), lists.values.to_numpy(zero_copy_only=False).astype("<u2")
    return pa.array(
        [values[start:end].tobytes() if end - start <= MOST_PLACES else None for start, end in pairwise(ends)],
        pa.binary(),
    )


def _text(value: Column, type_name: str) -> Column:
    """The text of a value's canonical form, see `zorder_pipeline.model.file_stats.bloom_place`."""
    from pyspark.sql import functions as F

    match ValueType.parse(type_name).family:
        case "date":
            return F.unix_date(value).cast("string")
        case "timestamp":
            return F.unix_micros(value).cast("string")
    return value.cast("string")
