"""Statements as trees: prepared ones with the values of their parameters, and what tools wrap around SQL taken off."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import TokenType

from .dialects import dialect_of

__all__ = ["Parameters", "deeply", "parsed"]

CALLS = 10_000
Parameters: TypeAlias = Mapping[str, Any] | Sequence[Any]
_WRAPPED = (
    (re.compile(r"^\s*%+sql\b"), ""),  # a notebook's cell
    (re.compile(r"\{\s*ts\s+('[^']*')\s*\}", re.I), r"TIMESTAMP \1"),  # ODBC's and JDBC's escapes
    (re.compile(r"\{\s*d\s+('[^']*')\s*\}", re.I), r"DATE \1"),
    (re.compile(r"\{\s*fn\s+([^{}]*)\}", re.I), r"\1"),
    (re.compile(r"%\((\w+)\)s"), r":\1"),  # parameters of Python's drivers
    (re.compile(r"%s(?!\w)"), "?"),
)


def parsed(statement: str, dialect: str, parameters: Parameters | None = None) -> list[exp.Expr]:
    """The statements of a line.

    Args:
        parameters: by name, or in order; one without a value stays what it is.

    Raises:
        SqlglotError, ValueError, AttributeError, LookupError, TypeError, ArithmeticError: it is no SQL of the dialect.
        RecursionError: it is nested too deeply.

    >>> parsed("%sql SELECT a FROM t WHERE d = {d '2024-01-01'} AND b = %s", "spark", [5])[0].sql("spark")
    "SELECT a FROM t WHERE d = CAST('2024-01-01' AS DATE) AND b = 5"
    """
    try:
        return _trees(statement, dialect, parameters)
    except (ParseError, TokenError):
        plain = statement
        for pattern, instead in _WRAPPED:
            plain = pattern.sub(instead, plain)
        if plain == statement:
            raise
        return _trees(plain, dialect, parameters)


def _trees(statement: str, dialect: str, parameters: Parameters | None) -> list[exp.Expr]:
    if parameters and not isinstance(parameters, Mapping):
        statement = _in_order(statement, parameters, dialect)
    trees = [tree for tree in sqlglot.parse(statement, read=dialect_of(dialect)) if tree is not None]
    return [_filled(tree, parameters) for tree in trees] if parameters else trees


@contextmanager
def deeply() -> Iterator[None]:
    """Brackets in brackets take some twenty calls each: tools that join conditions one by one write hundreds."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, CALLS))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _filled(tree: exp.Expr, parameters: Parameters) -> exp.Expr:
    """``tree`` with the values of its parameters as literals; one without a value stays what it is.

    Args:
        parameters: by name, or in order, of which ``$1`` (or ``:1``) is the first.
    """
    by_name = parameters if isinstance(parameters, Mapping) else {str(n): v for n, v in enumerate(parameters, 1)}
    named = {name.lstrip(":@$").lower(): value for name, value in by_name.items()}
    for node in list(tree.find_all(exp.Placeholder, exp.Parameter)):
        name = node.this.name if isinstance(node.this, exp.Expr) else str(node.this or "")
        if name.lower() in named:
            node.replace(_literal(named[name.lower()]))
    return tree


def _in_order(statement: str, parameters: Sequence[Any], dialect: str) -> str:
    """The statement with values in the place of its question marks: in a tree clauses stand in another order."""
    read_as = dialect_of(dialect)
    marks = [token for token in read_as.tokenize(statement) if token.token_type == TokenType.PLACEHOLDER]
    parts, end = [], 0
    for token, value in zip(marks, parameters, strict=False):
        parts += [statement[end : token.start], _literal(value).sql(dialect=read_as)]
        end = token.end + 1
    return "".join([*parts, statement[end:]])


def _literal(value: Any) -> exp.Expr:
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int | float | Decimal) and math.isfinite(value):
        number = exp.Literal.number(abs(value))
        return exp.Neg(this=number) if value < 0 else number
    return exp.Literal.string(str(value))
