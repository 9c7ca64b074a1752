"""What LIKE patterns say of a column's beginning, by which min/max statistics skip."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Beginning", "beginning_of"]


@dataclass(frozen=True)
class Beginning:
    """What every text that a pattern matches begins with.

    Attributes:
        op: of a `zorder_pipeline.model.predicate.Comparison`: ``=`` of a pattern without wildcards, else
            ``starts_with``.
        text: what it is compared with.
        whole: whether nothing else is asked for.
    """

    op: str
    text: str
    whole: bool


def beginning_of(pattern: str, escape: str = "") -> Beginning | None:
    """What the texts of a pattern begin with; None where that is anything, or engines refuse the pattern.

    Args:
        escape: the character that takes ``%``, ``_`` and itself for what they are; "" for none.

    >>> beginning_of("ab%"), beginning_of("a!_b_", "!")
    (Beginning(op='starts_with', text='ab', whole=True), Beginning(op='starts_with', text='a_b', whole=False))
    >>> beginning_of("abc"), beginning_of("%a"), beginning_of("a!b%", "!")
    (Beginning(op='=', text='abc', whole=True), None, None)
    """
    mark = re.escape(escape) if escape else "(?!)"
    start = re.match(rf"(?:{mark}[%_{mark if escape else ''}]|(?!{mark})[^%_])*", pattern, re.DOTALL)
    assert start is not None
    text, rest = re.sub(rf"{mark}(.)", r"\1", start.group(), flags=re.DOTALL), pattern[start.end() :]
    if not rest:
        return Beginning("=", text, whole=True)
    if not text or (escape and rest.startswith(escape)):
        return None
    return Beginning("starts_with", text, whole=rest == "%")
