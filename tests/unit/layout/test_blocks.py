"""A log in three blocks: by time, each statement once with the number of its queries, against counting one by one."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.gate.benefit import promise
from zorder_pipeline.layout.blocks import PARTS, blocks_of, split_log
from zorder_pipeline.model.predicate import Comparison, Literal
from zorder_pipeline.model.workload import LoggedQuery

HOUR = 3_600_000_000


def test_queries_that_nobody_repeats_are_a_half_and_two_quarters_by_time() -> None:
    blocks = split_log(list(range(100)), list(range(100, 0, -1)))
    assert blocks.apart
    assert blocks.train.queries.tolist() == list(range(50, 100))
    assert blocks.select.queries.tolist() == list(range(25, 50))
    assert blocks.promise.queries.tolist() == list(range(25))
    assert (blocks.promise.times == 1).all()


@given(st.lists(st.tuples(st.integers(0, 12), st.one_of(st.none(), st.integers(0, 50))), max_size=80))
def test_what_is_asked_counts_in_the_block_of_its_time_and_nowhere_else(log: list[tuple[int, int | None]]) -> None:
    names, times = [name for name, _ in log], [moment for _, moment in log]
    blocks = split_log(names, times)
    assert blocks.apart == (len(set(names)) >= 6)
    parts = [blocks.train, blocks.select, blocks.promise] if blocks.apart else [blocks.train]
    assert sorted(i for part in parts for i in part.queries.tolist()) == list(range(len(log)))
    if not blocks.apart:
        assert len(blocks.promise.queries) == 0
        assert blocks.select.queries.tolist() == blocks.train.queries.tolist()
    weights = np.random.default_rng(len(log)).random(len(log))
    for part in (*parts, blocks.known):
        asked = [names[i] for i in part.queries]
        count = Counter(asked)
        assert [names[i] for i in part.statements] == list(dict.fromkeys(asked))
        told = [count[name] for name in dict.fromkeys(asked)]
        assert part.sums(np.ones(len(log))).tolist() == told
        assert part.times.tolist() == told or (part is parts[-1] and part.times.sum() == pytest.approx(sum(told)))
        assert [names[part.statements[place]] for place in part.which] == asked
        sums = [sum(weights[i] for i in part.queries if names[i] == name) for name in dict.fromkeys(asked)]
        assert part.sums(weights) == pytest.approx(sums)
    if blocks.apart:
        assert all(len(part.queries) for part in parts)
        if None not in times:  # else queries without a time have that of the one before
            ends = [(min(times[i] for i in part.queries), max(times[i] for i in part.queries)) for part in parts]
            assert all(one[1] <= other[0] for one, other in pairwise(ends))


def test_of_dashboards_alone_each_block_holds_all() -> None:
    """First asked within minutes, then every hour: no quarter of them is the only one that chooses."""
    moments = [hour * HOUR + place for hour in range(200) for place in range(100)]
    blocks = split_log([place for _ in range(200) for place in range(100)], moments)
    for part, hours in ((blocks.train, 100), (blocks.select, 50), (blocks.promise, 50)):
        assert len(part.statements) == 100
        assert (part.times == hours).all()


def test_a_burst_of_one_statement_is_no_block_of_its_own() -> None:
    """Four hundred queries, and one that is asked three thousand times within an hour."""
    log = sorted([(i * HOUR, str(i)) for i in range(400)] + [(330 * HOUR + i, "again") for i in range(3000)])
    times, names = zip(*log, strict=True)
    blocks = split_log(names, times)
    assert [len(part.statements) > 60 for part in (blocks.train, blocks.select, blocks.promise)] == [True] * 3
    assert "again" not in blocks.train.each(names)


def test_what_a_statement_is() -> None:
    """Text for text, in its time zone: what it asks for is another thing in another zone."""

    def query(value: str, zone: str = "UTC") -> LoggedQuery:
        return LoggedQuery("t", Comparison("a", "=", (Literal("string", value),)), ("a",), "x", zone=zone)

    blocks = blocks_of([query("1"), query("2"), query("1"), query("1", "Asia/Tokyo")])
    assert not blocks.apart
    assert blocks.train.times.tolist() == [2, 1, 1]


def test_nothing_was_asked() -> None:
    blocks = split_log([], [])
    assert not blocks.apart
    assert len(blocks.train.times) == len(blocks.train.observed(np.zeros(0))) == blocks.train.conditions == 0


def test_what_is_one_observation() -> None:
    """A burst of a new statement is one; what comes back shows so in each part of the time, with time stamps or not."""
    rare, burst = [(i * HOUR, f"once {i}") for i in range(400)], [(350 * HOUR + i, "new") for i in range(3000)]
    log = sorted([*rare, *((i * HOUR + 1, "dashboard") for i in range(400)), *burst])
    times, names = zip(*log, strict=True)
    for moments in (times, [None] * len(times)):
        part = split_log(names, moments).promise
        asked = part.each(names)
        count = [len(set(part.seen[part.which == asked.index(name)].tolist())) for name in ("dashboard", "new")]
        assert count[1] == 1
        assert 3 <= count[0] <= PARTS
        assert count[0] == PARTS or moments is not times
        once = [place for place, name in enumerate(asked) if name.startswith("once")]
        assert len(part.observed(np.ones(len(asked)))) == len(once) + sum(count)
        assert part.observed(np.ones(len(asked))).sum() == pytest.approx(len(part.queries))


def test_tiles_of_a_page_are_one_observation_and_one_condition() -> None:
    """Their texts differ, what they filter by does not."""
    names = [(page, tile) for page in range(40) for tile in range(12)]
    blocks = split_log(names, list(range(len(names))), [page for page, _ in names])
    part = blocks.promise
    assert part.conditions == len(part.observed(np.ones(len(part.statements)))) < 12
    assert len(part.statements) > 100
    assert not split_log(names[:60], [None] * 60, [page for page, _ in names[:60]]).apart, "five pages"


def test_a_gain_by_a_single_dashboard_is_proved() -> None:
    """Nine of ten queries are its; ten a day are new, and gain nothing."""
    rng = np.random.default_rng(0)
    log = sorted((int(day * 24 * HOUR + rng.integers(24 * HOUR)), name) for day in range(28) for name in
                 ["dashboard"] * 90 + [f"{day} {i}" for i in range(10)])  # fmt: skip
    times, names = zip(*log, strict=True)
    part = split_log(names, times).promise
    after = np.array([float(name != "dashboard") for name in part.each(names)])
    told = promise(np.ones(len(after)), after, np.ones(len(after)), (100.0, "observed"), asked=part)
    assert 1 - told.after == pytest.approx(0.9, abs=0.02)
    assert 0.7 < told.low < 0.88
    assert 0.92 < told.high < 0.97


@pytest.mark.parametrize("life", [10.0, 1e6])
def test_what_is_known_weighs_what_it_will_when_dashboards_are_given_up(life: float) -> None:
    """Dashboards that live for ten days, or for ever: of twenty days to come, how many queries are of known ones?"""
    shares, ahead, came = [], [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        begin = rng.uniform(-15, 40, 60) if life < 100 else np.full(60, -15.0)
        spans = np.stack([np.clip(begin, 0, 40), np.clip(begin + rng.exponential(life, 60), 0, 40)], axis=1)
        log = [(int(day * HOUR), f"once {day}") for day in rng.uniform(0, 40, 200)]
        for place, (first, last) in enumerate(spans):
            days = rng.uniform(first, last, rng.poisson(5 * (last - first)))
            log += [(int(day * HOUR), str(place)) for day in days]
        log.sort()
        now = [one for one in log if one[0] < 20 * HOUR]
        times, names = zip(*now, strict=True)
        blocks = split_log(names, times)
        before = {names[i] for i in blocks.known.queries}
        part = blocks.promise
        known = np.array([name in before for name in part.each(names)])
        shares.append(part.sums(np.ones(len(names)))[known].sum() / len(part.queries))
        ahead.append(part.times[known].sum() / part.times.sum())
        there = set(names)
        came.append(np.mean([name in there for moment, name in log if moment >= 20 * HOUR]))
    assert np.mean(ahead) == pytest.approx(np.mean(came), abs=0.05)
    if life < 100:
        assert np.mean(shares) > np.mean(came) + 0.15, "what the block shows at once is too much"
