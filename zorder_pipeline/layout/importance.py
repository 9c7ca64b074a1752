"""Which columns the outcome of a search depended on: Optuna's parameter importance, over the bits each column got."""

from __future__ import annotations

import optuna
from optuna.distributions import BaseDistribution, IntDistribution
from optuna.trial import TrialState

from .encoding import FINE_BITS
from .trials import features_of

__all__ = ["column_importance"]

MIN_TRIALS = 40
"""Fewer layouts than this say nothing about a column."""


def column_importance(study: optuna.Study) -> dict[str, float]:
    """How much the share of rows read depended on how many bits each column got, as shares of 1, the largest first.

    Optuna's default, PED-ANOVA (Watanabe et al. 2023), compares the bits of the best tenth of the layouts with those
    of all. A column is unimportant when the good layouts give it as many bits as the bad ones do. A search's own
    parameters, start and stride, would say the same twice per column, and of columns without bits as well.

    Args:
        study: the study of `zorder_pipeline.layout.search.Found`.

    Returns:
        Empty when too few layouts were tried, or when they do not differ.
    """
    trials = [t for t in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)) if "order" in t.user_attrs]
    if len(trials) < MIN_TRIALS or len({trial.value for trial in trials}) == 1:
        return {}
    names = features_of(trials[0])
    bits = [[min(t.user_attrs["order"].count(i), FINE_BITS) for i in range(len(names))] for t in trials]
    varied = [i for i in range(len(names)) if len({row[i] for row in bits}) > 1]
    distributions: dict[str, BaseDistribution] = {names[i]: IntDistribution(0, FINE_BITS) for i in varied}
    allocations = optuna.create_study(direction=study.direction)
    allocations.add_trials(
        [
            optuna.trial.create_trial(
                params={names[i]: row[i] for i in varied}, distributions=distributions, value=trial.value
            )
            for row, trial in zip(bits, trials, strict=True)
        ]
    )
    try:
        found = optuna.importance.get_param_importances(allocations)
    except (ValueError, RuntimeError):  # trials that it can make nothing of
        return {}
    return {name: share for name, share in sorted(found.items(), key=lambda item: -item[1]) if share > 0}
