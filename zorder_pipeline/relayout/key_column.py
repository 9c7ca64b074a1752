"""The key and the target file of a row as Spark Columns, compiled from the same data as the numpy kernels."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.cut_tree import CutTree
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.spark_sql import column_sql
from zorder_pipeline.model.values import ValueType

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["FILE", "KEY", "RANGE", "number_of_starts", "with_key"]

KEY, RANGE, FILE = "__zorder_key", "__zorder_range", "__zorder_file"
_CELL, _PLACE, _CODES, _NODE = "__zorder_cell", "__zorder_place", "__zorder_codes", "__zorder_node"
_OUTSIDE, _VALUE = "__zorder_outside", "__zorder_value"
WHOLE = ("integer", "date", "timestamp", "timestamp_ntz", "boolean")
"""Families whose `_canonical` form is a bigint."""
TREE_LIMIT = 31
"""More breakpoints than this are searched in an array: a larger comparison tree outgrows generated methods."""


def with_key(
    df: DataFrame,
    spec: KeySpec,
    paths: Mapping[str, tuple[str, ...]],
    hilbert_table: npt.NDArray[np.int64] | None = None,
) -> DataFrame:
    """``df`` with the bigint column `KEY`.

    Args:
        paths: path of each of the key's columns in ``df``, those that are expressions aside.
        hilbert_table: position on the curve by interleaved cell, for ``curve="hilbert"``.
    """
    from pyspark.sql import functions as F

    codes: list[Column] = []
    helpers: list[str] = []
    for i, feature in enumerate(spec.features):
        column = F.expr(feature.expression or column_sql(paths[feature.column]))
        value = _canonical(column, feature.value_type)
        named, whole = f"{_VALUE}{i}", feature.value_type.family in WHOLE
        if feature.expression or whole:  # in a projection of its own: evaluated once, and not at each comparison
            df = df.withColumn(named, value)
            helpers.append(named)
            value = column = F.col(named)
        if len(feature.breakpoints) <= TREE_LIMIT and whole:
            code = F.expr(_tree_sql(named, feature, 0, len(feature.breakpoints)))
        elif len(feature.breakpoints) <= TREE_LIMIT:
            code = _tree(value, feature, 0, len(feature.breakpoints))
        else:
            place = f"{_PLACE}{i}"
            points = _array(feature.breakpoints, feature.value_type)
            df = number_of_starts(df, value, points, len(feature.breakpoints), place)
            helpers.append(place)
            code = F.get(_array(feature.codes, ValueType("bigint")), F.col(place))
        codes.append(F.when(column.isNull(), F.lit(feature.null_code)).otherwise(code).cast("bigint"))
    names = [f"{_CELL}{i}" for i in range(len(codes))]
    df = df.withColumns(dict(zip(names, codes, strict=True)))
    extended = [(name, feature.bits) for name, feature in zip(names, spec.features, strict=True) if feature.extended]
    if extended:
        outside = F.lit(0).cast("bigint")
        for name, bits in extended:
            outside = outside.bitwiseOR(F.shiftright(F.col(name), bits))
        inside = {name: F.col(name).bitwiseAND(F.lit((1 << bits) - 1).cast("bigint")) for name, bits in extended}
        df = df.withColumn(_OUTSIDE, outside).withColumns(inside)
        helpers.append(_OUTSIDE)
    if spec.tree is not None:
        df = _walked(df.withColumn(_CODES, F.array(*names)), spec.tree)
    else:
        key = _interleaved([F.col(name) for name in names], spec)
        if spec.curve == "hilbert":
            assert hilbert_table is not None
            key = F.get(_array(hilbert_table.tolist(), ValueType("bigint")), key.cast("int"))
        df = df.withColumn(KEY, key)
    if extended:
        df = df.withColumn(KEY, F.col(KEY).bitwiseOR(F.shiftleft(F.col(_OUTSIDE), spec.bits)))
    return df.drop(*names, *helpers)


def _walked(df: DataFrame, tree: CutTree) -> DataFrame:
    """``df`` with the column `KEY`: from the root of the tree to a leaf, one projection per level."""
    from pyspark.sql import functions as F

    bigint = ValueType("bigint")
    asked = [max(0, i) for i in tree.feature]  # at a leaf either answer leads back to it
    feature, cut, key = (_array(items, bigint) for items in (asked, tree.cut, tree.key))
    child = _array([child for pair in zip(tree.low, tree.high, strict=True) for child in pair], bigint)
    df = df.withColumn(_NODE, F.lit(0))
    for _ in range(tree.depth):
        node = F.col(_NODE)
        up = F.get(F.col(_CODES), F.get(feature, node).cast("int")) >= F.get(cut, node)
        df = df.withColumn(_NODE, F.get(child, node * 2 + up.cast("int")).cast("int"))
    return df.withColumn(KEY, F.get(key, F.col(_NODE))).drop(_CODES, _NODE)


def number_of_starts(df: DataFrame, value: Column, starts: Column, longest: int, name: str) -> DataFrame:
    """``df`` with the int column ``name``: how many of the ascending ``starts`` (an array column) are <= ``value``.

    A binary search unrolled into one projection per step, each of which refers to the last.

    Args:
        longest: at least the length of the longest array.
    """
    from pyspark.sql import functions as F

    df = df.withColumn(name, F.lit(0))
    for bit in reversed(range(longest.bit_length())):
        step = 1 << bit
        reached = F.get(starts, F.col(name) + (step - 1)) <= value  # null beyond the end: not reached
        df = df.withColumn(name, F.when(reached, F.col(name) + step).otherwise(F.col(name)))
    return df


def _tree(value: Column, feature: FeatureCodes, low: int, high: int) -> Column:
    """A comparison tree over the breakpoints low .. high-1."""
    from pyspark.sql import functions as F

    if low == high:
        return F.lit(feature.codes[low])
    middle = (low + high) // 2
    point = F.get(_array(feature.breakpoints, feature.value_type), F.lit(middle))
    upper, lower = _tree(value, feature, middle + 1, high), _tree(value, feature, low, middle)
    return F.when(value >= point, upper).otherwise(lower)


def _tree_sql(value: str, feature: FeatureCodes, low: int, high: int) -> str:
    """`_tree` over a bigint column as one text: node by node it is hundreds of calls into the JVM."""
    if low == high:
        return f"{feature.codes[low]}L"
    middle = (low + high) // 2
    upper, lower = _tree_sql(value, feature, middle + 1, high), _tree_sql(value, feature, low, middle)
    return f"IF({value} >= {int(feature.breakpoints[middle])}L, {upper}, {lower})"


def _interleaved(codes: Sequence[Column], spec: KeySpec) -> Column:
    """Runs of bits of one feature are moved together: bit by bit would be one expression per bit."""
    from pyspark.sql import functions as F

    left = Counter(spec.order)
    place = spec.bits
    key = F.lit(0).cast("bigint")
    for index, run in groupby(spec.order):
        count = len(list(run))
        left[index] -= count
        place -= count
        bits = F.shiftright(codes[index], left[index]).bitwiseAND(F.lit((1 << count) - 1).cast("bigint"))
        key = key.bitwiseOR(F.shiftleft(bits, place))
    return key


def _canonical(column: Column, value_type: ValueType) -> Column:
    """The column in a form whose order Spark, numpy and the breakpoints agree on."""
    from pyspark.sql import functions as F

    match value_type.family:
        case "date":
            return F.unix_date(column).cast("bigint")
        case "timestamp":
            return F.unix_micros(column)
        case "timestamp_ntz":  # by parts, as a cast to a timestamp would bring in the session's time zone
            seconds = F.hour(column) * 3600 + F.minute(column) * 60
            micros = (F.extract(F.lit("SECOND"), column) * 1_000_000).cast("bigint")
            days = F.unix_date(column.cast("date")).cast("bigint")
            return days * 86_400_000_000 + seconds.cast("bigint") * 1_000_000 + micros
        case "integer":
            return column.cast("bigint")
        case "boolean":
            return column.cast("int").cast("bigint")
        case "float":
            return column.cast("double")
        case "binary":
            return F.hex(column)
    return column


def _array(values: Sequence[Any], value_type: ValueType) -> Column:
    """A constant array in the form of `_canonical`, as one literal however long it is."""
    from pyspark.sql import functions as F

    match value_type.family:
        case "float":
            return _parsed([repr(float(v)).replace("inf", "Infinity").replace("nan", "NaN") for v in values], "double")
        case "decimal":
            return _parsed(
                [str(Decimal(v).scaleb(-value_type.scale, Context(prec=50))) for v in values], value_type.name
            )
        case "string":
            return F.from_json(F.lit(json.dumps(list(values))), "array<string>")
        case "binary":
            return F.from_json(F.lit(json.dumps([v.hex().upper() for v in values])), "array<string>")
    return F.from_json(F.lit(json.dumps([int(v) for v in values])), "array<bigint>")


def _parsed(texts: list[str], type_name: str) -> Column:
    from pyspark.sql import functions as F

    return F.from_json(F.lit(json.dumps(texts)), "array<string>").cast(f"array<{type_name}>")
