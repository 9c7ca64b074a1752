"""SQL dialects as the platforms read them today, where sqlglot's own differ."""

from __future__ import annotations

from functools import lru_cache

import sqlglot
from sqlglot import Dialect
from sqlglot.dialects.databricks import Databricks
from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import Token

__all__ = ["dialect_of", "tokens_of"]


class ZorderSpark(Spark):
    """Spark 4: a quote inside a string is written as two (Spark 3 read ``'it''s'`` as two strings, ``its``)."""

    class Tokenizer(Spark.Tokenizer):
        """See `ZorderSpark`."""

        STRING_ESCAPES = ["'", "\\"]  # noqa: RUF012 - as in the base class


class ZorderDatabricks(Databricks):
    """Databricks, which reads strings as Spark 4 does."""

    class Tokenizer(Databricks.Tokenizer):
        """See `ZorderDatabricks`."""

        STRING_ESCAPES = ["'", "\\"]  # noqa: RUF012 - as in the base class


def dialect_of(name: str) -> Dialect:
    """The dialect called ``name``.

    Raises:
        ValueError: there is none.

    >>> [token.text for token in dialect_of("spark").tokenize("'it''s'")]
    ["it's"]
    """
    return Dialect.get_or_raise({"spark": ZorderSpark, "databricks": ZorderDatabricks}.get(name, name))


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
