"""Monthly sums of what relayouts cost and saved, against a count of hours; when a promise counts as broken."""

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from zorder_pipeline.gate.accounts import BROKEN, Account, Kept, kept_share, mean_life, monthly_savings, widening
from zorder_pipeline.model.lasting import Lasting

BEGIN = datetime(2025, 11, 20, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)


def micros(moment: datetime) -> int:
    return int(moment.timestamp() * 1e6)


def random_account(rng: random.Random) -> Account:
    start = BEGIN + rng.randrange(100 * 24) * HOUR
    until = start + rng.randrange(90 * 24) * HOUR if rng.random() < 0.5 else None
    return Account(
        table=rng.choice("ab"),
        committed_at=micros(start),
        cost=rng.choice([0.0, 50.0]),
        saved_per_query=rng.choice([-1.0, 0.0, 2.0]),
        queries_per_day=rng.choice([24.0, 240.0]),
        days=float(rng.choice([0, 1, 30, 75])),
        checked=rng.random() < 0.5,
        until=None if until is None else micros(until),
        lasting=rng.choice([None, Lasting((0.0, 2.0, 12.0, 50.0), (1.5, 1.0, 0.25, 0.0), since=0.5)]),
    )


def share(one: Account, hour: int) -> float:
    """What is left of the saving in the middle of an hour after the relayout, which came half a day after the log."""
    told = one.lasting
    return 1.0 if told is None else float(np.interp(0.5 + (hour + 0.5) / 24, told.days, told.shares))


@pytest.mark.parametrize("seed", range(8))
def test_a_month_has_the_savings_of_its_hours_and_the_costs_of_its_relayouts(seed: int) -> None:
    rng = random.Random(seed)
    accounts, now = [random_account(rng) for _ in range(5)], BEGIN + 120 * 24 * HOUR
    saved, sure, moved, costs, relayouts = (defaultdict[tuple[str, str], float](float) for _ in range(5))
    for one in accounts:
        start = datetime.fromtimestamp(one.committed_at / 1e6, UTC)
        costs[f"{start:%Y-%m}", one.table] += one.cost
        relayouts[f"{start:%Y-%m}", one.table] += 1
        for hour in range(int(one.days * 24)):
            moment = start + hour * HOUR
            if moment < now and (one.until is None or micros(moment) < one.until):
                key = (f"{moment:%Y-%m}", one.table)
                amount = one.saved_per_query * one.queries_per_day / 24 * share(one, hour)
                saved[key] += amount
                sure[key] += abs(amount) * one.checked
                moved[key] += abs(amount)
    found = monthly_savings(accounts, now)
    keys = [(row.month, row.table) for row in found]
    assert keys == sorted(relayouts.keys() | saved.keys())
    for key, row in zip(keys, found, strict=True):
        assert (row.relayouts, row.cost) == (relayouts[key], costs[key])
        assert row.saved == pytest.approx(saved[key])
        assert row.net == pytest.approx(saved[key] - costs[key])
        assert row.checked == pytest.approx(sure[key] / moved[key] if moved[key] else 0.0)


@pytest.mark.parametrize(("measured", "promised", "share"), [(-6.0, 10.0, 0.375), (3.0, -3.0, 0.5), (0.0, 2.0, 0.0)])
def test_the_share_that_was_measured_is_one_also_where_something_was_lost(
    measured: float, promised: float, share: float
) -> None:
    """Of a loss of 6 and a promise of 10 it was -150%."""
    both = ((measured, True), (promised, False))
    accounts = [Account("t", micros(BEGIN), 0.0, each, 24.0, 30.0, checked) for each, checked in both]
    (row,) = monthly_savings(accounts, BEGIN + HOUR)
    assert (row.saved, row.checked) == (pytest.approx(measured + promised), pytest.approx(share))


@pytest.mark.parametrize("days", [1e7, 1e12, float("inf")])
def test_a_saving_that_is_credited_for_ever_is_credited_until_today(days: float) -> None:
    """There is no date so many days from now."""
    (row,) = monthly_savings([Account("t", micros(BEGIN), 1.0, 2.0, 24.0, days, True)], BEGIN + 5 * HOUR)
    assert row.saved == pytest.approx(10.0)


def test_a_promise_is_broken_beyond_the_factor_and_the_worst_of_the_latest_five_counts() -> None:
    assert widening([Kept(1 / BROKEN)]) == 1.0
    assert widening([Kept(0.99 / BROKEN)]) == pytest.approx(BROKEN / 0.99)
    assert widening([Kept(0.5), Kept(0.2), Kept(0.4)]) == pytest.approx(5.0)
    assert widening([Kept(-3.0)]) == widening([Kept(0.0)]) == 10.0, "a loss, too, is trusted ten times less"
    assert widening([Kept(0.1), *[Kept(1.0)] * 4]) == 10.0
    assert widening([Kept(0.1), *[Kept(1.0)] * 5]) == 1.0
    assert widening([]) == 1.0


def test_a_promise_of_next_to_nothing_is_neither_kept_nor_broken() -> None:
    assert kept_share(1.0, 5.0, 100.0) is None
    assert kept_share(1.1, 0.0, 100.0) == 0.0
    assert kept_share(1.1, -1.1, 100.0) == -1.0
    assert kept_share(0.0, 5.0, 0.0) is None
    assert kept_share(-2.0, 5.0, -1000.0) is None


def test_a_life_is_told_by_all_the_days_that_relayouts_stood() -> None:
    """Drawn at random, and looked at after ten days: the mean of those that ended alone would be too short."""
    rng = np.random.default_rng(0)
    lives = rng.exponential(8.0, (2000, 10))
    told = [mean_life([(0.0, life if life < 10.0 else None) for life in some.tolist()], 10.0) for some in lives]
    assert np.median([life for life in told if life is not None]) == pytest.approx(8.0, rel=0.1)
    assert mean_life([], 0.0) is None
    stopped = [(float(day), day + 1.0) for day in range(9)] + [(20.0, None)] * 10
    assert mean_life(stopped, 50.0) is None, "nobody does so any more"
    assert mean_life([(float(day), 30.0) for day in range(30)], 60.0) is None, "an overwrite ends all that stand"
    weekly = [(float(day), 7.0 * (day // 7 + 1)) for day in range(28)]
    assert mean_life(weekly, 28.0) == pytest.approx(4.0, abs=0.7)
    assert mean_life([(1.0, 1.0), (2.0, 2.0)], 2.0) == pytest.approx(1 / 24)
