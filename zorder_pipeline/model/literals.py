"""Literals typed by the column they are compared with, by Spark's rules of implicit casts."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, InvalidOperation

from .predicate import Literal
from .values import Value, ValueType
from .zones import offset_of, zone_of

__all__ = ["ZONE", "TypedLiteral", "cut_short", "day_begun", "divides", "type_literal"]

_QUARTER, _QUARTERS = 900_000_000, 16
_DAY = 96 * _QUARTER
"""Microseconds of a quarter of an hour; clocks go back by less than so many."""
_EPOCH = datetime(1970, 1, 1)
_FIRST, _LAST = datetime(1, 1, 2), datetime(9999, 12, 30)
_WIDEST = 38
"""Digits of Spark's widest decimal."""
ZONE = r"Z|UTC|GMT|[+-](?:\d{1,2}(?::\d{2})?|\d{4})|[A-Za-z]+/[A-Za-z_/]+"
"""What the text of an instant may end with."""
_MOMENT = re.compile(
    r"(?P<y>[+-]?\d{4,6})(?:-(?P<mo>\d{1,2})(?:-(?P<d>\d{1,2})"
    r"(?:[T ](?P<h>\d{1,2}):(?P<mi>\d{1,2})(?::(?P<s>\d{1,2})(?:[.](?P<f>\d{1,9}))?)?"
    rf"\s*(?P<z>{ZONE})?)?)?)?"
)


@dataclass(frozen=True)
class TypedLiteral:
    """A literal in its column's canonical domain.

    Attributes:
        value: the largest canonical value not above the literal.
        exact: whether the literal *is* ``value``; otherwise it lies between ``value`` and the next one (5.5 for an int
            column) or outside the type, so no row equals it.
    """

    value: Value
    exact: bool = True


def type_literal(literal: Literal, value_type: ValueType, zone: str = "UTC") -> TypedLiteral | None:
    """``literal`` as Spark would compare it with a column of ``value_type``; None when the comparison would cast the
    column instead (a string column against a number), so that no order of the column answers it.

    Args:
        zone: session time zone in which a timestamp without an offset is read.

    >>> type_literal(Literal("number", "5.5"), ValueType("int"))
    TypedLiteral(value=5, exact=False)
    >>> type_literal(Literal("string", "1998-09-02"), ValueType("date"))
    TypedLiteral(value=10471, exact=True)
    """
    family, text = value_type.family, literal.text.strip()
    match family:
        case "string":
            return TypedLiteral(literal.text) if literal.kind == "string" else None
        case "binary":
            return TypedLiteral(bytes.fromhex(text)) if literal.kind == "binary" else None
        case "boolean":
            truth = {"true": 1, "t": 1, "1": 1, "yes": 1, "y": 1, "false": 0, "f": 0, "0": 0, "no": 0, "n": 0}
            found = truth.get(text.lower()) if literal.kind in ("boolean", "string", "number") else None
            return None if found is None else TypedLiteral(found)
        case "integer" | "decimal" | "float":
            if literal.kind not in ("number", "string") or _compared_as_double(literal, value_type):
                return None
            typed = _number(text, value_type)
            if typed is not None and not typed.exact and family == "integer" and literal.kind == "string":
                return None  # of '5.5' Spark without ANSI mode makes 5, others 6
            return typed
        case "date" | "timestamp" | "timestamp_ntz":
            if literal.kind not in ("string", "date", "timestamp", "timestamp_ntz"):
                return None
            return _moment(literal.kind, text, family, zone)
    return None


def cut_short(literals: Sequence[Literal], value_type: ValueType) -> bool:
    """Whether Spark compares in a decimal of fewer digits than column and literals have together, and rounds them.

    >>> cut_short([Literal("number", "1.154")], ValueType("decimal(38,2)"))
    True
    """
    if value_type.family not in ("integer", "decimal"):
        return False
    whole, scale = value_type.digits - value_type.scale, value_type.scale
    whole += value_type.family == "integer"  # Spark's own widths are 10 and 20
    for literal in literals:
        if literal.kind != "number" or "e" in literal.text.lower():
            continue
        try:
            _, digits, exponent = Decimal(literal.text.strip()).as_tuple()
        except InvalidOperation:
            return True
        places = max(0, -int(exponent)) if isinstance(exponent, int) else 0
        least = 0 if places else 10 if len(digits) < 10 else 20  # of whole numbers the type's digits count
        whole, scale = max(whole, least, len(digits) - places), max(scale, places)
    return whole + scale > _WIDEST


def _compared_as_double(literal: Literal, value_type: ValueType) -> bool:
    """Whether Spark casts the column to double: a decimal against a string, it or a bigint against ``1e3``."""
    if value_type.family == "decimal" and literal.kind == "string":
        return True
    return literal.kind == "number" and "e" in literal.text.lower() and _wider_than_double(value_type)


def _wider_than_double(value_type: ValueType) -> bool:
    return value_type.family == "decimal" or value_type.name == "bigint"


def _number(text: str, value_type: ValueType) -> TypedLiteral | None:
    try:
        if value_type.family == "float":
            value = float(text) + 0.0
            narrow = value_type.name == "float" and not math.isnan(value)
            return TypedLiteral(value, exact=not narrow or _is_single(value))
        number = Decimal(float(text) if "e" in text.lower() else text)
    except (InvalidOperation, ValueError):
        return None
    if not number.is_finite() or number.adjusted() > 60:
        return None
    scaled = number.scaleb(value_type.scale, Context(prec=len(text) + 80)) if value_type.scale else number
    if scaled.adjusted() > 60:
        return None
    floor = math.floor(scaled)
    inside = (limits := value_type.bounds) is None or limits[0] <= floor <= limits[1]
    if value_type.family == "decimal" and not inside:
        return None  # Spark widens the column
    if value_type.family == "integer" and not -(1 << 63) <= floor < 1 << 63:
        return None  # Spark knows the answer without the column: NULL < 1e20 is true to it
    return TypedLiteral(floor, exact=inside and scaled == floor)


def _is_single(value: float) -> bool:
    """Whether a 32-bit float can hold the value."""
    try:
        return bool(struct.unpack("f", struct.pack("f", value))[0] == value)
    except OverflowError:
        return False


def _moment(kind: str, text: str, family: str, zone: str) -> TypedLiteral | None:
    found = _MOMENT.fullmatch(text)
    if not found:
        return None
    part = found.groupdict()
    try:
        day = date(int(part["y"]), int(part["mo"] or 1), int(part["d"] or 1))
        days = (day - _EPOCH.date()).days
        seconds = int(part["h"] or 0) * 3600 + int(part["mi"] or 0) * 60 + int(part["s"] or 0)
        if not (int(part["h"] or 0) < 24 and int(part["mi"] or 0) < 60 and int(part["s"] or 0) < 60):
            return None
        local = (days * 86400 + seconds) * 1_000_000 + int((part["f"] or "0").ljust(6, "0")[:6])
        if family == "date" and kind in ("string", "date"):
            return TypedLiteral(days)  # Spark casts the string to a date, dropping its time
        if family == "timestamp":
            return TypedLiteral(_instant(local, part["z"] or zone))
        if kind in ("timestamp", "timestamp_ntz"):  # a column without zone becomes an instant
            local = _local(_instant(local, part["z"]), zone) if part["z"] else local
            if not _steady(local, zone):
                return None
    except (ValueError, OverflowError, KeyError):
        return None
    if family == "timestamp_ntz":
        return TypedLiteral(local)
    return TypedLiteral(local // 86_400_000_000, exact=local % 86_400_000_000 == 0)


def divides(literal: Literal, zone: str) -> bool:
    """Whether all instants from the beginning of a day on belong to that day or later ones, and no others.

    Where clocks go back just after midnight some that follow belong to the day before. Of what is no zone none do.
    Nor is it told where clocks are put while a day begins.

    >>> divides(Literal("date", "2010-11-07"), "America/St_Johns"), divides(Literal("date", "2010-11-08"), "Asia/Tokyo")
    (False, True)
    """
    if _fixed(zone):
        return True
    typed = _moment("date", literal.text, "timestamp_ntz", zone) or _moment("date", literal.text, "timestamp", "UTC")
    if typed is None:
        return False
    midnight = int(typed.value)
    try:
        first = _instant(midnight, zone)
        around = _local(first + _QUARTER, zone) - _local(first - _QUARTER, zone)
        return around == 2 * _QUARTER and all(
            _local(first + step * _QUARTER, zone) >= midnight > _local(first - step * _QUARTER, zone)
            for step in range(1, _QUARTERS)
        )
    except (ValueError, OverflowError, KeyError):
        return False


def day_begun(moment: int | date, zone: str, steady: bool = False) -> date | None:
    """The day that begins at an instant, in microseconds since 1970 UTC, or the day itself.

    None where none begins, where clocks skip its midnight, or where the zone was without the day before.

    Args:
        steady: also None where the zone changes its offset a day before or after: there local times are not in the
            order of their instants.

    >>> day_begun(1_704_063_600_000_000, "Europe/Berlin"), day_begun(date(2024, 4, 1), "Europe/Berlin", steady=True)
    (datetime.date(2024, 1, 1), None)
    """
    try:
        if isinstance(moment, date):
            moment = _instant((moment - _EPOCH.date()).days * _DAY, zone)
        local = _local(moment, zone)
        if local % _DAY or _instant(local, zone) != moment or _instant(local - _DAY, zone) >= moment:
            return None
        return (_EPOCH + timedelta(microseconds=local)).date() if not steady or _steady(local, zone) else None
    except (ValueError, OverflowError, KeyError):
        return None


def _steady(local: int, zone: str) -> bool:
    """Whether the zone keeps its offset around a local time: elsewhere local times lie as their instants do."""
    if _fixed(zone):
        return True
    moment = _EPOCH + timedelta(microseconds=local)
    around = (min(max(moment, _FIRST), _LAST) + timedelta(days=days) for days in (-1, 0, 1))
    return len({_offset(zone, near) for near in around}) == 1


def _fixed(zone: str) -> bool:
    return offset_of(zone) is not None


def _instant(local: int, zone: str) -> int:
    """Microseconds UTC of a local time in ``zone`` (an offset, Z, or a region)."""
    return local - _offset(zone, _EPOCH + timedelta(microseconds=local))


def _local(instant: int, zone: str) -> int:
    if _fixed(zone):
        return instant + _offset(zone, _EPOCH)
    moment = (_EPOCH + timedelta(microseconds=instant)).replace(tzinfo=UTC).astimezone(zone_of(zone))
    return instant + _microseconds(moment.utcoffset())


def _offset(zone: str, local: datetime) -> int:
    return _microseconds(local.replace(tzinfo=zone_of(zone)).utcoffset())


def _microseconds(delta: timedelta | None) -> int:
    return 0 if delta is None else round(delta.total_seconds() * 1_000_000)
