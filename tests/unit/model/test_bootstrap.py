"""Resampled sums against what is known of them, also where they are drawn in several goes."""

from typing import Any

import numpy as np
import pytest

from zorder_pipeline.model import bootstrap
from zorder_pipeline.model.bootstrap import MOST, RESAMPLES, resampled_sums, widening


@pytest.mark.parametrize("at_once", [1, 100, 350, 1 << 21])
def test_every_sum_is_drawn_however_many_are_held_at_a_time(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "AT_ONCE", at_once)
    values = np.random.default_rng(1).lognormal(size=50)
    ones, sums, twice = resampled_sums(np.array([np.ones(50), values, 2 * values]), np.random.default_rng(0))
    assert ones.tolist() == [50.0] * RESAMPLES
    assert twice == pytest.approx(2 * sums), "all measures of a draw are of the same observations"
    assert sums.mean() == pytest.approx(values.sum(), rel=0.02)
    assert sums.std() == pytest.approx(values.std() * 50**0.5, rel=0.06)
    assert abs(np.corrcoef(sums[:-1], sums[1:])[0, 1]) < 0.1, "each draw is another one"


class Drawing:
    """Draws as a generator does, and counts how much."""

    def __init__(self) -> None:
        self.rng, self.drawn = np.random.default_rng(0), 0

    def integers(self, most: int, size: tuple[int, int]) -> np.ndarray:
        self.drawn += size[0] * size[1]
        return self.rng.integers(most, size=size)

    def permutation(self, count: int) -> np.ndarray:
        return self.rng.permutation(count)


@pytest.mark.parametrize("observations", [MOST + 1, 25_003])
def test_of_very_many_observations_groups_are_drawn_that_vary_as_much(observations: int) -> None:
    """A hundred thousand took seconds for each candidate of a table."""
    rng = np.random.default_rng(1)
    values = 50 + rng.lognormal(size=observations)
    values[:5] += 2_000  # that few of them make most of the spread shows as much
    drawing: Any = Drawing()
    ones, sums, twice = resampled_sums(np.array([np.ones(observations), values, 2 * values]), drawing)
    assert drawing.drawn <= RESAMPLES * MOST
    assert ones.tolist() == [float(observations)] * RESAMPLES
    assert twice == pytest.approx(2 * sums), "all measures of a draw are of the same observations"
    assert sums.mean() == pytest.approx(values.sum(), rel=0.001)
    assert sums.std() == pytest.approx(values.std() * observations**0.5, rel=0.06)
    again = resampled_sums(values[None], np.random.default_rng(0))
    assert again.tolist() == resampled_sums(values[None], np.random.default_rng(0)).tolist()


def test_up_to_some_thousands_are_drawn_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "RESAMPLES", 20)
    values = np.random.default_rng(1).lognormal(size=(2, MOST))
    draws = np.random.default_rng(0).integers(MOST, size=(20, MOST))
    assert resampled_sums(values, np.random.default_rng(0)).tolist() == [
        own[draws].sum(axis=1).tolist() for own in values
    ]


def test_nothing_observed_sums_to_nothing() -> None:
    assert not resampled_sums(np.empty((2, 0)), np.random.default_rng(0)).any()


@pytest.mark.parametrize("observations", [5, 8, 20])
def test_widened_percentiles_of_normal_observations_miss_the_mean_as_often_as_they_say(observations: int) -> None:
    """The bootstrap's own spread stands for its percentiles, which are normal but for it."""
    drawn = np.random.default_rng(2).normal(size=(40_000, observations))
    spread = drawn.std(axis=1) / observations**0.5
    reach = 1.959964 * widening(observations, 0.975) * spread
    assert np.mean(drawn.mean(axis=1) > reach) == pytest.approx(0.025, abs=0.004)
    assert np.mean(drawn.mean(axis=1) > 1.959964 * spread) > 0.032, "unwidened too often"


def test_of_one_observation_nothing_is_known() -> None:
    assert widening(1, 0.975) == widening(0, 0.975) == 1.0
