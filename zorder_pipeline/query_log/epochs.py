"""Seconds since 1970 that statements compute of moments: tables of events often count instead of telling the time."""

from __future__ import annotations

import datetime as dt

from sqlglot import exp

from .literals import MOMENT_TYPES, plain
from .moments import instant
from .relative import SPARKS, Clock, called, moment, read

__all__ = ["with_epochs"]

COUNTED: dict[type[exp.Expr], int] = {
    exp.UnixSeconds: 1_000_000,
    exp.UnixMillis: 1_000,
    exp.UnixMicros: 1,
    exp.StrToUnix: 1_000_000,
}
"""Functions that count since 1970, and the microseconds of what they count in."""
WRITTEN = "%Y-%m-%d %H:%M:%S"
WHOLE = ("bigint", "int", "smallint", "tinyint")


def with_epochs(node: exp.Expr, clock: Clock) -> exp.Expr:
    """The expression with counts since 1970 as literals: ``unix_timestamp('2024-06-10 00:00:00') * 1000``.

    Raises:
        ValueError, OverflowError, LookupError, TypeError, AttributeError: as `moment`.

    >>> from sqlglot import parse_one
    >>> with_epochs(parse_one("unix_millis(TIMESTAMP '2024-06-10')", read="spark"), Clock()).sql("spark")
    'CAST(1717977600000 AS BIGINT)'
    """

    def swap(part: exp.Expr) -> exp.Expr:
        if called(part) in WHOLE and len(part.expressions) == 1:
            return exp.cast(part.expressions[0].copy(), called(part))
        count = _count(part, clock)
        if count is None:
            return part
        told = exp.cast(exp.Literal.number(abs(count)), "BIGINT")
        return told if count >= 0 else exp.Neg(this=told)

    return node.copy().transform(swap, copy=False)


def _count(node: exp.Expr, clock: Clock) -> int | None:
    if type(node) in COUNTED:
        at, span = _micros(node.this, node.args.get("format"), clock), COUNTED[type(node)]
    elif isinstance(node, exp.Cast) and node.to.this == exp.DType.BIGINT and _is_instant(node.this.unnest()):
        at, span = _micros(node.this.unnest(), None, clock), 1_000_000
    else:
        return None
    return None if at is None else at // span


def _is_instant(node: exp.Expr) -> bool:
    """Whether this is a moment that a cast to a number counts."""
    zoned = MOMENT_TYPES - {exp.DType.TIMESTAMPNTZ, exp.DType.DATETIME}
    return isinstance(node, exp.CurrentTimestamp) or (isinstance(node, exp.Cast) and node.to.this in zoned)


def _micros(node: exp.Expr, form: exp.Expr | None, clock: Clock) -> int | None:
    """Microseconds since 1970 UTC of a moment or of a text that tells one; None of what is neither."""
    node = node.unnest()
    if isinstance(node, exp.CurrentTimestamp):
        return None if clock.now() is None else clock.timestamp
    if clock.dialect not in SPARKS:
        return None
    at: dt.date | None
    if isinstance(node, exp.Literal):
        at = read(node.this, form or exp.Literal.string(WRITTEN)) if node.is_string else None
    elif isinstance(node, exp.Cast) and node.to.this in (exp.DType.TIMESTAMPNTZ, exp.DType.DATETIME):
        return None
    elif (literal := plain(node)) is not None and literal.kind == "timestamp":
        told = dt.datetime.fromisoformat(literal.text)
        return None if told.tzinfo is None else instant(told.astimezone(dt.UTC).replace(tzinfo=None), "UTC")
    else:
        at = moment(node, clock)
    if at is None:
        return None
    return instant(at if isinstance(at, dt.datetime) else dt.datetime(at.year, at.month, at.day), clock.zone)
