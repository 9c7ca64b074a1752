"""Which layout is taken on the select queries: the best of ours, where it is surely better than what there is."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

from zorder_pipeline.layout.choosing import MIN_GAIN, STORED, choose
from zorder_pipeline.layout.evidence import BlockQueries
from zorder_pipeline.model.asked import Asked

QUERIES = 40
HALF = np.full(QUERIES, 0.5)


def chosen(standing: npt.NDArray[np.float64] = HALF, **shares: npt.NDArray[np.float64]) -> str:
    """By queries that weigh alike, each an observation of its own."""
    asked, weights = Asked.once(len(standing)), np.ones(len(standing))
    select = BlockQueries([], cast(Any, None), weights, asked, weights)
    return choose(shares, standing, select, np.random.default_rng(0))


def test_the_one_of_ours_that_reads_least_is_taken() -> None:
    assert chosen(learned=HALF * 0.6, tree=HALF * 0.5) == "tree"
    assert chosen(learned=HALF * 0.5, tree=HALF * 0.6) == "learned"


@pytest.mark.parametrize(("less", "name"), [(MIN_GAIN - 0.01, STORED), (MIN_GAIN + 0.01, "learned"), (-0.5, STORED)])
def test_a_table_stays_as_it_is_unless_enough_is_gained(less: float, name: str) -> None:
    assert chosen(learned=HALF * (1 - less)) == name


def test_without_a_layout_of_ours_or_without_queries_the_table_stays() -> None:
    assert chosen(linear=HALF * 0.1) == STORED
    assert chosen(np.empty(0), learned=np.empty(0)) == STORED


def test_what_most_queries_gain_and_some_lose_is_no_sure_gain() -> None:
    """Nine read a fifth less and each tenth reads twice as much: on average they gain, in too few resamples."""
    unsure = np.where(np.arange(QUERIES) % 10 == 0, 1.0, 0.4)
    assert unsure.mean() < HALF.mean() * (1 - MIN_GAIN)
    assert chosen(learned=unsure) == STORED


def better_in(share: float) -> npt.NDArray[np.float64]:
    """What a baseline reads that is better than a quarter of the rows by so many of the queries, and else worse."""
    return np.where(np.arange(QUERIES) < share * QUERIES, 0.2, 0.3)


def test_a_baseline_is_taken_only_where_it_is_surely_better_and_the_surer_the_more_of_them_there_are() -> None:
    learned, luck, sure = HALF * 0.5, better_in(0.55), better_in(0.65)
    assert chosen(learned=learned, linear=luck) == "learned"
    assert chosen(learned=learned, linear=sure) == "linear"
    others = {f"column {i}": np.ones(QUERIES) for i in range(200)}
    assert chosen(learned=learned, linear=sure, **others) == "learned", "the best of many is so by luck"
    assert chosen(learned=learned, linear=better_in(0.95), **others) == "linear"


def test_a_better_baseline_has_to_beat_what_there_is_too() -> None:
    stands = np.full(QUERIES, 0.2)
    assert chosen(stands, learned=HALF, linear=stands * (1 - MIN_GAIN + 0.01)) == STORED
