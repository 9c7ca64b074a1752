"""SQL dialects as the platforms read them today, where sqlglot's own differ."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import Dialect, Tokenizer, exp
from sqlglot.dialects.athena import Athena
from sqlglot.dialects.databricks import Databricks
from sqlglot.dialects.presto import Presto
from sqlglot.dialects.spark import Spark
from sqlglot.dialects.trino import Trino
from sqlglot.tokenizer_core import Token, TokenType

__all__ = ["dialect_of", "tokens_of"]

NUMBER = re.compile(r"\d+(\.\d+)?", re.ASCII)


def _between(parser: Any, this: exp.Expr | None) -> exp.Expr:
    """``a BETWEEN 1 AND 2``, or ``between(a, 1, 2)``, which Spark has as a function, too."""
    if this is not None:
        return parser._parse_between(this)  # type: ignore[no-any-return]
    given = parser._parse_wrapped_csv(parser._parse_bitwise)
    if len(given) != 3:
        parser.raise_error("between() takes three values")
    return exp.Between(this=given[0], low=given[1], high=given[2])


def _with_decimals(tokens: list[Token]) -> list[Token]:
    """``DECIMAL '10.5'`` as the number that it is: a cast to DECIMAL has no digits after the point."""
    found: list[Token] = []
    for token in tokens:
        if (
            token.token_type == TokenType.STRING
            and found
            and found[-1].token_type == TokenType.DECIMAL
            and NUMBER.fullmatch(token.text)
        ):
            start = found.pop().start
            token = Token(TokenType.NUMBER, token.text, token.line, token.col, start, token.end)
        found.append(token)
    return found


class _Decimals(Tokenizer):
    """A tokenizer that reads decimals written as text."""

    def tokenize(self, sql: str) -> list[Token]:
        """The tokens of a text."""
        return _with_decimals(super().tokenize(sql))


class ZorderSpark(Spark):
    """Spark 4: a quote inside a string is written as two (Spark 3 read ``'it''s'`` as two strings, ``its``)."""

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
        """See `ZorderSpark`."""

        RANGE_PARSERS = {**Spark.Parser.RANGE_PARSERS, TokenType.BETWEEN: _between}  # noqa: RUF012

    class Tokenizer(Spark.Tokenizer):
        """See `ZorderSpark`."""

        STRING_ESCAPES = ["'", "\\"]  # noqa: RUF012 - as in the base class


class ZorderDatabricks(Databricks):
    """Databricks, which reads strings as Spark 4 does, and `datediff` without a unit."""

    class Parser(Databricks.Parser):  # type: ignore[misc, valid-type]
        """See `ZorderDatabricks`."""

        _DIFFERENCES = {name: Spark.Parser.FUNCTIONS[name] for name in ("DATEDIFF", "DATE_DIFF")}  # noqa: RUF012
        FUNCTIONS = {**Databricks.Parser.FUNCTIONS, **_DIFFERENCES}  # noqa: RUF012
        RANGE_PARSERS = {**Databricks.Parser.RANGE_PARSERS, TokenType.BETWEEN: _between}  # noqa: RUF012

    class Tokenizer(Databricks.Tokenizer):
        """See `ZorderDatabricks`."""

        STRING_ESCAPES = ["'", "\\"]  # noqa: RUF012 - as in the base class


class ZorderPresto(Presto):
    """Presto with the decimals that it writes as text."""

    class Tokenizer(_Decimals, Presto.Tokenizer):
        """See `ZorderPresto`."""


class ZorderTrino(Trino):
    """Trino with the decimals that it writes as text."""

    class Tokenizer(_Decimals, Trino.Tokenizer):
        """See `ZorderTrino`."""


class ZorderAthena(Athena):
    """Athena with the decimals that it writes as text."""

    class Tokenizer(_Decimals, Athena.Tokenizer):
        """See `ZorderAthena`."""


OURS = {
    "spark": ZorderSpark,
    "databricks": ZorderDatabricks,
    "presto": ZorderPresto,
    "trino": ZorderTrino,
    "athena": ZorderAthena,
}


def dialect_of(name: str) -> Dialect:
    """The dialect called ``name``.

    Raises:
        ValueError: there is none.

    >>> [token.text for token in dialect_of("spark").tokenize("'it''s'")]
    ["it's"]
    """
    return Dialect.get_or_raise(OURS.get(name, name))


def tokens_of(statement: str, dialect: str) -> list[Token] | None:
    """The tokens of a text in a dialect, None where it has none of that dialect's.

    >>> [token.text for token in tokens_of("a = 'b'", "spark")], tokens_of("a = 'b", "spark")
    (['a', '=', 'b'], None)
    """
    try:
        return _tokenizer(dialect).tokenize(statement)
    except (sqlglot.errors.SqlglotError, ValueError, RecursionError):
        return None


@lru_cache(maxsize=16)
def _tokenizer(dialect: str) -> sqlglot.Tokenizer:
    return dialect_of(dialect).tokenizer()
