"""Names in double quotes, which Spark, Hive and BigQuery read as texts: a sign that a log is of another dialect.

Read in the wrong dialect ``WHERE "a" = 7`` compares two constants, and the query would count as one that reads the
whole table. Nothing of that fails to parse, so it has to be looked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from sqlglot.tokenizer_core import Token, TokenType

from .dialects import dialect_of

__all__ = ["has_quoted_names"]

_LITERAL = {TokenType.STRING, TokenType.NUMBER}
_BEFORE = {TokenType.WHERE, TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.ON, TokenType.HAVING}
_BEFORE |= {TokenType.L_PAREN, TokenType.WHEN}
"""What a comparison begins after; after an operator a text may be part of something longer."""
_OPERATORS = {TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE}
_OPERATORS |= {TokenType.NULLSAFE_EQ, TokenType.BETWEEN, TokenType.LIKE, TokenType.ILIKE}
_TABLE = {TokenType.JOIN, TokenType.INTO, TokenType.UPDATE}


def has_quoted_names(statement: str, dialect: str, tokens: Sequence[Token] | None = None) -> bool:
    """Whether names stand in double quotes where ``dialect`` reads texts, so that the statement would be misread.

    They do where a text in double quotes alone is compared with constants, or begins the dotted name of a column; or
    where a table or a further part of a name is in double quotes, and so is something that is read as a text.

    Args:
        tokens: of the statement, if they are known.

    >>> [has_quoted_names(text, "spark") for text in ('SELECT * FROM t WHERE "a" = 7', 'SELECT * FROM t WHERE a = "x"')]
    [True, False]
    >>> has_quoted_names('SELECT "a" FROM "t"', "spark"), has_quoted_names('SELECT "a" FROM "t"', "trino")
    (True, False)
    """
    if '"' not in statement:
        return False
    read_as = dialect_of(dialect)
    if '"' not in read_as.tokenizer_class.QUOTES:
        return False
    if tokens is None:
        try:
            tokens = read_as.tokenize(statement)
        except (sqlglot.errors.SqlglotError, ValueError, RecursionError):
            return False
    kinds = [token.token_type for token in tokens]
    doubled = [kind == TokenType.STRING and statement[t.start] == '"' for t, kind in zip(tokens, kinds, strict=True)]
    in_call, names = _in_calls(kinds), 0
    for i in (i for i, quoted in enumerate(doubled) if quoted):
        before, dotted = _at(kinds, i - 1), _at(kinds, i + 1) == TokenType.DOT
        is_table = before in _TABLE or (before == TokenType.FROM and not in_call[i])
        begins_column = dotted and before != TokenType.DOT and not is_table
        if begins_column or _is_compared(kinds, doubled, i):
            return True
        names += is_table or before == TokenType.DOT  # where no text can stand
    return 0 < names < sum(doubled)


def _at(kinds: Sequence[TokenType], i: int) -> TokenType | None:
    return kinds[i] if 0 <= i < len(kinds) else None


def _in_calls(kinds: Sequence[TokenType]) -> list[bool]:
    """Whether each token lies in brackets that hold no query, as in ``trim(BOTH 'x' FROM "xyx")``."""
    open_calls: list[bool] = []
    found = []
    for i, kind in enumerate(kinds):
        found.append(bool(open_calls) and open_calls[-1])
        if kind == TokenType.L_PAREN:
            open_calls.append(_at(kinds, i + 1) not in (TokenType.SELECT, TokenType.WITH))
        elif kind == TokenType.R_PAREN and open_calls:
            open_calls.pop()
    return found


def _is_compared(kinds: Sequence[TokenType], doubled: Sequence[bool], i: int) -> bool:
    """Whether the text at token ``i`` is compared with nothing but a constant."""
    if _at(kinds, i - 1) not in _BEFORE:
        return False
    j = i + 2 if _at(kinds, i + 1) == TokenType.NOT else i + 1
    if _at(kinds, j) == TokenType.IS:
        return True
    if _at(kinds, j) == TokenType.IN and _at(kinds, j + 1) == TokenType.L_PAREN:
        j += 1
    elif _at(kinds, j) not in _OPERATORS:
        return False
    return _at(kinds, j + 1) in _LITERAL and not doubled[j + 1]
