"""``did you mean`` for a word that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

__all__ = ["did_you_mean"]


def did_you_mean(given: str, known: Sequence[str]) -> str:
    """The known word that comes closest, as a parenthesis to put behind a sentence; empty when none is close.

    >>> did_you_mean("trails", ["trials", "seed"])
    ' (did you mean trials?)'
    """
    near = difflib.get_close_matches(given, known, 1, 0.6)
    return f" (did you mean {near[0]}?)" if near and near[0] != given else ""
