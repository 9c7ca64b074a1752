"""Intervals in statements, and moments that they are added to."""

from __future__ import annotations

import datetime as dt
import re

from sqlglot import exp

from zorder_pipeline.model.moments import MONTHS, SPANS, moved

from .literals import computed, plain

__all__ = ["interval_of", "is_text", "shifted", "whole_number"]

_SPOKEN = re.compile(r"([+-]?\d+)\s+([A-Za-z]+)")


def interval_of(node: exp.Expr) -> list[tuple[int, str]] | None:
    """The parts of an interval, counts and units; None of what is none, or not in whole units."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        inner = interval_of(node.this)
        return None if inner is None else [(-count, unit) for count, unit in inner]
    if isinstance(node, exp.Add):
        left, right = interval_of(node.this), interval_of(node.expression)
        return None if left is None or right is None else left + right
    if isinstance(node, exp.MakeInterval):
        given = {name: value for name, value in node.args.items() if isinstance(value, exp.Expr)}
        return [(whole_number(value), name.upper()) for name, value in given.items()]
    if not isinstance(node, exp.Interval) or node.this is None:
        return None
    literal, unit = plain(node.this.unnest()), node.args.get("unit")
    if literal is None:
        return None
    text = literal.text.strip()
    if unit is not None:
        return [(int(text), str(unit))] if re.fullmatch(r"[+-]?\d+", text) else None
    if not re.fullmatch(rf"({_SPOKEN.pattern}\s*)+", text):
        return None
    return [(int(found[1]), found[2].upper()) for found in _SPOKEN.finditer(text)]


def shifted(node: exp.Expr, start: dt.date | None, parts: list[tuple[int, str]], zone: str) -> dt.date | None:
    """``start`` and an interval: months first, then days, then hours, as Spark adds them."""
    sign = -1 if isinstance(node, exp.Sub) else 1
    named = [(count, unit.upper().removesuffix("S")) for count, unit in parts]
    found = start
    for count, unit in sorted(named, key=lambda part: (part[1] not in MONTHS, -SPANS.get(part[1], 0))):
        found = None if found is None else moved(found, sign * count, unit, zone)
    # a string stays one: against a date its time of day is dropped
    return None if is_text(node.this) and isinstance(found, dt.datetime) else found


def is_text(node: exp.Expr) -> bool:
    """Whether a moment is a string, which it stays with an interval added."""
    node = node.unnest()
    if isinstance(node, exp.Add | exp.Sub):
        return interval_of(node.expression) is not None and is_text(node.this)
    return isinstance(node, exp.Literal)


def whole_number(node: exp.Expr) -> int:
    """The whole number that an expression is.

    Raises:
        ValueError: it is none.
    """
    literal = computed(node)
    if literal is None:
        raise ValueError("not a number")
    return int(literal.text)
