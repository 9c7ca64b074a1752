"""What a long step tells of itself while it works."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["Progress", "silent"]

Progress: TypeAlias = Callable[[str], None]
"""Called with a sentence about what is being done."""


def silent(text: str) -> None:
    """Progress that nobody wants to see."""
