"""Which columns mattered to a search, by the bits that good layouts give them."""

import numpy as np
import optuna
import pytest

from zorder_pipeline.layout.importance import column_importance

COLUMNS = ("day", "part", "noise")


def study(trials: int, cost: dict[str, float]) -> optuna.Study:
    """Random orders of twelve bits whose cost falls by so much with each column's bits."""
    rng = np.random.default_rng(0)
    anywhere = optuna.distributions.FloatDistribution(0.0, 1.0)
    made = optuna.create_study()
    for _ in range(trials):
        order = rng.integers(0, 3, 12).tolist()
        value = 10 - sum(cost.get(name, 0.0) * order.count(i) for i, name in enumerate(COLUMNS))
        params = {f"{kind} {name}": 0.5 for name in COLUMNS for kind in ("start", "stride")}
        trial = optuna.trial.create_trial(
            params=params,
            distributions=dict.fromkeys(params, anywhere),
            value=value,
            user_attrs={"order": order, "phase": "moves"},
        )
        made.add_trial(trial)
    return made


def test_the_column_that_decides_comes_first() -> None:
    found = column_importance(study(300, {"day": 0.5}))
    assert next(iter(found)) == "day"
    assert found["day"] > 0.5
    assert sum(found.values()) == pytest.approx(1.0)


def test_too_few_layouts_say_nothing() -> None:
    assert column_importance(study(10, {"day": 0.5})) == {}


def test_layouts_of_equal_cost_say_nothing() -> None:
    assert column_importance(study(60, {})) == {}
