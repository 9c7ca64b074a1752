"""Statements as trees: prepared ones with the values of their parameters, and what tools wrap around SQL taken off."""

from __future__ import annotations

import math
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, TypeAlias

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.tokenizer_core import TokenType

from .bounded import all_in
from .dialects import dialect_of

__all__ = ["BROKEN", "Parameters", "deeply", "parsed"]

CALLS = 10_000
UNKNOWN = object()
SEVERAL = (list, tuple, Mapping, bytes)
"""Values that drivers write out in ways of their own."""
Parameters: TypeAlias = Mapping[str, Any] | Sequence[Any]
_WRAPPED = re.compile(
    r"""(?P<cell>\A\s*%+sql\b)                                          # a notebook's cell
    |\{\s*(?P<kind>ts|d)\s+(?P<moment>'[^']*')\s*\}                   # ODBC's and JDBC's escapes
    |(?P<text>'(?:[^'\\]|\\(?:.|\Z)|'')*(?:'|\Z)|"[^"]*(?:"|\Z)|`[^`]*(?:`|\Z)  # what is left as it is, also unclosed
        |--[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<aside>\bWITH\s+SCHEMA\s+EVOLUTION\b|\bCLUSTER\s+BY\s+(?:AUTO|NONE)\b|(?<=\))\s*IF\s+NOT\s+EXISTS\b # Delta's
        |\bINSERT\s+OVERWRITE\s+(?:LOCAL\s+)?DIRECTORY\s+'[^']*'(?:\s+USING\s+\w+)?(?:\s+OPTIONS\s*\([^()]*\))?)
    |\{\s*fn\s(?P<call>[^{}]*)\}
    |%\((?P<name>\w+)\)s|(?P<mark>%s)(?!\w)                            # parameters of Python's drivers""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_AFTER_LIMIT = re.compile(r"\|>\s*LIMIT\b.*\|>", re.IGNORECASE | re.DOTALL)
BROKEN = (SqlglotError, ValueError, AttributeError, LookupError, TypeError, ArithmeticError, AssertionError)
"""What a statement that nobody thought of ends in."""
_lock = threading.Lock()
_inside, _before = 0, 0


def parsed(statement: str, dialect: str, parameters: Parameters | None = None) -> list[exp.Expr]:
    """The statements of a line.

    Args:
        parameters: by name, or in order; one without a value stays what it is.

    Raises:
        SqlglotError, ValueError, AttributeError, LookupError, TypeError, ArithmeticError: it is no SQL of the dialect.
        RecursionError: it is nested too deeply.
        TooAmbiguousError: it has more ways to be read than are tried.

    >>> parsed("%sql SELECT a FROM t WHERE d = {d '2024-01-01'} AND b = %s", "spark", [5])[0].sql("spark")
    "SELECT a FROM t WHERE d = CAST('2024-01-01' AS DATE) AND b = 5"
    """
    if _AFTER_LIMIT.search(statement):
        raise ValueError("what follows a LIMIT in pipe syntax is read as if it stood before")
    try:
        return _trees(statement, dialect, parameters)
    except (ParseError, TokenError):
        plain = _WRAPPED.sub(_unwrapped, statement)
        if plain == statement:
            raise
        return _trees(plain, dialect, parameters)


def _unwrapped(found: re.Match[str]) -> str:
    if found["cell"] or found["aside"]:
        return ""
    if found["moment"]:
        return f"{'TIMESTAMP' if found['kind'].lower() == 'ts' else 'DATE'} {found['moment']}"
    if found["call"] is not None:
        return found["call"]
    return f":{found['name']}" if found["name"] else "?" if found["mark"] else found["text"]


def _trees(statement: str, dialect: str, parameters: Parameters | None) -> list[exp.Expr]:
    if parameters and not isinstance(parameters, Mapping):
        statement = _in_order(statement, parameters, dialect)
    trees = [_with_plain_texts(tree) for tree in all_in(statement, dialect)]
    return [_filled(tree, parameters) for tree in trees] if parameters else trees


def _with_plain_texts(tree: exp.Expr) -> exp.Expr:
    """``tree`` with texts that are written in a way of their own (``r'a'``, ``$$a$$``, ``N'a'``) as any others."""
    for node in list(tree.find_all(exp.RawString, exp.National)):
        literal = exp.Literal.string(node.name)
        if node is tree:
            return literal
        node.replace(literal)
    return tree


@contextmanager
def deeply() -> Iterator[None]:
    """Brackets in brackets take some twenty calls each: tools that join conditions one by one write hundreds.

    The limit is the process's: of several threads the first one in raises it, and the last one out lowers it.
    """
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_before, CALLS))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                sys.setrecursionlimit(_before)


def _filled(tree: exp.Expr, parameters: Parameters) -> exp.Expr:
    """``tree`` with the values of its parameters as literals; one without a value stays what it is.

    Args:
        parameters: by name, or in order, of which ``$1`` (or ``:1``) is the first.
    """
    by_name = parameters if isinstance(parameters, Mapping) else {str(n): v for n, v in enumerate(parameters, 1)}
    named = {name.lstrip(":@$").lower(): value for name, value in by_name.items()}
    for node in list(tree.find_all(exp.Placeholder, exp.Parameter)):
        name = node.this.name if isinstance(node.this, exp.Expr) else str(node.this or "")
        if (value := named.get(name.lower(), UNKNOWN)) is not UNKNOWN and not isinstance(value, SEVERAL):
            node.replace(_literal(value))
    return tree


def _in_order(statement: str, parameters: Sequence[Any], dialect: str) -> str:
    """The statement with values in the place of its question marks: in a tree clauses stand in another order."""
    read_as, parts, end, order = dialect_of(dialect), list[str](), 0, iter(parameters)
    tokens = read_as.tokenize(statement)
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        if token.token_type != TokenType.PLACEHOLDER:
            continue
        last, value = token, UNKNOWN
        if after is None or after.token_type != TokenType.NUMBER or after.start != token.end + 1:
            value = next(order, UNKNOWN)
        else:  # ?1 is the first
            last = after
            if after.text.isdecimal() and 0 < int(after.text) <= len(parameters):
                value = parameters[int(after.text) - 1]
        known = value is not UNKNOWN and not isinstance(value, SEVERAL)
        parts += [statement[end : token.start], f" {_literal(value).sql(dialect=read_as)} " if known else "?"]
        end = last.end + 1
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
