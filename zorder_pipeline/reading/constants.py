"""Constants of Spark's plans, as Catalyst keeps them."""

from __future__ import annotations

import datetime as dt
import math
import struct
from contextlib import suppress
from typing import Any

from zorder_pipeline.model.predicate import FALSE, TRUE, Literal

__all__ = ["literal_of"]

_EPOCH, _DAY = dt.date(1970, 1, 1), dt.timedelta(days=1)
_DAYS = range((dt.date.min - _EPOCH).days, (dt.date.max - _EPOCH).days)


def literal_of(value: Any, of_type: str) -> Literal | None:
    """A constant as Catalyst keeps it, in a spelling that says the same under all settings."""
    if value is None:
        return None
    if of_type == "boolean":
        return TRUE if value else FALSE
    if of_type in ("tinyint", "smallint", "int", "bigint"):
        return Literal("number", str(int(value)))
    if of_type in ("double", "float"):
        if not math.isfinite(value):
            return None
        # what reaches Python of a FLOAT is its shortest text, read as a double
        exact = struct.unpack("f", struct.pack("f", value))[0] if of_type == "float" else float(value)
        return Literal("number", repr(exact))
    if of_type.startswith("decimal"):
        return Literal("number", format(value.toJavaBigDecimal(), "f"))
    if of_type == "string":
        with suppress(UnicodeDecodeError):  # Java has a sign of its own for what is no UTF-8
            return Literal("string", bytes(value.getBytes()).decode())
        return None
    if of_type == "date":
        return Literal("date", (_EPOCH + value * _DAY).isoformat()) if value in _DAYS else None
    if of_type in ("timestamp", "timestamp_ntz"):
        if value // 86_400_000_000 not in _DAYS:
            return None
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=value)
        return Literal(of_type, moment.isoformat(sep=" ") + ("Z" if of_type == "timestamp" else ""))
    return None
