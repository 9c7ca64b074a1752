"""Seconds since 1970 that statements compute of moments: tables of events often count instead of telling the time."""

from __future__ import annotations

import datetime as dt

from sqlglot import exp

from zorder_pipeline.model.moments import instant
from zorder_pipeline.model.written_days import WRITTEN

from .clock import SPARKS, Clock
from .dialects import dialect_of
from .formats import read
from .literals import MOMENT_TYPES, WIDTHS, plain
from .relative import called, moment

__all__ = ["with_epochs"]

COUNTED: dict[type[exp.Expr], int] = {
    exp.UnixSeconds: 1_000_000,
    exp.UnixMillis: 1_000,
    exp.UnixMicros: 1,
    exp.StrToUnix: 1_000_000,
}
"""Functions that count since 1970, and the microseconds of what they count in."""
WHOLE = ("bigint", "int", "smallint", "tinyint")
ZONELESS = (exp.DType.TIMESTAMPNTZ, exp.DType.DATETIME)


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
            return with_epochs(exp.cast(part.expressions[0].copy(), called(part)), clock)
        count = _count(part, clock)
        if count is None:
            return part
        told = exp.cast(exp.Literal.number(abs(count)), part.to.copy() if isinstance(part, exp.Cast) else "BIGINT")
        return told if count >= 0 else exp.Neg(this=told)

    return node.copy().transform(swap, copy=False)


def _count(node: exp.Expr, clock: Clock) -> int | None:
    if type(node) in COUNTED:
        at, span = _micros(node.this, node.args.get("format"), clock), COUNTED[type(node)]
    elif isinstance(node, exp.Cast) and node.to.this in WIDTHS and _is_instant(node.this.unnest(), clock):
        at, span = _micros(node.this.unnest(), None, clock), 1_000_000
    else:
        return None
    if at is None:
        return None
    # before 1970 unix_timestamp drops the fraction, where the others of Spark's take the whole second before
    return -(-at // span) if at < 0 and isinstance(node, exp.StrToUnix) else at // span


def _is_instant(node: exp.Expr, clock: Clock) -> bool:
    """Whether a cast to a number counts the seconds of this: MySQL's writes the digits of a moment together."""
    if clock.dialect not in SPARKS:
        return False
    zoned = isinstance(node, exp.Cast) and node.to.this in MOMENT_TYPES.difference(ZONELESS)
    return zoned or isinstance(node, exp.CurrentTimestamp) or called(node) == "now"


def _micros(node: exp.Expr, form: exp.Expr | None, clock: Clock) -> int | None:
    """Microseconds since 1970 UTC of a moment or of a text that tells one; None of what is neither."""
    node = node.unnest()
    if isinstance(node, exp.CurrentTimestamp):
        return None if clock.now() is None else clock.timestamp
    if clock.dialect not in SPARKS or any(map(_is_zoneless, node.walk())):
        return None
    at: dt.date | None
    if isinstance(node, exp.Literal):
        at = read(node.this, _form(form, clock)) if node.is_string else None
    elif (literal := plain(node)) is not None and literal.kind == "timestamp":
        told = dt.datetime.fromisoformat(literal.text)
        return None if told.tzinfo is None else instant(told.astimezone(dt.UTC).replace(tzinfo=None), "UTC")
    else:
        at = moment(node, clock)
    if at is None:
        return None
    return instant(at if isinstance(at, dt.datetime) else dt.datetime(at.year, at.month, at.day), clock.zone)


def _is_zoneless(node: exp.Expr) -> bool:
    """Whether this is a local time, of which Spark's unix_timestamp counts as if the session's zone were UTC."""
    if isinstance(node, exp.Cast):
        return node.to.this in ZONELESS
    return isinstance(node, exp.Localtimestamp) or called(node) in ("localtimestamp", "to_timestamp_ntz")


def _form(form: exp.Expr | None, clock: Clock) -> exp.Expr:
    """The format of a text; sqlglot leaves the one of ``to_unix_timestamp`` as Java writes it."""
    if form is None:
        return exp.Literal.string(WRITTEN)
    if not isinstance(form, exp.Literal) or "%" in form.this:
        return form
    return dialect_of(clock.dialect).format_time(form) or form
