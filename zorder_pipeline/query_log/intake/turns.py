"""Under which number an ingestion commits, and whether another one has read the same logs since it looked.

The number is the only guard: Delta takes each once, and what was read goes by what was known when reading began.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .known import name_of, place_of

__all__ = ["TOLD", "Turn"]

TOLD = ("batch", "name", "log", "replaces")
"""What has to be known of the rows of ``log_files`` that came since."""


@dataclass
class Turn:
    """An ingestion of the logs at one place, from its look at ``log_files`` to its last commit.

    Attributes:
        seen: the newest batch before it looked, or the last one of its own.
    """

    path: str
    seen: int

    def number(self, since: Iterable[Mapping[str, Any]]) -> int | None:
        """The next batch number; None where another ingestion has read logs of this place.

        Args:
            since: what ``log_files`` tells (`TOLD`) of the batches after `seen`; an older state lacks some columns.

        >>> other = {"batch": 5, "name": "/logs/a.sql"}
        >>> Turn("/logs", 4).number([other]), Turn("/logs", 5).number([]), Turn("/log", 4).number([other])
        (None, 6, 6)
        """
        rows = list(since)
        if any(self._touches(row) for row in rows):
            return None
        return max((row["batch"] for row in rows), default=self.seen) + 1

    def _touches(self, row: Mapping[str, Any]) -> bool:
        """Whether a record is one of a log here, or of one that was read here before it was renamed or replaced."""
        place = place_of(self.path)
        names = (name_of(name) for column in ("name", "log", "replaces") if (name := row.get(column)))
        return any(name == place or name.startswith((f"{place}/", f"{place}#")) for name in names)
