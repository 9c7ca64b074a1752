"""Order-preserving unsigned forms of values, Impala's Z-order comparator over them, and raw-bit features (seed 001).

The *unsigned form* of a value has 32, 64 or 128 bits and comes in the total order of `zorder_pipeline.model.values`.
Every type fills it from the most significant bit, so that columns of different sizes compare fairly: a smaller type is
shifted up, a larger one loses its least significant bits, after which different values may share a form.

==============================  ======================  =============================================================
type                           bits it fills           form
==============================  ======================  =============================================================
tinyint, smallint, int, bigint  8, 16, 32, 64           two's complement, sign bit flipped
date, timestamp                 32 days, 64 micros      as integers (Impala's own timestamps are days and nanoseconds)
decimal(p,s)                    32, 64, 128             the unscaled integer; p to 9, 18, 38
float, double                   32, 64                  IEEE 754: sign bit flipped, all bits if negative; -0.0 is 0.0
boolean                         1                       0 or 1
string, binary                  any                     first bytes (UTF-8), filled with zeros
==============================  ======================  =============================================================
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_left
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from zorder_pipeline.errors import PlanError
from zorder_pipeline.model.key_spec import FeatureCodes
from zorder_pipeline.model.values import Value, ValueType

__all__ = ["MAX_RAW_BITS", "compare_z_order", "most_significant_dimension", "raw_encoding", "unsigned_form"]

MAX_RAW_BITS = 12
"""Raw bits become one breakpoint per code, so their number is bounded."""
STRING_BYTES = 2
"""Bytes of a string or of binary that raw bits are taken from."""
_PREFIX = 16  # bytes of the widest form
_DTYPES: dict[int, type] = {32: np.uint32, 64: np.uint64, 128: object}


def unsigned_form(
    values: npt.NDArray[Any],
    valid: npt.NDArray[np.bool_],
    value_type: ValueType,
    width: Literal[32, 64, 128] = 64,
    nulls: Literal["own", "impala"] = "own",
) -> npt.NDArray[Any]:
    """Unsigned forms of rows, shape (n,): uint32, uint64, or Python integers for 128 bits.

    Args:
        values: canonical values, shape (n,); -0.0 and any NaN may be among them.
        valid: False where null, shape (n,).
        width: bits of the form.
        nulls: ``own``: null alone has 0 and NaN is above infinity; values that would have 0 get 1 (so in a width that
            the type fills its two smallest integers meet). ``impala``: null and NaN are 0, as is the smallest integer;
            no key has that, it is the seed's form (001), by whose vectors the mapping is tested.

    Raises:
        ValueError: the type cannot be ordered, or there is no such width.

    >>> smallints, valid = np.array([-32768, -1, 0, 7]), np.array([True, True, True, False])
    >>> [f"{form:08x}" for form in unsigned_form(smallints, valid, ValueType("smallint"), 32)]
    ['00000001', '7fff0000', '80000000', '00000000']
    """
    if not value_type.orderable:
        raise ValueError(f"values of type {value_type.name} have no order")
    if width not in _DTYPES:
        raise ValueError(f"an unsigned form of {width} bits; one of 32, 64, 128")
    present = values[valid]
    high, low = _words(present, value_type)
    form: npt.NDArray[Any] = high >> np.uint64(max(64 - width, 0))
    if width == 128:
        form = (high.astype(object) << 64) | low.astype(object)
    if nulls == "own":
        form = np.maximum(form, 1)
    elif value_type.family == "float":
        form[np.isnan(present)] = 0
    out: npt.NDArray[Any] = np.zeros(len(values), dtype=_DTYPES[width])
    out[valid] = form
    return out


def _words(present: npt.NDArray[Any], value_type: ValueType) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """The 128-bit forms of values without nulls, as their upper and lower halves."""
    size, family = _size(value_type), value_type.family
    if family in ("string", "binary"):
        prefixes = [value[:_PREFIX] for value in present]  # a code point has at least one byte
        encoded = [prefix.encode() for prefix in prefixes] if family == "string" else prefixes
        words = np.array(encoded, dtype=f"S{_PREFIX}").view(">u8").reshape(-1, 2).astype(np.uint64)
        return words[:, 0], words[:, 1]
    if size == 128:
        flipped = [int(value) + (1 << 127) for value in present]
        upper = np.array([value >> 64 for value in flipped], dtype=np.uint64)
        return upper, np.array([value & ((1 << 64) - 1) for value in flipped], dtype=np.uint64)
    if family == "float":
        numbers = np.where(np.isnan(present), np.nan, present + 0.0)  # one NaN, and -0.0 becomes 0.0
        raw = numbers.astype(f"f{size // 8}").view(f"u{size // 8}")
        sign = raw.dtype.type(1 << (size - 1))
        unsigned = np.where(raw & sign, ~raw, raw | sign).astype(np.uint64)
    else:
        unsigned = present.astype(np.int64).view(np.uint64) + np.uint64(_zero(value_type))  # wraps
    return unsigned << np.uint64(64 - size), np.zeros(len(present), dtype=np.uint64)


def _size(value_type: ValueType) -> int:
    """Bits that values of the type fill; for strings and binary, those of the prefix."""
    if value_type.family == "decimal":
        digits = len(str(value_type.bounds[1])) if value_type.bounds else 38
        return 32 if digits <= 9 else 64 if digits <= 18 else 128
    if value_type.family in ("string", "binary"):
        return 8 * _PREFIX
    return {"boolean": 1, "tinyint": 8, "smallint": 16, "int": 32, "date": 32, "float": 32}.get(value_type.name, 64)


def _zero(value_type: ValueType) -> int:
    """Unsigned form, in as many bits as the type fills, of the integer 0."""
    return 0 if value_type.family == "boolean" else 1 << (_size(value_type) - 1)


def most_significant_dimension(left: Sequence[int], right: Sequence[int]) -> int:
    """The dimension that decides between two rows in Z-order: the one in which they differ at the highest bit.

    Of several the first; 0 if the rows are equal. An oracle for the interleaved keys: Impala's test (seed 001), by
    which no bits are interleaved: the highest bit of x is below that of y exactly if x < y and x < x ^ y.

    Args:
        left: unsigned forms of one row, one per dimension, all of one width.
        right: those of the other row.

    >>> most_significant_dimension([1, 3], [2, 0])  # 01, 11 and 10, 00 differ at the upper bit in both
    0
    """
    dimension, highest = 0, 0
    for i, (a, b) in enumerate(zip(left, right, strict=True)):
        difference = int(a) ^ int(b)
        if highest < difference and highest < highest ^ difference:
            dimension, highest = i, difference
    return dimension


def compare_z_order(left: Sequence[int], right: Sequence[int]) -> int:
    """-1, 0 or 1: whether a row comes before another in Z-order, is equal to it, or comes after it.

    The seed's comparator (001), an oracle for the interleaved keys. The first dimension has the most significant bit of
    the key, as in `zorder_pipeline.layout.interleave.round_robin`; the arguments are those of
    `most_significant_dimension`.

    >>> compare_z_order([1, 3], [2, 0])  # seed 001's example
    -1
    """
    dimension = most_significant_dimension(left, right)
    return int(left[dimension] > right[dimension]) - int(left[dimension] < right[dimension])


def raw_encoding(column: str, type_name: str, bits: int, known: tuple[Value, Value] | None = None) -> FeatureCodes:
    """The ``bits`` most significant bits of the type's unsigned form, as a feature; nulls have the smallest code.

    A code's breakpoint is the smallest value whose code it is. Codes that no value has are left out.

    Args:
        known: the smallest and the largest value that there are. The bits in which these agree are passed over, with a
            string's first characters: of a type's first bits the values of a column rarely use one. Values outside have
            the first code and the last.

    Raises:
        PlanError: the type has no order, or more than 12 bits are asked for.

    >>> raw_encoding("x", "string", 3)
    FeatureCodes(column='x', type='string', breakpoints=(' ', '@', '`', '\\x80', '\\u0800'),
                 codes=(0, 1, 2, 3, 6, 7), bits=3, null_code=0, high=None, ...)
    >>> raw_encoding("x", "int", 2, (0, 99)).breakpoints
    (32, 64, 96)
    """
    value_type = ValueType.parse(type_name)
    if not value_type.orderable:
        raise PlanError(f"column {column} of type {type_name} has no order and so no raw bits; leave it out")
    if bits > MAX_RAW_BITS:
        raise PlanError(f"{column}:{bits} asks for more than {MAX_RAW_BITS} raw bits; use --encoding rank")
    if bits < 1:
        raise PlanError(f"{column}:{bits} asks for no bits; give 1 to {MAX_RAW_BITS}, or leave the column out")
    passed, lead, text = _agreed(value_type, known, bits) if known is not None else (0, 0, "")
    codes: dict[Value, int] = {}
    for code in range(1 << bits):
        if (first := _first_value(value_type, lead << bits | code, passed + bits)) is not None:
            codes[text + first if isinstance(first, str) else first] = code  # of codes with one start the last has it
    high = known[1] if known is not None else None
    return FeatureCodes(column, type_name, tuple(codes)[1:], tuple(codes.values()), bits, high=high)


def _agreed(value_type: ValueType, known: tuple[Value, Value], bits: int) -> tuple[int, int, str]:
    """The first bits in which two values agree, their number first, as far as ``bits`` more follow them.

    Of strings those after the characters that they have in common, which come last.
    """
    text, size = "", _size(value_type)
    first, last = known
    if isinstance(first, str) and isinstance(last, str):
        text = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))
        size = 8 * STRING_BYTES
        first, last = first[len(text) :], last[len(text) :]
    values = np.empty(2, dtype=value_type.numpy_dtype)
    values[:] = first, last
    low, high = (int(form) for form in unsigned_form(values, np.ones(2, dtype=np.bool_), value_type, 128))
    passed = max(0, min(128 - (low ^ high).bit_length(), size - bits))
    return passed, low >> (128 - passed), text


def _first_value(value_type: ValueType, code: int, bits: int) -> Value | None:
    """The smallest value whose form begins with ``code`` or more, in ``bits`` bits; None if there is none."""
    size, family, zero = _size(value_type), value_type.family, _zero(value_type)
    if family in ("string", "binary"):
        filled = (code << (8 * STRING_BYTES - bits)).to_bytes(STRING_BYTES, "big")
        start = filled.rstrip(b"\0")  # x and x, 0 have one form: x is smaller
        return start if family == "binary" else _first_string(start)
    form = -(-(code << size) >> bits)  # rounded up where the type has fewer bits
    if family == "float":
        return _first_float(form, value_type)
    low, high = value_type.bounds or (-zero, (1 << size) - 1 - zero)
    return max(low, form - zero) if form - zero <= high else None


def _first_float(form: int, value_type: ValueType) -> float | None:
    """The smallest float whose unsigned form is at least ``form``; below minus infinity and above infinity lie NaNs."""
    single = value_type.name == "float"
    size, word, number = (32, "<I", "<f") if single else (64, "<Q", "<d")
    sign = 1 << (size - 1)
    raw = form ^ sign if form & sign else form ^ ((1 << size) - 1)
    value = float(struct.unpack(number, struct.pack(word, raw))[0])
    if not math.isnan(value):
        return value
    if not form & sign:
        return -math.inf
    nan = unsigned_form(np.array([math.nan]), np.ones(1, dtype=np.bool_), value_type, 32 if single else 64)
    return math.nan if form <= int(nan[0]) else None  # always this one object, so that equal keys meet


def _first_string(start: bytes) -> str | None:
    """The smallest string whose UTF-8 bytes are at least ``start`` (at most two bytes, which need be no valid UTF-8).

    The order of UTF-8 bytes is that of code points: either the first byte of ``start`` is a character and what follows
    meets the rest, or a single character comes next.

    >>> _first_string(b"A"), _first_string(b"A\\x80"), _first_string(b"A\\xff"), _first_string(b"\\xff")
    ('A', 'A\\x80', 'B', None)
    """
    if not start:
        return ""
    if start[0] < 0x80 and (rest := _first_string(start[1:])) is not None:
        return chr(start[0]) + rest
    point = bisect_left(range(0x110000), start, key=lambda point: chr(point).encode(errors="surrogatepass"))
    if 0xD800 <= point <= 0xDFFF:  # surrogates are no characters
        point = 0xE000
    return chr(point) if point < 0x110000 else None
