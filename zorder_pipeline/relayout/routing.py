"""Where rows go: a histogram of keys per partition, the files it is cut into, and each row with its file's number."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zorder_pipeline.model.spark_sql import column_sql
from zorder_pipeline.model.values import ValueType

from .key_column import FILE, KEY, RANGE, Search, array_sql, canonical_sql, numbers_of_starts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["Cutter", "PartitionCuts", "by_hash", "cut", "histogram_of", "keys_of_partitions", "routed"]
__all__ += ["sampled_share", "surely_bounded", "to_files"]

_STARTS, _OFFSETS, _PIECES, _ROW = "__zorder_starts", "__zorder_offsets", "__zorder_pieces", "__zorder_row"
SAMPLED_ROWS = 4000
WORTH_SAMPLING = 0.25
LOW, HIGH = 0.55, 1.85
_ARRAYS = (_STARTS, _OFFSETS, _PIECES)


class _Cuts(Protocol):
    """Where files begin; see `zorder_pipeline.layout.cells.Cuts`."""

    @property
    def starts(self) -> npt.NDArray[np.int64]: ...
    @property
    def pieces(self) -> npt.NDArray[np.int64]: ...
    @property
    def sizes(self) -> npt.NDArray[np.float64]: ...


Cutter = Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64]], _Cuts]
"""From the keys that occur in a partition and their rows to its files."""

Histogram = tuple[list[tuple[Any, ...]], npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Partition values, key and rows, one entry per partition and key that occurs."""


def histogram_of(keyed: DataFrame, partitions: tuple[str, ...], share: float = 1.0) -> Histogram:
    """Rows per partition and key: a scan of the key's columns alone.

    Args:
        share: ``keyed`` is so large a sample of the rows, as from `sampled_share`; the counts are extrapolated.
    """
    aliased = [_plain(keyed, name).alias(f"p{i}") for i, name in enumerate(partitions)]
    table = keyed.select(*aliased, KEY).groupBy(*(f"p{i}" for i in range(len(partitions))), KEY).count().toArrow()
    values = list(zip(*(table[f"p{i}"].to_pylist() for i in range(len(partitions))), strict=True)) if partitions else []
    keys = table[KEY].to_numpy().astype(np.int64)
    counts = np.maximum(1, np.round(table["count"].to_numpy() / share)).astype(np.int64)
    return values or [()] * len(keys), keys, counts


def sampled_share(rows_of_partitions: Collection[int], target_rows: int) -> float:
    """Share of the rows that a histogram needs, so that each file has `SAMPLED_ROWS` of them: 1 for small files.

    A file's rows are then known with a standard error of 1.6%; see `surely_bounded`.

    >>> sampled_share([6_000_000], 1_000_000), sampled_share([6_000_000, 100], 1_000_000)
    (0.004, 1.0)
    """
    share = SAMPLED_ROWS / max(1, min([target_rows, *rows_of_partitions]))
    return share if share <= WORTH_SAMPLING else 1.0


@dataclass(frozen=True)
class PartitionCuts:
    """The files of one partition: its values, where ranges of keys begin, files and rows of each range.

    And the rows that files of a range are meant to have, in units of the target.
    """

    value: tuple[Any, ...]
    starts: npt.NDArray[np.int64]
    pieces: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.float64]


def cut(histogram: Histogram, cutter: Cutter) -> list[PartitionCuts]:
    """The files of every partition of a histogram."""
    values, keys, counts = histogram
    members: dict[tuple[Any, ...], list[int]] = {}
    for i, value in enumerate(values):
        same = tuple(math.nan if item != item else item for item in value)  # one NaN for all: it is not equal to itself
        members.setdefault(same, []).append(i)
    result = []
    for value, index in members.items():
        place = np.array(index)[np.argsort(keys[index])]
        cuts = cutter(keys[place], counts[place])
        range_of = np.searchsorted(cuts.starts, keys[place], side="right")
        rows = np.bincount(range_of, weights=counts[place], minlength=len(cuts.pieces)).astype(np.int64)
        result.append(PartitionCuts(value, cuts.starts, cuts.pieces, rows, cuts.sizes))
    return result


def surely_bounded(cuts: Sequence[PartitionCuts], target_rows: int) -> bool:
    """Whether no file, but for a partition's last, can be twice as large as meant or half so, up to sampling errors.

    Five standard errors are 8%, so sizes must lie between 0.55 and 1.85 times the target.
    """
    for partition in cuts:
        even_rows = partition.rows / partition.sizes
        total = float(even_rows.sum())
        target = total / max(1, round(total / target_rows))
        size = even_rows / partition.pieces / target
        if len(size) > 1 and (size.max() > HIGH or size[:-1].min() < LOW):
            return False
    return True


def routed(
    keyed: DataFrame, cuts: Sequence[PartitionCuts], partitions: tuple[str, ...], highest: int
) -> tuple[DataFrame, list[tuple[int, int, float]]]:
    """``keyed`` with the column `FILE`, and of each file the range of keys, and its size as in `PartitionCuts`.

    Args:
        cuts: from `cut`.
        partitions: names of the partition columns.
        highest: largest key there can be.
    """
    from pyspark.sql import functions as F

    plans: list[tuple[tuple[Any, ...], list[int], list[int], list[int]]] = []
    ranges: list[tuple[int, int, float]] = []
    for partition in cuts:
        offsets = len(ranges) + np.concatenate([[0], np.cumsum(partition.pieces)[:-1]])
        plans.append((partition.value, partition.starts.tolist(), offsets.tolist(), partition.pieces.tolist()))
        edges = [0, *partition.starts.tolist(), highest + 1]
        each = zip(edges[:-1], edges[1:], partition.pieces.tolist(), partition.sizes.tolist(), strict=True)
        for low, above, pieces, size in each:
            ranges += [(low, above - 1, size)] * pieces
    longest = max((len(starts) for _, starts, _, _ in plans), default=0)
    if partitions:
        keyed = _joined(keyed, plans, partitions)
        starts, first, among = _ARRAYS
    else:
        starts, first, among = (array_sql(items) for items in plans[0][1:])
    dealt = any(count > 1 for _, _, _, pieces in plans for count in pieces)
    if dealt:  # deterministic: a retried task must send its rows where the first try did
        keyed = keyed.withColumn(_ROW, F.monotonically_increasing_id())
    ranged = numbers_of_starts(keyed, [Search(RANGE, KEY, starts, longest, constant=not partitions)])
    target = f"get({first}, {RANGE})"
    if dealt:
        target += f" + pmod({_ROW}, get({among}, {RANGE}))"
    return ranged.withColumn(FILE, F.expr(target)), ranges


def to_files(targeted: DataFrame, number: int) -> DataFrame:
    """``targeted`` in ``number`` Spark partitions, each row in the one that its column `FILE` names."""
    from pyspark.sql import functions as F

    if hasattr(targeted, "repartitionById"):  # since Spark 4.1
        return targeted.repartitionById(number, F.col(FILE).cast("int"))
    return by_hash(targeted, number)


def by_hash(targeted: DataFrame, number: int) -> DataFrame:
    """`to_files` without ``repartitionById``: by keys that Spark's hash partitioning sends where they belong."""
    from pyspark.sql import functions as F

    keys = array_sql(keys_of_partitions(number).tolist())
    # as an int: a bigint of the same value has another hash
    return targeted.repartition(number, F.expr(f"CAST(get({keys}, CAST({FILE} AS INT)) AS INT)"))


def keys_of_partitions(number: int) -> npt.NDArray[np.int32]:
    """For each of ``number`` Spark partitions an integer that Spark's hash partitioning sends there.

    The hash is Murmur3 with seed 42, the one of ``pyspark.sql.functions.hash``; tables bucketed by Spark rest on it.
    """
    keys = np.zeros(number, dtype=np.int32)
    missing = np.ones(number, dtype=np.bool_)
    first, size = 0, max(1024, 4 * number)
    while missing.any():
        tried = np.arange(first, first + size, dtype=np.int32)
        partition, index = np.unique(_murmur3(tried).astype(np.int64) % number, return_index=True)
        keys[partition] = np.where(missing[partition], tried[index], keys[partition])
        missing[partition] = False
        first += size
    return keys


def _murmur3(values: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Spark's hash of an INT column."""

    def rotated(x: npt.NDArray[np.uint32], by: int) -> npt.NDArray[np.uint32]:
        return (x << np.uint32(by)) | (x >> np.uint32(32 - by))

    with np.errstate(over="ignore"):
        mixed = rotated(values.view(np.uint32) * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
        found = rotated(np.uint32(42) ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        found ^= np.uint32(4)  # bytes hashed
        found = (found ^ (found >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        found = (found ^ (found >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        found ^= found >> np.uint32(16)
    return found.view(np.int32)


def _plain(rows: DataFrame, name: str) -> Column:
    """A partition column in a form that Python has: it has no dates before the year 1 nor beyond 9999."""
    from pyspark.sql import functions as F

    column, kind = column_sql((name,)), ValueType.parse(rows.schema[name].dataType.simpleString())
    return F.expr(canonical_sql(column, kind) if kind.family in ("date", "timestamp", "timestamp_ntz") else column)


def _joined(keyed: DataFrame, plans: list[tuple[Any, ...]], partitions: tuple[str, ...]) -> DataFrame:
    """Each row with its partition's arrays, by a broadcast join."""
    from pyspark.sql import functions as F

    # as an Arrow table, which the JVM reads itself: executors need no Python
    columns: dict[str, Any] = {f"__zorder_p{i}": [plan[0][i] for plan in plans] for i in range(len(partitions))}
    columns |= {name: pa.array([plan[1 + i] for plan in plans], pa.list_(pa.int64())) for i, name in enumerate(_ARRAYS)}
    small = keyed.sparkSession.createDataFrame(pa.table(columns))
    values = [_plain(keyed, name) for name in partitions]
    condition = F.lit(True)
    for i, (value, (_, kind)) in enumerate(zip(values, keyed.select(*values).dtypes, strict=True)):
        small = small.withColumn(f"__zorder_p{i}", F.col(f"__zorder_p{i}").cast(kind))
        condition = condition & value.eqNullSafe(F.col(f"__zorder_p{i}"))
    return keyed.join(F.broadcast(small), condition, "left").drop(*(f"__zorder_p{i}" for i in range(len(partitions))))
