"""Calls and patterns that Spark prints in plans, as the trees that their SQL text would give."""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.errors import SqlglotError

__all__ = ["function", "is_option", "matched"]

_ESCAPE = re.compile(r"(.*) ESCAPE '(.)'", re.DOTALL)


def matched(kind: type[exp.Binary], node: exp.Expr, pattern: exp.Expr) -> exp.Expr:
    """LIKE or RLIKE; of LIKE, Spark prints an escape character that is not its own after the pattern."""
    told = _ESCAPE.fullmatch(pattern.name) if kind is exp.Like else None
    if told is None:
        return kind(this=node, expression=pattern)
    like = kind(this=node, expression=exp.Literal.string(told[1]))
    return exp.Escape(this=like, expression=exp.Literal.string(told[2]))


def function(name: str, arguments: list[exp.Expr]) -> exp.Expr:
    """A call as the tree that its SQL text would give."""
    lowered = name.lower()
    if lowered in ("isnotnull", "isnull") and len(arguments) == 1:
        node = exp.Is(this=arguments[0], expression=exp.Null())
        return exp.Not(this=node) if lowered == "isnotnull" else node
    if lowered == "knownnotnull" and len(arguments) == 1:
        return arguments[0]
    known = {"startswith": exp.StartsWith, "endswith": exp.EndsWith, "contains": exp.Contains}
    if lowered in known and len(arguments) == 2:
        return known[lowered](this=arguments[0], expression=arguments[1])
    try:
        return exp.func(lowered, *arguments, dialect="spark")
    except (SqlglotError, ValueError, TypeError, IndexError):
        return exp.Anonymous(this=name, expressions=arguments)


def is_option(node: exp.Expr) -> bool:
    """Whether an argument is Scala's ``Some(...)`` or ``None``: a session's time zone, what ``trim`` takes away."""
    if isinstance(node, exp.Literal):
        return node.is_string and node.this == "None"
    return isinstance(node, exp.Anonymous) and str(node.this).lower() in ("some", "none")
