"""SQL dialects as the platforms read them today, where sqlglot's own differ."""

from __future__ import annotations

from sqlglot import Dialect
from sqlglot.dialects.databricks import Databricks
from sqlglot.dialects.spark import Spark

__all__ = ["dialect_of"]


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
