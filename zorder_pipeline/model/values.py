"""One total order per Spark type, in a canonical Python/numpy form that agrees with Spark and with Delta's statistics.

A *canonical value* is an ``int`` (integers, booleans, dates as days and timestamps as microseconds since 1970, decimals
as unscaled integers), a ``float`` (NaN is the largest value, -0.0 equals 0.0), a ``str`` (ordered by code point, which
is the order of its UTF-8 bytes) or ``bytes``. Null is no value: it has its own place wherever rows are ordered.
"""

from __future__ import annotations

import base64
import math
import re
from dataclasses import dataclass
from decimal import Context
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["DAY", "Value", "ValueType", "canonical_array", "comparable", "order_key", "readable", "sort_unique"]
__all__ += ["value_from_json", "value_to_json"]

DAY = 86_400_000_000
"""A day in timestamps, which are microseconds."""

Value: TypeAlias = int | float | str | bytes
"""A canonical value (see the module's docstring)."""

_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_SYNONYMS = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float"}
_SIMPLE = {"float": "float", "double": "float", "string": "string", "date": "date", "timestamp": "timestamp"}
_DECIMAL = re.compile(r"decimal\((\d{1,2}),\s*(-?\d{1,2})\)")


@dataclass(frozen=True)
class ValueType:
    """A Spark SQL type, named as ``DataType.simpleString()`` names it.

    >>> ValueType.parse("decimal(12,2)").family
    'decimal'
    >>> ValueType.parse("array<int>").orderable
    False
    """

    name: str

    @staticmethod
    @cache
    def parse(name: str) -> ValueType:
        """The type called ``name``; synonyms (``long``, ``integer``, ``varchar(10)``) become Spark's simple name."""
        simple = name.strip().lower()
        if simple.startswith(("varchar(", "char(")):
            simple = "string"
        if simple == "decimal":
            simple = "decimal(10,0)"
        return ValueType(_SYNONYMS.get(simple, simple))

    @property
    def family(self) -> str:
        """integer, float, decimal, string, date, timestamp, timestamp_ntz, boolean, binary or other."""
        if self.name in _INTEGER_BITS:
            return "integer"
        if self.name in ("boolean", "binary", "timestamp_ntz"):
            return self.name
        if _DECIMAL.fullmatch(self.name):
            return "decimal"
        return _SIMPLE.get(self.name, "other")

    @property
    def orderable(self) -> bool:
        """Whether rows can be ordered by it (no nested types, no collated strings)."""
        return self.family != "other"

    @property
    def discrete(self) -> bool:
        """Whether between two neighbouring canonical values there is none (so x > 5.5 means x >= 6)."""
        return self.family in ("integer", "decimal", "date", "timestamp", "timestamp_ntz", "boolean")

    @property
    def delta_min_max(self) -> bool:
        """Whether Delta keeps min/max per file for it (not for boolean, binary and nested types)."""
        return self.family not in ("boolean", "binary", "other")

    @property
    def scale(self) -> int:
        """Digits after the point of a decimal; 0 for every other type."""
        match = _DECIMAL.fullmatch(self.name)
        return int(match.group(2)) if match else 0

    @property
    def bounds(self) -> tuple[int, int] | None:
        """Smallest and largest value of an integer or decimal type, else None."""
        if self.name in _INTEGER_BITS:
            half = 1 << (_INTEGER_BITS[self.name] - 1)
            return -half, half - 1
        if match := _DECIMAL.fullmatch(self.name):
            limit = 10 ** int(match.group(1)) - 1
            return -limit, limit
        return None

    @property
    def digits(self) -> int:
        """Decimal digits of the largest value of an integer or decimal type, the point left out; 0 for every other.

        >>> ValueType("int").digits, ValueType("decimal(12,2)").digits, ValueType("date").digits
        (10, 12, 0)
        """
        return len(str(self.bounds[1])) if self.bounds is not None else 0

    def widens_to(self, other: ValueType) -> bool:
        """Whether Spark's cast to another type of numbers keeps every value, and with them their order.

        >>> small, wide = ValueType("decimal(10,2)"), ValueType("decimal(12,2)")
        >>> small.widens_to(wide), wide.widens_to(small), ValueType("int").widens_to(small)
        (True, False, False)
        >>> [ValueType(name).widens_to(ValueType("double")) for name in ("float", "int", "bigint")]
        [True, True, False]
        """
        match self.family, other.family:
            case "integer" | "float", "float":
                return other.name == "double" and self.name != "bigint"
            case ("integer", "integer" | "decimal") | ("decimal", "decimal"):
                own = self.digits
                if self.name == "bigint" and other.family == "decimal":
                    own = 20  # which Spark takes for it, one more than it has
                return self.scale <= other.scale and own - self.scale <= other.digits - other.scale
        return False

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """dtype of a canonical array: int64, float64, or object (strings, bytes, decimals wider than 18 digits)."""
        if self.family == "float":
            return np.dtype(np.float64)
        if self.family in ("string", "binary"):
            return np.dtype(object)
        match = _DECIMAL.fullmatch(self.name)
        return np.dtype(object if match and int(match.group(1)) > 18 else np.int64)

    def holds(self, value: Any) -> bool:
        """Whether something is a canonical value of this type, of those that 64 bits hold where its arrays do.

        >>> ValueType("int").holds(7), ValueType("int").holds("7"), ValueType("double").holds(7)
        (True, False, True)
        """
        if self.family in ("string", "binary", "other"):
            return self.orderable and type(value) is (str if self.family == "string" else bytes)
        if self.family == "float" and type(value) is float:
            return True
        wide = self.bounds if self.numpy_dtype.hasobject else None
        low, high = wide or (-(1 << 63), (1 << 63) - 1)
        return type(value) is int and low <= value <= high


def canonical_array(
    column: pa.Array | pa.ChunkedArray, value_type: ValueType
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Canonical values of an Arrow column and which of them are present (False = null; the value there is arbitrary).

    Args:
        column: values as Spark, Parquet or delta-rs hand them out, of the Arrow type that belongs to ``value_type``
            (a narrower one is widened).

    Raises:
        ValueError: the type cannot be ordered.

    >>> canonical_array(pa.array([1.5, None, -0.0]), ValueType("double"))
    (array([1.5, 0. , 0. ]), array([ True, False,  True]))
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    family = value_type.family
    if family in ("integer", "boolean"):
        numbers: npt.NDArray[Any] = _filled(column, pa.int64())
    elif family == "date":
        numbers = _filled(column.cast(pa.date32()).cast(pa.int32()), pa.int64())
    elif family in ("timestamp", "timestamp_ntz"):
        zone = column.type.tz if pa.types.is_timestamp(column.type) else None
        numbers = _filled(column.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64()), pa.int64())
    elif family == "float":
        numbers = _filled(column, pa.float64()) + 0.0  # + 0.0 turns -0.0 into 0.0
    elif family == "decimal":
        numbers = _unscaled(column, value_type)
    elif family in ("string", "binary"):
        blank = pa.scalar("" if family == "string" else b"", type=pa.string() if family == "string" else pa.binary())
        numbers = column.cast(blank.type).fill_null(blank).to_numpy(zero_copy_only=False)
    else:
        raise ValueError(f"values of type {value_type.name} have no order")
    return numbers, valid


def readable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts as Python has them: bytes that are no UTF-8, which Spark lets pass, become U+FFFD.

    That may change their order: for samples, which only say where to cut, never for bounds that files are skipped by.

    >>> readable(pa.chunked_array([pa.array([b"a", bytes([255]), None]).view(pa.string())])).to_pylist()
    ['a', '\\ufffd', None]
    """
    if not pa.types.is_string(column.type):
        return column
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        found = column.cast(pa.binary()).to_pylist()
        return pa.chunked_array([[None if raw is None else raw.decode(errors="replace") for raw in found]], pa.string())
    return column


def _filled(column: pa.Array, to: pa.DataType) -> npt.NDArray[Any]:
    return np.asarray(column.cast(to).fill_null(pa.scalar(0, type=to)).to_numpy(zero_copy_only=False))


def _unscaled(column: pa.Array, value_type: ValueType) -> npt.NDArray[Any]:
    """Decimals as their unscaled integers at the type's own scale."""
    wide = column.cast(pa.decimal128(38, max(0, value_type.scale)))
    if value_type.numpy_dtype == np.int64:
        # a decimal128 is two little-endian 64-bit words; up to 18 digits fit the lower one, sign included
        words = np.frombuffer(wide.buffers()[1], dtype=np.int64)[2 * wide.offset : 2 * (wide.offset + len(wide))]
        low = words[0::2].copy()
        low[~np.asarray(wide.is_valid().to_numpy(zero_copy_only=False))] = 0
        return low
    scale, whole = max(0, value_type.scale), Context(prec=80)  # Python's own context rounds to 28 digits
    return np.array([0 if item is None else int(whole.scaleb(item, scale)) for item in wide.to_pylist()], dtype=object)


def order_key(value: Value) -> tuple[bool, Any]:
    """Key by which Python's own sorting and ``min`` follow the total order (NaN compares false with everything).

    >>> sorted([float("nan"), 1.0, float("inf")], key=order_key)
    [1.0, inf, nan]
    """
    return isinstance(value, float) and math.isnan(value), value


def value_to_json(value: Value | None) -> Any:
    """JSON form of a canonical value: numbers and strings as they are, NaN and infinities and bytes as tagged objects.

    >>> value_to_json(float("nan")), value_to_json(7)
    ({'float': 'nan'}, 7)
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, np.generic):
        return value_to_json(value.item())
    return value


def value_from_json(data: Any) -> Any:
    """The canonical value that `value_to_json` wrote.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    if isinstance(data, dict):
        return float(data["float"]) if "float" in data else base64.b64decode(data["bytes"], validate=True)
    return data


def comparable(value: Value, dtype: np.dtype[Any]) -> Any:
    """``value`` in the form in which numpy compares it whole with an array of ``dtype``.

    A single string, or bytes, would lose the NULs it ends with on its way into an array.

    >>> texts = np.array(["a", "a\\0"], dtype=object)
    >>> (texts == "a\\0").tolist(), (texts == comparable("a\\0", texts.dtype)).tolist()
    ([True, False], [False, True])
    """
    if dtype.kind != "O":
        return value
    one = np.empty(1, dtype=object)
    one[0] = value
    return one


def sort_unique(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Distinct values in ascending total order (NaN last, once).

    >>> sort_unique(np.array(["b", "a", "b"], dtype=object)).tolist()
    ['a', 'b']
    """
    if values.dtype != object:
        return np.unique(values, equal_nan=values.dtype.kind == "f")
    if len(values) and isinstance(values[0], str):  # Arrow is ten times faster than Python comparisons here
        distinct = pc.unique(pa.array(values, type=pa.string()))
        return np.asarray(distinct.take(pc.sort_indices(distinct)).to_numpy(zero_copy_only=False))
    out = np.empty(len(distinct_set := sorted(set(values.tolist()))), dtype=object)
    out[:] = distinct_set
    return out
