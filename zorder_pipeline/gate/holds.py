"""When nothing may be rewritten whatever it would gain: the kill switch and blackout windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from zorder_pipeline.model.zones import zone_of

__all__ = ["STOP_VARIABLE", "Blackout", "Hold", "held", "stopped_by"]

STOP_VARIABLE = "ZORDER_STOP"
"""Environment variable that stops all relayouts when it holds anything but 0, false, no or nothing."""
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
NOT_SET = ("", "0", "false", "no")


@dataclass(frozen=True)
class Hold:
    """Why nothing may be rewritten now: ``cause`` as in `zorder_pipeline.model.decision.CAUSES`, and the sentence."""

    cause: str
    why: str


@dataclass(frozen=True)
class Blackout:
    """A window of the day in which nothing is rewritten.

    Attributes:
        start, end: wall-clock times in ``time_zone``; an end that is not after the start is on the next day.
        days: weekdays on which it starts, ``mon`` to ``sun``; empty for all.
        time_zone: name of the time zone.
    """

    start: time
    end: time
    days: tuple[str, ...] = ()
    time_zone: str = "UTC"

    def until(self, now: datetime) -> datetime | None:
        """When the window that ``now`` lies in ends; None when it lies in none.

        The end is exclusive. Days on which the clock changes are as long as they are on the wall, and a time that comes
        twice begins the window when it comes first, and ends it when it comes last.

        Args:
            now: with a time zone.

        >>> night = Blackout(time(22), time(6), ("fri",), "Europe/Berlin")
        >>> night.until(datetime.fromisoformat("2026-01-03T04:00:00+00:00")).isoformat()
        '2026-01-03T06:00:00+01:00'
        >>> night.until(datetime.fromisoformat("2026-01-03T05:00:00+00:00")) is None
        True
        """
        local = now.astimezone(zone_of(self.time_zone))
        over_midnight = self.end <= self.start
        for day in (local.date(), local.date() - timedelta(days=1))[: 1 + over_midnight]:
            start = datetime.combine(day, self.start, local.tzinfo)
            end = datetime.combine(day + timedelta(days=over_midnight), self.end, local.tzinfo).replace(fold=1)
            # within a zone Python compares what is on the wall; only in another one when it is
            on_the_wall = start <= local < end
            if self._starts(day.weekday()) and (on_the_wall or start.astimezone(UTC) <= now < end.astimezone(UTC)):
                return max(end, end.replace(fold=0), key=lambda moment: moment.astimezone(UTC))
        return None

    def _starts(self, weekday: int) -> bool:
        return not self.days or DAYS[weekday] in self.days


def stopped_by(environment: Mapping[str, str], configured: bool = False, note: str | None = None) -> Hold | None:
    """The kill switch: the configuration, the environment, or a note left in the state.

    Args:
        configured: whether the configuration says ``stop: true``.
        note: what the file ``STOP`` in the state says; None when there is none.

    >>> stopped_by({"ZORDER_STOP": "1"}).why
    'all relayouts are stopped: the environment variable ZORDER_STOP is set'
    """
    if configured:
        return Hold("stopped", "all relayouts are stopped: the configuration says stop: true")
    if environment.get(STOP_VARIABLE, "").strip().lower() not in NOT_SET:
        return Hold("stopped", f"all relayouts are stopped: the environment variable {STOP_VARIABLE} is set")
    if note is not None:
        told = f" ({note.strip()})" if note.strip() else ""
        return Hold("stopped", f"all relayouts are stopped by an operator{told}; zorder stop --lift goes on")
    return None


def held(now: datetime, blackouts: Sequence[Blackout]) -> Hold | None:
    """The blackout window that ``now`` lies in, the one that lasts longest."""
    ends = [(end, window) for window in blackouts if (end := window.until(now)) is not None]
    if not ends:
        return None
    end, window = max(ends, key=lambda pair: pair[0])
    return Hold("blackout", f"blackout window until {end:%Y-%m-%d %H:%M} {window.time_zone}")
