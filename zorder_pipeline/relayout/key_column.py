"""The key of a row and how many bounds it has reached, in Spark SQL, compiled from the same data as the numpy kernels.

As text, which the JVM parses at once: Columns put together in Python are a thousand calls into it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.cut_tree import LEAF, CutTree
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec, ends_of_turns
from zorder_pipeline.model.spark_sql import column_sql
from zorder_pipeline.model.values import ValueType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["FILE", "KEY", "PAYLOAD", "RANGE", "Search", "array_sql", "canonical_sql"]
__all__ += ["numbers_of_starts", "with_key"]

KEY, RANGE, FILE, PAYLOAD = "__zorder_key", "__zorder_range", "__zorder_file", "__zorder_payload"
_CELL, _PLACE, _CODES, _NODE = "__zorder_cell", "__zorder_place", "__zorder_codes", "__zorder_node"
_EPOCH, _VALUE, _TURNED = "__zorder_epoch", "__zorder_value", "__zorder_turned"
WHOLE = ("integer", "date", "timestamp", "timestamp_ntz", "boolean")
"""Families whose `canonical_sql` form is a bigint."""
BIGINT = ValueType("bigint")
TREE_LIMIT = 31
"""More breakpoints than this are searched in an array: a larger comparison tree outgrows generated methods."""


class Search(NamedTuple):
    """What `numbers_of_starts` looks for.

    Attributes:
        name: column of the result.
        value: SQL of what is looked up.
        starts: SQL of an ascending array.
        longest: at least the length of the longest array.
        constant: whether ``starts`` is one array for all rows.
    """

    name: str
    value: str
    starts: str
    longest: int
    constant: bool = True


def with_key(
    df: DataFrame,
    spec: KeySpec,
    paths: Mapping[str, tuple[str, ...]],
    hilbert_table: npt.NDArray[np.int64] | None = None,
    beside: Sequence[str] | None = None,
) -> DataFrame:
    """``df`` with the bigint column `KEY`.

    Args:
        paths: path of each of the key's columns in ``df``, those that are expressions aside.
        hilbert_table: position on the curve by interleaved cell, for ``curve="hilbert"``.
        beside: put the columns of ``df`` into one, `PAYLOAD`, with copies of these beside it. A key takes a dozen
            projections, and where those of many columns are more than Java compiles, each of them copies the row.
    """
    from pyspark.sql import functions as F

    values: dict[str, str] = {}
    searches: list[Search] = []
    codes: dict[str, str] = {}
    for i, feature in enumerate(spec.features):
        column = f"({feature.expression})" if feature.expression else column_sql(paths[feature.column])
        value = f"{_VALUE}{i}"
        values[value] = canonical_sql(column, feature.value_type)
        if len(feature.breakpoints) <= TREE_LIMIT:
            code = _tree(value, feature, 0, len(feature.breakpoints))
        else:
            points = array_sql(feature.breakpoints, feature.value_type)
            searches.append(Search(f"{_PLACE}{i}", value, points, len(feature.breakpoints)))
            code = _get(feature.codes, BIGINT, f"{_PLACE}{i}")
        if feature.nan_code is not None:
            code = f"IF(isnan({value}), {feature.nan_code}, {code})"
        codes[f"{_CELL}{i}"] = f"CAST(IF({value} IS NULL, {feature.null_code}, {code}) AS BIGINT)"
    kept = [F.col(column_sql((name,))) for name in (df.columns if beside is None else beside)]
    if beside is not None:
        kept.append(F.struct(*(F.col(column_sql((name,))) for name in df.columns)).alias(PAYLOAD))
    # values in a projection of their own: evaluated once, and not at each comparison
    df = df.select(*kept, *(F.expr(text).alias(name) for name, text in values.items()))
    df = _with(numbers_of_starts(df, _told_constant(df, searches)), codes)
    names, helpers = list(codes), [*values, *(search.name for search in searches)]
    extended = [(name, feature.bits) for name, feature in zip(names, spec.features, strict=True) if feature.epochs]
    if extended:
        epochs = [f"shiftright({name}, {bits})" for name, bits in extended]
        inside = {name: f"{name} & {(1 << bits) - 1}L" for name, bits in extended}
        df = _with(df, {_EPOCH: f"greatest({', '.join(epochs)})" if len(epochs) > 1 else epochs[0]} | inside)
        helpers.append(_EPOCH)
    if spec.tree is not None:
        df = _walked(_with(df, {_CODES: f"array({', '.join(names)})"}), spec.tree)
    else:
        key = _interleaved(names, spec)
        if spec.curve == "hilbert":
            assert hilbert_table is not None
            key = _get(hilbert_table.tolist(), BIGINT, f"CAST({key} AS INT)")
        df = _with(df, {KEY: key})
        if spec.curve == "gray" and (ends := ends_of_turns(spec.order)):  # as in `gray_rank`
            df = _with(df, {_TURNED: f"{KEY} & {ends}L"})
            for step in range((spec.bits - 1).bit_length()):
                df = _with(df, {_TURNED: f"{_TURNED} ^ shiftright({_TURNED}, {1 << step})"})
            df = _with(df, {KEY: f"{KEY} ^ shiftright({_TURNED}, 1)"})
            helpers.append(_TURNED)
    if extended:
        df = _with(df, {KEY: f"{KEY} | shiftleft({_EPOCH}, {spec.bits})"})
    return df.drop(*names, *helpers)


def _told_constant(df: DataFrame, searches: Sequence[Search]) -> list[Search]:
    """The searches, as constant where values have the breakpoints' type: not so when a decimal was widened since."""
    from pyspark.sql import functions as F

    if not searches:
        return []
    types = dict(
        df.select(*(F.expr(f"get({s.starts}, 0)").alias(s.name) for s in searches), *(s.value for s in searches)).dtypes
    )
    return [search._replace(constant=types[search.name] == types[search.value]) for search in searches]


def _with(df: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """``df`` with columns by their SQL, which sees those of ``df``."""
    from pyspark.sql import functions as F

    return df.withColumns({name: F.expr(text) for name, text in columns.items()}) if columns else df


def _walked(df: DataFrame, tree: CutTree) -> DataFrame:
    """``df`` with the column `KEY`: from the root of the tree to a leaf, two levels per projection.

    What a second level repeats of the first one Spark evaluates once, in a method of its own: so projections stay small
    enough to be compiled together with their neighbours. Where they are not, each copies the rows.
    """
    cut_bits, feature_bits = max(tree.cut).bit_length() + 1, max(0, *tree.feature).bit_length()
    nodes, places = _packed(tree, cut_bits, feature_bits)

    def children(node: str) -> str:
        return f"CAST(shiftright({node}, {cut_bits + feature_bits}) AS INT)"

    def below(node: str) -> str:
        asked = f"CAST(shiftright({node}, {cut_bits}) & {(1 << feature_bits) - 1}L AS INT)"
        upwards = f"IF(get({_CODES}, {asked}) >= ({node} & {(1 << cut_bits) - 1}L), 1, 0)"
        return _get(nodes, BIGINT, f"{children(node)} | {upwards}")

    df = _with(df, {_NODE: f"{nodes[0]}L"})
    for level in range(0, tree.depth, 2):
        df = _with(df, {_NODE: below(below(_NODE)) if level + 1 < tree.depth else below(_NODE)})
    return _with(df, {KEY: _get([tree.key[node] for node in places], BIGINT, children(_NODE))}).drop(_CODES, _NODE)


def _packed(tree: CutTree, cut_bits: int, feature_bits: int) -> tuple[list[int], list[int]]:
    """Nodes as integers: the place of the lower child, the feature asked about and the cut, highest bits first.

    Also the node of ``tree`` at each place. The upper child comes after the lower one, which has an even place; a leaf
    is its own child by a cut that no code reaches. Place 1 has no node of its own.
    """
    places, packed = [0, 0], []
    for place, node in enumerate(places):  # which grow meanwhile
        lower, asked, cut = place, 0, (1 << cut_bits) - 1
        if place != 1 and tree.feature[node] != LEAF:
            lower, asked, cut = len(places), tree.feature[node], tree.cut[node]
            places += [tree.low[node], tree.high[node]]
        packed.append(lower << (cut_bits + feature_bits) | asked << cut_bits | cut)
    return packed, places


def numbers_of_starts(df: DataFrame, searches: Sequence[Search]) -> DataFrame:
    """``df`` with int columns: how many of the ascending starts are at most the value, 0 for null.

    Constant starts by a function of Spark's own. It would copy others for every row: those are searched in halves, a
    projection per step, each of which refers to the last.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.internal import InternalFunction

    own = [search for search in searches if search.constant]
    found = {item.name: InternalFunction.array_binary_search(F.expr(item.starts), F.expr(item.value)) for item in own}
    df = df.withColumns(found) if found else df
    df = _with(df, {name: f"coalesce(IF({name} >= 0, {name} + 1, -1 - {name}), 0)" for name in found})
    others = [search for search in searches if not search.constant]
    df = _with(df, {search.name: "0" for search in others})
    for bit in reversed(range(max((search.longest.bit_length() for search in others), default=0))):
        step, reached = 1 << bit, {}
        for search in others:
            if search.longest >= step:  # null beyond the end: not reached
                name, start = search.name, f"get({search.starts}, {search.name} + {step - 1})"
                reached[name] = f"IF({start} <= {search.value}, {name} + {step}, {name})"
        df = _with(df, reached)
    return df


def _tree(value: str, feature: FeatureCodes, low: int, high: int) -> str:
    """A comparison tree over the breakpoints low .. high-1."""
    if low == high:
        return f"{feature.codes[low]}L"
    middle = (low + high) // 2
    point = feature.breakpoints[middle]
    constant = f"{int(point)}L" if feature.value_type.family in WHOLE else _get([point], feature.value_type, "0")
    upper, lower = _tree(value, feature, middle + 1, high), _tree(value, feature, low, middle)
    return f"IF({value} >= {constant}, {upper}, {lower})"


def _interleaved(codes: Sequence[str], spec: KeySpec) -> str:
    """Runs of bits of one feature are moved together: bit by bit would be one expression per bit."""
    left = Counter(spec.order)
    place = spec.bits
    runs = []
    for index, run in groupby(spec.order):
        count = len(list(run))
        left[index] -= count
        place -= count
        runs.append(f"shiftleft(shiftright({codes[index]}, {left[index]}) & {(1 << count) - 1}L, {place})")
    return " | ".join(["0L", *runs])


def canonical_sql(column: str, value_type: ValueType) -> str:
    """The column in a form whose order Spark, numpy and the breakpoints agree on."""
    match value_type.family:
        case "date":
            return f"CAST(unix_date({column}) AS BIGINT)"
        case "timestamp":
            return f"unix_micros({column})"
        case "timestamp_ntz":  # by parts, as a cast to a timestamp would bring in the session's time zone
            seconds = f"CAST(hour({column}) * 3600 + minute({column}) * 60 AS BIGINT) * 1000000L"
            micros = f"CAST(extract(SECOND FROM {column}) * 1000000 AS BIGINT)"
            return f"CAST(unix_date(CAST({column} AS DATE)) AS BIGINT) * 86400000000L + {seconds} + {micros}"
        case "integer":
            return f"CAST({column} AS BIGINT)"
        case "boolean":
            return f"CAST(CAST({column} AS INT) AS BIGINT)"
        case "float":
            return f"CAST({column} AS DOUBLE)"
        case "binary":
            return f"hex({column})"
    return column


def array_sql(values: Sequence[Any], value_type: ValueType = BIGINT) -> str:
    """A constant array in the form of `canonical_sql`, which is one literal in a plan however long it is.

    >>> array_sql([1, 2])
    "from_json(decode(X'5b312c20325d', 'UTF-8'), 'array<bigint>')"
    """
    match value_type.family:
        case "float":
            texts = [repr(float(v)).replace("inf", "Infinity").replace("nan", "NaN") for v in values]
            return f"CAST({_from_json(texts, 'string')} AS ARRAY<DOUBLE>)"
        case "decimal":
            texts = [str(Decimal(v).scaleb(-value_type.scale, Context(prec=50))) for v in values]
            return f"CAST({_from_json(texts, 'string')} AS ARRAY<{value_type.name}>)"
        case "string":
            return _from_json(list(values), "string")
        case "binary":
            return _from_json([v.hex().upper() for v in values], "string")
    return _from_json([int(v) for v in values], "bigint")


def _get(values: Sequence[Any], value_type: ValueType, place: str) -> str:
    """The element of a constant array at a place, which is an int's SQL; null beyond its end."""
    return f"get({array_sql(values, value_type)}, {place})"


def _from_json(items: list[Any], kind: str) -> str:
    """As bytes: how a text is quoted depends on the session's settings."""
    return f"from_json(decode(X'{json.dumps(items).encode().hex()}', 'UTF-8'), 'array<{kind}>')"
