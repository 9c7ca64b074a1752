"""A log in three blocks: by time, each statement once with the number of its queries, against counting one by one."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.layout.blocks import Asked, blocks_of, split_log
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
        assert part.times.tolist() == [count[name] for name in dict.fromkeys(asked)]
        assert [names[part.statements[place]] for place in part.which] == asked
        sums = [sum(weights[i] for i in part.queries if names[i] == name) for name in dict.fromkeys(asked)]
        assert part.sums(weights) == pytest.approx(sums)
    if blocks.apart:
        assert all(len(part.queries) for part in parts)
        told = [moment for moment in times if moment is not None]
        if len(told) == len(times):  # else queries without a time have that of the one before
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
    assert len(Asked.of(blocks.statement, blocks.statement).times) == 0
