"""What relayouts promised, what became of it, and what they saved: kept promises, trust in later ones, monthly sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from zorder_pipeline.model.choices import HORIZON_DAYS
from zorder_pipeline.model.lasting import Lasting

__all__ = ["BROKEN", "Account", "Kept", "MonthlySaving", "kept_share", "mean_life"]
__all__ += ["monthly_savings", "widening"]

BROKEN = 1.5
"""A promise is broken when the measured saving is smaller than the promised one by more than this factor."""
ONE_DAY = timedelta(days=1)
REMEMBERED = 5
MOST = 10.0
LIVES = 10
"""Relayouts of a table that tell how long the next one stands."""
SHORTEST = 1 / 24
NEGLIGIBLE = 0.01
"""A promise of less than this share of what queries cost is no measure: how they differ from day to day is more."""


@dataclass(frozen=True)
class Account:
    """What one relayout cost and saves.

    Attributes:
        table: the table's name or location.
        committed_at: microseconds since 1970 UTC.
        cost: core-seconds that it took.
        saved_per_query: core-seconds, measured where it was checked, else as promised.
        queries_per_day: rate of such queries, likewise.
        days: for which a saving is credited: the horizon that the gate counted with.
        checked: whether the saving was measured.
        until: when it was undone, microseconds since 1970 UTC; None while it stands.
        lasting: multiples of ``saved_per_query`` that are saved as queries move on, from the relayout on; None where
            that goes on evenly.
    """

    table: str
    committed_at: int
    cost: float
    saved_per_query: float
    queries_per_day: float
    days: float
    checked: bool
    until: int | None = None
    lasting: Lasting | None = None

    def saved(self, start: float, end: float) -> float:
        """Core-seconds saved between two times, in days after the relayout."""
        days = end - start
        if self.lasting is not None:
            days *= self.lasting.over(days, since=self.lasting.since + start)
        return days * self.queries_per_day * self.saved_per_query


@dataclass(frozen=True)
class MonthlySaving:
    """What the relayouts of a table cost and saved in a month.

    Attributes:
        month: ``2026-01``, in UTC.
        relayouts: done in it.
        cost, saved: core-seconds. A cost counts in the month of the relayout, a saving day by day.
        checked: share of ``saved`` that rests on measurements, 0 to 1; the rest on promises. What was lost counts as
            much as what was gained.
    """

    table: str
    month: str
    relayouts: int
    cost: float
    saved: float
    checked: float

    @property
    def net(self) -> float:
        """Core-seconds saved beyond what was spent."""
        return self.saved - self.cost


@dataclass(frozen=True)
class Kept:
    """How a promise was kept: the measured saving as a multiple of the promised one, and days since the relayout."""

    share: float
    days: float = 0.0


def kept_share(promised: float, measured: float, before: float) -> float | None:
    """What a query was measured to save as a multiple of what it was promised to; None of a promise of next to nothing.

    Args:
        promised, measured, before: what a query saves and what it took before, all in one unit.

    >>> kept_share(40.0, 30.0, 100.0), kept_share(0.05, -0.1, 100.0)
    (0.75, None)
    """
    return measured / promised if promised > max(0.0, NEGLIGIBLE * before) else None


def widening(kept: Sequence[Kept], broken: float = BROKEN, horizon_days: float = HORIZON_DAYS) -> float:
    """Factor by which the next promise of a table is trusted less, from how its latest were kept, oldest first.

    What it exceeds 1 by halves with every horizon since the relayout: who is not trusted makes no newer promises.

    Args:
        broken: a promise counts as broken beyond this factor.
        horizon_days: over which a rewrite must pay for itself.

    >>> widening([Kept(1.1), Kept(0.8)]), widening([Kept(0.25), Kept(1.0)]), widening([Kept(0.25, days=60), Kept(1.0)])
    (1.0, 4.0, 1.75)
    """
    short = [(1 / max(one.share, 1 / MOST), one.days) for one in kept[-REMEMBERED:] if one.share < 1 / broken]
    return max((1 + (factor - 1) * 0.5 ** (days / horizon_days) for factor, days in short), default=1.0)


def mean_life(relayouts: Sequence[tuple[float, float | None]], now: float) -> float | None:
    """How long relayouts of a table stand on average until others undo them, in days; None where they do stand.

    All the days that the latest stood by how many of them ended: those that stand still count with what they have. What
    happened once tells nothing, however many relayouts it ended: it may have been an accident.

    Args:
        relayouts: when each was done, and when it ended, oldest first, in days as ``now``.

    >>> mean_life([(1.0, 2.0), (3.0, 4.0), (5.0, None)], 5.5), mean_life([(1.0, 3.0), (2.0, 3.0)], 9.0)
    (1.25, None)
    """
    latest = relayouts[-LIVES:]
    ends = [end for _, end in latest if end is not None]
    stood = sum(max(0.0, (now if end is None else end) - done) for done, end in latest)
    return max(SHORTEST, stood / len(ends)) if len(set(ends)) > 1 else None


def monthly_savings(accounts: Iterable[Account], now: datetime) -> list[MonthlySaving]:
    """Costs and savings by table and month up to ``now``, oldest month first.

    >>> start = int(datetime(2026, 1, 31, tzinfo=UTC).timestamp() * 1e6)
    >>> account = Account("t", start, 100.0, 2.0, 50.0, 30.0, True)
    >>> found = monthly_savings([account], datetime(2026, 2, 5, tzinfo=UTC))
    >>> [(row.month, row.relayouts, row.cost, row.saved, row.net) for row in found]
    [('2026-01', 1, 100.0, 100.0, 0.0), ('2026-02', 0, 0.0, 400.0, 400.0)]
    """
    counts: dict[tuple[str, str], int] = {}
    costs: dict[tuple[str, str], float] = {}
    saved: dict[tuple[str, str], float] = {}
    moved: dict[tuple[str, str], float] = {}
    checked: dict[tuple[str, str], float] = {}
    for account in accounts:
        committed = start = datetime.fromtimestamp(account.committed_at / 1e6, UTC)
        key = (account.table, f"{start:%Y-%m}")
        counts[key] = counts.get(key, 0) + 1
        costs[key] = costs.get(key, 0.0) + account.cost
        end = now if (now - start) / ONE_DAY <= account.days else start + account.days * ONE_DAY  # may be for ever
        if account.until is not None:
            end = min(end, datetime.fromtimestamp(account.until / 1e6, UTC))
        while start < end:
            key = (account.table, f"{start:%Y-%m}")
            following = (start.replace(day=1) + timedelta(days=32)).replace(
                day=1, hour=0, minute=0, second=0, microsecond=0
            )
            until = min(end, following)
            amount = account.saved(*((moment - committed) / ONE_DAY for moment in (start, until)))
            saved[key] = saved.get(key, 0.0) + amount
            moved[key] = moved.get(key, 0.0) + abs(amount)
            checked[key] = checked.get(key, 0.0) + abs(amount) * account.checked
            start = until
    keys = sorted(counts.keys() | saved.keys(), key=lambda key: (key[1], key[0]))
    return [
        MonthlySaving(
            *key,
            counts.get(key, 0),
            costs.get(key, 0.0),
            saved.get(key, 0.0),
            checked[key] / moved[key] if moved.get(key) else 0.0,
        )
        for key in keys
    ]
