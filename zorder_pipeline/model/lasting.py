"""How long a saving lasts: queries that follow the newest data soon ask for rows that no relayout of today has met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Lasting"]


@dataclass(frozen=True)
class Lasting:
    """What a saving comes to as its queries move on.

    Attributes:
        days: from now, ascending, the first of them 0.
        shares: what is saved then, as a multiple of what the logged queries themselves save.
    """

    days: tuple[float, ...]
    shares: tuple[float, ...]

    def over(self, days: float) -> float:
        """The mean of the first ``days``; in between it changes evenly, and after the last one no more.

        >>> fading = Lasting((0.0, 4.0), (1.0, 0.0))
        >>> fading.over(0), fading.over(2), fading.over(8)
        (1.0, 0.75, 0.25)
        """
        if days <= 0:
            return self.shares[0]
        moments = np.array([*(day for day in self.days if day < days), days])
        told = np.interp(moments, self.days, self.shares)
        return float(np.sum((told[1:] + told[:-1]) / 2 * np.diff(moments)) / days)

    def times(self, factor: float) -> Lasting:
        """The same of a multiple of the saving."""
        return Lasting(self.days, tuple(share * factor for share in self.shares))

    @staticmethod
    def together(parts: Sequence[Lasting]) -> Lasting:
        """What several parts of a saving come to, told of the same days; at least one.

        >>> Lasting.together([Lasting((0.0, 1.0), (0.5, 0.25)), Lasting((0.0, 1.0), (0.25, 0.0))]).shares
        (0.75, 0.25)
        """
        return Lasting(parts[0].days, tuple(map(sum, zip(*(part.shares for part in parts), strict=True))))

    def to_json(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {"days": list(self.days), "shares": list(self.shares)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Lasting:
        """What `to_json` wrote.

        Raises:
            ValueError: it is none.
            MALFORMED: likewise, see `zorder_pipeline.model.plain`.
        """
        days, shares = (tuple(map(float, data[name])) for name in ("days", "shares"))
        if not days or len(days) != len(shares) or days[0] != 0 or any(np.diff(days) <= 0):
            raise ValueError("days are to ascend from 0, with a share each")
        return Lasting(days, shares)
