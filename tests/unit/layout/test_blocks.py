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
        assert part.times.tolist() == part.sums(np.ones(len(log))).tolist() == told
        assert part.observed(np.ones(len(told))).sum() == len(asked)
        assert part.later.sum() == pytest.approx(len(asked))
        assert (part.later == 1).all() or part.queries.tolist() == parts[-1].queries.tolist()
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
    log = sorted([(i * HOUR, str(i)) for i in range(200)] + [(110 * HOUR + i, "again") for i in range(30_000)])
    times, names = zip(*log, strict=True)
    blocks = split_log(names, times)
    assert [part.conditions >= 40 for part in (blocks.train, blocks.select, blocks.promise)] == [True] * 3


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
    rare, burst = [(i * 4 * HOUR, f"once {i}") for i in range(400)], [(1400 * HOUR + i, "new") for i in range(3000)]
    log = sorted([*rare, *((i * 4 * HOUR + 1, "dashboard") for i in range(400)), *burst])
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


DAY = 24 * HOUR


def dashboards(seed: int, life: float, born: bool = True) -> list[tuple[int, str]]:
    """Forty days of sixty dashboards, asked five times a day each from their birth until they are given up, and of ten
    queries a day that nobody asks again."""
    rng = np.random.default_rng(seed)
    begin = rng.uniform(-15, 40, 60) if born else np.full(60, -15.0)
    spans = np.stack([np.clip(begin, 0, 40), np.clip(begin + rng.exponential(life, 60), 0, 40)], axis=1)
    log = [(int(day * DAY), f"once {day}") for day in rng.uniform(0, 40, 400)]
    for place, (first, last) in enumerate(spans):
        log += [(int(day * DAY), str(place)) for day in rng.uniform(first, last, rng.poisson(5 * (last - first)))]
    return sorted(log)


def promised(log: list[tuple[int, str]], gains: str) -> tuple[float, float, float, float]:
    """Lower end, promise and upper end of what the last of a log's blocks saves where what was known before it gains
    by 0.9, or else what was not, and what came afterwards."""
    now = [one for one in log if one[0] < 20 * DAY]
    times, names = zip(*now, strict=True)
    blocks = split_log(names, times)
    known = {names[i] for i in blocks.known.queries}

    def gain(name: str) -> float:
        return 0.9 if gains == "all" or (name in known) == (gains == "known") else 0.0

    after = 1 - np.array([gain(name) for name in blocks.promise.each(names)])
    ones = np.ones(len(after))
    told = promise(ones, after, ones, (100.0, "observed"), asked=blocks.promise)
    came = float(np.mean([gain(name) for moment, name in log if moment >= 20 * DAY]))
    return told.low, 1 - told.after, told.high, came


def test_the_least_reckons_with_dashboards_that_are_given_up() -> None:
    """They live for ten days: what is known today gains, and in the days to come fewer ask for it."""
    found = np.array([promised(dashboards(seed, 10.0), "known") for seed in range(20)])
    low, told, _, came = found.T
    assert told.mean() > came.mean() + 0.1, "what the block shows at once is too much"
    assert low.mean() == pytest.approx(came.mean(), abs=0.06)
    lasting = np.array([promised(dashboards(seed, 1e6, born=False), "known") for seed in range(20)])
    assert np.mean(lasting[:, 1] - lasting[:, 3]) == pytest.approx(0.0, abs=0.02)
    assert np.mean(lasting[:, 1] - lasting[:, 0]) < 0.05, "nothing is given up, nothing is taken off"


@pytest.mark.parametrize("gains", ["known", "new"])
def test_dashboards_that_were_replaced_once_promise_no_less(gains: str) -> None:
    """A third of a log's dashboards make way for others before its last block begins; whoever asks once goes on."""
    for seed in range(5):
        log = [(moment, f"new {name}" if moment > 12 * DAY and name.isdigit() and int(name) < 20 else name)
               for moment, name in dashboards(seed, 1e6, born=False)]  # fmt: skip
        low, told, high, came = promised(log, gains)
        assert told == pytest.approx(came, abs=0.03)
        assert told - low < 0.05
        assert low <= came <= high


def test_a_single_new_query_takes_nothing_from_what_is_known() -> None:
    log = [(moment, name) for moment, name in dashboards(0, 1e6, born=False) if name.isdigit()]
    low, told, *_ = promised(log, "known")
    assert (low, told) == pytest.approx((0.9, 0.9))
    low, told, *_ = promised(sorted([*log, (int(19.5 * DAY), "once")]), "known")
    assert low > 0.89
    assert told > 0.899


def test_a_burst_across_the_end_of_a_block_is_one_observation() -> None:
    """What is asked in a moment shows nothing of its coming back, though it was asked before the block began."""
    log = sorted([(i * DAY, f"once {i}") for i in range(12)] + [(9 * DAY + i, "burst") for i in range(3000)])
    times, names = zip(*log, strict=True)
    blocks = split_log(names, times)
    assert "burst" in blocks.train.each(names) or "burst" in blocks.select.each(names)
    for part in (blocks.select, blocks.promise):
        burst = [place for place, name in enumerate(part.each(names)) if name == "burst"]
        assert len(set(part.seen[np.isin(part.which, burst)].tolist())) <= 1


def test_copies_of_a_query_for_another_reader_belong_to_its_observation() -> None:
    blocks = split_log(list(range(40)), [None] * 40)
    both = blocks.twice().select
    assert len(both.statements) == 2 * len(blocks.select.statements)
    gain = np.arange(len(blocks.select.statements), dtype=float)
    assert both.observed(np.concatenate([gain, gain])).tolist() == (2 * gain).tolist()


def test_what_is_known_when_a_layout_is_refined_is_all_but_what_it_promises_by() -> None:
    blocks = split_log([i % 9 for i in range(60)], list(range(60)))
    before = [*blocks.train.queries.tolist(), *blocks.select.queries.tolist()]
    assert blocks.known.queries.tolist() == sorted(before)
    assert not set(before) & set(blocks.promise.queries.tolist())


@pytest.mark.parametrize("queries", [60, 3])
def test_queries_that_are_asked_once_more_are_other_statements_and_no_further_observations(queries: int) -> None:
    blocks = split_log([i % 9 for i in range(queries)], list(range(queries)))
    twice = blocks.twice()
    for once, both in ((blocks.train, twice.train), (blocks.select, twice.select), (blocks.promise, twice.promise)):
        again = [i + queries for i in once.queries.tolist()]
        assert both.queries.tolist() == [*once.queries.tolist(), *again]
        assert both.times.tolist() == [*once.times.tolist()] * 2
        assert (both.conditions, both.observations) == (once.conditions, once.observations)
        assert both.later.tolist() == [*once.later.tolist()] * 2
    assert split_log([], []).twice().train.observations == 0
