"""Resampled sums against what is known of them, also where they are drawn in several goes."""

import numpy as np
import pytest

from zorder_pipeline.model import bootstrap
from zorder_pipeline.model.bootstrap import RESAMPLES, resampled_sums, widening


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
