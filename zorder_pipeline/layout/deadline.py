"""When learning has to come to an end: one moment, of which every step gets its part."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

__all__ = ["NEVER", "Deadline"]


@dataclass(frozen=True)
class Deadline:
    """A moment after which nothing more is tried.

    Attributes:
        at: by `time.monotonic`; infinite for never.

    >>> Deadline.after(None).left, Deadline.after(0.0).over, Deadline.after(60.0).part(0.5).left <= 30.0
    (inf, True, True)
    """

    at: float = math.inf

    @staticmethod
    def after(seconds: float | None) -> Deadline:
        """The moment in so many seconds; never, for None."""
        return NEVER if seconds is None else Deadline(time.monotonic() + seconds)

    @property
    def set(self) -> bool:
        """Whether there is such a moment."""
        return self.at < math.inf

    @property
    def left(self) -> float:
        """Seconds until then, at least 0; infinite for never."""
        return max(0.0, self.at - time.monotonic())

    @property
    def over(self) -> bool:
        """Whether that moment has come."""
        return time.monotonic() >= self.at

    @property
    def seconds(self) -> float | None:
        """`left` as a time budget; None for never."""
        return self.left if self.set else None

    def part(self, share: float) -> Deadline:
        """The moment by which that share of what is left is used up."""
        return Deadline(time.monotonic() + share * self.left) if self.set else self


NEVER = Deadline()
