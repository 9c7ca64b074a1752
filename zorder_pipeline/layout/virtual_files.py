"""Virtual files: what each file of a layout would hold of each column in bytes, told from a sample (seed 004, P3).

Sizes follow how Parquet stores a column (a dictionary with bit-packed indices, or plain values, then a codec), since
an order changes them: a column's values lie closer together, or are torn apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zorder_pipeline.model.kernel import kernel
from zorder_pipeline.model.values import ValueType
from zorder_pipeline.model.zone_map import PAGE_ROWS

from .skipping import Estimator

__all__ = ["files_read", "pieces", "times_asked", "virtual_file_bytes", "whole_distinct"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Column = tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]

DICTIONARY_LIMIT = 1 << 20
"""Parquet's writers give a dictionary up when it grows beyond this."""
SHORT_RUN = 8
"""Equal values in a row from which on an index is stored once with a count."""
RUN = 2
"""Bytes of a run besides its value: its count, and its ends that are bit-packed with their neighbours."""
SORTED = 0.02
"""Share of the changes that lead to a smaller value, up to which a file counts as sorted by the column."""
PAGE, PAGE_HEADER = 1 << 20, 30
PIECES = 8
CODECS = {
    "snappy": "snappy",
    "zstd": "zstd",
    "gzip": "gzip",
    "lz4": "lz4_raw",
    "lz4_raw": "lz4_raw",
    "brotli": "brotli",
}


def virtual_file_bytes(
    values: npt.NDArray[Any],
    valid: npt.NDArray[np.bool_],
    type_name: str,
    file: Ints,
    order: Ints,
    files: int,
    rows_per_sampled: float,
    codec: str = "snappy",
) -> Floats:
    """Bytes of one column in each virtual file, shape (files,).

    Args:
        values, valid: canonical values and validity of the sample's rows, shape (rows,).
        type_name: Spark type.
        file: virtual file of each row.
        order: rows by file, and inside by the layout's key, as they would be written.
        files: number of virtual files.
        rows_per_sampled: rows of the table that a sampled row stands for.
        codec: Parquet compression, as Spark names it.
    """
    rows = np.bincount(file, minlength=files) * rows_per_sampled
    chosen = order[valid[order]]
    here, codes = file[chosen], np.unique(values[chosen], return_inverse=True)[1].ravel()
    sampled = np.bincount(here, minlength=files).astype(np.float64)
    whole = sampled * rows_per_sampled
    distinct, words_of_file = _dictionaries(here, codes, files)
    width, plain = _plain(values[chosen], type_name)
    words = whole_distinct(distinct, sampled, whole)
    index_bits = np.ceil(np.log2(np.maximum(words, 2.0)) - 1e-3) * (words > 1.5)
    indices = np.minimum(whole * index_bits / 8, _runs(here, codes, sampled, words) * (RUN + index_bits / 8))
    typical = (float(whole.mean()) * width, float(words.mean()) * width, float(whole.mean() * index_bits.mean()) / 8)
    factor_plain, factor_words, factor_indices = _factors(plain, codes, words_of_file, width, codec, typical)
    as_words = words * width
    dictionary = (as_words <= DICTIONARY_LIMIT) & (as_words + indices < whole * width)
    packed = as_words * factor_words + indices * factor_indices
    nulls = np.where(sampled < np.bincount(file, minlength=files), rows / 8, 0.0)
    pages = np.where(dictionary, 2.0, 1.0) * PAGE_HEADER * (rows > 0)
    return np.asarray(np.where(dictionary, packed, whole * width * factor_plain) + nulls + pages)


def files_read(estimator: Estimator, file: npt.NDArray[np.int32], files: int) -> npt.NDArray[np.bool_]:
    """Which virtual files each query reads, shape (queries, files)."""
    lows, highs = _bounds(estimator, file, files)
    lows, highs = np.ascontiguousarray(lows.T), np.ascontiguousarray(highs.T)
    starts, result = estimator.box_starts.tolist(), np.zeros((estimator.queries, files), dtype=np.bool_)
    for box, query in enumerate(estimator.box_query.tolist()):
        hit = np.ones(files, dtype=np.bool_)
        for i in range(starts[box], starts[box + 1]):
            column = estimator.column[i]
            hit &= (highs[column] >= estimator.first[i]) & (lows[column] <= estimator.last[i])
        result[query] |= hit
    return result


def times_asked(
    estimator: Estimator, file: npt.NDArray[np.int32], files: int, times: npt.NDArray[np.float64]
) -> Floats:
    """How often each virtual file is read in all, shape (days, files).

    Args:
        times: how often each query is asked on several days, shape (days, queries).
    """
    lows, highs = _bounds(estimator, file, files)
    return np.asarray(
        _times_asked(
            np.ascontiguousarray(lows.T), np.ascontiguousarray(highs.T), estimator.box_starts, estimator.column,
            estimator.first, estimator.last, estimator.box_query, np.ascontiguousarray(times.T),
        )
    )  # fmt: skip


def _bounds(
    estimator: Estimator, file: npt.NDArray[np.int32], files: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Positions of each file's bounds, shape (files, columns)."""
    lows = np.full((files, estimator.low.shape[1]), np.iinfo(np.int32).max, dtype=np.int32)
    highs = np.full((files, estimator.high.shape[1]), -1, dtype=np.int32)
    np.minimum.at(lows, file, estimator.low)
    np.maximum.at(highs, file, estimator.high)
    return lows, highs


@kernel
def _times_asked(
    lows: Any, highs: Any, starts: Any, column: Any, first: Any, last: Any, box_query: Any, times: Any
) -> Any:  # pragma: no cover - compiled
    files, days = lows.shape[1], times.shape[1]
    found = np.zeros((days, files), dtype=np.float64)
    hit_query = np.zeros(files, dtype=np.bool_)
    hit_box = np.zeros(files, dtype=np.bool_)
    for box in range(len(box_query)):
        hit_box[:] = True
        for i in range(starts[box], starts[box + 1]):
            c = column[i]
            for f in range(files):
                hit_box[f] &= (highs[c, f] >= first[i]) & (lows[c, f] <= last[i])
        for f in range(files):
            hit_query[f] |= hit_box[f]
        query = box_query[box]
        if box + 1 == len(box_query) or box_query[box + 1] != query:
            for day in range(days):
                often = times[query, day]
                if often:
                    for f in range(files):
                        if hit_query[f]:
                            found[day, f] += often
            hit_query[:] = False
    return found


def pieces(file: Ints, order: Ints, number: int | Ints) -> npt.NDArray[np.int32]:
    """Each row's part when files are cut into equal parts in the order of their rows, such as row groups or pages.

    Args:
        number: parts of every file, or of each, shape (files,).
    """
    count = np.bincount(file)
    parts = np.broadcast_to(number, count.shape)
    start, first = (np.concatenate([[0], np.cumsum(of)[:-1]]) for of in (count, parts))
    place = np.empty(len(file), dtype=np.int64)
    place[order] = np.arange(len(file)) - start[file[order]]
    return np.asarray(first[file] + place * parts[file] // np.maximum(1, count[file]), dtype=np.int32)


def _dictionaries(file: Ints, codes: Ints, files: int) -> tuple[Floats, Ints]:
    """Distinct values of each file's sampled rows, and each row's value by its number among them."""
    span = int(codes.max()) + 1 if len(codes) else 1
    pairs, place = np.unique(file * span + codes, return_inverse=True)
    distinct = np.bincount(pairs // span, minlength=files)
    first = np.concatenate([[0], np.cumsum(distinct)[:-1]])
    return distinct.astype(np.float64), np.asarray(place.ravel() - first[file], dtype=np.int64)


def whole_distinct(distinct: Floats, sampled: Floats, whole: Floats) -> Floats:
    """Distinct values of ``whole`` rows when ``sampled`` of them showed ``distinct``: as if all were equally frequent.

    >>> np.round(whole_distinct(np.array([100.0, 63.4, 100.0]), np.array([100.0, 100.0, 1e6]), np.full(3, 1e6)))
    array([1.e+06, 1.e+02, 1.e+02])
    """
    low, high = distinct.copy(), np.maximum(whole, distinct) * 1e4
    for _ in range(50):
        middle = np.sqrt(np.maximum(low, 1e-9) * np.maximum(high, 1e-9))
        seen = _drawn(middle, sampled)
        low, high = np.where(seen < distinct, middle, low), np.where(seen < distinct, high, middle)
    told = np.where(distinct >= sampled, whole, _drawn(high, whole))
    return np.asarray(np.minimum(np.maximum(distinct, told), np.maximum(whole, distinct)) * (distinct > 0))


def _drawn(kinds: Floats, draws: Floats) -> Floats:
    """Expected distinct kinds in so many draws."""
    kinds = np.maximum(kinds, 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(-kinds * np.expm1(draws * np.log1p(-1 / np.maximum(kinds, 1 + 1e-12))))


def _runs(file: Ints, codes: Ints, sampled: Floats, words: Floats) -> Floats:
    """Runs of equal values in each whole file; infinitely many where they are too short to be stored as runs."""
    inside = file[1:] == file[:-1]
    count = np.bincount(file[1:], weights=inside & (codes[1:] != codes[:-1]), minlength=len(words)) + 1
    falls = np.bincount(file[1:], weights=inside & (codes[1:] < codes[:-1]), minlength=len(words))
    long = np.where(sampled >= SHORT_RUN * count, count, np.inf)  # rows of one key lie together, however many
    return np.asarray(np.where(falls <= SORTED * count, words, long))


def _plain(values: npt.NDArray[Any], type_name: str) -> tuple[float, bytes]:
    """Mean bytes of a value stored plain, and a page of values so stored."""
    kind = ValueType.parse(type_name)
    if kind.family in ("string", "binary"):
        texts = [v.encode() if isinstance(v, str) else bytes(v) for v in values.tolist()]
        width = 4 + float(np.mean([len(text) for text in texts])) if texts else 4.0
        some = texts[: int(PAGE / width) + 1]
        return width, b"".join(len(text).to_bytes(4, "little") + text for text in some)
    if kind.family == "boolean":
        return 1 / 8, np.packbits(values[: 8 * PAGE].astype(np.bool_)).tobytes()
    if kind.family == "float":
        dtype: Any = np.float32 if kind.name == "float" else np.float64
    else:
        dtype = np.int32 if _four_bytes(kind) else np.int64
    size = int(np.dtype(dtype).itemsize)
    if values.dtype == object:  # decimals beyond 18 digits, as fixed bytes
        return 16.0, b"".join(int(v).to_bytes(16, "big", signed=True) for v in values[: PAGE // 16].tolist())
    return float(size), values[: PAGE // size].astype(dtype).tobytes()


def _four_bytes(kind: ValueType) -> bool:
    if kind.family == "decimal":
        return int(kind.name.removeprefix("decimal(").split(",")[0]) <= 9
    return kind.family == "date" or kind.name in ("tinyint", "smallint", "int")


def _factors(
    plain: bytes, codes: Ints, indices: Ints, width: float, codec: str, typical: tuple[float, float, float]
) -> tuple[float, float, float]:
    """What a codec leaves of plain values, of a dictionary's words, and of packed indices.

    Args:
        indices: each value's number among those of its file.
        typical: bytes of each in a file; a codec finds less to repeat in little.
    """
    name = CODECS.get(codec.lower())
    if name is None or not plain or not pa.Codec.is_available(name):
        return 1.0, 1.0, 1.0
    bits = max(1, int(np.quantile(indices, 0.9)).bit_length()) if len(indices) else 1
    binary = ((indices[: 8 * PAGE // bits, None] >> np.arange(bits)) & 1).astype(np.uint8)
    packed = np.packbits(binary.ravel(), bitorder="little").tobytes()
    first = np.unique(codes[: int(len(plain) / max(width, 1 / 8))], return_index=True)[1]
    words = plain
    if width == int(width) and width >= 4:  # fixed width: the words themselves, as often as each occurs once
        size = int(width)
        table = np.frombuffer(plain[: len(plain) // size * size], dtype=np.dtype((np.void, size)))
        words = table[np.sort(first[first < len(table)])].tobytes() or plain
    sizes = [min(PAGE, PAGE_ROWS * width, typical[0]), typical[1], min(PAGE, PAGE_ROWS * bits / 8, typical[2])]
    found = [_left(part, int(size), pa.Codec(name)) for part, size in zip((plain, words, packed), sizes, strict=True)]
    return found[0], found[1], found[2]


def _left(part: bytes, size: int, codec: pa.Codec) -> float:
    """Share of the bytes that a codec leaves, in pieces of about ``size`` bytes."""
    size = min(len(part), max(64, size))
    starts = np.linspace(0, len(part) - size, min(PIECES, len(part) // size), dtype=np.int64).tolist()
    pieces = [part[start : start + size] for start in starts]
    left = float(sum(codec.compress(piece).size for piece in pieces))
    return min(1.0, left / sum(map(len, pieces)))
