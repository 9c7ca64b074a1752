"""Columns that count since 1970, of which statements make times: ``timestamp_millis(a)``, ``from_unixtime(a / 1000)``.

Tables of events often count instead of telling the time. Such a time lies as its count does.
"""

from __future__ import annotations

import datetime as dt
import re

from sqlglot import exp

from zorder_pipeline.model.counted import SECOND, Count
from zorder_pipeline.model.moments import instant
from zorder_pipeline.model.predicate import Literal, Predicate

from .clock import IN_SECONDS, Clock
from .constants import COUNTED_IN
from .relative import called
from .types import INSTANTS, Find

__all__ = ["counted", "counted_moment"]

_SCALES = {"0": SECOND, "3": 1_000, "6": 1}
_PARTS = {"1000": 1_000, "1000000": 1_000_000}
_TOLD = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?")


def counted(node: exp.Expr, find: Find, clock: Clock) -> Count | None:
    """The column of which an expression makes a time, or the text of one; None of anything else."""
    node = node.unnest()
    match node:
        case exp.UnixToStr():
            inner, span = node.this, SECOND
        case exp.Anonymous(expressions=[one]) if called(node) in COUNTED_IN:
            inner, span = one, COUNTED_IN[called(node)]
        case exp.Cast() if clock.dialect in IN_SECONDS and node.to.this in INSTANTS and not node.args.get("format"):
            inner, span = node.this, SECOND
        case exp.UnixToTime() if not any(v for k, v in node.args.items() if k not in ("this", "scale")):
            scale = node.args.get("scale")
            inner, span = node.this, _SCALES.get("0" if scale is None else scale.name, 0)
        case _:
            return None
    inner, cut = inner.unnest(), False
    if isinstance(inner, exp.Div | exp.IntDiv) and inner.expression.name in _PARTS:
        inner, span, cut = inner.this.unnest(), span // _PARTS[inner.expression.name], True
    found = find(inner)
    if found is None or found[1] is None or found[1].value_type.family != "integer" or not span:
        return None
    in_utc = clock.dialect == "bigquery" or (clock.dialect == "duckdb" and bool(node.args.get("scale")))
    return Count(found[0], span, cut, "UTC" if in_utc else clock.zone)


def counted_moment(left: exp.Expr, op: str, literal: Literal, find: Find, clock: Clock) -> Predicate | None:
    """``timestamp_seconds(a) >= TIMESTAMP '2024-03-01 12:00:00'`` as a range of what is counted.

    >>> from sqlglot import parse_one
    >>> from zorder_pipeline.model.schema import Column
    >>> left, at = parse_one("timestamp_millis(a)", read="spark"), Literal("timestamp_ntz", "1970-01-02 00:00:00")
    >>> counted_moment(left, ">=", at, lambda node: (node.name, Column("a", "bigint")), Clock()).to_sql()
    'a >= 86400000'
    """
    own = None if isinstance(left, exp.UnixToStr) else counted(left, find, clock)
    at = None if own is None else _micros(literal, own.zone)
    return None if own is None or at is None else own.compared(op, at, derived=True)


def _micros(literal: Literal, zone: str) -> int | None:
    """Microseconds since 1970 UTC of a constant that is compared with a time; None where that is not told."""
    text = literal.text.strip()
    if literal.kind == "timestamp":
        try:
            return instant(dt.datetime.fromisoformat(text).astimezone(dt.UTC).replace(tzinfo=None), "UTC")
        except (ValueError, OverflowError):
            return None
    if literal.kind not in ("string", "date", "timestamp_ntz") or not _TOLD.fullmatch(text):
        return None
    try:
        return instant(dt.datetime.fromisoformat(text), zone)
    except (ValueError, OverflowError, LookupError):
        return None
