"""Logs that are text, whatever wrote them: UTF-8 and UTF-16, lines that are still written, statements of a script."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO, cast

import sqlglot

from zorder_pipeline.query_log.statements.dialects import tokens_of

from .codecs import READ, Chunks

__all__ = ["Fed", "as_utf8", "statements_of"]


def as_utf8(stream: BinaryIO) -> BinaryIO:
    """A text as UTF-8: one in UTF-16, which says so by its first two bytes, as Windows writes them, is turned into it.

    >>> as_utf8(io.BufferedReader(io.BytesIO("é".encode("utf-16")))).read().decode()
    'é'
    """
    head = cast("io.BufferedReader", stream).peek(2)[:2]
    if head not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return stream
    return io.BufferedReader(Chunks(_from_utf16(stream)), READ)


def _from_utf16(stream: BinaryIO) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    while chunk := stream.read(READ):
        if text := decoder.decode(chunk).encode("utf-8", "replace"):
            yield text
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


class Fed:
    """Lines of a text, without NULs.

    Attributes:
        record: those that were fed since it was emptied last.
        is_over: another one was asked for, and there was none.
    """

    def __init__(self, text: Iterable[str]) -> None:
        self.text, self.record, self.is_over = iter(text), list[str](), False

    def __iter__(self) -> Fed:
        return self

    def __next__(self) -> str:
        line = next(self.text, None)
        if line is None:
            self.is_over = True
            raise StopIteration
        self.record.append(line.lstrip("\0").replace("\0", "\ufffd"))
        return self.record[-1]


def statements_of(text: str, dialect: str = "spark") -> Iterator[tuple[str, bool]]:
    r"""Statements of a script, split at semicolons outside of strings and comments, and whether each has its own.

    >>> list(statements_of(r"SELECT 'a;\'; SELECT 1", "trino"))
    [("SELECT 'a;\\'", True), ('SELECT 1', False)]
    """
    text = text.replace("\ufeff", " ")  # at the beginning of each script that was put together to this one
    tokens = next((found for name in (dialect, "spark") if (found := tokens_of(text, name)) is not None), None)
    if tokens is None:
        parts = text.split(";")
        yield from ((part.strip(), i < len(parts)) for i, part in enumerate(parts, 1) if part.strip())
        return
    start = 0
    for token in tokens:
        if token.token_type == sqlglot.TokenType.SEMICOLON:
            if _says_something(text[start : token.start]):
                yield text[start : token.start].strip(), True
            start = token.end + 1
    if _says_something(text[start:]):
        yield text[start:].strip(), False


def _says_something(text: str) -> bool:
    return bool(re.sub(r"(?s)/\*.*?(?:\*/|\Z)|--[^\n]*", "", text).strip())
