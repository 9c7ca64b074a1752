"""JSON that others wrote: half characters, which JSON can name and no text can hold, are read as one that says so."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["json_of", "whole_text"]

_HALF = re.compile("[\ud800-\udfff]")


def whole_text(text: str) -> str:
    r"""A text that UTF-8 can hold: halves of characters, as where a text was cut, are replaced.

    >>> whole_text("caf\u00e9 \ud83d")
    'café \ufffd'
    """
    return _HALF.sub("\ufffd", text) if not text.isascii() else text


def json_of(text: str | bytes) -> Any:
    r"""What JSON says, with `whole_text` of all names and values.

    Raises:
        ValueError: it is no JSON, or no UTF-8.
        RecursionError: it is nested too deeply.

    >>> json_of('["\\ud83d", "\\ud83d\\ude00"]') == ["\ufffd", "\U0001f600"], json_of(b'["\xed\xa0\xbd"]') == ["\ufffd"]
    (True, True)
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")  # as json.loads does
    found = json.loads(text)
    named = "\\ud" in text or "\\uD" in text
    return _whole(found) if named or not _fits(text) else found


def _fits(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, dict):
        return {whole_text(name): _whole(item) for name, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value
