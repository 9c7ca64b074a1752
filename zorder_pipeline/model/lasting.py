"""How long a saving lasts: queries that follow the newest data soon ask for rows that no relayout of today has met."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from .plain import MALFORMED

__all__ = ["Lasting"]

TOLD = (1, 3, 7, 14, 30)
"""Days that people are told of."""


@dataclass(frozen=True)
class Lasting:
    """What a saving comes to as its queries move on.

    Attributes:
        days: from the newest logged query on, ascending, the first of them 0.
        shares: what is saved then, as a multiple of what the logged queries themselves save.
        since: days that have passed: queries have moved on as far as the table's data since the log ended, and with
            each day that the plan waits.
    """

    days: tuple[float, ...]
    shares: tuple[float, ...]
    since: float = 0.0

    def over(self, days: float, since: float | None = None) -> float:
        """The mean of so many days; between those that are told it changes evenly, and after the last one no more.

        Args:
            since: the first of them; None for those from now on.

        >>> fading = Lasting((0.0, 4.0), (1.0, 0.0))
        >>> fading.over(0), fading.over(2), fading.over(8), fading.over(2, since=2)
        (1.0, 0.75, 0.25, 0.25)
        """
        first = self.since if since is None else since
        within = (day for day in self.days if first < day < first + days)
        moments = np.array([first, *within, first + max(0.0, days)])
        told = np.interp(moments, self.days, self.shares)
        if days <= 0:
            return float(told[0])
        return float(np.sum((told[1:] + told[:-1]) / 2 * np.diff(moments)) / days)

    def times(self, factor: float) -> Lasting:
        """The same of a multiple of the saving."""
        return replace(self, shares=tuple(share * factor for share in self.shares))

    @staticmethod
    def together(parts: Sequence[Lasting]) -> Lasting:
        """What several parts of a saving come to, told of the same days; at least one.

        >>> Lasting.together([Lasting((0.0, 1.0), (0.5, 0.25)), Lasting((0.0, 1.0), (0.25, 0.0))]).shares
        (0.75, 0.25)
        """
        return replace(parts[0], shares=tuple(map(sum, zip(*(part.shares for part in parts), strict=True))))

    def foretold(self, credited: float, days: float) -> dict[str, Any]:
        """What is noted of a part of a saving, for `promised`.

        Args:
            credited: the part of what the logged queries save.
            days: over which at most all of that saving is counted.
        """
        return self.times(1 / max(1.0, self.over(days))).to_json() | {"credited": credited}

    @staticmethod
    def promised(told: Mapping[str, Any] | None, credited: float) -> Lasting | None:
        """What was `foretold` of a part that may be smaller by now; None where nothing was, or it is no such note.

        >>> told = Lasting((0.0,), (0.5,)).foretold(credited=1.0, days=30)
        >>> Lasting.promised(told, credited=0.5)
        Lasting(days=(0.0,), shares=(0.25,), since=0.0)
        """
        try:
            whole = float(told["credited"]) if told else 0.0
            return Lasting.from_json(told).times(credited / whole if whole > 0 else 1.0) if told else None
        except MALFORMED:
            return None

    @staticmethod
    def in_words(told: Mapping[str, Any]) -> str:
        """What was `foretold`, for people: what is left on a few days from now.

        >>> Lasting.in_words(Lasting((0.0, 3.0), (0.5, 0.2)).foretold(credited=0.5, days=30))
        '100% now, 80% after 1, 40% after 3, 40% after 7, 40% after 14, 40% after 30 days'
        """
        lasting = Lasting.promised(told, 1.0)
        if lasting is None:
            return "not known"
        left = [f"{lasting.over(0, since=lasting.since + day):.0%} after {day}" for day in TOLD]
        return f"{lasting.over(0):.0%} now, {', '.join(left)} days"

    def to_json(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {"days": list(self.days), "shares": list(self.shares), "since": self.since}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Lasting:
        """What `to_json` wrote.

        Raises:
            ValueError: it is none.
            MALFORMED: likewise, see `zorder_pipeline.model.plain`.
        """
        days, shares = (tuple(map(float, data[name])) for name in ("days", "shares"))
        since = float(data["since"])
        ascending = len(days) > 0 and days[0] == 0 and all(a < b for a, b in pairwise(days))
        if len(days) != len(shares) or not ascending or not all(map(math.isfinite, (*days, *shares, since))):
            raise ValueError("days are to ascend from 0, with a share each")
        return Lasting(days, shares, since)
