"""Texts of logs parsed within bounds.

sqlglot tries one way of reading a text after the other and goes back where one fails. Of JOINs without ON, which Spark
takes, it goes back twice as often with each of them (20 take 20 seconds), of ``date(`` in ``date(`` three times.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp

from .dialects import dialect_of

__all__ = ["TooAmbiguousError", "all_in", "one_in"]

WORDS_AGAIN, AGAIN_EACH = 20_000, 20
"""Words that are read again of a text, and of each of its own: parsers take a second for so many, SQL as people and
tools write it half a one."""


class TooAmbiguousError(ValueError):
    """A text has more ways to be read than are tried."""


def all_in(text: str, dialect: str) -> list[exp.Expr]:
    """The statements in a text of a dialect.

    Raises:
        SqlglotError, ValueError, AttributeError, LookupError, TypeError, ArithmeticError: it is no SQL of the dialect.
        RecursionError: it is nested too deeply.
        TooAmbiguousError: it has more ways to be read than are tried.

    >>> [tree.sql() for tree in all_in("SELECT 1; SELECT 2", "spark")]
    ['SELECT 1', 'SELECT 2']
    >>> all_in("SELECT * FROM t " + "JOIN t " * 30, "spark")
    Traceback (most recent call last):
    zorder_pipeline.query_log.statements.bounded.TooAmbiguousError: a text has more ways to be read than are tried
    """
    read_as = dialect_of(dialect)
    tokens = read_as.tokenize(text)
    parser = _parser(dialect)(dialect=read_as)
    parser.left = WORDS_AGAIN + AGAIN_EACH * len(tokens)
    return [tree for tree in parser.parse(tokens, text) if tree is not None]


def one_in(text: str, dialect: str) -> exp.Expr:
    """The one statement, or expression, that a text is; a block where it is several.

    Raises:
        SqlglotError: it is none, or empty.
        ValueError, RecursionError: as `all_in`.
    """
    found = all_in(text, dialect)
    if not found:
        raise sqlglot.errors.ParseError("it is empty")
    return exp.Block(expressions=found) if len(found) > 1 else found[0]


@lru_cache(maxsize=16)
def _parser(dialect: str) -> Any:
    base: Any = dialect_of(dialect).parser_class

    class Bounded(base):  # type: ignore[misc]
        """The dialect's parser, which ends where it has gone back too often."""

        left = WORDS_AGAIN

        def _retreat(self, index: int) -> None:
            self.left -= max(0, self._index - index)
            if self.left < 0:
                raise TooAmbiguousError("a text has more ways to be read than are tried")
            super()._retreat(index)

    return Bounded
