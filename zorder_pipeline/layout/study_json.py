"""A search's study as JSON and back: what outlives the machine, in a hundredth of the room of Optuna's own storages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from .draft import Draft
from .study import FORM, ORDER
from .trials import Space, features_of

__all__ = ["from_json", "to_json"]

NO_NAMES: Mapping[str, str] = {}


def to_json(study: optuna.Study) -> dict[str, Any]:
    """The study of `zorder_pipeline.layout.search.Found`: of each trial its bits and cost, from which all else follows.

    Times are seconds since the first trial began.

    >>> study = optuna.create_study(study_name="flights")
    >>> study.add_trial(Space(["a", "b"], [1, 1], 2).trial(Draft((1, 0)), 0.25, "greedy"))
    >>> told = to_json(study)
    >>> told["features"], told["bits"], [(t["order"], t["cost"], t["phase"]) for t in told["trials"]]
    (['a', 'b'], 2, [([1, 0], 0.25, 'greedy')])
    >>> [trial.params["start a"] for trial in from_json(told).trials]
    [1.0]
    """
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    features = features_of(trials[0]) if trials else []
    starts: list[Any] = [trials[0].distributions[f"start {name}"] for name in features]
    began = trials[0].datetime_start if trials else None
    return {
        "name": study.study_name,
        "attributes": dict(study.user_attrs),
        "features": features,
        "bits": max((round(shape.high / 2) for shape in starts), default=0),
        "began": None if began is None else began.astimezone(UTC).isoformat(),
        "trials": [_told(trial, began) for trial in trials],
    }


def from_json(told: Mapping[str, Any], names: Mapping[str, str] = NO_NAMES) -> optuna.Study:
    """A study in memory, as it was.

    Args:
        told: from `to_json`.
        names: what features are to be called instead, such as without literals; no two alike.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(study_name=told["name"])
    for name, value in told["attributes"].items():
        study.set_user_attr(name, value)
    features = [names.get(name, name) for name in told["features"]]
    space = Space(features, [told["bits"]] * len(features), told["bits"])
    for trial in told["trials"]:
        again = space.trial(Draft(tuple(trial["order"]), **trial.get("form", {})), trial["cost"], trial["phase"])
        began = datetime.fromisoformat(told["began"]).astimezone().replace(tzinfo=None)  # as Optuna has times
        again.datetime_start = began + timedelta(seconds=trial["from"])
        again.datetime_complete = began + timedelta(seconds=trial["to"])
        study.add_trial(again)
    return study


def _told(trial: FrozenTrial, began: datetime | None) -> dict[str, Any]:
    assert began is not None
    assert trial.datetime_start is not None
    assert trial.datetime_complete is not None
    told = {"order": trial.user_attrs[ORDER], "cost": trial.value, "phase": trial.user_attrs["phase"]}
    told |= {"form": trial.user_attrs[FORM]} if FORM in trial.user_attrs else {}
    times = {"from": trial.datetime_start, "to": trial.datetime_complete}
    return told | {name: round((time - began).total_seconds(), 3) for name, time in times.items()}
