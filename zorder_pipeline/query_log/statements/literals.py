"""Constants with the value that Spark gives them: the type that a cast names counts."""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal, localcontext

from sqlglot import exp

from zorder_pipeline.model.literals import ZONE
from zorder_pipeline.model.predicate import Literal

__all__ = ["DATE_TYPES", "DOUBLES", "MOMENT_TYPES", "computed", "plain", "single_of"]

DATE_TYPES = {exp.DType.DATE, exp.DType.DATE32}
MOMENT_TYPES = {
    exp.DType.TIMESTAMP,
    exp.DType.TIMESTAMPTZ,
    exp.DType.TIMESTAMPLTZ,
    exp.DType.TIMESTAMPNTZ,
    exp.DType.DATETIME,
}
DOUBLES = {exp.DType.DOUBLE, exp.DType.UDOUBLE}
WIDTHS = {exp.DType.TINYINT: 1, exp.DType.SMALLINT: 2, exp.DType.INT: 4, exp.DType.BIGINT: 8}
_PADDED = {exp.DType.CHAR, exp.DType.NCHAR, exp.DType.BPCHAR}
"""Types that others than Spark fill up with blanks."""
MOST_DIGITS = 38
_DATE = re.compile(r"\d{4}(-\d{1,2}(-\d{1,2}([ T].*)?)?)?")
_ZONED = re.compile(rf"\d:\d{{2}}.*({ZONE})$")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_ENDLESS = re.compile(r"[+-]?inf(inity)?|nan", re.IGNORECASE)


def plain(node: exp.Expr) -> Literal | None:
    """A constant that is written as one, with its type; None when it is none.

    >>> from sqlglot import parse_one
    >>> [plain(parse_one(text, read="spark")) for text in ("CAST(0.15 AS DECIMAL(10, 1))", "-0.5F")]
    [None, Literal(kind='number', text='-0.5e0')]
    """
    match node:
        case exp.Literal():
            return Literal("string" if node.is_string else "number", node.this)
        case exp.Neg() if (inner := plain(node.this.unnest())) is not None and inner.kind == "number":
            return Literal("number", inner.text[1:] if inner.text.startswith("-") else "-" + inner.text)
        case exp.Boolean():
            return Literal("boolean", "true" if node.this else "false")
        case exp.Null():
            return Literal("null")
        case exp.Cast() if isinstance(node.this, exp.Literal):
            return None if node.args.get("format") else _cast(node.this, node.to)
        case exp.FromISO8601Timestamp() if isinstance(node.this, exp.Literal):
            return _cast(node.this, exp.DataType.build("TIMESTAMPTZ"))
        case exp.FromISO8601Date() if isinstance(node.this, exp.Literal):
            return _date(node.this.this)
        case exp.TsOrDsToDate() | exp.Date() if isinstance(node.this, exp.Literal) and node.this.is_string:
            told = any(value for name, value in node.args.items() if name not in ("this", "safe"))  # a format, a zone
            return None if told else _date(node.this.this)
    return None


def computed(node: exp.Expr) -> Literal | None:
    """A constant computed exactly: sums and products of numbers that no type rounds, and joined strings.

    >>> from sqlglot import parse_one
    >>> [computed(parse_one(text, read="spark")) for text in ("1 + 2 * 3.5", "2147483647 + 1")]
    [Literal(kind='number', text='8.0'), None]
    """
    node = node.unnest()
    if (found := plain(node)) is not None:
        return found
    if isinstance(node, exp.DPipe | exp.Concat):
        parts = node.expressions if isinstance(node, exp.Concat) else [node.this, node.expression]
        texts = [computed(part) for part in parts]
        strings = [text.text for text in texts if text is not None and text.kind == "string"]
        if len(strings) < len(texts) or not strings:
            return None
        between, joined = (strings[0], strings[1:]) if isinstance(node, exp.ConcatWs) else ("", strings)
        return Literal("string", between.join(joined))
    if isinstance(node, exp.Upper | exp.Lower):
        text = computed(node.this)
        if text is None or text.kind != "string" or not text.text.isascii():
            return None
        return Literal("string", text.text.upper() if isinstance(node, exp.Upper) else text.text.lower())
    number = _number(node)
    return None if number is None else Literal("number", f"{number[0]:f}")


def _number(node: exp.Expr) -> tuple[Decimal, int] | None:
    """A number and the bytes of its type, 0 for a decimal; None of a double, or where the type cannot hold it."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else (inner[0].copy_negate(), inner[1])
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        left, right = _number(node.this), _number(node.expression)
        if left is None or right is None:
            return None
        with localcontext(prec=2 * MOST_DIGITS):
            value = {exp.Add: left[0] + right[0], exp.Sub: left[0] - right[0]}.get(type(node), left[0] * right[0])
        width = max(left[1], right[1]) if left[1] and right[1] else 0
        fits = _fits(value, width) if width else len(value.as_tuple().digits) < MOST_DIGITS
        return (value, width) if fits else None
    if isinstance(node, exp.Least | exp.Greatest):
        return _extreme(node)
    if isinstance(node, exp.Cast) and node.to.this in WIDTHS and not isinstance(node.this, exp.Literal):
        inner, width = _number(node.this), WIDTHS[node.to.this]
        return (inner[0], width) if inner is not None and inner[1] and _fits(inner[0], width) else None
    literal = plain(node)
    if literal is None or literal.kind != "number" or not re.fullmatch(r"[+-]?[\d.]+", literal.text):
        return None
    value = Decimal(literal.text)
    if isinstance(node, exp.Cast):
        return value, WIDTHS.get(node.to.this, 0)
    whole = "." not in literal.text
    return value, next((width for width in (4, 8) if whole and _fits(value, width)), 0)


def _extreme(node: exp.Expr) -> tuple[Decimal, int] | None:
    """``least`` or ``greatest`` of numbers, in the type that holds them all."""
    found = [_number(part) for part in (node.this, *node.expressions)]
    known = [number for number in found if number is not None]
    if len(known) < len(found):
        return None
    values, widths = [value for value, _ in known], [width for _, width in known]
    value = min(values) if isinstance(node, exp.Least) else max(values)
    if all(widths):
        return value, max(widths)
    with localcontext(prec=2 * MOST_DIGITS):
        value += sum(Decimal(0).scaleb(int(each.as_tuple().exponent)) for each in values)  # keeps the most digits
    return (value, 0) if len(value.as_tuple().digits) < MOST_DIGITS else None


def _fits(value: Decimal, width: int) -> bool:
    half = 1 << (8 * width - 1)
    return -half <= value < half


def _cast(literal: exp.Literal, to: exp.DataType) -> Literal | None:
    kind, text = to.this, literal.this.strip()
    if kind in DATE_TYPES:
        return _date(literal.this) if literal.is_string else None
    if kind in MOMENT_TYPES and literal.is_string:
        zoned = _ZONED.search(text)
        if zoned and kind == exp.DType.TIMESTAMPNTZ:
            return None  # Spark drops the zone
        return Literal("timestamp" if zoned else "timestamp_ntz", text)
    if kind in exp.DataType.TEXT_TYPES:
        return Literal("string", literal.this) if literal.is_string and _holds(to, literal.this) else None
    if kind in DOUBLES and _ENDLESS.fullmatch(text):
        return Literal("number", text)
    if kind not in exp.DataType.NUMERIC_TYPES or not _NUMBER.fullmatch(text):
        return None
    if kind in DOUBLES or kind == exp.DType.FLOAT:
        return _real(text, single=kind == exp.DType.FLOAT)
    value = Decimal(text)
    if kind in exp.DataType.INTEGER_TYPES:
        whole = re.fullmatch(r"[+-]?\d+", text) and _fits(value, WIDTHS.get(kind, 8))
        return Literal("number", text) if whole else None
    return _decimal(value, to)


def _holds(to: exp.DataType, text: str) -> bool:
    """Whether a text stays what it is in a type of some length, of which Spark's grammar here has none."""
    sizes = [int(item.name) for item in to.expressions if item.name.isdecimal()]
    return not sizes or len(text) == sizes[0] or (len(text) < sizes[0] and to.this not in _PADDED)


def _real(text: str, single: bool) -> Literal | None:
    """A double, also where it looks like a whole number; of a float the double that equals it."""
    if single:
        try:
            value = struct.unpack("f", struct.pack("f", float(text)))[0]
        except OverflowError:
            return None
        if math.isinf(value):
            return None
        text = repr(value)
    return Literal("number", text if "e" in text.lower() else text + "e0")


def single_of(literal: Literal) -> Literal:
    """The float that a number becomes, or a text that is one; what is none stays as it is.

    >>> single_of(Literal("number", "0.1")), single_of(Literal("string", "x"))
    (Literal(kind='number', text='0.10000000149011612e0'), Literal(kind='string', text='x'))
    """
    text = literal.text.strip()
    if literal.kind not in ("number", "string") or not _NUMBER.fullmatch(text):
        return literal
    return _real(text, single=True) or literal


def _decimal(value: Decimal, to: exp.DataType) -> Literal | None:
    """The value, where DECIMAL(precision, scale) holds it exactly."""
    sizes = [int(item.name) for item in to.expressions if item.name.isdecimal()]
    precision, scale = [*sizes, *(10, 0)[len(sizes) :]]
    if to.this not in (exp.DType.DECIMAL, exp.DType.BIGDECIMAL) or precision > MOST_DIGITS:
        return None
    if not -MOST_DIGITS <= value.adjusted() < precision - scale:
        return None
    _, digits, exponent = value.as_tuple()
    lost = -int(exponent) - scale
    exact = lost <= 0 or not any(digits[-lost:])
    return Literal("number", f"{value:f}") if exact else None


def _date(text: str) -> Literal | None:
    text = text.strip()
    return Literal("date", re.split("[T ]", text)[0]) if _DATE.fullmatch(text) else None
