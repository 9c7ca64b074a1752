"""What a long step tells of itself while it works."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

__all__ = ["Progress", "seldom", "silent"]

Progress: TypeAlias = Callable[[str], None]
"""Called with a sentence about what is being done."""


def silent(text: str) -> None:
    """Progress that nobody wants to see."""


def seldom(say: Progress, seconds: float = 30.0) -> Progress:
    """``say``, but after each sentence none for so many seconds: for a log that is kept.

    >>> told = seldom(print)
    >>> told("growing tree"), told("growing uneven-tree")
    growing tree
    (None, None)
    """
    last = float("-inf")

    def tell(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= seconds:
            say(text)
            last = time.monotonic()

    return tell
